/** One message at a time: what a durable message and a tool step cost beside the bare call, and beside the floor. */
import { bareCall, createBareClient } from "./bare.ts";
import { type ChatClient, connect, makeConversations, type Timing } from "./lib/client.ts";
import { figure, median } from "./lib/figures.ts";
import type { BenchContext, BenchGroup } from "./lib/group.ts";
import { ASKS, REPLY } from "./lib/messages.ts";
import { type ModelTimes, makeHome, startDaemon, startFloor } from "./lib/processes.ts";
import { warm, warmMessages } from "./lib/warm.ts";

interface Sample {
	timing: Timing;
	calls: ModelTimes[];
	/** A bare call made just before, so that both saw the same machine. */
	bareMs: number;
}

async function sample(
	context: BenchContext,
	client: ChatClient,
	conversations: string[],
	prefix: string,
	count: number,
): Promise<Sample[]> {
	const bare = createBareClient(context.model);
	const timings: { key: string; timing: Timing; bareMs: number }[] = [];
	for (let n = -20; n < count; n++) {
		if (n === 0) await context.model.note("times");
		const key = `${prefix}hello number ${n} end`;
		const { totalMs: bareMs } = await bareCall(bare, "bare");
		const timing = await client.ask(conversations[Math.abs(n) % conversations.length] ?? "", key);
		if (timing.text !== "" && prefix === "" && timing.text !== REPLY) throw new Error(`another answer than scripted: ${timing.text}`);
		if (n >= 0) timings.push({ key, timing, bareMs });
	}
	const times = await context.model.times();
	await context.model.note("nothing");
	return timings.map(({ key, timing, bareMs }) => ({ timing, bareMs, calls: times.filter((one) => one.lastUser.includes(key)) }));
}

const total = (one: Sample) => one.timing.doneAt - one.timing.sentAt;
const before = (one: Sample) => (one.calls[0]?.arrivedAt ?? Number.NaN) - one.timing.sentAt;
const after = (one: Sample) => one.timing.doneAt - (one.calls.at(-1)?.endedAt ?? Number.NaN);

export const chat: BenchGroup = {
	name: "chat",
	title: "One message (tools and memory on)",
	async run(context) {
		const count = context.quick ? 60 : 300;
		const floor = await startFloor(context.model.url);
		const floorClient = await connect(floor.url, "/live");
		const places = ["a", "b", "c", "d"];
		await warm(floorClient, places, warmMessages(context.quick));
		const bare = await sample(context, floorClient, places, "", count);
		floorClient.close();
		await floor.close();

		const home = await makeHome();
		const daemon = await startDaemon(home.path, context.model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const conversations = await makeConversations(daemon, 10);
			await warm(client, await makeConversations(daemon, 50), warmMessages(context.quick));
			const plain = await sample(context, client, conversations, "", count);
			const withTool = await sample(context, client, conversations, `${ASKS.tool} `, count);
			const S = median([...plain, ...withTool].map((one) => one.bareMs));
			const lone = plain.filter((one) => one.calls.length !== 1).length;
			const plainMs = median(plain.map(total));
			const step = withTool.map((one) => total(one) - plainMs);
			const inside = withTool.map((one) => (one.calls[1]?.arrivedAt ?? Number.NaN) - (one.calls[0]?.endedAt ?? Number.NaN));
			const floorMs = median(bare.map(total));
			return [
				figure(
					"S, measured between the messages",
					"ms",
					plain.map((one) => one.bareMs),
				),
				figure("a message in all", "ms", plain.map(total), { aim: { atMost: 6 * S, text: `≤ 6 S = ${(6 * S).toFixed(1)}` } }),
				figure("  the same, p95", "ms", plain.map(total), {
					show: "percentiles",
					aim: { atMost: 15 * S, of: "p95", text: `p95 ≤ 15 S = ${(15 * S).toFixed(1)}` },
				}),
				figure("  in S", "x", [plainMs / S], { aim: { atMost: 6 } }),
				figure("  message to first model request", "ms", plain.map(before), { aim: { atMost: 5 } }),
				figure("  last model byte to delivery", "ms", plain.map(after)),
				figure("  model calls that were not exactly one", "", [lone], { aim: { atMost: 0 } }),
				figure("the floor: bare echo in all", "ms", bare.map(total)),
				figure("  message to model request", "ms", bare.map(before)),
				figure("  last model byte to delivery", "ms", bare.map(after)),
				figure("  our message in floors", "x", [plainMs / floorMs]),
				figure("one tool step more", "ms", step, { aim: { atMost: 5 * S, text: `≤ 5 S = ${(5 * S).toFixed(1)}` } }),
				figure("  last byte of the call to the next request", "ms", inside),
			];
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
