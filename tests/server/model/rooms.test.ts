import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SetupInfo } from "../../../server/http/contract.ts";
import { detectLocal, listProviders, PROVIDERS, providerOf } from "../../../server/model/providers.ts";
import { NO_ROLES, settingsFromEntry } from "../../../server/model/settings.ts";
import { createTokenCounter } from "../../../server/model/tokens.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, setUp } from "./setup.ts";

let server: FakeOpenAI;
beforeEach(async () => {
	server = await startFakeOpenAI();
});
afterEach(() => server.close());

const signal = new AbortController().signal;
const context = ask("").context;

describe("embeddings", () => {
	const withEmbedding = (more = {}) =>
		setUp([entry("vec", server.url, { kind: "embedding", ...more })], { roles: { ...NO_ROLES, embedding: "vec" } });

	it("come in order, in batches, as floats, through the meter", async () => {
		const { models, calls } = withEmbedding({ provider: "dashscope" });
		const texts = Array.from({ length: 23 }, (_, i) => `text number ${i}`);
		const { vectors, dimensions, model } = await models.embed([...texts, ""], context, signal);
		expect(vectors).toHaveLength(24);
		expect({ dimensions, model }).toEqual({ dimensions: 64, model: "vec" });
		expect(server.requests.map((request) => request.body.input.length)).toEqual([10, 10, 4]);
		expect(server.requests.every((request) => request.body.encoding_format === "float")).toBe(true);
		expect((await models.embed(["text number 7"], context, signal)).vectors[0]).toEqual(vectors[7]);
		expect(calls[0]).toMatchObject({ start: { context: { source: "embedding" } }, end: { error: null, usage: { estimated: false } } });
	});

	it("fail as what they are", async () => {
		await expect(setUp([]).models.embed(["a"], context, signal)).rejects.toMatchObject({ kind: "no-model" });
		server.set({ keys: ["right"] });
		await expect(withEmbedding({ apiKeys: ["sk-wrong-123456"] }).models.embed(["a"], context, signal)).rejects.toThrow(
			/refused|401|set aside/,
		);
	});

	it("name the model whose vectors they are", () => {
		expect(withEmbedding().models.embedding()).toEqual({ id: "vec", model: "vec-name", baseUrl: server.url });
		expect(setUp([]).models.embedding()).toBeNull();
	});
});

describe("testing a model", () => {
	it("asks for real", async () => {
		server.set({ keys: ["sk-right-123456"] });
		const { models, waits } = setUp([entry("main", server.url, { apiKeys: ["sk-right-123456"] })]);
		expect(await models.test("main", signal)).toMatchObject({ ok: true, kind: null });
		expect(await models.test(entry("x", server.url, { apiKeys: ["sk-wrong-123456"] }), signal)).toMatchObject({ ok: false, kind: "auth" });
		expect(await models.test(entry("x", "http://127.0.0.1:9/v1"), signal)).toMatchObject({ ok: false, kind: "network" });
		expect(await models.test("gone", signal)).toMatchObject({ ok: false, kind: "no-model" });
		expect(await models.test(settingsFromEntry({ id: "x", provider: "openai", model: "m" }), signal)).toMatchObject({
			ok: false,
			kind: "no-model",
		});
		expect(await models.test("demo", signal)).toMatchObject({ ok: true });
		expect(await models.test(entry("v", server.url, { kind: "embedding", apiKeys: ["sk-right-123456"] }), signal)).toMatchObject({
			ok: true,
		});
		server.set({ models: ["i-name"] });
		expect(await models.test(entry("i", server.url, { kind: "image", apiKeys: ["sk-right-123456"] }), signal)).toMatchObject({ ok: true });
		expect(waits).toEqual([]);
	});

	it("a success forgives the key", async () => {
		server.set({ keys: ["other"] });
		const { models } = setUp([entry("main", server.url, { apiKeys: ["sk-paid-1234567"] })]);
		await expect(run(models, ask("hi"))).rejects.toMatchObject({ kind: "auth" });
		server.set({ keys: ["sk-paid-1234567"] });
		expect(models.usable()).toBe(false);
		expect(await models.test("main", signal)).toMatchObject({ ok: true });
		expect(models.usable()).toBe(true);
	});

	it("one failure is told at once, without retries", async () => {
		server.otherwise({ status: 500, error: { message: "x" } });
		const { models } = setUp([entry("main", server.url)]);
		expect(await models.test("main", signal)).toMatchObject({ ok: false, kind: "server" });
		expect(server.chats).toHaveLength(1);
		server.otherwise({ body: "<html></html>" });
		expect(await models.test("main", signal)).toMatchObject({ ok: false, kind: "protocol" });
	});
});

describe("providers", () => {
	it("are what the set-up page shows", () => {
		expect(SetupInfo.shape.providers.parse(listProviders())).toHaveLength(14);
		for (const provider of PROVIDERS) {
			if (provider.id === "custom") continue;
			expect(new URL(provider.baseUrl).protocol).toBe(provider.local ? "http:" : "https:");
			expect(provider.baseUrl.endsWith("/")).toBe(false);
			expect(
				provider.local
					? provider.keyVariable === null
					: provider.keyVariable !== null && provider.models.length > 0 && provider.keyUrl !== null,
			).toBe(true);
		}
		expect(providerOf("unheard of").id).toBe("custom");
	});

	it("local servers that answer are found, others do no harm", async () => {
		server.set({ models: ["llama", "qwen"] });
		const html = await startFakeOpenAI({ keys: ["none"] });
		const found = await detectLocal(signal, [
			{ provider: "ollama", baseUrl: server.url },
			{ provider: "llamacpp", baseUrl: html.url },
			{ provider: "lmstudio", baseUrl: "http://127.0.0.1:9/v1" },
		]);
		expect(found).toEqual([{ provider: "ollama", baseUrl: server.url, models: ["llama", "qwen"] }]);
		await html.close();
	});
});

describe("token counts", () => {
	it("know scripts and learn", () => {
		const tokens = createTokenCounter();
		expect(tokens.count("m", "")).toBe(0);
		const english = "The quick brown fox jumps over the lazy dog and runs away. ".repeat(20);
		const chinese = "今天天气很好，我们一起去公园散步，然后喝一杯咖啡。".repeat(20);
		// o200k: 13 and 18 tokens a sentence.
		expect(tokens.count("m", english) / (13 * 20)).toBeGreaterThan(0.7);
		expect(tokens.count("m", english) / (13 * 20)).toBeLessThan(1.4);
		expect(tokens.count("m", chinese) / (18 * 20)).toBeGreaterThan(0.7);
		expect(tokens.count("m", chinese) / (18 * 20)).toBeLessThan(1.4);
		const before = tokens.count("m", english);
		tokens.learn("m", before, before * 2);
		expect(tokens.count("m", english)).toBeGreaterThan(before * 1.9);
		expect(tokens.count("other", english)).toBe(before);
		tokens.learn("m", before, before * 1_000);
		expect(tokens.count("m", english)).toBeLessThan(before * 3.1);
	});
});
