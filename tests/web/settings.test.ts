import { describe, expect, it } from "vitest";
import {
	answerFirst,
	chatOrder,
	dailyTokens,
	dropModel,
	givenModels,
	modelsOf,
	putModel,
	withDailyTokens,
} from "../../web/src/features/settings/config.ts";

const config = {
	locale: "en",
	models: [
		{ id: "main", provider: "deepseek", model: "a", apiKeys: ["sk-…1"], price: { input: 1 } },
		{ id: "local", provider: "ollama", model: "b" },
	],
	roles: { chat: ["main", "local", "gone"], small: "main", vision: null },
	budget: { dailyTokens: 5, warnAt: [0.5] },
};

describe("changing the configuration", () => {
	it("adds a model at the end of the fallback order and touches nothing else", () => {
		const after = putModel(config, { id: "new", provider: "openai", model: "c" }, null);
		expect(modelsOf(after).map(({ id }) => id)).toEqual(["main", "local", "new"]);
		expect(chatOrder(after)).toEqual(["main", "local", "new"]);
		expect(after.locale).toBe("en");
	});

	it("keeps what the form does not show, and renames in every role", () => {
		const after = putModel(config, { id: "prime", provider: "deepseek", model: "a2", apiKeys: ["sk-…1"] }, "main");
		expect(modelsOf(after)[0]).toEqual({ id: "prime", provider: "deepseek", model: "a2", apiKeys: ["sk-…1"], price: { input: 1 } });
		expect(after.roles).toEqual({ chat: ["prime", "local", "gone"], small: "prime", vision: null });
	});

	it("takes a removed model out of every role", () => {
		const after = dropModel(config, "main");
		expect(modelsOf(after).map(({ id }) => id)).toEqual(["local"]);
		expect(after.roles).toEqual({ chat: ["local", "gone"], small: null, vision: null });
	});

	it("lets another model answer first", () => {
		expect(chatOrder(answerFirst(config, "local"))).toEqual(["local", "main"]);
	});

	it("knows the daily limit, also where none is written", () => {
		expect(dailyTokens(config)).toBe(5);
		expect(dailyTokens({})).toBe(0);
		expect(withDailyTokens(config, 9).budget).toEqual({ dailyTokens: 9, warnAt: [0.5] });
	});

	it("does not change what it was given", () => {
		const before = structuredClone(config);
		putModel(config, { id: "x", provider: "openai", model: "c" }, "main");
		dropModel(config, "main");
		expect(config).toEqual(before);
	});
});

describe("models that are not in the file", () => {
	const state = (id: string) => ({ id, provider: "custom", model: "my-model", kind: "text", usable: true, problem: null, keys: [] });

	it("are those that answer all the same, but never the demo model", () => {
		expect(givenModels(config, { demo: false, models: [state("main"), state("openai"), state("local")] }).map(({ id }) => id)).toEqual([
			"openai",
		]);
		expect(givenModels({}, { demo: true, models: [state("demo")] })).toEqual([]);
		expect(givenModels({}, undefined)).toEqual([]);
	});
});
