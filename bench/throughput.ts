/** Many conversations at once, each sending its next message when the last was answered. */
import { type ChatClient, connect, makeConversations } from "./lib/client.ts";
import { type Figure, figure, median } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { cpuOf, makeHome, now, startDaemon, startFloor } from "./lib/processes.ts";
import { warm, warmMessages } from "./lib/warm.ts";

interface Rate {
	perSecond: number;
	/** Processor time of the service for one message, ms: a figure that a busy machine distorts less than the rate. */
	cpuMs: number;
}

async function rate(client: ChatClient, pid: number, conversations: string[], ms: number): Promise<Rate> {
	let answered = 0;
	const endsAt = now() + ms;
	const startedAt = now();
	const cpuBefore = (await cpuOf(pid)) ?? Number.NaN;
	await Promise.all(
		conversations.map(async (conversation) => {
			while (now() < endsAt) {
				await client.ask(conversation, `hello ${answered}`);
				answered++;
			}
		}),
	);
	const perSecond = (answered / (now() - startedAt)) * 1000;
	return { perSecond, cpuMs: (((await cpuOf(pid)) ?? Number.NaN) - cpuBefore) / answered };
}

const AT = [1, 10, 50];
/** How a service begins: so many messages right after its start. */
const FIRST = 1_000;

async function rates(client: ChatClient, pid: number, conversations: string[], quick: boolean): Promise<Map<number, Rate[]>> {
	const found = new Map<number, Rate[]>(AT.map((count) => [count, []]));
	for (let run = 0; run < (quick ? 1 : 3); run++) {
		for (const count of AT) found.get(count)?.push(await rate(client, pid, conversations.slice(0, count), quick ? 1_500 : 3_000));
	}
	return found;
}

export const throughput: BenchGroup = {
	name: "throughput",
	title: "Messages a second",
	async run({ model, quick }) {
		const floor = await startFloor(model.url);
		const floorClient = await connect(floor.url, "/live");
		const places = Array.from({ length: 50 }, (_, n) => `c${n}`);
		const bareFirst = await warm(floorClient, places, FIRST);
		await warm(floorClient, places, warmMessages(quick) - FIRST);
		const bare = await rates(floorClient, floor.pid, places, quick);
		floorClient.close();
		await floor.close();

		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const conversations = await makeConversations(daemon, 50);
			const oursFirst = await warm(client, conversations, FIRST);
			await warm(client, conversations, warmMessages(quick) - FIRST);
			const ours = await rates(client, daemon.pid, conversations, quick);
			const figures: Figure[] = [];
			const perSecond = (of: Map<number, Rate[]>, count: number) => (of.get(count) ?? []).map((one) => one.perSecond);
			const cpu = (of: Map<number, Rate[]>) => (of.get(50) ?? []).map((one) => one.cpuMs);
			for (const count of AT) {
				const aim = count === 50 ? { aim: { atLeast: 300 } } : {};
				figures.push(figure(`${count} conversation${count > 1 ? "s" : ""}`, "/s", perSecond(ours, count), aim));
			}
			const kept = (100 * median(perSecond(ours, 50))) / median(perSecond(ours, 10));
			figures.push(figure("  rate at 50 of the rate at 10", "%", [kept], { aim: { atLeast: 90 } }));
			figures.push(figure("  processor time of a message, at 50", "ms", cpu(ours)));
			figures.push(figure(`  the first ${FIRST.toLocaleString("en")} after a start, at 50`, "/s", [oursFirst]));
			for (const count of AT) figures.push(figure(`the floor: ${count}`, "/s", perSecond(bare, count)));
			figures.push(figure("  processor time of a message, at 50", "ms", cpu(bare)));
			figures.push(figure(`  the first ${FIRST.toLocaleString("en")} after a start, at 50`, "/s", [bareFirst]));
			return figures;
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
