/**
 * The history gate: every request passes through this pure function. What comes out can be sent to any server: one system
 * message first, each call followed at once by its one result, ids unique, nothing empty, well-formed Unicode, images only
 * in the current turn, bounded size. The same input gives the same output.
 */
import type { ContentPart, ModelMessage, ToolCall } from "../model/model.ts";
import { messageChars } from "./limits.ts";
import { cutHead, isBlank, wellFormed } from "./text.ts";

export const EMPTY_MESSAGE = "(empty message)";
const CANCELLED = "Cancelled: this call has no result. Its outcome is unknown.";
const CONTINUE = "(continue)";
const EARLIER = "(earlier conversation)";

export interface Gated {
	messages: ModelMessage[];
	/** What had to be repaired, one word or two each. */
	repairs: string[];
}

/** `turnStart`: index of the first message of the current turn; images before it become text. `maxChars`: size of all messages together. */
export function gate(input: ModelMessage[], options: { turnStart: number; maxChars?: number }): Gated {
	const repairs: string[] = [];
	const clean = input.map((message, index) => cleanMessage(message, index < options.turnStart, repairs));
	const ordered = order(pair(clean, repairs), repairs);
	return { messages: options.maxChars === undefined ? ordered : shrink(ordered, options.maxChars, repairs), repairs };
}

function cleanText(text: string, repairs: string[]): string {
	const out = wellFormed(text);
	if (out !== text) repairs.push("unicode");
	return out;
}

function cleanMessage(message: ModelMessage, old: boolean, repairs: string[]): ModelMessage {
	switch (message.role) {
		case "system":
			return { role: "system", text: cleanText(message.text, repairs) };
		case "user":
			return { role: "user", content: cleanContent(message.content, old, repairs) };
		case "assistant":
			return {
				role: "assistant",
				text: cleanText(message.text, repairs),
				...(message.reasoning ? { reasoning: cleanText(message.reasoning, repairs) } : {}),
				calls: message.calls.map((call) => cleanCall(call, repairs)),
			};
		case "tool":
			return {
				role: "tool",
				callId: message.callId,
				name: cleanName(message.name),
				text: isBlank(message.text) ? "(no output)" : cleanText(message.text, repairs),
			};
	}
}

function cleanContent(content: ContentPart[], old: boolean, repairs: string[]): ContentPart[] {
	const out: ContentPart[] = [];
	for (const part of content) {
		if (part.type === "image") {
			if (!old) out.push(part);
			else {
				repairs.push("old image");
				out.push({ type: "text", text: `[image: ${wellFormed(part.attachment.name)}]` });
			}
		} else if (!isBlank(part.text)) out.push({ type: "text", text: cleanText(part.text, repairs) });
	}
	if (out.length === 0) {
		repairs.push("empty user message");
		out.push({ type: "text", text: EMPTY_MESSAGE });
	}
	return out;
}

function cleanName(name: string): string {
	return (
		wellFormed(name)
			.replace(/[^A-Za-z0-9_-]/g, "_")
			.slice(0, 64) || "unknown"
	);
}

/** Servers parse the arguments of old calls: what is no JSON object was answered as an error and is shown as `{}`. */
function cleanCall(call: ToolCall, repairs: string[]): ToolCall {
	let json = wellFormed(call.arguments);
	try {
		const value: unknown = JSON.parse(json);
		if (value === null || typeof value !== "object" || Array.isArray(value)) json = "{}";
	} catch {
		json = "{}";
	}
	if (json !== call.arguments) repairs.push("arguments");
	return { id: call.id, name: cleanName(call.name), arguments: json };
}

/** Puts the results of each assistant message right behind it, in the order of its calls, under unique ids; invents missing ones; drops orphans. */
function pair(messages: ModelMessage[], repairs: string[]): ModelMessage[] {
	const out: ModelMessage[] = [];
	const used = new Set<number>();
	const ids = new Set<string>();
	let made = 0;
	const unique = (id: string): string => {
		let candidate = id;
		if (!/^[A-Za-z0-9_.:-]{1,40}$/.test(id) || ids.has(id)) {
			repairs.push("call id");
			do candidate = `call_${++made}`;
			while (ids.has(candidate));
		}
		ids.add(candidate);
		return candidate;
	};
	for (const [index, message] of messages.entries()) {
		if (message.role === "tool") continue;
		if (message.role !== "assistant") {
			out.push(message);
			continue;
		}
		if (message.calls.length === 0 && isBlank(message.text)) {
			repairs.push("empty assistant message");
			continue;
		}
		const calls: ToolCall[] = [];
		const results: ModelMessage[] = [];
		for (const call of message.calls) {
			const id = unique(call.id);
			const found = findResult(messages, index, call.id, used);
			if (found === -1) repairs.push("missing result");
			else used.add(found);
			const result = messages[found];
			calls.push({ ...call, id });
			results.push({ role: "tool", callId: id, name: call.name, text: result?.role === "tool" ? result.text : CANCELLED });
		}
		out.push({ ...message, calls }, ...results);
	}
	for (const [index, message] of messages.entries()) if (message.role === "tool" && !used.has(index)) repairs.push("orphan result");
	return out;
}

/** The first unused result with this id before the next assistant message that uses the id again; -1 if there is none. */
function findResult(messages: ModelMessage[], from: number, id: string, used: Set<number>): number {
	for (let index = from + 1; index < messages.length; index++) {
		const message = messages[index] as ModelMessage;
		if (message.role === "assistant" && message.calls.some((call) => call.id === id)) return -1;
		if (message.role === "tool" && message.callId === id && !used.has(index)) return index;
	}
	return -1;
}

/** One system message first, a user message after it, no two assistant texts in a row, a user message or result at the end. */
function order(messages: ModelMessage[], repairs: string[]): ModelMessage[] {
	const system = messages
		.filter((message) => message.role === "system")
		.map((message) => message.text)
		.filter((text) => !isBlank(text));
	const out: ModelMessage[] = system.length > 0 ? [{ role: "system", text: system.join("\n\n") }] : [];
	if (system.length > 1) repairs.push("several system messages");
	const first = out.length;
	for (const message of messages) {
		if (message.role === "system") continue;
		const last = out.at(-1);
		if (out.length === first && message.role === "assistant") {
			repairs.push("assistant first");
			out.push({ role: "user", content: [{ type: "text", text: EARLIER }] });
		} else if (message.role === "assistant" && last?.role === "assistant") {
			repairs.push("assistant twice");
			out[out.length - 1] = { ...message, text: [last.text, message.text].filter((text) => !isBlank(text)).join("\n\n") };
			continue;
		}
		out.push(message);
	}
	const last = out.at(-1);
	if (!last || last.role === "assistant" || last.role === "system") {
		repairs.push("no user message at the end");
		out.push({ role: "user", content: [{ type: "text", text: CONTINUE }] });
	}
	return out;
}

const LEFT_OUT = "\n…[left out: the request was too large]";

/** Shortens the results, oldest first, then old assistant texts, until everything fits; system and user messages are never touched. */
function shrink(messages: ModelMessage[], maxChars: number, repairs: string[]): ModelMessage[] {
	let excess = messages.reduce((sum, message) => sum + messageChars(message), 0) - maxChars;
	if (excess <= 0) return messages;
	const out = [...messages];
	for (const role of ["tool", "assistant"] as const) {
		for (const [index, message] of out.entries()) {
			if (excess <= 0) return out;
			if (message.role !== role || message.text.length <= 400) continue;
			const text = cutHead(message.text, Math.max(300, message.text.length - excess - LEFT_OUT.length)) + LEFT_OUT;
			if (text.length >= message.text.length) continue;
			excess -= message.text.length - text.length;
			repairs.push("size");
			out[index] = { ...message, text };
		}
	}
	return out;
}
