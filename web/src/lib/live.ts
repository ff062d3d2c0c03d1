/**
 * The live socket: says hello with the last number seen, sends again what was not acknowledged, and comes back by itself
 * with growing pauses. It holds no conversation state; frames go to `onFrame` in order.
 */
import type { ClientFrame, LiveFrame } from "../../../server/http/contract.ts";

/** `retryAt` is when the next attempt starts (ms since the epoch); `signed-out` is final until `start` is called again. */
export type LiveState =
	| { kind: "connecting" }
	| { kind: "open" }
	| { kind: "waiting"; retryAt: number; attempt: number }
	| { kind: "closed" };

type SendFrame = Extract<ClientFrame, { type: "send" }>;

interface LiveSocket {
	readyState: number;
	onopen: ((event: never) => unknown) | null;
	onmessage: ((event: never) => unknown) | null;
	onclose: ((event: never) => unknown) | null;
	onerror: ((event: never) => unknown) | null;
	send(data: string): void;
	close(): void;
}

export interface LiveOptions {
	url: string;
	openSocket(url: string): LiveSocket;
	onFrame(frame: LiveFrame): void;
	onState(state: LiveState): void;
	/** The socket could not be opened or was closed: asks whether trying again makes sense (false: signed out). */
	mayRetry?(): Promise<boolean>;
	now?(): number;
	random?(): number;
	/** First pause; doubles up to `maxPauseMs`. */
	firstPauseMs?: number;
	maxPauseMs?: number;
	helloTimeoutMs?: number;
}

export interface Live {
	start(): void;
	stop(): void;
	/** Kept and sent again after a reconnect until it is acknowledged or refused. */
	send(frame: SendFrame): void;
	/** Ends a pause between attempts ("try now", the network is back). */
	retryNow(): void;
	state(): LiveState;
}

/** Pause before attempt `attempt` (from 0): doubled each time, with up to a quarter of jitter so that many pages do not knock at once. */
export function pauseMs(attempt: number, firstMs: number, maxMs: number, random: number): number {
	const base = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 16));
	return Math.round(base * (0.75 + random * 0.25));
}

export function createLive(options: LiveOptions): Live {
	const {
		openSocket,
		onFrame,
		onState,
		mayRetry,
		now = Date.now,
		random = Math.random,
		firstPauseMs = 500,
		maxPauseMs = 20_000,
		helloTimeoutMs = 10_000,
	} = options;
	const unacked = new Map<string, SendFrame>();
	let socket: LiveSocket | null = null;
	let greeted = false;
	/** Replayed frames come before the hello that says what they are: the rest of what we know, or all there is. */
	let early: LiveFrame[] = [];
	let since = 0;
	let running = false;
	let attempt = 0;
	let seq = 0;
	let timer: ReturnType<typeof setTimeout> | null = null;
	let current: LiveState = { kind: "closed" };

	function setState(state: LiveState): void {
		current = state;
		onState(state);
	}

	function clearTimer(): void {
		if (timer !== null) clearTimeout(timer);
		timer = null;
	}

	function put(frame: ClientFrame): void {
		if (socket?.readyState === 1) socket.send(JSON.stringify(frame));
	}

	function connect(): void {
		clearTimer();
		setState({ kind: "connecting" });
		greeted = false;
		early = [];
		since = seq;
		const mine = openSocket(options.url);
		socket = mine;
		// A socket that opens but never greets is as dead as one that does not open.
		timer = setTimeout(() => mine.close(), helloTimeoutMs);
		mine.onopen = () => put({ type: "hello", since });
		mine.onmessage = (event: { data: unknown }) => {
			if (socket === mine && typeof event.data === "string") receive(event.data);
		};
		mine.onerror = () => {};
		mine.onclose = () => {
			if (socket === mine) void lost();
		};
	}

	function receive(data: string): void {
		let frame: LiveFrame;
		try {
			frame = JSON.parse(data) as LiveFrame;
		} catch {
			return;
		}
		if (frame.type === "hello") welcome(frame);
		else if (greeted) deliver(frame);
		else early.push(frame);
	}

	function welcome(hello: Extract<LiveFrame, { type: "hello" }>): void {
		clearTimer();
		greeted = true;
		attempt = 0;
		// Who knew nothing has missed nothing.
		const reset = hello.reset && since > 0;
		if (hello.reset) seq = 0;
		onFrame({ ...hello, reset });
		for (const frame of early) deliver(frame);
		early = [];
		seq = Math.max(seq, hello.seq);
		setState({ kind: "open" });
		for (const waiting of unacked.values()) put(waiting);
	}

	function deliver(frame: LiveFrame): void {
		if (frame.type === "ack") unacked.delete(frame.clientId);
		if (frame.type === "refused" && frame.clientId !== null) unacked.delete(frame.clientId);
		seq = Math.max(seq, frame.seq);
		onFrame(frame);
	}

	async function lost(): Promise<void> {
		clearTimer();
		socket = null;
		greeted = false;
		if (!running) return;
		const delay = pauseMs(attempt, firstPauseMs, maxPauseMs, random());
		attempt += 1;
		setState({ kind: "waiting", retryAt: now() + delay, attempt });
		timer = setTimeout(connect, delay);
		if (mayRetry && !(await mayRetry()) && running && socket === null) stop();
	}

	function stop(): void {
		running = false;
		clearTimer();
		const open = socket;
		socket = null;
		open?.close();
		setState({ kind: "closed" });
	}

	return {
		start() {
			if (running) return;
			running = true;
			attempt = 0;
			connect();
		},
		stop,
		send(frame) {
			unacked.set(frame.clientId, frame);
			if (greeted) put(frame);
		},
		retryNow() {
			if (running && current.kind === "waiting") connect();
		},
		state: () => current,
	};
}
