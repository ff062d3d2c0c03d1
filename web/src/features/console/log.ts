/** Lines of the log: from history and from the live socket, as one list without doubles. Pure. */
import type { EventItem, LiveFrame } from "../../../../server/http/contract.ts";

export type Level = EventItem["level"];
export const levels: readonly Level[] = ["trace", "debug", "info", "warn", "error"];

export interface LogLine {
	seq: number;
	at: string;
	level: Level;
	event: string;
	/** Empty when the event's name says it all. */
	message: string;
	conversation: string | null;
	turnId: string | null;
	/** What else it carries, in one line. */
	details: string;
}

/** More lines than anybody scrolls through; older ones are in the files. */
export const keptLines = 500;

export function lineOfFrame(frame: Extract<LiveFrame, { type: "log" }>): LogLine {
	const { seq, at, level, event, message, conversation, turnId, data } = frame;
	return { seq, at, level, event, message: message === event ? "" : message, conversation, turnId, details: detailsOf(data) };
}

/** Null for what is no line of the log. */
export function lineOfEvent(item: EventItem): LogLine | null {
	if (item.type !== "log") return null;
	const event = text(item.body.event);
	const message = text(item.body.message);
	return {
		seq: item.seq,
		at: item.at,
		level: item.level,
		event,
		message: message === event ? "" : message,
		conversation: item.conversation,
		turnId: item.turnId,
		details: detailsOf(item.body.data),
	};
}

function text(value: unknown): string {
	return typeof value === "string" ? value : "";
}

/** `key value  key value`, each value short. */
function detailsOf(data: unknown): string {
	if (typeof data !== "object" || data === null) return "";
	return Object.entries(data)
		.filter(([, value]) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0))
		.map(([key, value]) => `${key} ${short(typeof value === "string" ? value : JSON.stringify(value))}`)
		.join("  ");
}

function short(value: string): string {
	const characters = [...value.replace(/\s+/g, " ")];
	return characters.length > 160 ? `${characters.slice(0, 159).join("")}…` : characters.join("");
}

/** Both lists are in order; a line that is in both counts once. The newest `keptLines` stay. */
export function mergeLines(lines: LogLine[], more: LogLine[]): LogLine[] {
	const last = lines.at(-1)?.seq ?? -1;
	if (more.every((line) => line.seq > last)) return [...lines, ...more].slice(-keptLines);
	const bySeq = new Map([...lines, ...more].map((line) => [line.seq, line]));
	return [...bySeq.values()].sort((a, b) => a.seq - b.seq).slice(-keptLines);
}

export function atLeast(level: Level, wanted: Level): boolean {
	return levels.indexOf(level) >= levels.indexOf(wanted);
}
