import { afterEach, describe, expect, it } from "vitest";
import { defaultLimits } from "../../../server/agent/limits.ts";
import { runTurn } from "../../../server/agent/run-turn.ts";
import type { Model, ModelReply } from "../../../server/model/model.ts";
import { compare, NotReplayable, replay, type StoredTurn, transcriptOf } from "../../../server/observe/replay.ts";
import { recordTurn } from "./recorded-turn.ts";

let recorded: Awaited<ReturnType<typeof recordTurn>> | null = null;
afterEach(async () => {
	await recorded?.close();
	recorded = null;
});

async function load(): Promise<StoredTurn> {
	recorded = await recordTurn({
		said: "Read both and compare",
		answers: [
			{ text: "First the one.", calls: [["read_file", { path: "a.txt" }]] },
			{
				calls: [
					["read_file", { path: "b.txt" }],
					["read_file", { path: "missing" }],
				],
			},
			{ text: "They are the same." },
		],
		tools: { read_file: ({ path }) => (path === "missing" ? "failed: there is no such file" : `contents of ${path}`) },
	});
	const { store } = recorded;
	const turn = await store.turns.get("turn-1");
	const [message] = await Promise.all((await store.turns.messageIds("turn-1")).map((id) => store.messages.get(id)));
	const reply = await store.messages.replyOf("turn-1");
	if (!turn || !message) throw new Error("not recorded");
	return {
		turn,
		messages: [message],
		steps: await store.turns.steps("turn-1"),
		calls: await store.ledger.callsOf("turn-1"),
		reply: reply?.text ?? null,
		timezone: "Asia/Shanghai",
		locale: "en",
	};
}

const limits = defaultLimits();
const signal = AbortSignal.timeout(20_000);

describe("a replay", () => {
	it("does the same from the recording, twice, without running a tool", async () => {
		const stored = await load();
		const then = transcriptOf(stored);
		const first = await replay({ stored, runTurn, limits, signal });
		const second = await replay({ stored, runTurn, limits, signal });
		expect(compare(then, first)).toEqual([]);
		expect(second).toEqual(first);
		expect(first.requests).toHaveLength(3);
		expect(first.requests[2]).toContain("result: contents of b.txt");
		expect(first.reply).toBe("They are the same.");
	});

	it("shows where today's code differs", async () => {
		const stored = await load();
		const then = transcriptOf(stored);
		const changed = await replay({ stored, runTurn, limits: { ...limits, toolResultChars: 10, stepResultChars: 10 }, signal });
		const where = compare(then, changed).map((difference) => difference.where);
		expect(where).toContain("request 2");
		expect(where).toContain("step 1, call 1");
		const shorter = await replay({ stored, runTurn, limits: { ...limits, maxSteps: 1, maxRounds: 1 }, signal });
		expect(compare(then, shorter).map((difference) => difference.where)).toContain("reply");
	});

	it("gives another model the recorded results, and says so where there are none", async () => {
		const stored = await load();
		const usage = { inputTokens: 10, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" };
		const script: [string, Record<string, unknown>][][] = [
			[
				["read_file", { path: "b.txt" }],
				["read_file", { path: "never.txt" }],
			],
			[],
		];
		const seen: string[] = [];
		const model: Model = {
			contextTokens: () => 100_000,
			async *stream(request) {
				seen.push(...request.messages.flatMap((message) => (message.role === "tool" ? [message.text] : [])));
				const calls = (script.shift() ?? []).map(([name, args], index) => ({ id: `x${index}`, name, arguments: JSON.stringify(args) }));
				const reply: ModelReply = {
					text: calls.length ? "" : "other",
					reasoning: "",
					calls,
					finish: "stop",
					usage,
					model: "m2",
					modelName: "other-model",
					callIds: [],
					ms: 1,
					firstByteMs: 1,
				};
				yield { type: "end" as const, reply };
			},
		};
		const now = await replay({ stored, runTurn, limits, model, signal });
		expect(seen[0]).toBe("contents of b.txt");
		expect(seen[1]).toContain("not run");
		expect(now).toMatchObject({ reply: "other", modelName: "other-model", usage: { inputTokens: 20, cost: null } });
	});

	it("refuses when the bodies are gone", async () => {
		const stored = await load();
		await recorded?.store.ledger.pruneCalls(recorded.clock.now() + 40 * 86_400_000, { days: 30, bytes: 1e9 });
		const calls = (await recorded?.store.ledger.callsOf("turn-1")) ?? [];
		expect(calls).toHaveLength(3);
		await expect(replay({ stored: { ...stored, calls }, runTurn, limits, signal })).rejects.toBeInstanceOf(NotReplayable);
	});
});
