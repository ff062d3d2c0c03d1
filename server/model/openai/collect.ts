/** Puts streamed chunks (or one plain completion) together to an answer, deciding by what is there. */
import { ModelError, type ModelReply, type ToolCall } from "../model.ts";

export interface RawUsage {
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
	reasoningTokens: number;
}

export interface Delta {
	text: string;
	reasoning: string;
}

export interface Collected {
	calls: ToolCall[];
	finish: ModelReply["finish"];
	usage: RawUsage | null;
	/** Extra fields that came with a call and must be sent back with it, by our call id. */
	extras: Map<string, unknown>;
}

export interface Collector {
	/** Takes one parsed chunk; answers the text it brought. Throws `StreamError` for an error object, `ModelError` when the answer has no end. */
	add(chunk: unknown): Delta;
	/** `[DONE]` came. */
	done(): void;
	/** True once `[DONE]` came. */
	readonly ended: boolean;
	/** True once a finish reason came: what follows is only usage. */
	readonly finished: boolean;
	/** True once anything of an answer came. */
	readonly started: boolean;
	/** The answer, or null when the stream ended too early to be one. */
	result(newId: () => string): Collected | null;
}

/** An error object inside an answer with status 200. */
export class StreamError extends Error {
	readonly body: Record<string, unknown>;
	constructor(body: Record<string, unknown>) {
		super(typeof body.message === "string" ? body.message : "the server sent an error");
		this.name = "StreamError";
		this.body = body;
	}
}

/** No model's answer is this long, thinking and arguments included: a server that goes on and on must not fill the memory. */
const MOST_CHARS = 8_000_000;

interface Open {
	id: string;
	index: number | null;
	name: string;
	arguments: string;
	extra: unknown;
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** `known`: the names on the wire, to join names that come in pieces. */
export function createCollector(known: { has(name: string): boolean }): Collector {
	const calls: Open[] = [];
	let finish: string | null = null;
	let usage: RawUsage | null = null;
	let ended = false;
	let started = false;
	let chars = 0;

	function toolCall(raw: unknown, whole: boolean): void {
		if (!isObject(raw)) return;
		const fn = isObject(raw.function) ? raw.function : raw;
		const id = typeof raw.id === "string" ? raw.id : "";
		const index = typeof raw.index === "number" && !whole ? raw.index : null;
		const name = typeof fn.name === "string" ? fn.name : "";
		const text = typeof fn.arguments === "string" ? fn.arguments : isObject(fn.arguments) ? JSON.stringify(fn.arguments) : "";
		if (id === "" && name === "" && text === "" && index === null) return;
		let call = whole ? undefined : find(id, index, name);
		if (!call) {
			call = { id, index, name: "", arguments: "", extra: undefined };
			calls.push(call);
		}
		if (call.id === "") call.id = id;
		if (name !== "" && name !== call.name) {
			if (call.name === "") call.name = name;
			else if (call.arguments === "" && !known.has(call.name)) call.name += name;
		}
		call.arguments += text;
		chars += text.length;
		if (isObject(raw.extra_content)) call.extra = raw.extra_content;
	}

	/** The call that this piece goes on with; undefined when it begins another. */
	function find(id: string, index: number | null, name: string): Open | undefined {
		if (index !== null) {
			const same = calls.findLast((call) => call.index === index);
			// Servers that give every parallel call the index 0: another id with a name is another call.
			const another = same && id !== "" && same.id !== "" && id !== same.id && name !== "";
			// … or no ids at all, and the first call is complete.
			const again =
				same && id === "" && name !== "" && same.name !== "" && known.has(same.name) && same.arguments !== "" && isJson(same.arguments);
			return another || again ? undefined : same;
		}
		const last = calls.at(-1);
		if (!last) return undefined;
		if (id !== "") {
			if (name === "") return calls.findLast((call) => call.id === id) ?? last;
			return last.id === id && last.arguments === "" ? last : last.id === id && !isJson(last.arguments) ? last : undefined;
		}
		if (name !== "" && (last.arguments !== "" || known.has(last.name))) return undefined;
		return last;
	}

	return {
		add(chunk) {
			const delta: Delta = { text: "", reasoning: "" };
			if (!isObject(chunk)) return delta;
			if (chunk.error !== undefined && chunk.error !== null) throw new StreamError(errorBody(chunk));
			const reported = readUsage(chunk.usage) ?? (isObject(chunk.x_groq) ? readUsage(chunk.x_groq.usage) : null);
			if (reported) usage = reported;
			const choices = Array.isArray(chunk.choices) ? chunk.choices : [];
			if (choices.length === 0 && chunk.object === "error") throw new StreamError(chunk);
			for (const choice of choices) {
				if (!isObject(choice) || (typeof choice.index === "number" && choice.index > 0)) continue;
				const inChoice = readUsage(choice.usage);
				if (inChoice) usage = inChoice;
				if (choice.finish_reason === "error")
					throw new StreamError(isObject(choice.error) ? choice.error : { message: "the server ended the answer with an error" });
				const whole = !isObject(choice.delta) && isObject(choice.message);
				const part = whole ? (choice.message as Json) : isObject(choice.delta) ? choice.delta : null;
				if (part) {
					const content = readContent(part.content);
					delta.text += content.text + (typeof part.refusal === "string" ? part.refusal : "");
					delta.reasoning += content.reasoning + (firstText(part.reasoning_content, part.reasoning, part.thinking) ?? "");
					if (Array.isArray(part.tool_calls)) for (const call of part.tool_calls) toolCall(call, whole);
					if (isObject(part.function_call)) toolCall({ function: part.function_call }, whole);
				}
				if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") finish = choice.finish_reason;
				// Old completion servers.
				if (!part && typeof choice.text === "string") delta.text += choice.text;
			}
			chars += delta.text.length + delta.reasoning.length;
			if (chars > MOST_CHARS) throw new ModelError("protocol", "the server sent an answer that is too large");
			if (delta.text !== "" || delta.reasoning !== "" || calls.length > 0 || finish !== null) started = true;
			return delta;
		},
		done: () => {
			ended = true;
		},
		get ended() {
			return ended;
		},
		get finished() {
			return finish !== null;
		},
		get started() {
			return started;
		},
		result(newId) {
			const named = calls.filter((call) => call.name !== "");
			if (finish === null && !(ended && named.length > 0 && named.every((call) => isJson(call.arguments)))) return null;
			const cut = finish === "length" || finish === "max_tokens";
			const ids = new Set<string>();
			const extras = new Map<string, unknown>();
			const made = named.map((call, place): ToolCall => {
				let id = call.id === "" ? `call_${newId().replaceAll("-", "")}` : call.id;
				for (let again = 2; ids.has(id); again++) id = `${call.id || id}_${again}`;
				ids.add(id);
				if (call.extra !== undefined) extras.set(id, call.extra);
				const last = place === named.length - 1;
				if (cut && last && !isJson(call.arguments)) return { id, name: call.name, arguments: call.arguments, truncated: true };
				// No arguments at all is what some servers send for tools without any.
				return { id, name: call.name, arguments: call.arguments.trim() === "" ? "{}" : call.arguments };
			});
			const truncated = made.some((call) => call.truncated);
			return {
				calls: made,
				finish: truncated ? "length" : made.length > 0 ? "calls" : cut ? "length" : finish === "content_filter" ? "filtered" : "stop",
				usage,
				extras,
			};
		},
	};
}

function isJson(text: string): boolean {
	try {
		JSON.parse(text);
		return true;
	} catch {
		return false;
	}
}

function errorBody(chunk: Json): Json {
	if (isObject(chunk.error)) return chunk.error;
	return { message: String(chunk.error), code: chunk.code ?? chunk.status ?? null };
}

function firstText(...values: unknown[]): string | null {
	for (const value of values) if (typeof value === "string" && value !== "") return value;
	return null;
}

/** Text, null, or a list of parts of which some are thinking. */
function readContent(content: unknown): { text: string; reasoning: string } {
	if (typeof content === "string") return { text: content, reasoning: "" };
	const out = { text: "", reasoning: "" };
	if (!Array.isArray(content)) return out;
	for (const part of content) {
		if (typeof part === "string") out.text += part;
		if (!isObject(part)) continue;
		if (part.type === "thinking" || part.type === "reasoning") {
			out.reasoning +=
				firstText(part.thinking, part.text, part.reasoning) ?? (Array.isArray(part.thinking) ? readContent(part.thinking).text : "");
		} else if (typeof part.text === "string") out.text += part.text;
	}
	return out;
}

/** More than any request can have: a number beyond it is a fault of the server and would use up the day's budget. */
const MOST_TOKENS = 50_000_000;

const count = (value: unknown): number => (typeof value === "number" && value > 0 && value <= MOST_TOKENS ? Math.round(value) : 0);

/** Null when it says nothing usable: absent, or all zero. */
export function readUsage(raw: unknown): RawUsage | null {
	if (!isObject(raw)) return null;
	const prompt = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
	const completion = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
	const hit = count(raw.prompt_cache_hit_tokens);
	const input = count(raw.prompt_tokens) || count(raw.input_tokens) || hit + count(raw.prompt_cache_miss_tokens);
	const output = count(raw.completion_tokens) || count(raw.output_tokens);
	if (input === 0 && output === 0) return null;
	return {
		inputTokens: input,
		cachedTokens: Math.min(input, count(prompt.cached_tokens) || hit || count(raw.cached_tokens)),
		outputTokens: output,
		reasoningTokens: Math.min(output, count(completion.reasoning_tokens)),
	};
}
