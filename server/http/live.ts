/** The live sockets: one listener on the bus, one JSON text per frame, shared by everybody who gets it. */
import type { Writable } from "node:stream";
import type { WebSocket } from "ws";
import type { EventBus } from "../observe/bus.ts";
import type { Auth, Identity } from "./auth.ts";
import type { Context } from "./context.ts";
import type { LiveBody, LiveFrame } from "./contract.ts";
import type { HttpDeps } from "./deps.ts";
import { createLiveSocket, type LiveSocket } from "./live-socket.ts";

/** Frames of one socket alone; on the bus they only take their number. */
const PRIVATE = new Set<LiveBody["type"]>(["hello", "ack", "refused"]);

export interface LiveHub {
	/** `stream` is the connection under the socket. */
	attach(socket: WebSocket, stream: Writable, identity: Identity): void;
	/** Closes the sockets of a session that has ended. */
	endSession(tokenHash: string): void;
	close(): void;
}

export interface LiveHubOptions {
	bus: EventBus;
	auth: Auth;
	gateway: HttpDeps["gateway"];
	submit: Context["submit"];
	version: string;
	log: HttpDeps["log"];
	limits: NonNullable<HttpDeps["live"]>;
}

export function createLiveHub(options: LiveHubOptions): LiveHub {
	const { bus, auth, log, limits } = options;
	const { pingMs = 30_000, maxSockets = 200 } = limits;
	const sockets = new Map<LiveSocket, Identity>();
	let unsubscribe: (() => void) | null = null;
	let timer: ReturnType<typeof setInterval> | null = null;

	function onFrame(frame: LiveFrame): void {
		if (PRIVATE.has(frame.type)) return;
		let data: Buffer | null = null;
		const encoded = () => {
			data ??= Buffer.from(JSON.stringify(frame));
			return data;
		};
		for (const socket of sockets.keys()) socket.offer(frame, encoded);
	}

	async function check(socket: LiveSocket, identity: Identity): Promise<void> {
		socket.ping();
		try {
			if (!(await auth.stillGood(identity))) socket.end(4401, "signed out");
		} catch (error) {
			log.warn("live.check-failed", { message: (error as Error).message });
		}
	}

	function start(): void {
		unsubscribe ??= bus.subscribe(onFrame);
		timer ??= setInterval(() => {
			for (const [socket, identity] of sockets) void check(socket, identity);
		}, pingMs);
		timer.unref();
	}

	function stopWhenEmpty(): void {
		if (sockets.size > 0) return;
		unsubscribe?.();
		unsubscribe = null;
		if (timer !== null) clearInterval(timer);
		timer = null;
	}

	return {
		attach(socket, stream, identity) {
			if (sockets.size >= maxSockets) return socket.close(1013, "too many sockets");
			const live = createLiveSocket({ ...options, socket, stream, isPrivate: (type) => PRIVATE.has(type) });
			sockets.set(live, identity);
			start();
			socket.on("close", () => {
				sockets.delete(live);
				stopWhenEmpty();
			});
		},
		endSession(tokenHash) {
			for (const [socket, identity] of sockets) if (identity.tokenHash === tokenHash) socket.end(4401, "signed out");
		},
		close() {
			for (const socket of sockets.keys()) socket.end(1001, "closing");
		},
	};
}
