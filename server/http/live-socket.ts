/** One live socket: hello, replay, then live without gap or double; sends and stops; closed when it is too slow or half open. */
import type { Writable } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { ClientFrame, type LiveBody, type LiveFrame } from "./contract.ts";
import type { LiveHubOptions } from "./live.ts";
import { HttpProblem, toBody, toProblem } from "./problem.ts";

/** Frames sent between two looks at how far the socket is behind. */
const BATCH = 200;
/** Frames that may wait while the past is replayed. */
const MAX_WAITING = 20_000;
/** Unanswered client frames after which reading pauses. */
const MAX_PENDING = 64;
const MAX_MALFORMED = 50;
const CLOSE_MS = 2000;

export interface LiveSocket {
	/** A frame of the bus; `encoded` is its JSON, made once for all sockets. */
	offer(frame: LiveFrame, encoded: () => Buffer): void;
	/** Pings; a socket that did not answer the last ping is ended. */
	ping(): void;
	/** Closes with a code, by force when the other side does not answer. */
	end(code: number, reason: string): void;
}

type State = "waiting" | "replaying" | "live" | "closed";

export function createLiveSocket(
	options: LiveHubOptions & { socket: WebSocket; stream: Writable; isPrivate(type: LiveBody["type"]): boolean },
): LiveSocket {
	const { socket, stream, bus, gateway, submit, version, log, limits, isPrivate } = options;
	const { bufferBytes = 4_000_000 } = limits;
	let state: State = "waiting";
	/** What happens while the past is being replayed. */
	let waiting: { frame: LiveFrame; encoded: () => Buffer }[] = [];
	let lastSeq = 0;
	let topics: Set<string> | null = null;
	let alive = true;
	let corked = false;
	/** Size of the frame under way that alone may exceed what may wait: a long answer is no sign of a slow socket. */
	let large = 0;
	let malformed = 0;
	let pending = 0;
	/** Sends and stops of one conversation are done in the order they came. */
	const order = new Map<string, Promise<void>>();

	function end(code: number, reason: string): void {
		if (state === "closed") return;
		state = "closed";
		waiting = [];
		socket.close(code, reason);
		const force = setTimeout(() => socket.terminate(), CLOSE_MS);
		force.unref();
		socket.once("close", () => clearTimeout(force));
	}

	function wants(frame: LiveFrame): boolean {
		if (topics === null || isPrivate(frame.type)) return true;
		if (topics.has(`type:${frame.type}`)) return true;
		return "conversation" in frame && frame.conversation !== null && topics.has(frame.conversation);
	}

	/** What the bus hands on together leaves in one write: a write costs more than making a frame. */
	function together(): void {
		if (corked) return;
		corked = true;
		stream.cork();
		queueMicrotask(() => {
			corked = false;
			stream.uncork();
		});
	}

	function put(frame: LiveFrame, data: Buffer, sent?: () => void): void {
		lastSeq = frame.seq;
		together();
		const alone = large === 0 && data.length > bufferBytes / 4;
		if (alone) large = data.length;
		const done = () => {
			if (alone) large = 0;
			sent?.();
		};
		socket.send(data, { binary: false }, alone || sent ? done : undefined);
		if (socket.bufferedAmount - large > bufferBytes) {
			log.warn("live.too-slow", { bufferedBytes: socket.bufferedAmount });
			end(1013, "too slow");
		}
	}

	function offer(frame: LiveFrame, encoded: () => Buffer): void {
		if (state === "live") {
			if (frame.seq > lastSeq && wants(frame)) put(frame, encoded());
		} else if (state === "replaying") {
			waiting.push({ frame, encoded });
			if (waiting.length > MAX_WAITING) end(1013, "too slow");
		}
	}

	/** A frame for this socket alone, in its place among the others. */
	function say(body: LiveBody): void {
		if (state === "closed") return;
		const frame = bus.publish(body);
		bus.deliver();
		offer(frame, () => Buffer.from(JSON.stringify(frame)));
	}

	/** Sends a list; waits for the socket now and then, so that a long past does not count as slowness. */
	async function catchUp(frames: Iterable<{ frame: LiveFrame; encoded: () => Buffer }>): Promise<void> {
		let count = 0;
		for (const { frame, encoded } of frames) {
			if (state === "closed") return;
			if (frame.seq <= lastSeq || !wants(frame)) continue;
			count += 1;
			const data = encoded();
			if (count % BATCH !== 0 && socket.bufferedAmount + data.length < bufferBytes / 4) put(frame, data);
			else await new Promise<void>((resolve) => put(frame, data, resolve));
		}
	}

	async function open(since: number): Promise<void> {
		// Listening begins before the past is read: what is in both is sent once, by its number.
		state = "replaying";
		const { frames, reset } = await bus.replay(since);
		lastSeq = reset ? 0 : Math.min(since, bus.seq());
		const past = frames.filter((frame) => !isPrivate(frame.type));
		await catchUp(past.map((frame) => ({ frame, encoded: () => Buffer.from(JSON.stringify(frame)) })));
		while (waiting.length > 0 && state === "replaying") {
			const next = waiting;
			waiting = [];
			await catchUp(next);
		}
		if (state !== "replaying") return;
		state = "live";
		say({ type: "hello", version, reset });
	}

	/** A client that does not say hello gets what happens from now on. */
	function openNow(): void {
		if (state !== "waiting") return;
		state = "live";
		lastSeq = bus.seq();
	}

	function refuse(clientId: string | null, error: unknown): void {
		const { problem, unexpected } = toProblem(error);
		if (unexpected) log.error("live.failed", { message: (error as Error)?.message });
		say({ type: "refused", clientId, problem: toBody(problem) });
	}

	function inOrder(conversation: string, work: () => Promise<void>): Promise<void> {
		const before = order.get(conversation) ?? Promise.resolve();
		const mine = before.then(work);
		order.set(conversation, mine);
		return mine.finally(() => {
			if (order.get(conversation) === mine) order.delete(conversation);
		});
	}

	async function handle(frame: ReturnType<typeof ClientFrame.parse>): Promise<void> {
		switch (frame.type) {
			case "hello":
				if (state !== "waiting") return refuse(null, new HttpProblem(409, "already-open", "`hello` is said once, first."));
				return open(frame.since);
			case "subscribe":
				topics = frame.topics.length === 0 ? null : new Set(frame.topics);
				return;
			case "stop":
				openNow();
				// A message said before it may not be stored yet: it is what is to be stopped.
				return inOrder(frame.conversation, async () => {
					try {
						await gateway.stop(frame.conversation);
					} catch (error) {
						refuse(null, error);
					}
				});
			case "send":
				openNow();
				return inOrder(frame.conversation, async () => {
					try {
						const { messageId, turnId } = await submit(frame.conversation, frame);
						say({ type: "ack", clientId: frame.clientId, messageId, turnId });
					} catch (error) {
						refuse(frame.clientId, error);
					}
				});
		}
	}

	function parse(data: RawData, isBinary: boolean): ReturnType<typeof ClientFrame.parse> | null {
		let raw: unknown = null;
		try {
			if (!isBinary) raw = JSON.parse(data.toString());
		} catch {
			// Not JSON: refused below.
		}
		const parsed = ClientFrame.safeParse(raw);
		if (parsed.success) return parsed.data;
		malformed += 1;
		const clientId = (raw as { clientId?: unknown } | null)?.clientId;
		const where = parsed.error.issues[0];
		const detail =
			raw === null ? "The frame is not a JSON object." : `${where?.path.join(".") || "frame"}: ${where?.message ?? "is not valid"}`;
		openNow();
		refuse(typeof clientId === "string" ? clientId.slice(0, 100) : null, new HttpProblem(400, "bad-frame", detail));
		if (malformed >= MAX_MALFORMED) end(1008, "too many malformed frames");
		return null;
	}

	socket.on("pong", () => {
		alive = true;
	});
	socket.on("close", () => {
		state = "closed";
		waiting = [];
	});
	socket.on("message", (data: RawData, isBinary: boolean) => {
		if (state === "closed") return;
		const frame = parse(data, isBinary);
		if (frame === null) return;
		pending += 1;
		if (pending >= MAX_PENDING) socket.pause();
		handle(frame)
			.catch((error: unknown) => {
				log.error("live.failed", { message: (error as Error)?.message });
				end(1011, "internal");
			})
			.finally(() => {
				pending -= 1;
				if (socket.isPaused && pending < MAX_PENDING) socket.resume();
			});
	});

	return {
		offer,
		end,
		ping() {
			if (state === "closed") return;
			if (!alive) return socket.terminate();
			alive = false;
			socket.ping();
		},
	};
}
