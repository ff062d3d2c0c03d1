import net, { type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createExchange, createTransport, type Exchange, type Transport } from "../../../server/model/openai/transport.ts";

const closers: (() => void)[] = [];
afterEach(() => {
	for (const close of closers.splice(0)) close();
});

/** A server that does with each request (its connection's number, and its own on it) what it is told. */
async function serve(answer: (socket: Socket, connection: number, request: number) => void): Promise<{ url: string; sockets: Socket[] }> {
	const sockets: Socket[] = [];
	const server = net.createServer((socket) => {
		sockets.push(socket);
		const connection = sockets.length;
		let requests = 0;
		socket.on("error", () => {});
		socket.on("data", (bytes: Buffer) => {
			if (/^(?:GET|POST) /.test(bytes.toString("latin1"))) answer(socket, connection, ++requests);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
	closers.push(() => {
		for (const socket of sockets) socket.destroy();
		server.close();
	});
	return { url: `http://localhost:${(server.address() as AddressInfo).port}/v1/x?y=1`, sockets };
}

function open(): Transport {
	const transport = createTransport();
	closers.push(() => transport.close());
	return transport;
}

const get = (transport: Transport, url: string, exchange: Exchange = createExchange()) => transport.fetch(url, { exchange } as RequestInit);
const textOf = async (transport: Transport, url: string) => (await get(transport, url)).text();
const ok = (body: string, more = "") => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
const gone = (socket: Socket | undefined) =>
	new Promise<void>((resolve) => (socket?.destroyed ? resolve() : socket?.once("close", () => resolve())));

describe("connections to a model server", () => {
	it("are kept, and one carries one request at a time", async () => {
		const { url, sockets } = await serve((socket, connection, request) => socket.write(ok(`${connection}.${request}`)));
		const transport = open();
		expect([await textOf(transport, url), await textOf(transport, url)]).toEqual(["1.1", "1.2"]);
		expect((await Promise.all([textOf(transport, url), textOf(transport, url)])).sort()).toEqual(["1.3", "2.1"]);
		transport.close();
		await Promise.all(sockets.map(gone));
	});

	it("are not used again when the server said so or its time is over", async () => {
		const { url } = await serve((socket, connection) =>
			socket.write(ok(`${connection}`, connection === 1 ? "Connection: close\r\n" : "Keep-Alive: timeout=1\r\n")),
		);
		const transport = open();
		expect([await textOf(transport, url), await textOf(transport, url), await textOf(transport, url)]).toEqual(["1", "2", "3"]);
	});

	it("that carry what nobody asked for give no other request an answer", async () => {
		const { url, sockets } = await serve((socket, connection, request) => socket.write(ok(`${connection}.${request}`)));
		const transport = open();
		expect(await textOf(transport, url)).toBe("1.1");
		await new Promise<void>((resolve) => sockets[0]?.write(ok("stray"), () => resolve()));
		for (let round = 0; round < 10; round++) await new Promise((resolve) => setImmediate(resolve));
		expect(await textOf(transport, url)).toMatch(/^(?:1\.2|2\.1)$/);
	});

	it("that the server closes in the moment of a request are replaced once, others are an error", async () => {
		let deaf = false;
		const { url, sockets } = await serve((socket, connection, request) => {
			if (request > 1 || deaf) socket.destroy();
			else socket.write(ok(`${connection}`));
		});
		const transport = open();
		expect([await textOf(transport, url), await textOf(transport, url)]).toEqual(["1", "2"]);
		deaf = true;
		// The kept one, then a new one, and no third.
		await expect(get(transport, url)).rejects.toThrow();
		expect(sockets).toHaveLength(3);
	});

	it("are not kept when the answer comes before all is sent", async () => {
		const { url, sockets } = await serve((socket, connection) => {
			socket.pause();
			socket.write(connection === 1 ? "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig" : ok("2"));
		});
		const transport = open();
		const refused = await transport.fetch(url, { method: "POST", body: "x".repeat(30_000_000) });
		expect([refused.status, await refused.text()]).toEqual([413, "big"]);
		expect(await textOf(transport, url)).toBe("2");
		expect(sockets).toHaveLength(2);
	});

	it("end with an abort, whatever they are at", async () => {
		const { url, sockets } = await serve((socket, connection) => {
			if (connection === 2) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
		});
		const transport = open();
		const early = createExchange();
		early.abort();
		await expect(get(transport, url, early)).rejects.toThrow("aborted");
		expect(sockets).toHaveLength(0);

		const waiting = createExchange();
		const answer = get(transport, url, waiting);
		while (!sockets[0]) await new Promise((resolve) => setImmediate(resolve));
		waiting.abort();
		await expect(answer).rejects.toThrow("aborted");
		await gone(sockets[0]);

		const reading = createExchange();
		const body = (await get(transport, url, reading)).text();
		reading.abort();
		await expect(body).rejects.toThrow("aborted");
		await gone(sockets[1]);
	});

	it("tell a body that is cut from one that ends with the connection", async () => {
		const { url } = await serve((socket, connection) =>
			socket.end(connection === 1 ? "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel" : "HTTP/1.1 200 OK\r\n\r\nwhole"),
		);
		const transport = open();
		await expect(textOf(transport, url)).rejects.toThrow("aborted");
		expect(await textOf(transport, url)).toBe("whole");
	});

	it("refuse what is no HTTP", async () => {
		const { url, sockets } = await serve((socket) => socket.write("SSH-2.0-OpenSSH_9.2\r\n\r\n"));
		await expect(get(open(), url)).rejects.toThrow("Parse Error");
		await gone(sockets[0]);
	});
});
