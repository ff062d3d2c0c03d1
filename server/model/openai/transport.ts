/**
 * The `fetch` that the SDK is handed: HTTP/1.1 over kept connections, with a limit on connecting. Bodies are handed on as they come, by
 * calls: web streams and async iteration cost more than everything else in a short call. Behind a proxy undici takes over.
 */
import { createConnections, type Peer } from "./connections.ts";
import { createResponseReader, headerOf } from "./http1.ts";

export interface ProxySettings {
	http: string | null;
	https: string | null;
	noProxy: string | null;
}

export interface Transport {
	/** As the SDK calls it; `init.exchange` is what its caller keeps in hand. */
	fetch(url: string | URL | Request, init?: RequestInit): Promise<Response>;
	/** Closes idle connections. */
	close(): void;
}

/** One request and its answer, held by whoever asked the SDK for it: the SDK passes it on to `fetch`. */
export interface Exchange {
	readonly connectMs: number;
	/** Ends it, whatever it is at, and closes its connection; does nothing when the answer is complete. */
	abort(): void;
	/** What `abort` does now; set by the transport. */
	onAbort: (() => void) | null;
	readonly aborted: boolean;
}

export interface BodyReader {
	/** The bytes are good for this call only. */
	data(bytes: Buffer): void;
	/** The body is complete. */
	end(): void;
	failed(error: Error): void;
}

/** A response's body: what has come is kept until somebody reads. */
export interface Body {
	/** From now on everything goes to `reader`, what waited first. */
	read(reader: BodyReader): void;
	/** True when nothing more comes. */
	readonly over: boolean;
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

export function createExchange(connectMs: number = DEFAULT_CONNECT_MS): Exchange {
	let aborted = false;
	return {
		connectMs,
		onAbort: null,
		get aborted() {
			return aborted;
		},
		abort() {
			if (aborted) return;
			aborted = true;
			this.onAbort?.();
		},
	};
}

/** What the SDK passes on: `exchange` of whoever asks, and headers that are ready instead of `headers`. */
type Init = Omit<RequestInit, "headers"> & { headers?: RequestInit["headers"]; exchange?: Exchange; ready?: [string, string][] };

/** Where a request goes, taken apart once. */
interface Place {
	url: URL;
	path: string;
	peer: Peer;
}

export function createTransport(proxy: ProxySettings | null = null, connections = createConnections()): Transport {
	const places = new Map<string, Place>();
	let proxied: Promise<typeof fetch> | null = null;

	function placeOf(address: string): Place {
		let place = places.get(address);
		if (!place) {
			place = takeApart(new URL(address));
			if (places.size >= 100) places.clear();
			places.set(address, place);
		}
		return place;
	}

	async function send(address: string | URL | Request, init: Init = {}): Promise<Response> {
		const place = placeOf(address instanceof Request ? address.url : String(address));
		const exchange = init.exchange ?? createExchange();
		// What machine we run on is nobody's business.
		const named = (init.ready ?? [...new Headers(init.headers)]).filter(([name]) => !name.startsWith("x-stainless-"));
		if (proxy && usesProxy(place.url, proxy)) {
			proxied ??= proxyFetch(proxy);
			return throughProxy(await proxied, place.url, { ...init, headers: named }, exchange);
		}
		const body = typeof init.body === "string" ? Buffer.from(init.body, "utf8") : null;
		let head = `${(init.method ?? "GET").toUpperCase()} ${place.path} HTTP/1.1\r\nhost: ${place.url.host}\r\nconnection: keep-alive\r\n`;
		for (const [name, value] of named) head += `${name}: ${value}\r\n`;
		head += body ? `content-length: ${body.length}\r\n\r\n` : "\r\n";
		try {
			return await request(place, head, body, exchange, false);
		} catch (error) {
			// A kept connection that the server had closed meanwhile: nothing was read by anybody, a new one is tried once.
			if (error instanceof StaleConnection) return request(place, head, body, exchange, true);
			throw error;
		}
	}

	function request(place: Place, head: string, sent: Buffer | null, exchange: Exchange, fresh: boolean): Promise<Response> {
		return new Promise((resolve, reject) => {
			if (exchange.aborted) return reject(new Error("aborted"));
			let body: Received | null = null;
			let heard = false;
			let over = false;
			const fail = (error: Error) => {
				over = true;
				connection.destroy();
				reject(error);
				body?.failed(error);
			};
			const reader = createResponseReader({
				head({ status, statusText, headers }) {
					body = createBody();
					resolve(response(place.url.href, status, statusText, headers, body));
				},
				data: (bytes) => body?.data(bytes),
				end(keepMs) {
					over = true;
					connection.release(keepMs);
					body?.end();
				},
			});
			const connection = connections.take(
				place.peer,
				{
					received(packet) {
						heard = true;
						try {
							reader.push(packet);
						} catch (error) {
							fail(error as Error);
						}
					},
					ended: () => reader.close(),
					closed(error) {
						if (over) return;
						const code = (error as NodeJS.ErrnoException | null)?.code;
						const gone = error === null || code === "ECONNRESET" || code === "EPIPE";
						fail(connection.used && !heard && gone ? new StaleConnection() : (error ?? new Error("closed before its end")));
					},
				},
				{ connectMs: exchange.connectMs, late: () => new NotConnected(place.url.host, exchange.connectMs), fresh },
			);
			exchange.onAbort = () => {
				if (!over) fail(new Error("aborted"));
			};
			connection.write(head, sent);
		});
	}

	return { fetch: send as Transport["fetch"], close: () => connections.close() };
}

function takeApart(url: URL): Place {
	const secure = url.protocol === "https:";
	const host = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
	const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
	return { url, path: `${url.pathname}${url.search}`, peer: { host, port, secure } };
}

class StaleConnection extends Error {}

/** A body as whoever receives it fills it; bytes are good for the call only. */
type Received = Body & BodyReader;

function createBody(): Received {
	let reader: BodyReader | null = null;
	let waiting: Buffer[] = [];
	let over: "open" | "ended" | Error = "open";

	function close(how: "ended" | Error): void {
		if (over !== "open") return;
		over = how;
		tell();
	}

	function tell(): void {
		if (over === "ended") reader?.end();
		else if (over !== "open") reader?.failed(over);
	}

	return {
		get over() {
			return over !== "open";
		},
		read(one) {
			reader = one;
			if (waiting.length > 0) reader.data(Buffer.concat(waiting));
			waiting = [];
			tell();
		},
		data(bytes) {
			if (over !== "open") return;
			if (reader) reader.data(bytes);
			else waiting.push(Buffer.from(bytes));
		},
		end: () => close("ended"),
		failed: (error) => close(error),
	};
}

/** As much of `Headers` as the SDK and our reader use. */
function readHeaders(headers: string[]): Pick<Headers, "get" | "entries"> {
	const pairs = () => headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1] ?? ""] as [string, string]] : []));
	// Not to be listed: the SDK copies what it can list for a log that is off.
	return Object.defineProperties({} as Pick<Headers, "get" | "entries">, {
		get: { value: (name: string) => headerOf(headers, name.toLowerCase()) },
		entries: { value: () => pairs()[Symbol.iterator]() },
	});
}

/** As much of a `Response` as the SDK and our reader use; `body` is a `Body`. */
function response(url: string, status: number, statusText: string, headers: string[], body: Body): Response {
	const ok = status >= 200 && status < 300;
	const text = () => readText(body, ok ? Number.POSITIVE_INFINITY : MOST_ERROR_BYTES);
	return {
		ok,
		status,
		statusText,
		headers: readHeaders(headers),
		url,
		body,
		text,
		json: async () => JSON.parse(await text()),
	} as unknown as Response;
}

/** The text of a body, as far as `most` bytes. */
function readText(body: Body, most: number): Promise<string> {
	return new Promise((resolve, reject) => {
		const parts: Buffer[] = [];
		let size = 0;
		const end = () => resolve(Buffer.concat(parts).toString("utf8"));
		body.read({
			data(bytes) {
				if (size > most) return;
				parts.push(Buffer.from(bytes));
				size += bytes.length;
				if (size > most) end();
			},
			end,
			failed: reject,
		});
	});
}

function usesProxy(url: URL, proxy: ProxySettings): boolean {
	if (/^(?:localhost|127\.|\[::1\])/.test(url.hostname)) return false;
	return Boolean(url.protocol === "https:" ? proxy.https : proxy.http);
}

async function throughProxy(proxied: typeof fetch, url: URL, init: RequestInit, exchange: Exchange): Promise<Response> {
	const controller = new AbortController();
	const body = createBody();
	exchange.onAbort = () => {
		controller.abort();
		body.failed(new Error("aborted"));
	};
	if (exchange.aborted) exchange.onAbort();
	const received = await proxied(url, { ...init, signal: controller.signal });
	const pump = async () => {
		for await (const bytes of (received.body ?? []) as AsyncIterable<Uint8Array>) body.data(Buffer.from(bytes));
	};
	pump().then(body.end, body.failed);
	return response(url.href, received.status, received.statusText, [...received.headers].flat(), body);
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
