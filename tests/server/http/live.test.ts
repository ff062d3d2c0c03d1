import { connect as connectTcp } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { LiveFrame } from "../../../server/http/contract.ts";
import type { HttpDeps } from "../../../server/http/deps.ts";
import { type Client, CODE, connect, ended, type House, openHouse, outcome, pause, saying, TOKEN, until } from "./house.ts";

let house: House;
let port: number;
const clients: Client[] = [];
afterEach(async () => {
	for (const client of clients.splice(0)) client.socket.terminate();
	await house.close();
});

async function start(change: Partial<HttpDeps> = {}): Promise<string> {
	house = await openHouse(change);
	({ port } = await house.listen());
	return house.conversation();
}

async function open(since: number | null = 0, headers?: Record<string, string>): Promise<Client> {
	const client = await connect(port, headers);
	clients.push(client);
	if (since !== null) {
		client.send({ type: "hello", since });
		await client.frame("hello");
	}
	return client;
}

const rising = (frames: LiveFrame[]) => frames.every((frame, index) => index === 0 || frame.seq > (frames[index - 1]?.seq ?? 0));
const deltasOf = (frames: LiveFrame[]) => frames.flatMap((frame) => (frame.type === "delta" ? [frame.text] : [])).join("");
const repliesOf = (frames: LiveFrame[]) =>
	frames.flatMap((frame) => (frame.type === "message" && frame.message.role === "assistant" ? [frame.message] : []));

describe("a live socket", () => {
	it("sends, is acknowledged, and gets the whole turn, each frame once and in order", async () => {
		const conversation = await start();
		const client = await open();
		client.send({ type: "send", clientId: "c1", conversation, text: "hi" });
		const ack = await client.frame("ack");
		expect(ack).toMatchObject({ clientId: "c1", messageId: expect.any(String), turnId: expect.any(String) });
		await client.frame("turn", (frame) => frame.state === "done");
		await until(() => repliesOf(client.frames).length > 0);
		expect(deltasOf(client.frames)).toBe("Hello there.");
		expect(repliesOf(client.frames)[0]).toMatchObject({ text: "Hello there.", turnId: ack.turnId });
		expect(rising(client.frames)).toBe(true);
		expect(new Set(client.frames.map(({ seq }) => seq)).size).toBe(client.frames.length);
	});

	it("makes one message of one client id, with the same ack each time, also over sockets and REST", async () => {
		const conversation = await start();
		const [one, two] = [await open(), await open()];
		const send = { type: "send", clientId: "same", conversation, text: "once" };
		one.send(send);
		one.send(send);
		two.send(send);
		await until(() => one.frames.filter(({ type }) => type === "ack").length === 2 && two.frames.some(({ type }) => type === "ack"));
		const rest = await house.call("POST", `/api/v1/conversations/${conversation}/messages`, { text: "once", clientId: "same" });
		const acks = [...one.frames, ...two.frames].filter((frame) => frame.type === "ack");
		expect(new Set(acks.map(({ messageId }) => messageId))).toEqual(new Set([rest.json().messageId]));
		await until(() => repliesOf(one.frames).length === 1);
		const { messages } = (await house.call("GET", `/api/v1/conversations/${conversation}/messages`)).json();
		expect(messages).toHaveLength(2);
	});

	it("sends an ack to nobody else", async () => {
		const conversation = await start();
		const [one, two] = [await open(), await open()];
		one.send({ type: "send", clientId: "mine", conversation, text: "hi" });
		await one.frame("ack");
		await until(() => repliesOf(two.frames).length === 1);
		expect(two.frames.filter(({ type }) => type === "ack" || type === "refused")).toEqual([]);
	});

	it("stops what was sent in the same breath, in many conversations at once", async () => {
		await start();
		house.setScript(saying(["never ", "whole"], { pauseMs: 300 }));
		const client = await open();
		const places = await Promise.all(Array.from({ length: 30 }, () => house.conversation()));
		for (const conversation of places) {
			client.send({ type: "send", clientId: "c", conversation, text: "hi" });
			client.send({ type: "stop", conversation });
		}
		const ends = () => client.frames.flatMap((frame) => (frame.type === "turn" && /done|stopped/.test(frame.state) ? [frame.state] : []));
		await until(() => ends().length === places.length);
		expect(new Set(ends())).toEqual(new Set(["stopped"]));
	});

	it("keeps the order of what one socket sends to one conversation", async () => {
		const conversation = await start();
		const client = await open();
		for (let index = 0; index < 20; index += 1) client.send({ type: "send", clientId: `c${index}`, conversation, text: `text ${index}` });
		await until(() => client.frames.filter(({ type }) => type === "ack").length === 20);
		const said = client.frames.flatMap((frame) => (frame.type === "message" && frame.message.role === "user" ? [frame.message.text] : []));
		expect(said).toEqual(Array.from({ length: 20 }, (_, index) => `text ${index}`));
	});

	it("misses nothing and gets nothing twice when it is cut in the middle of a stream", async () => {
		const conversation = await start();
		const pieces = Array.from({ length: 40 }, (_, index) => `${index} `);
		house.setScript(saying(pieces, { pauseMs: 5 }));
		const first = await open();
		first.send({ type: "send", clientId: "c1", conversation, text: "count" });
		await until(() => deltasOf(first.frames).length > 20);
		first.socket.terminate();
		await pause(20);
		const seen = [...first.frames];
		const second = await open(seen.at(-1)?.seq ?? 0);
		second.send({ type: "send", clientId: "c1", conversation, text: "count" });
		await until(() => repliesOf(second.frames).length === 1);
		const all = [...seen, ...second.frames];
		expect(rising(all)).toBe(true);
		expect(deltasOf(all)).toBe(pieces.join(""));
		expect(repliesOf(all)[0]?.text).toBe(pieces.join(""));
		expect(all.filter((frame) => frame.type === "message" && frame.message.role === "user")).toHaveLength(1);
	});

	it("replays and goes live without gap or double while frames keep coming", async () => {
		const conversation = await start();
		let count = 0;
		const publish = () => {
			count += 1;
			house.bus.publish({ type: "log", level: "info", event: "tick", message: String(count), conversation, turnId: null, data: {} });
		};
		for (let index = 0; index < 300; index += 1) publish();
		const timer = setInterval(() => {
			for (let index = 0; index < 20; index += 1) publish();
		}, 1);
		const sockets = await Promise.all(Array.from({ length: 5 }, () => open()));
		await pause(50);
		clearInterval(timer);
		for (const client of sockets) {
			await until(() => client.frames.some((frame) => frame.type === "log" && frame.message === String(count)));
			const ticks = client.frames.flatMap((frame) => (frame.type === "log" && frame.event === "tick" ? [Number(frame.message)] : []));
			expect(ticks).toEqual(Array.from({ length: count }, (_, index) => index + 1));
			expect(rising(client.frames)).toBe(true);
		}
	});

	it("sends a frame once that is both in the past and new", async () => {
		const conversation = await start();
		const { replay } = house.bus;
		house.bus.replay = async (since) => {
			house.bus.publish({ type: "delta", conversation, turnId: "t", text: "in both" });
			const past = await replay(since);
			house.bus.publish({ type: "delta", conversation, turnId: "t", text: "new" });
			return past;
		};
		const client = await open();
		expect(client.frames.flatMap((frame) => (frame.type === "delta" ? [frame.text] : []))).toEqual(["in both", "new"]);
		expect(rising(client.frames)).toBe(true);
	});

	it("says reset when the past is not retained, or not ours", async () => {
		await start();
		const client = await open(9_999_999);
		expect(await client.frame("hello")).toMatchObject({ reset: true, version: "1.2.3" });
		house.bus.publish({ type: "status", status: {} });
		await client.frame("status");
	});

	it("gets what happens from now on when it says no hello", async () => {
		const conversation = await start();
		const client = await open(null);
		client.send({ type: "send", clientId: "c", conversation, text: "hi" });
		await client.frame("ack");
		await until(() => repliesOf(client.frames).length === 1);
		client.send({ type: "hello", since: 0 });
		expect(await client.frame("refused")).toMatchObject({ clientId: null, problem: { code: "already-open" } });
	});

	it("gets only what it subscribed to", async () => {
		const conversation = await start();
		const other = await house.conversation();
		const client = await open(0);
		client.send({ type: "subscribe", topics: [conversation, "type:status"] });
		client.send({ type: "send", clientId: "a", conversation: other, text: "elsewhere" });
		await client.frame("ack", ({ clientId }) => clientId === "a");
		await until(async () => (await house.call("GET", `/api/v1/conversations/${other}/messages`)).json().messages.length === 2);
		house.bus.publish({ type: "status", status: {} });
		client.send({ type: "send", clientId: "b", conversation, text: "here" });
		await until(() => repliesOf(client.frames).length === 1);
		await client.frame("status");
		const places = client.frames
			.filter((frame) => frame.seq > client.frames.find(({ type }) => type === "hello")!.seq)
			.flatMap((frame) => ("conversation" in frame ? [frame.conversation] : []));
		expect(new Set(places)).toEqual(new Set([conversation]));
		client.send({ type: "subscribe", topics: [] });
		client.send({ type: "send", clientId: "c", conversation: other, text: "again" });
		await until(() => repliesOf(client.frames).some(({ conversationId }) => conversationId === other));
	});

	it("stops a turn", async () => {
		const conversation = await start();
		house.setScript(saying(["a", "b"], { pauseMs: 5000 }));
		const client = await open();
		client.send({ type: "send", clientId: "c", conversation, text: "hi" });
		await client.frame("turn", ({ state }) => state === "running");
		client.send({ type: "stop", conversation });
		await client.frame("turn", ({ state }) => state === "stopped");
	});

	it("refuses malformed frames and goes on", async () => {
		const conversation = await start();
		const client = await open();
		const bad: unknown[] = [
			"nonsense",
			"null",
			"[]",
			"5",
			'"x"',
			"{}",
			{ type: "shout" },
			{ type: "send", clientId: "x1", text: "no conversation" },
			{ type: "send", conversation, text: "no id" },
			{ type: "hello", since: -1 },
			{ type: "subscribe", topics: "all" },
			new Uint8Array([1, 2, 3]),
			{ type: "send", clientId: "x2", conversation, text: "x".repeat(200_001) },
		];
		for (const frame of bad) client.send(frame);
		await until(() => client.frames.filter(({ type }) => type === "refused").length === bad.length);
		const refused = client.frames.flatMap((frame) => (frame.type === "refused" ? [frame] : []));
		expect(new Set(refused.map(({ problem }) => problem.code))).toEqual(new Set(["bad-frame"]));
		expect(refused.flatMap(({ clientId }) => clientId ?? [])).toEqual(["x1", "x2"]);
		client.send({ type: "send", clientId: "x3", conversation: "nowhere", text: "hi" });
		expect(await client.frame("refused", ({ clientId }) => clientId === "x3")).toMatchObject({
			problem: { code: "conversation-not-found", status: 404 },
		});
		client.send({ type: "send", clientId: "good", conversation, text: "hi" });
		await client.frame("ack", ({ clientId }) => clientId === "good");
	});

	it("is closed after endless nonsense, and when a frame is huge", async () => {
		await start();
		const client = await open();
		for (let index = 0; index < 60; index += 1) client.send("nonsense");
		expect((await client.closed).code).toBe(1008);
		const huge = await open();
		huge.send("x".repeat(2_100_000));
		expect((await huge.closed).code).toBe(1009);
	});

	it("is closed with a code when it does not read", async () => {
		const conversation = await start({ live: { bufferBytes: 200_000 } });
		const client = await open();
		const quick = await open();
		client.socket.pause();
		const text = "x".repeat(50_000);
		await until(() => {
			house.bus.publish({ type: "delta", conversation, turnId: "t", text });
			return house.log.some(({ event }) => event === "live.too-slow");
		});
		client.socket.resume();
		expect(await client.closed).toEqual({ code: 1013, reason: "too slow" });
		house.bus.publish({ type: "status", status: {} });
		await quick.frame("status");
	});

	it("that reads gets what is larger than all that may wait, live and when it comes back", async () => {
		const conversation = await start({ live: { bufferBytes: 200_000 } });
		const client = await open();
		const before = client.frames.at(-1)?.seq ?? 0;
		const long = (turnId: string) => ({ type: "delta", conversation, turnId, text: "x".repeat(6_000_000) }) as const;
		house.bus.publish(long("t1"));
		house.bus.publish({ type: "status", status: {} });
		await client.frame("status");
		house.bus.publish(long("t2"));
		for (let n = 0; n < 100; n++) house.bus.publish({ type: "delta", conversation, turnId: "t3", text: "y".repeat(40_000) });
		const back = await connect(port);
		clients.push(back);
		back.send({ type: "hello", since: before });
		await back.frame("hello");
		expect(deltasOf(back.frames)).toBe(`${"x".repeat(12_000_000)}${"y".repeat(4_000_000)}`);
		expect(rising(back.frames)).toBe(true);
	});

	it("is ended when it does not answer pings", async () => {
		await start({ live: { pingMs: 250 } });
		const well = await open();
		// A peer that speaks the handshake and then nothing.
		const dead = await new Promise<{ ended: Promise<void> }>((resolve) => {
			const socket = connectTcp(port, "127.0.0.1", () => {
				socket.write(
					`GET /api/v1/live HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
				);
			});
			const gone = new Promise<void>((end) => socket.on("close", () => end()));
			socket.once("data", () => resolve({ ended: gone }));
			socket.on("data", () => {});
		});
		await dead.ended;
		house.bus.publish({ type: "status", status: {} });
		await well.frame("status");
	});

	it("closes when its session ends: by logout, by expiry, by another token", async () => {
		let token = TOKEN;
		await start({ live: { pingMs: 250 }, token: () => token });
		const setup = await house.call("POST", "/api/v1/setup", { code: CODE, username: "ada", password: "correct horse" });
		const cookie = String(setup.headers["set-cookie"]).split(";")[0] ?? "";
		const byLogout = await open(0, { cookie, origin: `http://127.0.0.1:${port}` });
		const byToken = await open();
		await house.app.inject({ method: "POST", url: "/api/v1/logout", headers: { cookie, host: `127.0.0.1:${port}` } });
		expect(await byLogout.closed).toEqual({ code: 4401, reason: "signed out" });
		const login = await house.app.inject({
			method: "POST",
			url: "/api/v1/login",
			payload: { username: "ada", password: "correct horse" },
			headers: { host: `127.0.0.1:${port}` },
		});
		const byExpiry = await open(0, { cookie: String(login.headers["set-cookie"]).split(";")[0] ?? "" });
		house.clock.set(Date.now() + 40 * 24 * 3600 * 1000);
		expect((await byExpiry.closed).code).toBe(4401);
		token = "another-token-0123456";
		expect((await byToken.closed).code).toBe(4401);
	});

	it("is told when the server closes, and does not hold it up", async () => {
		await start();
		const client = await open();
		const began = Date.now();
		await house.app.close();
		expect((await client.closed).code).toBe(1001);
		expect(Date.now() - began).toBeLessThan(1500);
	});

	it("is limited in number", async () => {
		await start({ live: { maxSockets: 1 } });
		await open();
		const second = await connect(port);
		clients.push(second);
		expect((await second.closed).code).toBe(1013);
	});

	it("makes the JSON of a frame once for all sockets", async () => {
		const conversation = await start();
		await Promise.all(Array.from({ length: 10 }, () => open()));
		let made = 0;
		const counted = {
			toJSON: () => {
				made += 1;
				return "x";
			},
		};
		house.bus.publish({ type: "delta", conversation, turnId: "t", text: counted as unknown as string });
		await until(() => clients.every(({ frames }) => frames.some(({ type }) => type === "delta")));
		expect(made).toBe(1);
	});

	it("shows a turn's end to fifty sockets", async () => {
		const conversation = await start();
		house.setScript(async function* () {
			return yield* ended(outcome({ reply: "for all" }));
		});
		const many = await Promise.all(Array.from({ length: 50 }, () => open()));
		many[0]?.send({ type: "send", clientId: "c", conversation, text: "hi" });
		await until(() => many.every(({ frames }) => repliesOf(frames).length === 1));
	});
});
