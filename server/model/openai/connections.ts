/** Kept connections to model servers: plain sockets, because a call's own work is less than what node:http and undici add to it. */
import net from "node:net";
import tls from "node:tls";

export interface Peer {
	/** As in a URL, without brackets. */
	host: string;
	port: number;
	secure: boolean;
}

/** Whoever uses a connection now. */
export interface User {
	/** The bytes are good for this call only. */
	received(packet: Buffer): void;
	/** The other side sends nothing more. */
	ended(): void;
	/** Called once; null when nothing was wrong. */
	closed(error: Error | null): void;
}

export interface Connection {
	/** It carried a request before: the server may have closed it meanwhile. */
	readonly used: boolean;
	write(head: string, body: Buffer | null): void;
	/** Its user is done; another may have it for `keepMs`. Closes it when that is 0, or when not all was sent that was to be. */
	release(keepMs: number): void;
	destroy(): void;
}

export interface Connections {
	/** An idle connection, or a new one that must stand within `connectMs`; then it closes with what `late` makes. */
	take(peer: Peer, user: User, options: { connectMs: number; late(): Error; fresh: boolean }): Connection;
	/** Closes the idle ones. */
	close(): void;
}

interface Line {
	socket: net.Socket;
	user: User | null;
	idleUntilMs: number;
	used: boolean;
}

/** One server's idle connections; more are closed. */
const MOST_IDLE = 256;
const PACKET_BYTES = 64 * 1024;
const PROBE_AFTER_MS = 1_000;

/** `trust`: certificate authorities in place of the usual ones. */
export function createConnections(trust: Pick<tls.ConnectionOptions, "ca"> = {}): Connections {
	const idle = new Map<string, Line[]>();
	/** What makes the next handshake with a server short. */
	const sessions = new Map<string, Buffer>();
	// One for all: a packet is read to its end before the next one comes, and a buffer for each costs more than reading it.
	const packet = Buffer.allocUnsafeSlow(PACKET_BYTES);

	const nameOf = ({ host, port, secure }: Peer) => `${secure ? "https" : "http"}://${host}:${port}`;

	function open(peer: Peer, name: string, connectMs: number, late: () => Error): Line {
		let line: Line;
		const onread = {
			buffer: packet,
			callback(size: number): boolean {
				// Nobody asked: a server that says good-bye.
				if (!line.user) socket.destroy();
				else line.user.received(packet.subarray(0, size));
				return true;
			},
		};
		const { host, port, secure } = peer;
		const common = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_AFTER_MS, onread };
		const session = sessions.get(name);
		const socket = secure
			? tls.connect({
					...common,
					...trust,
					ALPNProtocols: ["http/1.1"],
					...(net.isIP(host) === 0 ? { servername: host } : {}),
					...(session ? { session } : {}),
				} as tls.ConnectionOptions)
			: net.connect(common as net.NetConnectOpts);
		line = { socket, user: null, idleUntilMs: 0, used: false };
		let failure: Error | null = null;
		const timer = setTimeout(() => socket.destroy(late()), connectMs);
		socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
		if (secure) socket.on("session", (fresh: Buffer) => sessions.set(name, fresh));
		socket.on("error", (error) => {
			failure = error;
			sessions.delete(name);
		});
		socket.on("end", () => line.user?.ended());
		socket.on("close", () => {
			clearTimeout(timer);
			forget(name, line);
			const user = line.user;
			line.user = null;
			user?.closed(failure);
		});
		return line;
	}

	function forget(name: string, line: Line): void {
		const list = idle.get(name);
		const place = list?.indexOf(line) ?? -1;
		if (place >= 0) list?.splice(place, 1);
		if (list?.length === 0) idle.delete(name);
	}

	/** The one that was used last: the server has had the least time to close it. */
	function reuse(name: string): Line | null {
		const list = idle.get(name) ?? [];
		const now = performance.now();
		for (let line = list.pop(); line; line = list.pop()) {
			if (line.idleUntilMs > now && !line.socket.destroyed && line.socket.writable) return line;
			line.socket.destroy();
		}
		return null;
	}

	return {
		take(peer, user, { connectMs, late, fresh }) {
			const name = nameOf(peer);
			const line = (fresh ? null : reuse(name)) ?? open(peer, name, connectMs, late);
			const { socket, used } = line;
			line.user = user;
			line.used = true;
			socket.ref();
			const mine = () => line.user === user;
			return {
				used,
				write(head, body) {
					socket.cork();
					socket.write(head, "latin1");
					if (body) socket.write(body);
					socket.uncork();
				},
				release(keepMs) {
					if (!mine()) return;
					line.user = null;
					const list = idle.get(name) ?? [];
					if (keepMs <= 0 || socket.writableLength > 0 || list.length >= MOST_IDLE) {
						socket.destroy();
						return;
					}
					line.idleUntilMs = performance.now() + keepMs;
					// It must not keep the process from ending.
					socket.unref();
					list.push(line);
					idle.set(name, list);
				},
				destroy() {
					if (mine()) socket.destroy();
				},
			};
		},
		close() {
			for (const list of [...idle.values()]) for (const line of [...list]) line.socket.destroy();
		},
	};
}
