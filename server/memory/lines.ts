/** SUMMARY.md and the diary's lines as data. Pure. A line's id stands in a comment that nobody sees rendered, so that a crash never doubles a line and `forget` finds it. */
import { createHash } from "node:crypto";

export interface MemoryLine {
	id: string;
	/** `YYYY-MM-DD HH:MM` of the zone, or empty when a person wrote the line without one. */
	when: string;
	text: string;
}

const bullet = /^\s*[-*+]\s+(?:(\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?)\s+)?/;
const mark = /^<!--\s*m:([a-z0-9-]+)\s*-->\s*$/;

export const shortHash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);

/** One line of text, without what would break a line or a comment. */
export const oneLine = (text: string): string =>
	text.replaceAll("<!--", "<! --").replaceAll("-->", "-- >").replace(/\s+/g, " ").trim().toWellFormed();

export const formatLine = (line: MemoryLine): string => `- ${line.when ? `${line.when} ` : ""}${oneLine(line.text)} <!--m:${line.id}-->`;

/** Reads one line; null for headings, blanks and loose text. */
export function parseLine(raw: string): MemoryLine | null {
	const begun = bullet.exec(raw);
	if (!begun) return null;
	// In steps rather than by one pattern: whole pages are read, and that pattern would try every end of every line.
	const rest = raw.slice(begun[0].length);
	const at = rest.lastIndexOf("<!--");
	const id = at < 0 ? undefined : mark.exec(rest.slice(at))?.[1];
	const text = (id === undefined ? rest : rest.slice(0, at)).trimEnd();
	if (text === "") return null;
	const when = begun[1] ?? "";
	return { id: id ?? `h${shortHash(`${when} ${text}`)}`, when, text };
}

/** The summary's lines, newest first, as they stand in the file. */
export function parseSummary(text: string): MemoryLine[] {
	return text.split("\n").flatMap((raw) => {
		const line = parseLine(raw);
		return line ? [line] : [];
	});
}

/** Puts a line on top; null when it is there already. What a person wrote beside the lines stays where it is. */
export function addOnTop(text: string, line: MemoryLine): string | null {
	const rows = text.split("\n");
	if (rows.some((raw) => parseLine(raw)?.id === line.id)) return null;
	const first = rows.findIndex((raw) => parseLine(raw) !== null);
	if (first >= 0) return [...rows.slice(0, first), formatLine(line), ...rows.slice(first)].join("\n");
	const before = text.trimEnd();
	return `${before}${before === "" ? "" : "\n\n"}${formatLine(line)}\n`;
}

/** Takes lines out by id, or puts another text in their place; null when none of them is there. */
export function changeLines(text: string, change: (line: MemoryLine) => MemoryLine | null | undefined): string | null {
	let changed = false;
	const rows = text.split("\n").flatMap((raw) => {
		const line = parseLine(raw);
		if (!line) return [raw];
		const put = change(line);
		if (put === undefined) return [raw];
		changed = true;
		return put === null ? [] : [formatLine(put)];
	});
	return changed ? rows.join("\n") : null;
}

/** A diary page: what its front matter says and the lines below. */
export interface DiaryHead {
	date: string;
	summary: string;
	people: string[];
	channels: string[];
}

const front = /^---\n([\s\S]*?)\n---\n?/;
const quote = (text: string): string => JSON.stringify(oneLine(text));

export function diaryHead(head: DiaryHead): string {
	return `---\ndate: ${head.date}\nsummary: ${quote(head.summary)}\npeople: [${head.people.map(quote).join(", ")}]\nchannels: [${head.channels.map(quote).join(", ")}]\n---\n`;
}

/** Puts the front matter in or in place of the old one; other keys that a person added there stay. */
export function withHead(text: string, head: DiaryHead): string {
	const found = front.exec(text);
	if (!found) return `${diaryHead(head)}\n${text.replace(/^\n+/, "")}`;
	const kept = (found[1] as string)
		.split("\n")
		.filter((row) => row.trim() !== "" && !/^(date|summary|people|channels)\s*:/.test(row) && !/^\s/.test(row));
	const made = diaryHead(head);
	const joined = kept.length === 0 ? made : made.replace(/---\n$/, `${kept.join("\n")}\n---\n`);
	return joined + text.slice(found[0].length);
}

/** Adds lines at the end of a diary page, each once. Null when all are there. */
export function addToDiary(text: string, date: string, lines: MemoryLine[]): string | null {
	const known = new Set(text.split("\n").flatMap((raw) => parseLine(raw)?.id ?? []));
	const fresh = lines.filter((line) => !known.has(line.id));
	if (fresh.length === 0) return null;
	const begun = text.trim() === "" ? diaryHead({ date, summary: "", people: [], channels: [] }) : text;
	return `${begun.trimEnd()}\n${parseLine(begun.trimEnd().split("\n").at(-1) ?? "") ? "" : "\n"}${fresh.map(formatLine).join("\n")}\n`;
}
