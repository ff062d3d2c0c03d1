import type { Usage } from "../model/model.ts";

/** Reads a JSON column. A value that does not parse is a fault of the file: the fallback keeps one bad row from stopping the rest. */
export function fromJson<T>(text: string | null, fallback: T): T {
	if (text === null) return fallback;
	try {
		return JSON.parse(text) as T;
	} catch {
		return fallback;
	}
}

export const noUsage: Usage & { calls: number } = {
	inputTokens: 0,
	cachedTokens: 0,
	outputTokens: 0,
	reasoningTokens: 0,
	estimated: false,
	cost: 0,
	currency: "USD",
	calls: 0,
};

/** Well-formed text without NUL: a lone surrogate would come back from SQLite as something else, and a NUL ends a text for many who read it. */
export function clean(text: string): string {
	const whole = text.isWellFormed() ? text : text.toWellFormed();
	return whole.includes("\0") ? whole.replaceAll("\0", "") : whole;
}

/** The beginning of a text for lists: one line, cut on characters. */
export function previewOf(text: string): string {
	const line = text.replace(/\s+/g, " ").trim();
	const characters = [...line.slice(0, 400)];
	return characters.length > 120 ? `${characters.slice(0, 119).join("")}…` : line.slice(0, 400);
}
