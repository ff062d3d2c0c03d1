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

/** Results in frames are cut here. */
const cutAt = 2000;

/** What a live frame says as a line; null for frames that are no event of their own (a delta, a message, a status). */
export function lineOfFrame(frame: LiveFrame): LogLine | null {
	const { seq, at, type, ...rest } = frame;
	return lineOf({ seq, at, type, body: rest });
}

/** The same of what is kept: a kept event is its frame, with conversation and turn set apart. */
export function lineOfEvent({ seq, at, type, body, conversation, turnId }: EventItem): LogLine | null {
	return lineOf({ seq, at, type, body: { ...body, conversation, turnId } });
}

function lineOf({ seq, at, type, body }: { seq: number; at: string; type: string; body: Record<string, unknown> }): LogLine | null {
	const said = wordsOf(type, body);
	if (said === null) return null;
	const { level = "info", event, message = "", data = {} } = said;
	return {
		seq,
		at,
		level,
		event,
		message: message === event ? "" : message,
		conversation: text(body.conversation) || null,
		turnId: text(body.turnId) || null,
		details: detailsOf(data),
	};
}

function wordsOf(type: string, body: Record<string, unknown>): { level?: Level; event: string; message?: string; data?: unknown } | null {
	switch (type) {
		case "log":
			return {
				level: levels.find((level) => level === body.level) ?? "info",
				event: text(body.event),
				message: text(body.message),
				data: body.data,
			};
		case "turn":
			return { event: `turn.${text(body.state)}`, data: { origin: body.origin, model: body.model } };
		case "step":
			return body.state === "finished"
				? { event: `step ${body.step}`, message: short(text(body.text)), data: { round: body.round } }
				: null;
		case "tool": {
			const tool = object(body.tool);
			if (tool.state === "open" || tool.state === "started") return null;
			const { name, state, ms, result, arguments: given } = tool;
			const size = typeof result === "string" ? `${result.length}${result.length >= cutAt ? "+" : ""} characters` : null;
			return { event: `tool.${text(state)}`, message: `${text(name)} ${short(text(given))}`, data: { ms, result: size } };
		}
		case "plan": {
			const items = Array.isArray(body.items) ? body.items : [];
			return { event: "plan", data: { done: `${items.filter((item) => object(item).done === true).length}/${items.length}` } };
		}
		case "usage": {
			const usage = object(body.usage);
			return {
				event: "usage",
				data: {
					in: usage.inputTokens,
					cached: usage.cachedTokens,
					out: usage.outputTokens,
					cost: usage.cost === null ? "unpriced" : `${usage.cost} ${text(usage.currency)}`,
				},
			};
		}
		case "restart":
			return { event: "step.restarted", data: { reason: body.reason, model: body.model } };
		case "approval":
			return { event: `approval.${text(body.state)}`, data: { tool: body.tool } };
		default:
			return null;
	}
}

function object(value: unknown): Record<string, unknown> {
	return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
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
