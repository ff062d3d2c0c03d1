import { describe, expect, it } from "vitest";
import { createResponseReader, headerOf, type ResponseHead } from "../../../server/model/openai/http1.ts";

interface Seen {
	head: ResponseHead | null;
	body: string;
	/** -1 while it is not complete. */
	keepMs: number;
}

/** Reads packets; each is overwritten after its call, as the real ones are. */
function read(packets: Buffer[], closed = false): Seen {
	const seen: Seen = { head: null, body: "", keepMs: -1 };
	const reader = createResponseReader({
		head: (head) => {
			expect(seen.head).toBeNull();
			seen.head = head;
		},
		data: (bytes) => {
			expect(seen.keepMs).toBe(-1);
			seen.body += bytes.toString("latin1");
		},
		end: (keepMs) => {
			expect(seen.keepMs).toBe(-1);
			seen.keepMs = keepMs;
		},
	});
	for (const packet of packets) {
		const shared = Buffer.from(packet);
		reader.push(shared);
		shared.fill(0);
	}
	if (closed) reader.close();
	return seen;
}

/** Whole, byte by byte, and cut in two at every place. */
function everyWay(text: string, closed = false): Seen[] {
	const bytes = Buffer.from(text, "latin1");
	const ways = [[bytes], Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))];
	for (let at = 1; at < bytes.length; at++) ways.push([bytes.subarray(0, at), bytes.subarray(at)]);
	return ways.map((packets) => read(packets, closed));
}

const FOUR_MINUTES = 240_000;
const responses: [what: string, text: string, status: number, body: string, keepMs: number][] = [
	["a length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", FOUR_MINUTES],
	["a length of nothing", "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", 401, "", FOUR_MINUTES],
	["the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", FOUR_MINUTES],
	["no status text", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", FOUR_MINUTES],
	["no body", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", FOUR_MINUTES],
	[
		"chunks with extensions and trailers",
		'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a="b"\r\nhello\r\n00d \r\n, \r\n0\r\n world\r\n0\r\nx: y\r\nz: 1\r\n\r\n',
		200,
		"hello, \r\n0\r\n world",
		FOUR_MINUTES,
	],
	[
		"chunks although a length is told",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		200,
		"hi",
		FOUR_MINUTES,
	],
	["bare line feeds", "HTTP/1.1 200 OK\ntransfer-encoding:chunked\n\n2\nhi\n0\n\n", 200, "hi", FOUR_MINUTES],
	[
		"hints first",
		"\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		200,
		"hi",
		FOUR_MINUTES,
	],
	["close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", 0],
	["the old version", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", 0],
	["the old version kept", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", FOUR_MINUTES],
	["a time for keeping", "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=5\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", 4_000],
	["too short a time for keeping", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", 0],
];

describe("a response", () => {
	it.each(responses)("with %s, however it is cut", (_, text, status, body, keepMs) => {
		for (const seen of everyWay(text)) expect(seen).toMatchObject({ head: { status }, body, keepMs });
	});

	it("without a length ends with the connection", () => {
		for (const seen of everyWay("HTTP/1.1 200 OK\r\nX: y\r\n\r\nas long as it\r\n\r\nlasts", true))
			expect(seen).toMatchObject({ body: "as long as it\r\n\r\nlasts", keepMs: 0 });
	});

	it("that is cut is not complete", () => {
		for (const text of [
			"HTTP/1.1 200 OK\r\nContent-Le",
			"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
		])
			for (const seen of everyWay(text, true)) expect(seen.keepMs).toBe(-1);
	});

	it("with something behind its end spoils the connection", () => {
		expect(read([Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!")])).toMatchObject({ body: "hi", keepMs: 0 });
		expect(read([Buffer.from("HTTP/1.1 204 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")])).toMatchObject({
			head: { status: 204 },
			body: "",
			keepMs: 0,
		});
	});

	it("tells its headers in lower case, repeated ones together, continued ones whole", () => {
		const { head } = read([
			Buffer.from("HTTP/1.1 429 Too Many\r\nRetry-After:  7 \r\nA: 1\r\na: 2\r\nLong: one\r\n  two\r\nContent-Length: 0\r\n\r\n"),
		]);
		const headers = head?.headers ?? [];
		expect(head?.statusText).toBe("Too Many");
		expect(["retry-after", "a", "long", "none"].map((name) => headerOf(headers, name))).toEqual(["7", "1, 2", "one two", null]);
	});

	it.each([
		["no HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n"],
		["HTTP/2", "HTTP/2 200 OK\r\n\r\n"],
		["another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"],
		["a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"],
		["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
		["a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n"],
		["a chunk that goes on", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n"],
		["an endless head", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`],
		["an endless size", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${"0".repeat(5_000)}`],
	])("that is %s is refused", (_, text) => {
		expect(() => read([Buffer.from(text)])).toThrow();
	});
});
