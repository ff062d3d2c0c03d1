/** Text files as people leave them: with or without BOM, with CRLF, not always UTF-8. */
import { createHash } from "node:crypto";

export interface DecodedText {
	/** Without BOM, lines ended by \n, well-formed. */
	text: string;
	crlf: boolean;
	bom: boolean;
	/** True when bytes were not UTF-8 (they are read as replacement characters) or zero bytes were left out. */
	damaged: boolean;
}

export function decodeText(bytes: Uint8Array): DecodedText {
	let raw: string;
	let damaged = false;
	const utf16 = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : null;
	try {
		raw = new TextDecoder(utf16 ?? "utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch {
		raw = new TextDecoder(utf16 ?? "utf-8", { ignoreBOM: true }).decode(bytes);
		damaged = true;
	}
	const bom = raw.startsWith("\uFEFF");
	if (bom) raw = raw.slice(1);
	if (raw.includes("\0")) {
		raw = raw.replaceAll("\0", "");
		damaged = true;
	}
	const crlf = raw.includes("\r\n");
	return { text: raw.replace(/\r\n?/g, "\n"), crlf, bom, damaged };
}

export function encodeText(text: string, like: { crlf: boolean; bom: boolean }): string {
	const lines = text.replace(/\r\n?/g, "\n").toWellFormed();
	return (like.bom ? "\uFEFF" : "") + (like.crlf ? lines.replaceAll("\n", "\r\n") : lines);
}

/** Names the content: equal texts have equal versions, however their lines end. */
export function versionOf(text: string): string {
	return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
