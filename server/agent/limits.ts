/** Limits of a turn: their defaults, and how results and requests are measured against them. */
import type { ModelMessage, ToolSchema, Usage } from "../model/model.ts";
import { cutHead, cutTail } from "./text.ts";
import type { TurnLimits } from "./types.ts";

/** Calls of one answer that are run; the rest is answered as too many. */
export const MAX_CALLS_PER_STEP = 64;
/** Read-only calls of one step that run at the same time. */
export const MAX_PARALLEL_CALLS = 8;
export const DEFAULT_TOOL_TIMEOUT_MS = 60_000;

/** Characters a request may have for a window of `contextTokens`; two characters a token are safe for English and bearable for Chinese. */
export function requestCharsFor(contextTokens: number, maxOutputTokens = 8192): number {
	const room = contextTokens - Math.min(maxOutputTokens, Math.floor(contextTokens / 4));
	return Math.max(12_000, Math.min(400_000, room * 2));
}

export function defaultLimits(contextTokens = 128_000): TurnLimits {
	return { maxSteps: 60, maxRounds: 3, toolResultChars: 20_000, stepResultChars: 48_000, requestChars: requestCharsFor(contextTokens) };
}

/** The larger part of the beginning and some of the end, with `notice` between; at most `max` characters unless the notice alone is longer. */
export function capText(text: string, max: number, notice: string): string {
	if (text.length <= max) return text;
	const room = Math.max(0, max - notice.length - 2);
	const tail = Math.floor(room / 4);
	return `${cutHead(text, room - tail)}\n${notice}\n${cutTail(text, tail)}`.trim();
}

/** Characters of one message as they count towards a request. An image counts as 4,000. */
export function messageChars(message: ModelMessage): number {
	switch (message.role) {
		case "system":
			return message.text.length;
		case "user":
			return message.content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 4_000), 0);
		case "assistant":
			return message.calls.reduce(
				(sum, call) => sum + call.name.length + call.arguments.length + 20,
				message.text.length + (message.reasoning?.length ?? 0),
			);
		case "tool":
			return message.text.length + 20;
	}
}

export function requestChars(messages: ModelMessage[], toolChars: number): number {
	return messages.reduce((sum, message) => sum + messageChars(message), toolChars);
}

/** Tools do not change and are measured in every request. */
const measured = new WeakMap<ToolSchema, number>();

export function toolChars(tools: ToolSchema[]): number {
	let sum = 0;
	for (const tool of tools) {
		let chars = measured.get(tool);
		if (chars === undefined) {
			chars = tool.name.length + tool.description.length + JSON.stringify(tool.parameters).length;
			measured.set(tool, chars);
		}
		sum += chars;
	}
	return sum;
}

/** Sum of usages: an unknown price anywhere (or a second currency) makes the sum's price unknown. */
export function addUsage(sum: Usage | null, more: Usage): Usage {
	if (!sum) return { ...more };
	const priced = sum.cost !== null && more.cost !== null && sum.currency === more.currency;
	return {
		inputTokens: sum.inputTokens + more.inputTokens,
		cachedTokens: sum.cachedTokens + more.cachedTokens,
		outputTokens: sum.outputTokens + more.outputTokens,
		reasoningTokens: sum.reasoningTokens + more.reasoningTokens,
		estimated: sum.estimated || more.estimated,
		cost: priced ? (sum.cost as number) + (more.cost as number) : null,
		currency: sum.currency,
	};
}

export const NO_USAGE: Usage = {
	inputTokens: 0,
	cachedTokens: 0,
	outputTokens: 0,
	reasoningTokens: 0,
	estimated: false,
	cost: 0,
	currency: "USD",
};
