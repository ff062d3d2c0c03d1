/** Reads one HTTP/1.1 response from the packets in which it comes. */

export interface ResponseHead {
	status: number;
	statusText: string;
	/** Names (in lower case) and values, in turn. */
	headers: string[];
}

export interface ResponseSink {
	head(head: ResponseHead): void;
	/** What a packet brings of the body, at once; the bytes are good for this call only. */
	data(bytes: Buffer): void;
	/** The response is complete. `keepMs`: so long the server keeps the connection for another request; 0 = not at all. */
	end(keepMs: number): void;
}

export interface ResponseReader {
	/** Takes what came. Throws when it is no HTTP. */
	push(packet: Buffer): void;
	/** The server will send nothing more: ends a response whose length is told by nothing else. */
	close(): void;
}

/** Head, trailers, and a chunk's size line. */
const MOST_HEAD_BYTES = 64 * 1024;
const MOST_LINE_BYTES = 4 * 1024;
/** A connection is not trusted for longer, whatever the server says: what lies between may have forgotten it. */
const MOST_KEEP_MS = 4 * 60_000;
/** The server's promise ends while our request is on its way. */
const MARGIN_MS = 1_000;
const FEED = 10;
const RETURN = 13;

type State = "head" | "length" | "size" | "chunk" | "chunk-end" | "trailers" | "until-close" | "over";

/** Line ends may be LF alone; informational responses, chunk extensions and trailers are skipped; what comes behind the end spoils the connection. */
export function createResponseReader(sink: ResponseSink): ResponseReader {
	let state: State = "head";
	/** Of a body with a length, or of the chunk. */
	let left = 0;
	let keepMs = 0;
	let told = false;
	/** What has come of a head or line that is not complete. */
	let begun: Buffer | null = null;

	/** The line that begins at `from`, without its end, and where the next one begins; null when its end has not come. */
	function line(bytes: Buffer, from: number): { text: string; next: number } | null {
		const feed = bytes.indexOf(FEED, from);
		if (feed < 0) {
			if (bytes.length - from > MOST_LINE_BYTES) throw new Error("a line of the response is too long");
			return null;
		}
		return { text: bytes.toString("latin1", from, bytes[feed - 1] === RETURN && feed > from ? feed - 1 : feed), next: feed + 1 };
	}

	function head(text: string): void {
		const lines = text.trimEnd().split(/\r?\n/);
		const status = /^HTTP\/1\.(\d) +(\d{3})(?: (.*))?$/i.exec(lines[0] ?? "");
		if (!status) throw new Error("the server does not answer in HTTP");
		const code = Number(status[2]);
		if (code === 101) throw new Error("the server speaks another protocol");
		if (code < 200) return;
		const headers = readHeaders(lines);
		sink.head({ status: code, statusText: status[3] ?? "", headers });
		keepMs = keptFor(headers, status[1] !== "0");
		const coding = headerOf(headers, "transfer-encoding");
		const length = headerOf(headers, "content-length");
		if (code === 204 || code === 304) state = "over";
		else if (coding !== null && /(?:^|,)\s*chunked\s*$/i.test(coding)) state = "size";
		else if (coding !== null || length === null) {
			state = "until-close";
			keepMs = 0;
		} else {
			// The same length twice is what some proxies make of it.
			const sizes = new Set(length.split(",").map((one) => one.trim()));
			if (sizes.size !== 1 || !/^\d{1,15}$/.test([...sizes][0] ?? "")) throw new Error("the response has no valid length");
			left = Number([...sizes][0]);
			state = left === 0 ? "over" : "length";
		}
	}

	function end(): void {
		if (told) return;
		told = true;
		sink.end(keepMs);
	}

	function push(packet: Buffer): void {
		const bytes = begun === null ? packet : Buffer.concat([begun, packet]);
		begun = null;
		let at = 0;
		const pieces: Buffer[] = [];
		const give = () => {
			if (pieces.length > 0) sink.data(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
			pieces.length = 0;
		};
		const wait = () => {
			// A copy: the packet is good for this call only.
			if (at < bytes.length) begun = Buffer.from(bytes.subarray(at));
			give();
		};
		while (at < bytes.length) {
			switch (state) {
				case "head": {
					while (at < bytes.length && (bytes[at] === RETURN || bytes[at] === FEED)) at++;
					const stop = headEnd(bytes, at);
					if (stop === null) {
						if (bytes.length - at > MOST_HEAD_BYTES) throw new Error("the response's head is too large");
						wait();
						return;
					}
					head(bytes.toString("latin1", at, stop.from));
					at = stop.next;
					break;
				}
				case "length":
				case "chunk": {
					const piece = bytes.subarray(at, at + left);
					pieces.push(piece);
					at += piece.length;
					left -= piece.length;
					if (left === 0) state = state === "chunk" ? "chunk-end" : "over";
					break;
				}
				case "size": {
					const size = line(bytes, at);
					if (size === null) {
						wait();
						return;
					}
					const digits = /^\s*([0-9a-f]{1,12})\s*(?:;|$)/i.exec(size.text)?.[1];
					if (digits === undefined) throw new Error("the response's chunks are damaged");
					left = Number.parseInt(digits, 16);
					at = size.next;
					state = left === 0 ? "trailers" : "chunk";
					break;
				}
				case "chunk-end": {
					if (bytes[at] === RETURN && at + 1 === bytes.length) {
						wait();
						return;
					}
					const next = bytes[at] === RETURN ? at + 1 : at;
					if (bytes[next] !== FEED) throw new Error("the response's chunks are damaged");
					at = next + 1;
					state = "size";
					break;
				}
				case "trailers": {
					const trailer = line(bytes, at);
					if (trailer === null) {
						wait();
						return;
					}
					at = trailer.next;
					if (trailer.text === "") state = "over";
					break;
				}
				case "until-close":
					pieces.push(bytes.subarray(at));
					at = bytes.length;
					break;
				case "over":
					keepMs = 0;
					at = bytes.length;
					break;
			}
		}
		give();
		if (state === "over") end();
	}

	return {
		push,
		close() {
			if (state === "until-close") end();
		},
	};
}

/** Where the head's last line ends and where the body begins. */
function headEnd(bytes: Buffer, from: number): { from: number; next: number } | null {
	for (let feed = bytes.indexOf(FEED, from); feed >= 0; feed = bytes.indexOf(FEED, feed + 1)) {
		if (bytes[feed + 1] === FEED) return { from: feed, next: feed + 2 };
		if (bytes[feed + 1] === RETURN && bytes[feed + 2] === FEED) return { from: feed, next: feed + 3 };
	}
	return null;
}

function readHeaders(lines: string[]): string[] {
	const headers: string[] = [];
	for (const line of lines.slice(1)) {
		// A line that goes on with the one before it.
		if (/^[ \t]/.test(line) && headers.length > 0) {
			headers[headers.length - 1] += ` ${line.trim()}`;
			continue;
		}
		const colon = line.indexOf(":");
		if (colon > 0) headers.push(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
	}
	return headers;
}

/** All values of a header, joined with commas; null when it is not there. `name` is in lower case. */
export function headerOf(headers: string[], name: string): string | null {
	let found: string | null = null;
	for (let i = 0; i + 1 < headers.length; i += 2) {
		if (headers[i] === name) found = found === null ? (headers[i + 1] ?? "") : `${found}, ${headers[i + 1] ?? ""}`;
	}
	return found;
}

function keptFor(headers: string[], persistent: boolean): number {
	const connection = headerOf(headers, "connection")?.toLowerCase() ?? "";
	if (persistent ? /\bclose\b/.test(connection) : !/\bkeep-alive\b/.test(connection)) return 0;
	const hint = /\btimeout\s*=\s*(\d{1,6})/i.exec(headerOf(headers, "keep-alive") ?? "")?.[1];
	return hint === undefined ? MOST_KEEP_MS : Math.min(MOST_KEEP_MS, Math.max(0, Number(hint) * 1_000 - MARGIN_MS));
}
