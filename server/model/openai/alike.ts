/** Most events of a stream are alike but for their words: those are read without parsing the rest again. */
import { readUsage } from "./collect.ts";

export interface Alike {
	/** The words of the event in the line that begins at `from`, and where the next line begins; null when it is not alike. */
	read(text: string, from: number): { words: string; next: number } | null;
	/** Looks at an event that was parsed to `value`; `line` is as it came, its end included. */
	learn(line: string, value: unknown): void;
}

/** A server whose events differ in more than their words is not looked at for long. */
const MOST_LESSONS = 4;
/** Nor is a line that is longer: what it says is more than words. */
const MOST_LINE_CHARS = 4_000;
/** Stands for the words while the place is tried. */
const MARK = "\u2063words\u2063";
const NOT_PLAIN = /[\\\u0000-\u001f]/;

export function createAlike(): Alike {
	let lessons = 0;
	let head = "";
	let tail = "";
	return {
		read(text, from) {
			if (head === "" || !text.startsWith(head, from)) return null;
			const start = from + head.length;
			const end = stringEnd(text, start);
			if (end < 0 || !text.startsWith(tail, end)) return null;
			const raw = text.slice(start, end);
			const words = NOT_PLAIN.test(raw) ? unquoted(raw) : raw;
			return words === null ? null : { words, next: end + tail.length };
		},
		learn(line, value) {
			if (lessons >= MOST_LESSONS || line.length > MOST_LINE_CHARS) return;
			if (!line.startsWith("data:") || !line.endsWith("\n") || !onlyWords(value)) return;
			lessons++;
			for (const found of line.matchAll(/"content":\s*"/g)) {
				const start = found.index + found[0].length;
				const [before, after] = [line.slice(0, start), line.slice(stringEnd(line, start))];
				// The same field may stand elsewhere too: the right one is where other words make an event of other words.
				const tried = parsed(before.slice("data:".length) + MARK + after);
				if (onlyWords(tried) !== MARK) continue;
				head = before;
				tail = after;
				return;
			}
		},
	};
}

/** Where the JSON string ends that begins before `from`; -1 when it does not. */
function stringEnd(text: string, from: number): number {
	for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 1)) {
		let slashes = 0;
		while (end - slashes > from && text[end - slashes - 1] === "\\") slashes++;
		if (slashes % 2 === 0) return end;
	}
	return -1;
}

function parsed(json: string): unknown {
	try {
		return JSON.parse(json);
	} catch {
		return null;
	}
}

function unquoted(raw: string): string | null {
	const value = parsed(`"${raw}"`);
	return typeof value === "string" ? value : null;
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const isNothing = (value: unknown) => value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);

/** The words of an event that adds them to the answer's text and does nothing else, whatever they are; null for every other. */
export function onlyWords(event: unknown): string | null {
	if (!isObject(event) || !isNothing(event.error) || !isNothing(event.x_groq) || readUsage(event.usage)) return null;
	const choices = Array.isArray(event.choices) ? event.choices : [];
	const choice: unknown = choices[0];
	if (choices.length !== 1 || !isObject(choice) || !isObject(choice.delta)) return null;
	if (!isNothing(choice.finish_reason) || !isNothing(choice.usage) || !(choice.index === undefined || choice.index === 0)) return null;
	const { content, role: _role, ...others } = choice.delta;
	return typeof content === "string" && Object.values(others).every(isNothing) ? content : null;
}
