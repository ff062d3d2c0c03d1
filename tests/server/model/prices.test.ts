import { createRequire } from "node:module";
import { beforeAll, describe, expect, it } from "vitest";
import { createPriceBook, type PriceBook } from "../../../server/model/prices.ts";

const at = Date.parse("2026-11-30T04:00:00Z");
const tokens = { inputTokens: 1_000_000, cachedTokens: 0, outputTokens: 1_000_000 };
const model = (provider: string, modelName: string, more: { id?: string; baseUrl?: string } = {}) => ({
	id: more.id ?? "main",
	provider,
	modelName,
	baseUrl: more.baseUrl ?? null,
});

describe("the price book", () => {
	let book: PriceBook;
	beforeAll(async () => {
		book = createPriceBook({ mine: { input: 2, cachedInput: 0.5, output: 8, currency: "CNY" } });
		await book.load();
	});

	it("prices known models from the bundled table, with source and date", () => {
		const price = book.price(model("openai", "gpt-4o-mini"), at);
		expect(price).toMatchObject({ input: 0.15, output: 0.6, cachedInput: 0.075, currency: "USD", source: "table" });
		expect(price?.asOf).toMatch(/^\d{4}-\d\d-\d\d$/);
		expect(book.cost(model("openai", "gpt-4o-mini"), tokens, at)).toEqual({ cost: 0.75, currency: "USD" });
		expect(book.cost(model("openai", "gpt-4o-mini"), { ...tokens, cachedTokens: 1_000_000, outputTokens: 0 }, at)?.cost).toBeCloseTo(0.075);
	});

	it("says unknown, never zero, for what nobody knows", () => {
		for (const unknown of [
			model("custom", "gpt-4o"),
			model("ollama", "llama3"),
			model("openai", "no-such-model-x"),
			model("dashscope", "qwen-max"),
			model("custom", "gpt-4o", { baseUrl: "http://127.0.0.1:9/v1" }),
		]) {
			expect(book.cost(unknown, tokens, at)).toBeNull();
			expect(book.price(unknown, at)).toBeNull();
		}
	});

	it("finds a custom entry by its address", () => {
		expect(book.cost(model("custom", "gpt-4o", { baseUrl: "https://api.openai.com/v1" }), tokens, at)?.cost).toBeGreaterThan(0);
	});

	it("keeps models apart that it has been asked for before", () => {
		const asked = [
			model("openai", "gpt-4o-mini"),
			model("openai", "gpt-4o"),
			model("openai", "no-such-model-x"),
			model("ollama", "gpt-4o"),
			model("custom", "gpt-4o", { baseUrl: "https://api.deepseek.com/v1" }),
			model("openrouter", "openai/gpt-4o-mini"),
		];
		const costs = () => asked.map((one) => book.cost(one, tokens, at)?.cost ?? null);
		const first = costs();
		expect(first.slice(0, 5)).toEqual([0.75, 12.5, null, null, null]);
		expect(first[5]).toBeCloseTo(0.75);
		expect(costs()).toEqual(first);
	});

	it("puts the owner's figures first", () => {
		expect(
			book.cost(
				model("openai", "gpt-4o-mini", { id: "mine" }),
				{ inputTokens: 1_000_000, cachedTokens: 400_000, outputTokens: 100_000 },
				at,
			),
		).toEqual({ cost: 1.2 + 0.2 + 0.8, currency: "CNY" });
		expect(book.price(model("openai", "gpt-4o-mini", { id: "mine" }), at)).toMatchObject({ source: "config", currency: "CNY" });
	});

	it("has the demo model for nothing", () => {
		expect(book.cost(model("demo", "demo"), tokens, at)).toEqual({ cost: 0, currency: "USD" });
	});

	it("knows no table price before it has loaded the table", async () => {
		const fresh = createPriceBook();
		expect(fresh.cost(model("openai", "gpt-4o-mini"), tokens, at)).toBeNull();
		await fresh.load();
		expect(fresh.cost(model("openai", "gpt-4o-mini"), tokens, at)).not.toBeNull();
	});

	it("names the date of the table that is really installed", () => {
		// Whoever takes a newer table must look up its date.
		const require = createRequire(import.meta.url);
		const file = require.resolve("@pydantic/genai-prices").replace(/dist.*$/, "package.json");
		expect((require(file) as { version: string }).version).toBe("0.1.8");
	});
});
