/** The built-in demo model: in process, deterministic, no network, no cost. It reads a request as any model would and answers with text or real tool calls. */

import type { WireEvent } from "../joining.ts";
import { ModelError, type ModelRequest } from "../model.ts";
import type { WireAnswer } from "../openai/client.ts";
import { DEFAULT_LIMITS, type ModelSettings } from "../settings.ts";
import type { Halt } from "../stream.ts";
import type { TokenCounter } from "../tokens.ts";
import { condense } from "./condense.ts";
import { readRequest } from "./read.ts";
import { respond } from "./respond.ts";

export const DEMO_ID = "demo";
export const DEMO_NAME = "openlani-demo";

export interface Demo {
	settings: ModelSettings;
	/** Makes one answer and tells it word by word. Ends with the abort error of `sleep` when `signal` aborts, and at the next word when it is halted. */
	answer(request: ModelRequest, halt: Halt, signal: AbortSignal, tell: (event: WireEvent) => void): Promise<WireAnswer>;
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
		async answer(request, halt, signal, tell) {
			const started = performance.now();
			stopWhen(halt);
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
				// Without a pace the reader still has its turn, so that it can stop the answer.
				await (options.paceMs > 0 ? options.sleep(options.paceMs, signal) : null);
				stopWhen(halt);
				text += word;
				tell({ type: "text", text: word });
			}
			const calls = cut
				? []
				: // Ids of more than 40 characters are refused by some servers, which would see them in the history of another model.
					reply.calls.map((call) => ({
						id: `demo_${options.newId().replaceAll("-", "")}`,
						name: call.name,
						arguments: JSON.stringify(call.args),
					}));
			return {
				text,
				reasoning: "",
				calls,
				finish: cut ? "length" : calls.length > 0 ? "calls" : "stop",
				usage: null,
				extras: new Map(),
				firstByteMs: performance.now() - started,
				strayClose: false,
			};
		},
	};
}

function stopWhen(halt: Halt): void {
	if (halt.why !== null) throw new ModelError("aborted", halt.why);
}

/** Words with the space after them; Han text in pairs of characters. */
function words(text: string): string[] {
	return text.match(/[\p{Script=Han}，。！？、；：「」（）]{1,2}|[^\s\p{Script=Han}，。！？、；：「」（）]+\s*|\s+/gu) ?? [];
}
