/**
 * The `fetch` that the SDK is handed: plain node:http with kept connections and a limit on connecting. Bodies are handed on as they come, by
 * calls: web streams and async iteration cost more than everything else in a short call. Behind a proxy undici takes over.
 */
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";

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
	secure: boolean;
	path: string;
}

export function createTransport(proxy: ProxySettings | null = null): Transport {
	const agents = {
		http: new http.Agent({ keepAlive: true, scheduling: "lifo" }),
		https: new https.Agent({ keepAlive: true, scheduling: "lifo" }),
	};
	const places = new Map<string, Place>();
	let proxied: Promise<typeof fetch> | null = null;

	function placeOf(address: string): Place {
		let place = places.get(address);
		if (!place) {
			const url = new URL(address);
			place = { url, secure: url.protocol === "https:", path: `${url.pathname}${url.search}` };
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
		const headers = ["host", place.url.host, ...named.flat()];
		if (body) headers.push("content-length", String(body.length));
		const method = (init.method ?? "GET").toUpperCase();
		try {
			return await request(place, method, headers, body, exchange, false);
		} catch (error) {
			// A kept connection that the server had closed meanwhile: nothing was read by anybody, a new one is tried once.
			if (error instanceof StaleConnection) return request(place, method, headers, body, exchange, true);
			throw error;
		}
	}

	function request(
		place: Place,
		method: string,
		headers: string[],
		body: Buffer | null,
		exchange: Exchange,
		fresh: boolean,
	): Promise<Response> {
		return new Promise((resolve, reject) => {
			const { url, secure } = place;
			const outgoing: ClientRequest = (secure ? https : http).request({
				hostname: url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname,
				...(url.port === "" ? {} : { port: url.port }),
				path: place.path,
				method,
				headers: fresh ? [...headers, "connection", "close"] : headers,
				agent: fresh ? false : agents[secure ? "https" : "http"],
			} as http.RequestOptions);
			let timer: NodeJS.Timeout | undefined;
			let answer: { incoming: IncomingMessage; body: ReturnType<typeof createBody> } | null = null;
			// Not the `signal` option: it would destroy a connection whose answer is complete, in the moment when nobody listens to its errors.
			exchange.onAbort = () => {
				const error = new Error("aborted");
				if (!answer?.incoming.complete) outgoing.destroy(error);
				answer?.body.failed(error);
			};
			outgoing.on("socket", (socket) => {
				if (!socket.connecting) return;
				timer = setTimeout(() => outgoing.destroy(new NotConnected(url.host, exchange.connectMs)), exchange.connectMs);
				socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
			});
			outgoing.on("response", (incoming) => {
				clearTimeout(timer);
				const received = createBody();
				answer = { incoming, body: received };
				incoming.on("data", received.data);
				incoming.on("end", received.end);
				// Also where nobody reads any more: an error without a listener would end the process.
				incoming.on("error", received.failed);
				incoming.on("close", () => received.failed(new Error("closed before its end")));
				resolve(response(url.href, incoming.statusCode ?? 0, incoming.statusMessage ?? "", incoming.rawHeaders, received));
			});
			outgoing.on("error", (error: NodeJS.ErrnoException) => {
				clearTimeout(timer);
				const stale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE") && !exchange.aborted;
				reject(stale ? new StaleConnection() : error);
			});
			if (exchange.aborted) exchange.onAbort();
			else outgoing.end(body ?? undefined);
		});
	}

	return {
		fetch: send as Transport["fetch"],
		close() {
			agents.http.destroy();
			agents.https.destroy();
		},
	};
}

class StaleConnection extends Error {}

function createBody(): Body & BodyReader {
	let reader: BodyReader | null = null;
	let waiting: Buffer[] = [];
	let asked = false;
	let over: "open" | "ended" | Error = "open";

	function give(): void {
		asked = false;
		if (!reader || waiting.length === 0) return;
		const bytes = waiting.length === 1 ? (waiting[0] as Buffer) : Buffer.concat(waiting);
		waiting = [];
		reader.data(bytes);
	}

	function close(how: "ended" | Error): void {
		if (over !== "open") return;
		over = how;
		give();
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
			give();
			tell();
		},
		data(bytes) {
			if (over !== "open") return;
			waiting.push(bytes);
			// One packet brings many pieces: they are read in one go.
			if (!asked) process.nextTick(give);
			asked = true;
		},
		end: () => close("ended"),
		failed: (error) => close(error),
	};
}

/** As much of `Headers` as the SDK and our reader use. */
function readHeaders(raw: string[]): Pick<Headers, "get" | "entries"> {
	const get = (name: string): string | null => {
		const values: string[] = [];
		for (let i = 0; i + 1 < raw.length; i += 2) if (raw[i]?.toLowerCase() === name) values.push(raw[i + 1] ?? "");
		return values.length === 0 ? null : values.join(", ");
	};
	const pairs = () => raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1] ?? ""] as [string, string]] : []));
	// Not to be listed: the SDK copies what it can list for a log that is off.
	return Object.defineProperties({} as Pick<Headers, "get" | "entries">, {
		get: { value: (name: string) => get(name.toLowerCase()) },
		entries: { value: () => pairs()[Symbol.iterator]() },
	});
}

/** As much of a `Response` as the SDK and our reader use; `body` is a `Body`. */
function response(url: string, status: number, statusText: string, rawHeaders: string[], body: Body): Response {
	const ok = status >= 200 && status < 300;
	const text = () => readText(body, ok ? Number.POSITIVE_INFINITY : MOST_ERROR_BYTES);
	return {
		ok,
		status,
		statusText,
		headers: readHeaders(rawHeaders),
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
				parts.push(bytes);
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
