/**
 * The `fetch` that the SDK is handed: plain node:http with kept connections, a limit on connecting, and bodies as Node streams (web streams
 * cost more than everything else in a short call). Behind a proxy undici takes over.
 */
import http, { type IncomingMessage } from "node:http";
import https from "node:https";

export interface ProxySettings {
	http: string | null;
	https: string | null;
	noProxy: string | null;
}

export interface Transport {
	/** As the SDK calls it. `init.connectMs` bounds connecting. */
	fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
	/** Closes idle connections. */
	close(): void;
}

/** The connection did not stand in time. (The SDK would hide an error whose text speaks of a time-out.) */
export class NotConnected extends Error {
	constructor(host: string, ms: number) {
		super(`no connection to ${host} within ${ms} ms`);
		this.name = "NotConnected";
	}
}

/** An error body is read up to this many bytes. */
const MOST_ERROR_BYTES = 64 * 1024;
const DEFAULT_CONNECT_MS = 5_000;

export function createTransport(proxy: ProxySettings | null = null): Transport {
	const agents = {
		"http:": new http.Agent({ keepAlive: true, scheduling: "lifo" }),
		"https:": new https.Agent({ keepAlive: true, scheduling: "lifo" }),
	};
	let proxied: Promise<typeof fetch> | null = null;

	async function send(address: string | URL | Request, init: RequestInit & { connectMs?: number } = {}): Promise<Response> {
		const url = new URL(address instanceof Request ? address.url : address);
		if (proxy && usesProxy(url, proxy)) {
			proxied ??= proxyFetch(proxy);
			return (await proxied)(url, init);
		}
		const headers: Record<string, string> = {};
		new Headers(init.headers).forEach((value, name) => {
			// What machine we run on is nobody's business.
			if (!name.startsWith("x-stainless-")) headers[name] = value;
		});
		const body = typeof init.body === "string" ? Buffer.from(init.body, "utf8") : null;
		if (body) headers["content-length"] = String(body.length);
		const options = {
			method: init.method ?? "GET",
			headers,
			signal: init.signal ?? undefined,
			connectMs: init.connectMs ?? DEFAULT_CONNECT_MS,
		};
		const received = await request(url, options, body, false).catch((error: unknown) => {
			// A kept connection that the server had closed meanwhile: nothing was read by anybody, a new one is tried once.
			if (error instanceof StaleConnection) return request(url, options, body, true);
			throw error;
		});
		return response(url, received);
	}

	function request(
		url: URL,
		options: { method: string; headers: Record<string, string>; signal: AbortSignal | undefined; connectMs: number },
		body: Buffer | null,
		fresh: boolean,
	): Promise<IncomingMessage> {
		return new Promise((resolve, reject) => {
			const secure = url.protocol === "https:";
			const outgoing = (secure ? https : http).request(url, {
				method: options.method,
				headers: fresh ? { ...options.headers, connection: "close" } : options.headers,
				agent: fresh ? false : agents[secure ? "https:" : "http:"],
			});
			let timer: NodeJS.Timeout | undefined;
			let answer: IncomingMessage | null = null;
			// Not the `signal` option: it would destroy a connection whose answer is complete, in the moment when nobody listens to its errors.
			const onAbort = () => {
				if (answer?.complete) answer.resume();
				else outgoing.destroy(new Error("aborted"));
			};
			options.signal?.addEventListener("abort", onAbort, { once: true });
			outgoing.on("close", () => options.signal?.removeEventListener("abort", onAbort));
			outgoing.on("socket", (socket) => {
				if (!socket.connecting) return;
				timer = setTimeout(() => outgoing.destroy(new NotConnected(url.host, options.connectMs)), options.connectMs);
				socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
			});
			outgoing.on("response", (incoming) => {
				clearTimeout(timer);
				answer = incoming;
				resolve(incoming);
			});
			outgoing.on("error", (error: NodeJS.ErrnoException) => {
				clearTimeout(timer);
				const stale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE") && !options.signal?.aborted;
				reject(stale ? new StaleConnection() : error);
			});
			if (options.signal?.aborted) onAbort();
			else outgoing.end(body ?? undefined);
		});
	}

	return {
		fetch: send as Transport["fetch"],
		close() {
			agents["http:"].destroy();
			agents["https:"].destroy();
		},
	};
}

class StaleConnection extends Error {}

/** As much of a `Response` as the SDK and our reader use; `body` is the Node stream. */
function response(url: URL, incoming: IncomingMessage): Response {
	// Whoever reads the body sees its error; after the reader has gone (stop, time limit) nobody must.
	incoming.on("error", () => {});
	const status = incoming.statusCode ?? 0;
	const headers = new Headers();
	for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
		try {
			headers.append(incoming.rawHeaders[i] ?? "", incoming.rawHeaders[i + 1] ?? "");
		} catch {
			// A header that is none.
		}
	}
	const text = async () => {
		const parts: Buffer[] = [];
		let size = 0;
		for await (const part of incoming) {
			parts.push(part as Buffer);
			size += (part as Buffer).length;
			if (status >= 300 && size > MOST_ERROR_BYTES) break;
		}
		return Buffer.concat(parts).toString("utf8");
	};
	return {
		ok: status >= 200 && status < 300,
		status,
		statusText: incoming.statusMessage ?? "",
		headers,
		url: url.href,
		body: incoming,
		text,
		json: async () => JSON.parse(await text()),
	} as unknown as Response;
}

function usesProxy(url: URL, proxy: ProxySettings): boolean {
	if (/^(?:localhost|127\.|\[::1\])/.test(url.hostname)) return false;
	return Boolean(url.protocol === "https:" ? proxy.https : proxy.http);
}

async function proxyFetch(proxy: ProxySettings): Promise<typeof fetch> {
	const undici = await import("undici");
	const dispatcher = new undici.EnvHttpProxyAgent({
		httpProxy: proxy.http ?? undefined,
		httpsProxy: proxy.https ?? undefined,
		noProxy: proxy.noProxy ?? undefined,
	});
	return ((url: URL, init: object) => undici.fetch(url, { ...init, dispatcher } as never)) as unknown as typeof fetch;
}
