/** One event as one readable line: time, level where it matters, name, then what belongs to it. */
import type { LogLevel } from "./log.ts";

const longestValue = 200;
const longestLine = 2_000;
const colours: Record<LogLevel, string> = { trace: "90", debug: "90", info: "0", warn: "33", error: "31" };
const signs: Record<LogLevel, string> = { trace: "·", debug: "·", info: " ", warn: "!", error: "✗" };

/** Writes times of day in a zone that may change; a bad zone name gives UTC. */
export function createClockFace(): (at: number, zone: string | undefined) => string {
	let made: { zone: string | undefined; format: Intl.DateTimeFormat } | null = null;
	let last = { second: Number.NaN, text: "" };
	return (at, zone) => {
		const second = Math.floor(at / 1000);
		if (made?.zone === zone && second === last.second) return last.text;
		if (!made || made.zone !== zone) {
			const make = (timeZone: string | undefined) =>
				new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone });
			try {
				made = { zone, format: make(zone) };
			} catch {
				made = { zone, format: make("UTC") };
			}
		}
		last = { second, text: made.format.format(at) };
		return last.text;
	};
}

/** Nothing that would have to be replaced, whatever the length. */
const plain = /^[ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\uffff]*$/;

/** Cuts on characters, and keeps everything on one line: a log line must not be forged by what it tells of. */
export function shorten(text: string, most = longestValue): string {
	if (text.length <= most && plain.test(text)) return text;
	let out = "";
	let count = 0;
	for (const character of text) {
		if (count >= most) return `${out}…`;
		const code = character.codePointAt(0) as number;
		const control = code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029;
		out += code === 10 ? "⏎" : control || (code >= 0xd800 && code <= 0xdfff) ? "�" : character;
		count += 1;
	}
	return out;
}

function valueText(value: unknown): string {
	if (typeof value === "string")
		return /^[\w.:/@%+-]+$/.test(value) && value.length <= longestValue ? value : JSON.stringify(shorten(value));
	if (value === null || value === undefined || typeof value === "number" || typeof value === "boolean") return String(value);
	if (value instanceof Date) return value.toISOString();
	const { message, name } = value as { message?: unknown; name?: unknown };
	if (typeof message === "string" && typeof name === "string") return JSON.stringify(shorten(`${name}: ${message}`));
	try {
		return shorten(JSON.stringify(value) ?? "");
	} catch {
		return "[…]";
	}
}

export function consoleLine(line: {
	time: string;
	level: LogLevel;
	event: string;
	data: Record<string, unknown>;
	colour: boolean;
}): string {
	const { message, ...rest } = line.data;
	const parts = [line.time, signs[line.level], shorten(line.event, 80)];
	if (typeof message === "string") parts.push(shorten(message));
	else if (message !== undefined) parts.push(`message=${valueText(message)}`);
	for (const [key, value] of Object.entries(rest)) if (value !== undefined) parts.push(`${shorten(key, 60)}=${valueText(value)}`);
	const text = shorten(parts.join(" "), longestLine);
	return line.colour && line.level !== "info" ? `\u001b[${colours[line.level]}m${text}\u001b[0m\n` : `${text}\n`;
}
