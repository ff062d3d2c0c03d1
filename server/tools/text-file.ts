/** Reading text files: what kind a file is, and its lines without holding the whole of it. */
import type { FileHandle } from "node:fs/promises";

const SAMPLE_BYTES = 16_384;
const CHUNK_BYTES = 65_536;

export interface TextKind {
	/** Name for `TextDecoder`, or null for a binary file. */
	encoding: string | null;
	/** What a binary file is, as far as its first bytes tell. */
	what: string;
}

const MAGIC: [string, string][] = [
	["89504e47", "PNG image"],
	["ffd8ff", "JPEG image"],
	["47494638", "GIF image"],
	["25504446", "PDF"],
	["504b0304", "ZIP or Office file"],
	["1f8b", "gzip archive"],
	["7f454c46", "program"],
	["53514c69746520666f726d6174", "SQLite database"],
	["4f676753", "Ogg audio"],
	["494433", "MP3 audio"],
];

/** Looks at the first bytes. UTF-8, UTF-16 with a mark, and GB18030 count as text. */
export async function textKind(handle: FileHandle): Promise<TextKind> {
	const buffer = Buffer.alloc(SAMPLE_BYTES);
	const { bytesRead } = await handle.read(buffer, 0, SAMPLE_BYTES, 0);
	const sample = buffer.subarray(0, bytesRead);
	const hex = sample.subarray(0, 16).toString("hex");
	if (hex.startsWith("fffe")) return { encoding: "utf-16le", what: "" };
	if (hex.startsWith("feff")) return { encoding: "utf-16be", what: "" };
	const what = hex.startsWith("52494646")
		? hex.slice(16, 24) === "57454250"
			? "WebP image"
			: "RIFF media"
		: (MAGIC.find(([magic]) => hex.startsWith(magic))?.[1] ?? "binary file");
	if (what === "PDF" || sample.includes(0)) return { encoding: null, what };
	for (const encoding of ["utf-8", "gb18030"]) {
		try {
			// Streaming: a character cut off at the end of the sample is no error.
			new TextDecoder(encoding, { fatal: true }).decode(sample, { stream: true });
			return { encoding, what: "" };
		} catch {}
	}
	return { encoding: null, what };
}

export interface Lines {
	/** The wanted lines, line ends as in the file. */
	text: string;
	/** Last line in `text`; one less than the offset when there is none. */
	last: number;
	/** Lines in the file, or null when it was too large to count them. */
	total: number | null;
	/** True when lines follow. */
	more: boolean;
	crlf: boolean;
	/** Lines that were longer than `maxLineChars`. */
	shortened: number;
}

export interface LinesWanted {
	encoding: string;
	/** From 1. */
	offset: number;
	limit: number;
	maxChars: number;
	maxLineChars: number;
	/** Bytes after which lines are no longer counted once the wanted ones are found. */
	countBytes: number;
	signal: AbortSignal;
}

/** Streams a file for some of its lines. Memory stays at one chunk and what is wanted. */
export async function readLines(handle: FileHandle, wanted: LinesWanted): Promise<Lines> {
	const decoder = new TextDecoder(wanted.encoding);
	const buffer = Buffer.alloc(CHUNK_BYTES);
	const out: Lines = { text: "", last: wanted.offset - 1, total: null, more: false, crlf: false, shortened: 0 };
	let line = 1;
	let current = "";
	let long = false;
	let pending = false;
	let full = false;
	const take = (piece: string) => {
		pending = pending || piece !== "";
		if (full || line < wanted.offset || long) return;
		current += piece;
		if (current.length > wanted.maxLineChars) {
			current = current.slice(0, wanted.maxLineChars).replace(/[\uD800-\uDBFF]$/, "");
			long = true;
		}
	};
	const endLine = (end: string) => {
		if (!full && line >= wanted.offset) {
			const whole = `${current}${long ? "…[line cut]" : ""}${end}`;
			if (line - wanted.offset >= wanted.limit || (out.text !== "" && out.text.length + whole.length > wanted.maxChars)) {
				full = true;
				out.more = true;
			} else {
				out.text += whole;
				out.last = line;
				if (long) out.shortened++;
				if (current.endsWith("\r") && end !== "") out.crlf = true;
			}
		}
		line++;
		current = "";
		long = false;
		pending = false;
	};
	for (let position = 0; ; ) {
		wanted.signal.throwIfAborted();
		const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, position);
		position += bytesRead;
		const text = decoder.decode(buffer.subarray(0, bytesRead), { stream: bytesRead > 0 });
		let from = 0;
		for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
			take(text.slice(from, at));
			endLine("\n");
			from = at + 1;
		}
		take(text.slice(from));
		if (bytesRead === 0) break;
		if (full && position > wanted.countBytes) return out;
	}
	if (pending) endLine("");
	out.total = line - 1;
	return out;
}
