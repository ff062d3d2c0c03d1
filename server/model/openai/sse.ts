/** Reads a response body that should be server-sent events, whatever it turns out to be. */
import { StringDecoder } from "node:string_decoder";
import { createAlike } from "./alike.ts";

export type Frame =
	| { type: "data"; value: unknown }
	/** Text of one event or several that bring nothing else. */
	| { type: "words"; text: string }
	| { type: "done" }
	| { type: "broken"; what: string };

export interface BodyReader {
	push(bytes: Buffer): Frame[];
	end(): Frame[];
}

/** A line, or a body that is one JSON document, is collected up to this size. */
const MOST_CHARS = 32 * 1024 * 1024;

const LINE_END = /[\r\n]/;

/**
 * Lines end with LF, CRLF or CR; comments, `event:`, `id:` and empty `data:` lines are nothing; the last line may lack its end; characters may
 * be cut by chunks; servers forget the blank line between events. A body that is one JSON document is one frame; one that is HTML is `broken`.
 */
export function createBodyReader(): BodyReader {
	const decoder = new StringDecoder("utf8");
	let rest = "";
	/** Pieces of a line whose end has not come: joined once, because a line may come in thousands of them. */
	let pieces: string[] = [];
	let waiting = 0;
	let kind: "unknown" | "events" | "document" = "unknown";
	/** Data lines that did not parse alone: JSON may be spread over several lines of one event. */
	let open = "";
	const alike = createAlike();

	function join(last: string): void {
		rest = pieces.length === 0 ? rest + last : rest + pieces.join("") + last;
		pieces = [];
		waiting = 0;
	}

	function lines(final: boolean): Frame[] {
		const frames: Frame[] = [];
		let from = 0;
		let carriage = rest.indexOf("\r");
		let words = "";
		const say = () => {
			if (words !== "") frames.push({ type: "words", text: words });
			words = "";
		};
		for (;;) {
			const known = open === "" ? alike.read(rest, from) : null;
			if (known) {
				words += known.words;
				from = known.next;
				// The blank line behind it.
				if (rest[from] === "\n") from++;
				continue;
			}
			const feed = rest.indexOf("\n", from);
			if (carriage >= 0 && carriage < from) carriage = rest.indexOf("\r", from);
			let end = feed;
			if (carriage >= 0 && (feed < 0 || carriage < feed)) end = carriage;
			if (end < 0) break;
			// A CR at the very end may be half of a CRLF.
			if (rest[end] === "\r" && end === rest.length - 1 && !final) break;
			const next = end + (rest[end] === "\r" && rest[end + 1] === "\n" ? 2 : 1);
			say();
			const parsed = line(rest.slice(from, end), frames);
			if (parsed !== undefined) alike.learn(rest.slice(from, next), parsed);
			from = next;
		}
		say();
		rest = from === 0 ? rest : rest.slice(from);
		return frames;
	}

	/** Answers what a whole event in one line was parsed to. */
	function line(text: string, frames: Frame[]): unknown {
		if (text === "") {
			if (open !== "") frames.push({ type: "broken", what: "an event that is not JSON" });
			open = "";
			return undefined;
		}
		// A JSON error that a proxy wrote into the middle of the stream.
		if (!text.startsWith("data:")) return text[0] === "{" ? parse(text, frames) : undefined;
		const data = text.slice(text[5] === " " ? 6 : 5).trim();
		if (data === "") return undefined;
		if (data !== "[DONE]") return parse(data, frames);
		frames.push({ type: "done" });
		return undefined;
	}

	function parse(data: string, frames: Frame[]): unknown {
		const text = open === "" ? data : `${open}\n${data}`;
		try {
			const value: unknown = JSON.parse(text);
			frames.push({ type: "data", value });
			const whole = open === "";
			open = "";
			return whole ? value : undefined;
		} catch {
			open = text;
			return undefined;
		}
	}

	function decide(final: boolean): Frame[] {
		if (kind === "unknown") {
			const start = rest.trimStart();
			if (start === "") return [];
			if (start[0] === "<") {
				kind = "document";
				rest = "";
				return [{ type: "broken", what: "a web page instead of an answer" }];
			}
			kind = start[0] === "{" || (start[0] === "[" && !start.startsWith("[DONE]")) ? "document" : "events";
			rest = start;
		}
		if (kind === "events") return lines(final);
		if (!final || rest === "") return [];
		return document(rest);
	}

	function document(text: string): Frame[] {
		try {
			const value: unknown = JSON.parse(text);
			return [{ type: "data", value: Array.isArray(value) ? value[0] : value }, { type: "done" }];
		} catch {
			// One JSON object a line, without `data:`.
			kind = "events";
			rest = `${text}\n`;
			return lines(true);
		}
	}

	return {
		push(bytes) {
			const piece = decoder.write(bytes);
			waiting += piece.length;
			if (rest.length + waiting > MOST_CHARS) {
				rest = "";
				join("");
				return [{ type: "broken", what: "an answer that is too large" }];
			}
			// A CR at the end of what waits may be a line's end.
			if (kind !== "unknown" && !LINE_END.test(piece) && !rest.endsWith("\r")) {
				pieces.push(piece);
				return [];
			}
			join(piece);
			return decide(false);
		},
		end() {
			join(decoder.end());
			if (kind === "events" && rest !== "") rest += "\n";
			const frames = decide(true);
			if (kind === "events" && rest !== "") {
				line(rest, frames);
				rest = "";
			}
			if (open !== "") frames.push({ type: "broken", what: "an event that was cut off" });
			open = "";
			return frames;
		},
	};
}
