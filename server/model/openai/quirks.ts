/** What a server refuses is learned from the very 400 that says so, once, and remembered for that server and model. */
import type { Quirks } from "../providers.ts";

export interface Learned {
	of(baseUrl: string, model: string, preset: Quirks): Quirks;
	/**
	 * Reads a refusal (status 400 or 422). True when something was learned that was not known before, so that one more try makes sense; the
	 * same lesson is never learned twice, so two lessons that contradict each other cannot alternate.
	 */
	learn(baseUrl: string, model: string, preset: Quirks, refusal: Refusal, sent: { hadReasoning: boolean; keys: string[] }): boolean;
	/** The model begins its answers inside thinking (no opening tag). */
	thinksUnopened(baseUrl: string, model: string): boolean;
	setThinksUnopened(baseUrl: string, model: string, value: boolean): void;
}

export interface Refusal {
	message: string;
	param: string | null;
}

export function createLearned(): Learned {
	const lessons = new Map<string, Partial<Quirks>>();
	const taught = new Set<string>();
	const unopened = new Set<string>();
	const id = (baseUrl: string, model: string) => `${baseUrl}\n${model}`;
	const now = (baseUrl: string, model: string, preset: Quirks): Quirks => ({ ...preset, ...lessons.get(id(baseUrl, model)) });
	return {
		of: now,
		learn(baseUrl, model, preset, refusal, sent) {
			const key = id(baseUrl, model);
			const change = lesson(now(baseUrl, model, preset), refusal, sent);
			if (!change) return false;
			const name = `${key}\n${Object.keys(change)[0]}`;
			if (taught.has(name)) return false;
			taught.add(name);
			lessons.set(key, { ...lessons.get(key), ...change });
			return true;
		},
		thinksUnopened: (baseUrl, model) => unopened.has(id(baseUrl, model)),
		setThinksUnopened(baseUrl, model, value) {
			if (value) unopened.add(id(baseUrl, model));
			else unopened.delete(id(baseUrl, model));
		},
	};
}

function lesson(quirks: Quirks, refusal: Refusal, sent: { hadReasoning: boolean; keys: string[] }): Partial<Quirks> | null {
	// Which parameter is meant: servers name it in `param`, or only in their sentence.
	const names = (name: string) => refusal.param === name || new RegExp(`\\b${name}\\b`).test(refusal.message);
	if (names("reasoning_content")) {
		if (quirks.reasoning === "send") return { reasoning: "strip" };
		return sent.hadReasoning ? { reasoning: "send" } : null;
	}
	if (quirks.streamOptions && (names("stream_options") || names("include_usage"))) return { streamOptions: false };
	if (quirks.extraContent && names("extra_content")) return { extraContent: false };
	// OpenAI's sentence on max_tokens names both: the parameter that was sent is the one refused.
	if (names("max_tokens") || names("max_completion_tokens")) {
		const other = quirks.maxTokens === "max_tokens" ? "max_completion_tokens" : "max_tokens";
		if (refusal.param === null || refusal.param === quirks.maxTokens) return unsupported(refusal.message) ? { maxTokens: other } : null;
		return null;
	}
	if (sent.keys.includes("response_format") && (names("response_format") || names("json_object"))) return { jsonMode: false };
	if (sent.keys.includes("temperature") && names("temperature")) return { temperature: false };
	if (!quirks.extraContent && names("thought_signature")) return { extraContent: true };
	return null;
}

/** A value that is too large is refused with the same `param`: changing the name would not help. */
function unsupported(message: string): boolean {
	return /unsupported|not supported|unknown|unrecognized|unexpected|extra (?:inputs|fields)|not permitted|use '?max_/i.test(message);
}
