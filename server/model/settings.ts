/** What the models room is told about each configured model: the parsed form of a `models` entry of config.yaml. */

export type ModelKind = "text" | "multimodal" | "image" | "tts" | "stt" | "embedding";

/** Time limits of one call in ms, and the most tokens an answer may have. */
export interface ModelLimits {
	/** Until the connection stands. */
	connectMs: number;
	/** From the request until the first byte of the body. */
	firstByteMs: number;
	/** Between two bytes. */
	idleMs: number;
	totalMs: number;
	maxOutputTokens: number;
}

/** Per million tokens. */
export interface ModelPrice {
	input: number;
	cachedInput?: number;
	output: number;
	/** Default USD. */
	currency?: string;
}

export interface ModelSettings {
	/** Unique; what roles and people name it by. */
	id: string;
	/** A preset of providers.ts; an unknown one is treated as `custom`. */
	provider: string;
	/** The name at the provider. */
	model: string;
	/** Null = the preset's. */
	baseUrl: string | null;
	/** Empty ones are ignored (a variable that is not set). */
	apiKeys: string[];
	kind: ModelKind;
	/** Null = not told: `DEFAULT_CONTEXT_TOKENS`. */
	contextTokens: number | null;
	/** Null = from the price table. */
	price: ModelPrice | null;
	limits: ModelLimits;
}

/** Ids by role. `chat` is a fallback order. A null `small` or `critique` means the chat models. */
export interface ModelRoles {
	chat: string[];
	small: string | null;
	critique: string | null;
	vision: string | null;
	embedding: string | null;
	image?: string | null;
	tts?: string | null;
	stt?: string | null;
}

export const DEFAULT_CONTEXT_TOKENS = 64_000;
export const DEFAULT_LIMITS: ModelLimits = {
	connectMs: 5_000,
	firstByteMs: 120_000,
	idleMs: 60_000,
	totalMs: 600_000,
	maxOutputTokens: 8_192,
};
export const NO_ROLES: ModelRoles = {
	chat: [],
	small: null,
	critique: null,
	vision: null,
	embedding: null,
	image: null,
	tts: null,
	stt: null,
};

/** A whole entry from the few keys that a wizard or `models/test` sends. */
export function settingsFromEntry(
	entry: Pick<ModelSettings, "id" | "provider" | "model"> & {
		baseUrl?: string | null;
		apiKeys?: string[];
		limits?: Partial<ModelLimits>;
	} & Partial<Pick<ModelSettings, "kind" | "contextTokens" | "price">>,
): ModelSettings {
	return {
		id: entry.id,
		provider: entry.provider,
		model: entry.model,
		baseUrl: entry.baseUrl ?? null,
		apiKeys: entry.apiKeys ?? [],
		kind: entry.kind ?? "text",
		contextTokens: entry.contextTokens ?? null,
		price: entry.price ?? null,
		limits: { ...DEFAULT_LIMITS, ...entry.limits },
	};
}
