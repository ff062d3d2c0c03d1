import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { LiveBody, LiveFrame } from "../../server/http/contract.ts";
import { createLive, type Live, type LiveOptions, type LiveState, pauseMs } from "../../web/src/lib/live.ts";

interface FakeServer {
	url: string;
	/** What clients said, all sockets together, with the socket's number. */
	heard: { socket: number; frame: Record<string, unknown> }[];
	say(body: LiveBody, seq: number): void;
	/** Breaks every connection, as a cut line does. */
	cut(): void;
	stop(): Promise<void>;
}

/** A real socket server that keeps what it heard; `hello` answers with what the test wants. */
async function startServer(
	onHello: (since: number) => { before?: LiveFrame[]; reset?: boolean; seq?: number },
	port = 0,
): Promise<FakeServer> {
	const server = new WebSocketServer({ port, host: "127.0.0.1" });
	await once(server, "listening");
	const heard: FakeServer["heard"] = [];
	let count = 0;
	server.on("connection", (socket) => {
		count += 1;
		const number = count;
		socket.on("message", (data) => {
			const frame = JSON.parse(String(data)) as Record<string, unknown>;
			heard.push({ socket: number, frame });
			if (frame.type !== "hello") return;
			const { before = [], reset = false, seq = 1 } = onHello(frame.since as number);
			for (const one of before) socket.send(JSON.stringify(one));
			socket.send(JSON.stringify({ seq, at: "", type: "hello", version: "1", reset }));
		});
	});
	return {
		url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		heard,
		say: (body, seq) => {
			for (const client of server.clients) client.send(JSON.stringify({ seq, at: "", ...body }));
		},
		cut: () => {
			for (const client of server.clients) client.terminate();
		},
		stop: async () => {
			for (const client of server.clients) client.terminate();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

async function until(condition: () => boolean): Promise<void> {
	const end = Date.now() + 5000;
	while (!condition()) {
		if (Date.now() > end) throw new Error("the condition did not come true");
		await new Promise((resolve) => setTimeout(resolve, 2));
	}
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
	for (const close of closers.splice(0).reverse()) await close();
});

function connect(url: string, part: Partial<LiveOptions> = {}): { live: Live; got: LiveFrame[]; states: LiveState[] } {
	const got: LiveFrame[] = [];
	const states: LiveState[] = [];
	const live = createLive({
		url,
		openSocket: (address) => new WebSocket(address) as unknown as ReturnType<LiveOptions["openSocket"]>,
		onFrame: (frame) => got.push(frame),
		onState: (state) => states.push(state),
		firstPauseMs: 5,
		maxPauseMs: 20,
		...part,
	});
	closers.push(() => live.stop());
	live.start();
	return { live, got, states };
}

const log = (message: string): LiveBody => ({
	type: "log",
	level: "info",
	event: "x",
	message,
	conversation: null,
	turnId: null,
	data: {},
});
const send = (clientId: string) => ({ type: "send" as const, clientId, conversation: "c1", text: "hi" });

describe("the live socket", () => {
	it("says hello with the last number it has seen and hands frames on in order", async () => {
		const server = await startServer(() => ({}));
		closers.push(server.stop);
		const { live, got } = connect(server.url);
		await until(() => live.state().kind === "open");
		server.say(log("a"), 41);
		server.say(log("b"), 42);
		await until(() => got.length === 3);
		server.cut();
		await until(() => server.heard.filter(({ frame }) => frame.type === "hello").length === 2);
		expect(server.heard.map(({ frame }) => frame)).toEqual([
			{ type: "hello", since: 0 },
			{ type: "hello", since: 42 },
		]);
	});

	it("holds a replay that comes before the hello until it knows what it is", async () => {
		const before: LiveFrame[] = [{ seq: 3, at: "", ...log("replayed") }];
		let hellos = 0;
		const server = await startServer(() => {
			hellos += 1;
			return hellos === 1 ? { seq: 90 } : { before, reset: true, seq: 4 };
		});
		closers.push(server.stop);
		const { live, got } = connect(server.url);
		await until(() => live.state().kind === "open");
		server.cut();
		await until(() => got.length === 3);
		expect(got.slice(1).map((frame) => [frame.type, frame.seq, frame.type === "hello" && frame.reset])).toEqual([
			["hello", 4, true],
			["log", 3, false],
		]);
		// From now on the new numbers count.
		server.cut();
		await until(() => server.heard.filter(({ frame }) => frame.type === "hello").length === 3);
		expect(server.heard.at(-1)?.frame).toEqual({ type: "hello", since: 4 });
	});

	it("is not told to read everything again when it knew nothing", async () => {
		const server = await startServer(() => ({ reset: true }));
		closers.push(server.stop);
		const { got } = connect(server.url);
		await until(() => got.length === 1);
		expect(got[0]).toMatchObject({ type: "hello", reset: false });
	});

	it("sends again, under the same id, what was not acknowledged, and only that", async () => {
		const server = await startServer(() => ({}));
		closers.push(server.stop);
		const { live, got } = connect(server.url);
		live.send(send("early"));
		await until(() => server.heard.some(({ frame }) => frame.clientId === "early"));
		live.send(send("acked"));
		live.send(send("refused"));
		await until(() => server.heard.length === 4);
		server.say({ type: "ack", clientId: "acked", messageId: "m1", turnId: "t1" }, 5);
		server.say({ type: "refused", clientId: "refused", problem: { type: "x", title: "no", status: 400, code: "no" } }, 6);
		await until(() => got.some((frame) => frame.seq === 6));
		server.cut();
		await until(() => server.heard.filter(({ socket }) => socket === 2).length === 2);
		expect(server.heard.filter(({ socket }) => socket === 2).map(({ frame }) => frame.type === "hello" || frame.clientId)).toEqual([
			true,
			"early",
		]);
	});

	it("says when it will try again, and tries at once when asked", async () => {
		const gone = await startServer(() => ({}));
		const port = Number(new URL(gone.url).port);
		await gone.stop();
		const { live, states } = connect(gone.url, { firstPauseMs: 60_000, maxPauseMs: 60_000, now: () => 1000, random: () => 1 });
		await until(() => live.state().kind === "waiting");
		expect(states).toEqual([{ kind: "connecting" }, { kind: "waiting", retryAt: 61_000, attempt: 1 }]);
		const back = await startServer(() => ({}), port);
		closers.push(back.stop);
		live.retryNow();
		await until(() => live.state().kind === "open");
	});

	it("stays closed once it is signed out", async () => {
		const gone = await startServer(() => ({}));
		await gone.stop();
		const { live } = connect(gone.url, { mayRetry: () => Promise.resolve(false), firstPauseMs: 1 });
		await until(() => live.state().kind === "closed");
	});

	it("gives up on a socket that opens but never greets", async () => {
		const mute = new WebSocketServer({ port: 0, host: "127.0.0.1" });
		await once(mute, "listening");
		closers.push(() => {
			for (const client of mute.clients) client.terminate();
			mute.close();
		});
		const { states } = connect(`ws://127.0.0.1:${(mute.address() as AddressInfo).port}`, { helloTimeoutMs: 20 });
		await until(() => states.some((state) => state.kind === "waiting"));
	});
});

describe("the pause between attempts", () => {
	it("doubles up to its bound, with up to a quarter of jitter", () => {
		expect([0, 1, 2, 10].map((attempt) => pauseMs(attempt, 500, 20_000, 1))).toEqual([500, 1000, 2000, 20_000]);
		expect(pauseMs(1, 500, 20_000, 0)).toBe(750);
	});
});
