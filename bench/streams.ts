/**
 * A hundred answers at once, each streamed at fifty tokens a second. The aims leave the length open: a first token after 0.3 s can be within
 * 1.15 of ideal only where the answer takes two seconds or more. They are held against an answer of four; one of a second stands beside it.
 */
import { bareCall, createBareClient } from "./bare.ts";
import { connect, makeConversations } from "./lib/client.ts";
import { figure, median } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { ASKS, STREAM } from "./lib/messages.ts";
import { makeHome, startDaemon } from "./lib/processes.ts";
import { warm, warmMessages } from "./lib/warm.ts";

const STREAMS = 100;
/** Short messages in every measured conversation first; with those measured fewer than make memory compress it beside them. */
const WARM_UP = 1;

export const streams: BenchGroup = {
	name: "streams",
	title: `${STREAMS} streams of ${1000 / STREAM.everyMs} tokens/s at once`,
	async run({ model, quick }) {
		const bare = createBareClient(model);
		for (let run = 0; run < warmMessages(quick) / STREAMS; run++)
			await Promise.all(Array.from({ length: STREAMS }, () => bareCall(bare, "warm up")));

		/** Ideal: what a single stream takes, alone, without us. And what a hundred take without us. */
		async function without(ask: string) {
			const alone: number[] = [];
			for (let run = 0; run < 3; run++) alone.push((await bareCall(bare, ask)).totalMs);
			const idealMs = median(alone);
			const together = await Promise.all(Array.from({ length: STREAMS }, () => bareCall(bare, ask)));
			return { alone, idealMs, ratios: together.map((one) => one.totalMs / idealMs) };
		}
		const bareShort = await without(ASKS.short);
		const bareLong = await without(ASKS.long);

		const home = await makeHome();
		const daemon = await startDaemon(home.path, model.url);
		const client = await connect(daemon.url, "/api/v1/live", daemon.token);

		async function crowd(ask: string, idealMs: number, conversations: string[], runs: number) {
			const ratios: number[] = [];
			const first: number[] = [];
			for (let run = 0; run < runs; run++) {
				const timings = await Promise.all(conversations.map((conversation) => client.ask(conversation, `${ask} ${run}`)));
				const other = timings.find((one) => !one.text.startsWith("token0 "));
				if (other) throw new Error(`another answer than scripted: ${other.text.slice(0, 200)}`);
				ratios.push(...timings.map((one) => (one.doneAt - one.sentAt) / idealMs));
				first.push(...timings.map((one) => one.firstAt - one.sentAt));
			}
			return { ratios, first };
		}

		try {
			const conversations = await makeConversations(daemon, STREAMS);
			await warm(client, await makeConversations(daemon, 50), warmMessages(quick));
			for (let run = 0; run < WARM_UP; run++) await Promise.all(conversations.map((conversation) => client.ask(conversation, "warm up")));
			const runs = quick ? 1 : 3;
			const short = await crowd(ASKS.short, bareShort.idealMs, conversations, runs);
			const long = await crowd(ASKS.long, bareLong.idealMs, conversations, runs);
			return [
				figure(`ideal: one stream of ${STREAM.longTokens} tokens alone, bare SDK`, "ms", bareLong.alone),
				figure("whole answer, of ideal", "x", long.ratios, { show: "percentiles", aim: { atMost: 1.15, of: "p95" } }),
				figure("first token", "ms", [...short.first, ...long.first], { show: "percentiles", aim: { atMost: 300, of: "p95" } }),
				figure("bare SDK, 100 at once, of ideal", "x", bareLong.ratios, { show: "percentiles" }),
				figure(`${STREAM.shortTokens} tokens: whole answer, of ideal`, "x", short.ratios, { show: "percentiles" }),
				figure("  bare SDK, 100 at once, of ideal", "x", bareShort.ratios, { show: "percentiles" }),
			];
		} finally {
			client.close();
			await daemon.stop();
			await home.remove();
		}
	},
};
