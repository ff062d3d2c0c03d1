/** How a turn reads from top to bottom. Pure. */
import type { Message, ToolLine } from "../../../../server/http/contract.ts";
import type { LiveTurn } from "./state.ts";

export interface TracePart {
	step: number;
	/** Said before the step's tools. */
	text: string;
	tools: ToolLine[];
}

export interface Trace {
	parts: TracePart[];
	/** The answer: the stored one, or what streams now. */
	body: string;
}

/** What the server leaves where a forgotten text was. */
const forgottenMark = "[removed]";
export const isForgotten = (text: string): boolean => text.trim() === forgottenMark;

/** Tools that show themselves elsewhere: the plan is a checklist, `finish` is the answer. */
const shownElsewhere = new Set(["write_plan", "finish"]);

export function traceOf(turn: LiveTurn | null, message: Message | null): Trace {
	// What the page saw of a forgotten turn is forgotten as well: what is left of it is what the server still has.
	if (message && isForgotten(message.text)) return { parts: partsOf(message.tools, new Map()), body: message.text };
	const tools = turn && turn.tools.length >= (message?.tools.length ?? 0) ? turn.tools : (message?.tools ?? []);
	const texts = new Map<number, string>(turn?.said.map(({ step, text }) => [step, text]));
	if (turn && turn.text !== "" && !message) texts.set(turn.step, turn.text);
	// An answer given through a tool was not said on the way.
	for (const [step, text] of texts) if (message && text.trim() === message.text.trim()) texts.delete(step);
	const inTools = turn !== null && tools.some((tool) => tool.step === turn.step);
	const body = message ? message.text : turn && !inTools ? turn.text : "";
	return { parts: partsOf(tools, texts), body };
}

function partsOf(tools: ToolLine[], texts: Map<number, string>): TracePart[] {
	return [...new Set(tools.map((tool) => tool.step))]
		.sort((one, other) => one - other)
		.map((step) => ({
			step,
			text: texts.get(step) ?? "",
			tools: tools.filter((tool) => tool.step === step && (!shownElsewhere.has(tool.name) || tool.state === "failed")),
		}))
		.filter((part) => part.text !== "" || part.tools.length > 0);
}

/** The telling part of a call's arguments in one line: a path, a query, a task. */
export function summarizeArguments(json: string): string {
	let value: unknown;
	try {
		value = JSON.parse(json);
	} catch {
		return clip(json);
	}
	if (typeof value !== "object" || value === null || Array.isArray(value)) return clip(String(value ?? ""));
	const parts = Object.values(value)
		.filter((part) => typeof part === "string" || typeof part === "number")
		.map(String)
		.filter((part) => part !== "");
	return clip(parts.join(" · "));
}

function clip(text: string): string {
	const line = [...text.replace(/\s+/g, " ").trim()];
	return line.length > 80 ? `${line.slice(0, 79).join("")}…` : line.join("");
}

/** JSON set out to be read; anything else as it is. */
export function prettyJson(text: string): string {
	try {
		return JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return text;
	}
}

/** The beginning of a Markdown text in one line of words, for lists. What stands in code stays, and so do marks within words and numbers. */
export function plainLine(text: string): string {
	return text
		.replace(/^[ \t]*(?:```|~~~)[ \t]*[\w-]*[ \t]*$/gm, " ")
		.replace(/```|~~~/g, " ")
		.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
		.replace(/^[ \t]*(?:>[ \t]?)+/gm, "")
		.replace(/^[ \t]*(?:#{1,6}|[-*+])[ \t]+/gm, "")
		.replace(/^[ \t]*(?:[-*_][ \t]*){3,}$/gm, " ")
		.replace(/(\*{1,3}|~~|`+)(?=\S)([^\n]*?\S)\1/g, "$2")
		.replace(/(?<![\p{L}\p{N}_])(_{1,2})(?=\S)([^\n_]+)(?<=\S)\1(?![\p{L}\p{N}_])/gu, "$2")
		.replace(/\s+/g, " ")
		.trim();
}

/** Markdown as a screen reader should speak it: words without marks, at most `limit` characters. */
export function speakable(text: string, limit = 600): string {
	const plain = text
		.replace(/```[\s\S]*?(```|$)/g, " ")
		.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
		.replace(/[*_`#>|]+/g, " ")
		.replace(/\s+/g, " ")
		.trim();
	const characters = [...plain];
	return characters.length > limit ? `${characters.slice(0, limit).join("")}…` : plain;
}
