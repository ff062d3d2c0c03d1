/** What a request says, as the demo model understands it. */
import type { ModelMessage, ModelRequest } from "../model.ts";

export type Language = "zh" | "en";

export interface Done {
	name: string;
	args: Record<string, unknown>;
	result: string;
}

export interface Reading {
	language: Language;
	/** The last thing a person (or an alarm) said, without stamps and notes. */
	said: string;
	/** Local date and time of that message (`2026-11-30`, `15:04`). */
	date: string;
	time: string;
	/** Steps already taken for it: the calls of each, with their results. */
	steps: Done[][];
	/** True when nothing was said before in this conversation. */
	first: boolean;
	/** What the person said before, oldest first. */
	earlier: string[];
	/** What the prompt knows of the speaker, as list lines. */
	profile: string[];
	/** Memories that the situation brings. */
	recalled: string[];
	/** What woke us, when no person did. */
	woken: "alarm" | "heartbeat" | "job" | null;
	/** A note of ours asks for an end without tools, or for a shorter answer. */
	closing: boolean;
	shorter: boolean;
	attachments: string[];
	tools: Set<string>;
}

const STAMP = /\s*\[(\d{4}-\d\d-\d\d) [A-Z][a-z]{2} (\d\d:\d\d) · [^\]\n]{0,140}\]\s*$/;

function textOf(message: ModelMessage): string {
	if (message.role !== "user") return message.text;
	return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

export function readRequest(request: ModelRequest, now: number): Reading {
	const { messages } = request;
	const isPerson = (message: ModelMessage) => message.role === "user" && !/^\s*<(?:note|situation)>/.test(textOf(message));
	const at = messages.findLastIndex(isPerson);
	const raw = at < 0 ? "" : textOf(messages[at] as ModelMessage);
	const stamp = STAMP.exec(raw);
	const said = raw.replace(STAMP, "").trim();
	const after = messages.slice(at + 1);
	const notes = after.filter((message) => message.role === "user").map(textOf);
	const situation = notes.find((note) => note.trimStart().startsWith("<situation>")) ?? "";
	const memories = /Memories that may matter[^\n]*\n((?:- .*\n?)+)/.exec(situation)?.[1] ?? "";
	const iso = new Date(now).toISOString();
	const before = at < 0 ? [] : messages.slice(0, at);
	return {
		language: languageOf(said, messages),
		said,
		date: stamp?.[1] ?? iso.slice(0, 10),
		time: stamp?.[2] ?? iso.slice(11, 16),
		steps: stepsOf(after),
		first: !before.some((message) => message.role === "assistant"),
		earlier: before.filter(isPerson).map((message) => textOf(message).replace(STAMP, "").trim()),
		profile: profileOf(messages),
		recalled: memories.split("\n").flatMap((line) => (line.startsWith("- ") ? [line.slice(2)] : [])),
		woken: /Woken by an alarm/.test(situation)
			? "alarm"
			: /Woken by the heartbeat/.test(situation)
				? "heartbeat"
				: /background job/.test(situation)
					? "job"
					: null,
		closing: notes.some((note) => note.includes("Without calling tools")),
		shorter: notes.some((note) => note.includes("much shorter")),
		attachments: [...said.matchAll(/\[(?:image|audio|video|file): ([^\]]+)\]/g)].map((match) => match[1] ?? ""),
		tools: new Set(request.tools.map((tool) => tool.name)),
	};
}

function profileOf(messages: ModelMessage[]): string[] {
	const system = messages.find((message) => message.role === "system");
	const section = /(?:^|\n)# (?:Master|主人)\n([\s\S]*?)(?=\n# |$)/.exec(system ? textOf(system) : "")?.[1] ?? "";
	return section.split("\n").filter((line) => /^[-*] \S/.test(line));
}

function stepsOf(messages: ModelMessage[]): Done[][] {
	const results = new Map<string, string>();
	for (const message of messages) if (message.role === "tool") results.set(message.callId, message.text);
	return messages.flatMap((message) =>
		message.role === "assistant" && message.calls.length > 0
			? [message.calls.map((call) => ({ name: call.name, args: parse(call.arguments), result: results.get(call.id) ?? "" }))]
			: [],
	);
}

function parse(text: string): Record<string, unknown> {
	try {
		const value: unknown = JSON.parse(text);
		return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
	} catch {
		return {};
	}
}

function languageOf(said: string, messages: ModelMessage[]): Language {
	if (/\p{Script=Han}/u.test(said)) return "zh";
	if (/[A-Za-z]{2,}/.test(said)) return "en";
	const system = messages.find((message) => message.role === "system");
	return system && (textOf(system).match(/\p{Script=Han}/gu)?.length ?? 0) > 40 ? "zh" : "en";
}
