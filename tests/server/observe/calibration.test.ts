import { describe, expect, it } from "vitest";
import { createTokenCounter } from "../../../server/model/tokens.ts";
import { createCalibration } from "../../../server/observe/calibration.ts";
import { explainTurn } from "../../../server/observe/why.ts";
import type { CallRow } from "../../../server/store/store.ts";
import { openLedger } from "../store/open-ledger.ts";

describe("what was learned of a model's tokens", () => {
	it("is there again after a restart, within a tenth of the true count", async () => {
		const home = await openLedger();
		const text = "The quick brown fox jumps over the lazy dog. ".repeat(40);
		const make = () =>
			createCalibration({ counter: createTokenCounter(), ledger: home.ledger, onError: (error) => expect.unreachable(String(error)) });
		const first = make();
		const plain = first.count("odd-model", text);
		const truth = Math.round(plain * 1.7);
		for (let i = 0; i < 3; i += 1) first.learn("odd-model", first.count("odd-model", text), truth);
		expect(Math.abs(first.count("odd-model", text) - truth) / truth).toBeLessThan(0.1);
		await home.ledger.ratios();
		const second = make();
		expect(second.count("odd-model", text)).toBe(plain);
		await second.load();
		expect(Math.abs(second.count("odd-model", text) - truth) / truth).toBeLessThan(0.1);
		expect(second.count("other-model", text)).toBe(plain);
		await home.close();
	});
});

describe("why", () => {
	it("names blocks, recall, the model that answered with the reason, and the cost by source", () => {
		const usage = { inputTokens: 100, cachedTokens: 0, outputTokens: 10, reasoningTokens: 0, estimated: false, cost: 0.5, currency: "USD" };
		const call = (change: Partial<CallRow>): CallRow => ({
			id: "c",
			turnId: "t",
			conversationId: "c",
			personId: "master",
			source: "chat",
			model: "main",
			modelName: "main-1",
			at: 0,
			usage,
			ms: 1,
			firstByteMs: 1,
			attempt: 1,
			key: "sk-…a1b2",
			state: "done",
			error: null,
			...change,
		});
		const why = explainTurn(
			{
				why: {
					blocks: [{ name: "soul", chars: 400 }],
					recalled: [{ text: "x", score: 1, at: "", source: "", by: "keyword" }],
					picked: "main",
					folded: 2,
				},
				model: "main",
			},
			[
				call({ state: "failed", error: "rate-limited: slow down", usage: { ...usage, cost: null } }),
				call({ model: "spare", modelName: "spare-1" }),
				call({ source: "critique", state: "failed", error: "server: 500" }),
			],
			(chars) => chars / 4,
		);
		expect(why).toMatchObject({
			blocks: [{ name: "soul", chars: 400, tokens: 100 }],
			recalled: [{ text: "x" }],
			model: { picked: "main", answered: "spare-1", reason: "main sk-…a1b2: rate-limited" },
			folded: 2,
		});
		expect(why.cost).toEqual([
			{ source: "chat", calls: 2, inputTokens: 200, outputTokens: 20, cost: 0.5, unpricedTokens: 110 },
			{ source: "critique", calls: 1, inputTokens: 100, outputTokens: 10, cost: 0.5, unpricedTokens: 0 },
		]);
	});
});
