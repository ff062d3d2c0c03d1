/** Reads a response body that should be server-sent events, whatever it turns out to be. */
import { StringDecoder } from "node:string_decoder";

export type Frame = { type: "data"; value: unknown } | { type: "done" } | { type: "broken"; what: string };

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

	function join(last: string): void {
		rest = pieces.length === 0 ? rest + last : rest + pieces.join("") + last;
		pieces = [];
		waiting = 0;
	}

	function lines(final: boolean): Frame[] {
		const frames: Frame[] = [];
		let from = 0;
		let carriage = rest.indexOf("\r");
		for (;;) {
			const feed = rest.indexOf("\n", from);
			if (carriage >= 0 && carriage < from) carriage = rest.indexOf("\r", from);
			let end = feed;
			if (carriage >= 0 && (feed < 0 || carriage < feed)) end = carriage;
			if (end < 0) break;
			// A CR at the very end may be half of a CRLF.
			if (rest[end] === "\r" && end === rest.length - 1 && !final) break;
			line(rest.slice(from, end), frames);
			from = end + (rest[end] === "\r" && rest[end + 1] === "\n" ? 2 : 1);
		}
		rest = from === 0 ? rest : rest.slice(from);
		return frames;
	}

	function line(text: string, frames: Frame[]): void {
		if (text === "") {
			if (open !== "") frames.push({ type: "broken", what: "an event that is not JSON" });
			open = "";
			return;
		}
		if (!text.startsWith("data:")) {
			// A JSON error that a proxy wrote into the middle of the stream.
			if (text[0] === "{") parse(text, frames);
			return;
		}
		const data = text.slice(text[5] === " " ? 6 : 5).trim();
		if (data === "") return;
		if (data === "[DONE]") {
			frames.push({ type: "done" });
			return;
		}
		parse(data, frames);
	}

	function parse(data: string, frames: Frame[]): void {
		const text = open === "" ? data : `${open}\n${data}`;
		try {
			frames.push({ type: "data", value: JSON.parse(text) });
			open = "";
		} catch {
			open = text;
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
