/** The built-in demo model: in process, deterministic, no network, no cost. It reads a request as any model would and answers with text or real tool calls. */
import { ModelError, type ModelRequest } from "../model.ts";
import type { WireEvent } from "../openai/client.ts";
import { DEFAULT_LIMITS, type ModelSettings } from "../settings.ts";
import type { TokenCounter } from "../tokens.ts";
import { condense } from "./condense.ts";
import { readRequest } from "./read.ts";
import { respond } from "./respond.ts";

export const DEMO_ID = "demo";
export const DEMO_NAME = "openlani-demo";

export interface Demo {
	settings: ModelSettings;
	/** Streams one answer, word by word. Ends at once, with the abort error of `sleep`, when `signal` aborts. */
	answer(request: ModelRequest, signal: AbortSignal): AsyncGenerator<WireEvent>;
}

export interface DemoOptions {
	newId(): string;
	clock: { now(): number };
	/** Ms between two words; 0 = as fast as it goes. */
	paceMs: number;
	sleep(ms: number, signal: AbortSignal): Promise<void>;
	tokens: TokenCounter;
}

export function createDemo(options: DemoOptions): Demo {
	return {
		settings: {
			id: DEMO_ID,
			provider: DEMO_ID,
			model: DEMO_NAME,
			baseUrl: null,
			apiKeys: [],
			kind: "text",
			contextTokens: null,
			price: { input: 0, output: 0, currency: "USD" },
			limits: DEFAULT_LIMITS,
		},
		async *answer(request, signal) {
			const started = performance.now();
			stopWhen(signal);
			const reply =
				request.role === "small" || request.role === "critique" || request.json
					? { text: condense(request), calls: [] }
					: respond(readRequest(request, options.clock.now()));
			const limit = request.maxOutputTokens ?? DEFAULT_LIMITS.maxOutputTokens;
			let text = "";
			let cut = false;
			for (const word of words(reply.text)) {
				if (options.tokens.count(DEMO_NAME, text + word) > limit) {
					cut = true;
					break;
				}
				if (options.paceMs > 0) await options.sleep(options.paceMs, signal);
				stopWhen(signal);
				text += word;
				yield { type: "text", text: word };
			}
			const calls = cut
				? []
				: // Ids of more than 40 characters are refused by some servers, which would see them in the history of another model.
					reply.calls.map((call) => ({
						id: `demo_${options.newId().replaceAll("-", "")}`,
						name: call.name,
						arguments: JSON.stringify(call.args),
					}));
			yield {
				type: "end",
				answer: {
					text,
					reasoning: "",
					calls,
					finish: cut ? "length" : calls.length > 0 ? "calls" : "stop",
					usage: null,
					extras: new Map(),
					firstByteMs: performance.now() - started,
					strayClose: false,
				},
			};
		},
	};
}

function stopWhen(signal: AbortSignal): void {
	if (signal.aborted) throw new ModelError("aborted", "stopped");
}

/** Words with the space after them; Han text in pairs of characters. */
function words(text: string): string[] {
	return text.match(/[\p{Script=Han}，。！？、；：「」（）]{1,2}|[^\s\p{Script=Han}，。！？、；：「」（）]+\s*|\s+/gu) ?? [];
}
