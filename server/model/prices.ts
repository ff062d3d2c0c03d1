/** What a call costs. Bundled data, the owner's overrides first; a price that nobody knows is `null`, never zero. */
import type { Usage as PricedUsage, PriceOptions, Provider } from "@pydantic/genai-prices";

/** A price as the owner writes it in config.yaml: per million tokens. */
export interface PriceOverride {
	input: number;
	/** Default: the same as `input`. */
	cachedInput?: number;
	output: number;
	currency?: string;
}

/** Which model is priced. `id` is the configured model id; overrides go by it. */
export interface PricedModel {
	id: string;
	provider: string;
	modelName: string;
	/** Finds the provider of a `custom` entry by its address. */
	baseUrl?: string | null;
}

/** One price as people see it: per million tokens, with where it comes from and when it was true. */
export interface Price {
	input: number;
	cachedInput: number;
	output: number;
	currency: string;
	source: "config" | "table" | "demo";
	/** ISO date: of the table's data; null for the owner's own figures, which hold until they change them. */
	asOf: string | null;
	/** Where the table's maker reads it. */
	url: string | null;
	/** The price has tiers or hours; the three figures are its base, a call is priced by the whole rule. */
	varies: boolean;
}

export interface PricedTokens {
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
}

export interface PriceBook {
	/** Loads the table (once). Until then only overrides and the demo model have a price. Never fails: a table that cannot be read leaves prices unknown. */
	load(): Promise<void>;
	/** The price of a model `at` a time (ms), or null = unknown. */
	price(model: PricedModel, at: number): Price | null;
	/** Cost of a call made `at`, or null = price unknown. */
	cost(model: PricedModel, tokens: PricedTokens, at: number): { cost: number; currency: string } | null;
	/** New overrides by configured model id (config was changed). */
	override(overrides: Record<string, PriceOverride | null | undefined>): void;
}

type Table = typeof import("@pydantic/genai-prices");

/** Day on which the bundled table (version 0.1.8) was published. Kept here because the data carries no date itself; a test compares the version. */
const tableDate = "2026-09-23";

/** Our preset's name -> the table's. */
const providerIds: Record<string, string> = {
	openai: "openai",
	anthropic: "anthropic",
	google: "google",
	xai: "x-ai",
	deepseek: "deepseek",
	openrouter: "openrouter",
	moonshot: "moonshotai",
	zhipu: "zhipuai",
};

const million = 1_000_000;
const NO_USAGE: PricedUsage = { input_tokens: 0, output_tokens: 0 };
const MOST_ROWS = 500;

export function createPriceBook(overrides: Record<string, PriceOverride | null | undefined> = {}): PriceBook {
	let own = overrides;
	let table: Table | null = null;
	let loading: Promise<void> | null = null;
	const rows = new Map<string, Provider | null>();

	/** Where to look in the table. A local or custom server is found by its address or not at all: a model's name alone says nothing about what its host charges. */
	function place(model: PricedModel): PriceOptions | null {
		const known = providerIds[model.provider];
		if (known) return { providerId: known };
		if (model.provider === "custom" && model.baseUrl && !isLocal(model.baseUrl)) return { providerApiUrl: model.baseUrl };
		return null;
	}

	/** The provider with the one model that is meant, or null: going through the whole table costs more than the rest of a call's accounting. */
	function rowOf(prices: Table, model: PricedModel, at: number): Provider | null {
		const key = `${model.provider}\n${model.baseUrl}\n${model.modelName}`;
		const known = rows.get(key);
		if (known !== undefined) return known;
		const where = place(model);
		// Asked for first: the table would otherwise guess a provider from the model's name.
		const provider = where && prices.findProvider({ ...where, modelId: undefined });
		const found = provider && prices.calcPrice(NO_USAGE, model.modelName, { provider, timestamp: new Date(at) });
		const row = found ? { ...found.provider, models: [found.model] } : null;
		if (rows.size >= MOST_ROWS) rows.clear();
		rows.set(key, row);
		return row;
	}

	function look(model: PricedModel, usage: PricedUsage, at: number) {
		if (!table) return null;
		try {
			const provider = rowOf(table, model, at);
			return provider && table.calcPrice(usage, model.modelName, { provider, timestamp: new Date(at) });
		} catch {
			return null;
		}
	}

	return {
		load() {
			loading ??= import("@pydantic/genai-prices").then(
				(module) => {
					table = module;
				},
				() => undefined,
			);
			return loading;
		},
		price(model, at) {
			if (model.provider === "demo")
				return { input: 0, cachedInput: 0, output: 0, currency: "USD", source: "demo", asOf: null, url: null, varies: false };
			const mine = own[model.id];
			if (mine)
				return {
					input: mine.input,
					cachedInput: mine.cachedInput ?? mine.input,
					output: mine.output,
					currency: mine.currency ?? "USD",
					source: "config",
					asOf: null,
					url: null,
					varies: false,
				};
			const found = look(model, { input_tokens: 1, output_tokens: 1 }, at);
			if (!found) return null;
			const rate = (key: string): number | null => {
				const value = found.model_price[key];
				return value === undefined ? null : typeof value === "number" ? value : value.base;
			};
			const input = rate("input_mtok");
			const output = rate("output_mtok");
			if (input === null && output === null) return null;
			const tiered = Object.values(found.model_price).some((value) => typeof value === "object");
			return {
				input: input ?? 0,
				cachedInput: rate("cache_read_mtok") ?? input ?? 0,
				output: output ?? 0,
				currency: "USD",
				source: "table",
				asOf: tableDate,
				url: found.provider.pricing_urls?.[0] ?? null,
				varies: tiered || Array.isArray(found.model.prices),
			};
		},
		cost(model, tokens, at) {
			if (model.provider === "demo") return { cost: 0, currency: "USD" };
			const cached = Math.min(tokens.cachedTokens, tokens.inputTokens);
			const mine = own[model.id];
			if (mine) {
				const cost =
					((tokens.inputTokens - cached) * mine.input + cached * (mine.cachedInput ?? mine.input) + tokens.outputTokens * mine.output) /
					million;
				return { cost, currency: mine.currency ?? "USD" };
			}
			const usage = { input_tokens: tokens.inputTokens, output_tokens: tokens.outputTokens };
			const found = (cached > 0 && look(model, { ...usage, cache_read_tokens: cached }, at)) || look(model, usage, at);
			return found ? { cost: found.total_price, currency: "USD" } : null;
		},
		override(next) {
			own = next;
		},
	};
}

function isLocal(baseUrl: string): boolean {
	try {
		const host = new URL(baseUrl).hostname;
		return host === "localhost" || host.startsWith("127.") || host === "[::1]";
	} catch {
		return true;
	}
}
