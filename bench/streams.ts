/** A hundred answers at once, each streamed at fifty tokens a second. */
import { bareCall, createBareClient } from "./bare.ts";
import { connect, makeConversations } from "./lib/client.ts";
import { figure, median, percentile } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { ASKS, SLOW } from "./lib/messages.ts";
import { makeHome, startDaemon } from "./lib/processes.ts";
import { warm, warmMessages } from "./lib/warm.ts";

const STREAMS = 100;
/** Short messages in every measured conversation first; fewer than make memory compress it beside them. */
const WARM_UP = 4;

export const streams: BenchGroup = {
	name: "streams",
	title: `${STREAMS} streams of ${1000 / SLOW.everyMs} tokens/s at once`,
	async run({ model, quick }) {
		const bare = createBareClient(model);
		// Ideal: what a single stream takes, alone, without us.
		const alone: number[] = [];
		for (let run = 0; run < 3; run++) alone.push((await bareCall(bare, ASKS.slow)).totalMs);
		const idealMs = median(alone);
		for (let run = 0; run < warmMessages(quick) / STREAMS; run++)
			await Promise.all(Array.from({ length: STREAMS }, () => bareCall(bare, "warm up")));
		const crowd = await Promise.all(Array.from({ length: STREAMS }, () => bareCall(bare, ASKS.slow)));

		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);
		try {
			const conversations = await makeConversations(daemon, STREAMS);
			await warm(client, await makeConversations(daemon, 50), warmMessages(quick));
			for (let run = 0; run < WARM_UP; run++) await Promise.all(conversations.map((conversation) => client.ask(conversation, "warm up")));
			const ratios: number[] = [];
			const first: number[] = [];
			for (let run = 0; run < (quick ? 1 : 3); run++) {
				const timings = await Promise.all(conversations.map((conversation) => client.ask(conversation, `${ASKS.slow} ${run}`)));
				const other = timings.find((one) => !one.text.startsWith("token0 "));
				if (other) throw new Error(`another answer than scripted: ${other.text.slice(0, 200)}`);
				ratios.push(...timings.map((one) => (one.doneAt - one.sentAt) / idealMs));
				first.push(...timings.map((one) => one.firstAt - one.sentAt));
			}
			const crowdRatio =
				percentile(
					crowd.map((one) => one.totalMs),
					0.95,
				) / idealMs;
			return [
				figure("ideal: one stream alone, bare SDK", "ms", alone),
				figure("whole answer, of ideal", "x", ratios, { show: "percentiles", aim: { atMost: 1.15, of: "p95" } }),
				figure("first token", "ms", first, { show: "percentiles", aim: { atMost: 300, of: "p95" } }),
				figure("bare SDK, 100 at once, of ideal (p95)", "x", [crowdRatio]),
			];
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
