/**
 * The stamp that ends each user message in a request. It is made only of what is stored with the message, so the same
 * message gives the same bytes in the turn it woke and as history later.
 */

const formats = new Map<string, Intl.DateTimeFormat>();

function formatFor(timezone: string): Intl.DateTimeFormat {
	let format = formats.get(timezone);
	if (format) return format;
	const options: Intl.DateTimeFormatOptions = {
		year: "numeric",
		month: "2-digit",
		day: "2-digit",
		weekday: "short",
		hour: "2-digit",
		minute: "2-digit",
		hourCycle: "h23",
	};
	try {
		format = new Intl.DateTimeFormat("en-US", { ...options, timeZone: timezone });
	} catch {
		format = new Intl.DateTimeFormat("en-US", { ...options, timeZone: "UTC" });
	}
	if (formats.size > 100) formats.clear();
	formats.set(timezone, format);
	return format;
}

/** Formatting is slow, and each request stamps the same messages again. Pure results, bounded. */
const minutes = new Map<string, string>();

/** `2026-11-30 Mon 15:04` in the zone; an unknown zone counts as UTC. */
export function localTime(at: number, timezone: string): string {
	const key = `${Math.floor(at / 60_000)} ${timezone}`;
	let text = minutes.get(key);
	if (text === undefined) {
		const part: Record<string, string> = {};
		for (const { type, value } of formatFor(timezone).formatToParts(at)) part[type] = value;
		text = `${part.year}-${part.month}-${part.day} ${part.weekday} ${part.hour}:${part.minute}`;
		if (minutes.size >= 5_000) minutes.clear();
		minutes.set(key, text);
	}
	return text;
}

function label(text: string): string {
	return text
		.replace(/[[\]·\s\p{Cc}]+/gu, " ")
		.trim()
		.slice(0, 60);
}

/** The stamp with its leading blank line. `from` is null for the master in private. */
export function stamp(message: { at: number; channel: string; from: string | null }, timezone: string): string {
	const sender = message.from === null ? "" : ` · ${label(message.from)}`;
	return `\n\n[${localTime(message.at, timezone)} · ${label(message.channel)}${sender}]`;
}

const TRAILING = /\s*\[(?:\d{4}-\d\d-\d\d [A-Z][a-z]{2} \d\d:\d\d · [^\]\n]{0,140}|used: [^\]\n]{0,300})\]\s*$/;

/** Takes stamps and tool digests that a model has imitated off the end of a reply. */
export function stripStamp(text: string): string {
	let out = text;
	for (;;) {
		// Only the end is looked at: the pattern would be slow on long runs of spaces.
		const at = Math.max(0, out.length - 600);
		const tail = out.slice(at).replace(TRAILING, "");
		if (tail.length === out.length - at) return out;
		out = out.slice(0, at) + tail;
	}
}

const PARTIAL = /\[(?:u?|us|use|used|used:|used: [^\]\n]{0,300}|\d{1,4}|\d{4}-[\d-]{0,5}|\d{4}-\d\d-\d\d [^\]\n]{0,160})\]?\s*$/;

/** Lets streamed text through but holds back what may become an imitated stamp until it is clear that it is none. */
export function createStampFilter(): { push(text: string): string; end(): string } {
	let held = "";
	return {
		push(text) {
			const all = held + text;
			const match = PARTIAL.exec(all.slice(-400));
			const keep = match ? match[0].length : 0;
			held = keep > 0 ? all.slice(-keep) : "";
			return keep > 0 ? all.slice(0, -keep) : all;
		},
		end() {
			const rest = stripStamp(held);
			held = "";
			return rest;
		},
	};
}
