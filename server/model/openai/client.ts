/** One attempt at an OpenAI-compatible server: sends through the SDK, reads tolerantly, guards every wait. */
import type OpenAI from "openai";
import { createBeat } from "../beat.ts";
import { type Failure, kindOfStatus, kindOfStreamError, retryAfterMs } from "../errors.ts";
import { joining, type WireEvent } from "../joining.ts";
import { ModelError, type ModelReply, type ToolCall } from "../model.ts";
import { redact } from "../redact.ts";
import type { ModelLimits } from "../settings.ts";
import { type Halt, haltOn } from "../stream.ts";
import { type Collector, createCollector, type RawUsage, StreamError } from "./collect.ts";
import { createSdk } from "./sdk.ts";
import { createBodyReader, type Frame } from "./sse.ts";
import { createThinkFilter } from "./think.ts";
import { type Body, createExchange, createTransport, type Exchange, NotConnected, type ProxySettings } from "./transport.ts";

/** After the finish reason the rest (usage, `[DONE]`) must come within this time; then the answer counts as complete. */
const TAIL_MS = 2_000;

export interface Attempt {
	baseUrl: string;
	/** "" = no key is sent. */
	key: string;
	json: string;
	limits: ModelLimits;
	/** Shortens the wait for the first byte, when another model could answer instead. */
	firstByteMs?: number;
	/** Names of the offered tools, as they are on the wire. */
	names: ReadonlySet<string>;
	/** The model is known to begin inside thinking. */
	thinksUnopened: boolean;
	/** By our own count the request fills the model's window. */
	nearlyFull: boolean;
}

export interface JsonRequest {
	baseUrl: string;
	/** "" = no key is sent. */
	key: string;
	/** Without it the request is a GET. */
	body?: unknown;
	limits: ModelLimits;
}

export interface WireAnswer {
	text: string;
	reasoning: string;
	calls: ToolCall[];
	finish: ModelReply["finish"];
	usage: RawUsage | null;
	extras: Map<string, unknown>;
	firstByteMs: number;
	strayClose: boolean;
}

/** Why an attempt failed, with what had been received. */
export class AttemptFailed extends Error {
	readonly failure: Failure;
	/** Characters that came before it failed. */
	readonly received: string;
	readonly firstByteMs: number | null;
	constructor(failure: Failure, received: string, firstByteMs: number | null) {
		super(failure.error.message);
		this.name = "AttemptFailed";
		this.failure = failure;
		this.received = received;
		this.firstByteMs = firstByteMs;
	}
}

export interface Client {
	/**
	 * Makes one attempt and tells what streams in, joined (see `joining`), all of it before it resolves or throws. Calls are named as they
	 * are on the wire. Throws `AttemptFailed`, also when it is halted.
	 */
	chat(attempt: Attempt, halt: Halt, emit: (event: WireEvent) => void): Promise<WireAnswer>;
	/** One request with a JSON answer (embeddings, models). Throws `AttemptFailed`. */
	json(path: string, request: JsonRequest, signal: AbortSignal): Promise<unknown>;
	/** Loads the SDK, so that the first call does not wait for it. */
	warm(): Promise<void>;
	close(): void;
}

export function createClient(options: { proxy?: ProxySettings | null; newId(): string; clock: { now(): number } }): Client {
	const transport = createTransport(options.proxy ?? null);
	const clients = new Map<string, Promise<OpenAI>>();
	const beat = createBeat();

	function sdk(baseUrl: string, key: string): Promise<OpenAI> {
		const id = `${baseUrl}\n${key}`;
		let made = clients.get(id);
		if (!made) {
			if (clients.size > 64) clients.clear();
			made = createSdk(baseUrl, key, transport);
			clients.set(id, made);
		}
		return made;
	}

	async function chat(attempt: Attempt, halt: Halt, emit: (event: WireEvent) => void): Promise<WireAnswer> {
		const startedAt = performance.now();
		const exchange = createExchange(attempt.limits.connectMs);
		const watch = createWatch(halt, attempt.limits, attempt.firstByteMs ?? attempt.limits.firstByteMs, exchange);
		const collector = createCollector(attempt.names);
		const think = createThinkFilter(attempt.thinksUnopened);
		const reader = createBodyReader();
		const told = joining(beat, emit);
		let text = "";
		let reasoning = "";
		let firstByteMs: number | null = null;
		let body: Body | null = null;
		let clean = false;
		try {
			if (halt.why !== null) throw new ModelError("aborted", `${halt.why} before the call`);
			const client = await sdk(attempt.baseUrl, attempt.key);
			const response = await client
				.post("/chat/completions", {
					body: attempt.json,
					headers: { "content-type": "application/json", accept: "text/event-stream" },
					timeout: 2_000_000_000,
					fetchOptions: { exchange } as object,
				})
				.asResponse();
			body = response.body as unknown as Body;
			await received(body, (bytes) => {
				firstByteMs ??= performance.now() - startedAt;
				watch.byte();
				const over = show(reader.push(bytes));
				if (!over && collector.finished) watch.tail();
				return over;
			});
			if (!collector.ended) show(reader.end());
			clean = true;
			return answer();
		} catch (error) {
			// The answer was complete; only the connection's end was not.
			if (collector.finished && !(error instanceof StreamError) && !(error instanceof ModelError) && halt.why === null && body)
				return answer();
			throw new AttemptFailed(classify(error, attempt, watch, halt), text + reasoning, firstByteMs);
		} finally {
			told.end();
			watch.stop();
			if (clean) leaveOpen(body, exchange);
			else exchange.abort();
		}

		/** True when nothing more is wanted. */
		function show(frames: Frame[]): boolean {
			if (frames.length === 0) return false;
			const taken = take(frames, collector);
			tell(think.push(taken.text), taken.reasoning);
			return taken.done;
		}

		function tell(piece: { text: string; thought: string; void: boolean }, separate: string): void {
			if (piece.void) {
				reasoning += text;
				text = "";
				told.emit({ type: "void" });
			}
			const thought = separate + piece.thought;
			if (thought !== "") {
				reasoning += thought;
				told.emit({ type: "reasoning", text: thought });
			}
			if (piece.text !== "") {
				text += piece.text;
				told.emit({ type: "text", text: piece.text });
			}
		}

		function answer(): WireAnswer {
			const result = collector.result(options.newId);
			if (!result)
				throw new ModelError("protocol", collector.started ? "the answer ended before it was complete" : "the server sent no answer");
			tell(think.end(), "");
			const { calls, finish, usage, extras } = result;
			return { text, reasoning, calls, finish, usage, extras, firstByteMs: firstByteMs ?? 0, strayClose: think.strayClose };
		}
	}

	function classify(error: unknown, attempt: { key: string; nearlyFull: boolean }, watch: Watch, halt: Halt): Failure {
		const secrets = attempt.key ? [attempt.key] : [];
		const make = (
			kind: ModelError["kind"],
			message: string,
			mayHaveCost: boolean,
			extra: { status?: number | null; retryAfterMs?: number | null } = {},
		): Failure => ({
			error: new ModelError(kind, redact(message, secrets), extra),
			refusal: null,
			mayHaveCost,
		});
		if (halt.why !== null) return make("aborted", halt.why, true);
		if (watch.fired) return make("timeout", watch.fired, true);
		if (error instanceof ModelError) return { error, refusal: null, mayHaveCost: error.kind !== "aborted" };
		if (error instanceof StreamError) {
			const { kind, status } = kindOfStreamError(error.body, attempt.nearlyFull);
			return {
				...make(kind, `the server sent an error: ${error.message}`, true, { status }),
				refusal: { message: error.message, param: textOf(error.body.param) },
			};
		}
		const api = error as { status?: unknown; headers?: Headers; error?: unknown; message?: unknown };
		if (typeof api.status === "number") {
			const inner = (typeof api.error === "object" && api.error !== null ? api.error : {}) as Record<string, unknown>;
			const kind = kindOfStatus(api.status, inner, attempt.nearlyFull);
			const message = String(api.message ?? "");
			return {
				...make(kind, `status ${message || api.status}`, false, {
					status: api.status,
					retryAfterMs: retryAfterMs(api.headers, options.clock.now()),
				}),
				refusal: { message, param: textOf(inner.param) },
			};
		}
		const cause = rootCause(error);
		if (cause instanceof NotConnected) return make("timeout", cause.message, false);
		const code = (cause as NodeJS.ErrnoException).code;
		const neverSent =
			code === "ECONNREFUSED" || code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "EHOSTUNREACH" || code === "ENETUNREACH";
		return make("network", `the connection failed: ${code ?? cause.message}`, !neverSent);
	}

	async function json(path: string, request: JsonRequest, signal: AbortSignal): Promise<unknown> {
		const halt = haltOn(signal);
		const exchange = createExchange(request.limits.connectMs);
		const watch = createWatch(halt, request.limits, request.limits.firstByteMs, exchange);
		const startedAt = performance.now();
		let firstByteMs: number | null = null;
		try {
			if (halt.why !== null) throw new ModelError("aborted", "stopped before the call");
			const client = await sdk(request.baseUrl, request.key);
			const shared = { timeout: 2_000_000_000, fetchOptions: { exchange } as object };
			const sending =
				request.body === undefined ? client.get(path, shared) : client.post(path, { ...shared, body: request.body as object });
			const response = await sending.asResponse();
			firstByteMs = performance.now() - startedAt;
			watch.byte();
			const parts: Buffer[] = [];
			await received(response.body as unknown as Body, (bytes) => {
				watch.byte();
				parts.push(bytes);
				return false;
			});
			const text = Buffer.concat(parts).toString("utf8");
			let value: unknown;
			try {
				value = JSON.parse(text);
			} catch {
				throw new ModelError("protocol", "the server sent something that is not JSON");
			}
			const inner = (value as { error?: unknown } | null)?.error;
			if (typeof inner === "object" && inner !== null) throw new StreamError(inner as Record<string, unknown>);
			return value;
		} catch (error) {
			throw new AttemptFailed(classify(error, { key: request.key, nearlyFull: false }, watch, halt), "", firstByteMs);
		} finally {
			watch.stop();
			halt.end();
			exchange.abort();
		}
	}

	return { chat, json, warm: () => import("openai").then(() => undefined), close: () => transport.close() };
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

function rootCause(error: unknown): Error {
	let at = error instanceof Error ? error : new Error(String(error));
	for (let depth = 0; depth < 5 && at.cause instanceof Error; depth++) at = at.cause;
	if (at instanceof AggregateError && at.errors[0] instanceof Error) return at.errors[0];
	return at;
}

/** All frames of one piece of the body; the text in it at once. */
function take(frames: Frame[], collector: Collector): { text: string; reasoning: string; done: boolean } {
	let text = "";
	let reasoning = "";
	for (const frame of frames) {
		if (frame.type === "broken") throw new ModelError("protocol", `the server sent ${frame.what}`);
		if (frame.type === "done") {
			collector.done();
			return { text, reasoning, done: true };
		}
		const delta = collector.add(frame.value);
		text += delta.text;
		reasoning += delta.reasoning;
	}
	return { text, reasoning, done: false };
}

/** Hands on what comes of a body until `take` says that it is enough, or nothing more comes. */
function received(body: Body, take: (bytes: Buffer) => boolean): Promise<void> {
	return new Promise((resolve, reject) => {
		let enough = false;
		body.read({
			data(bytes) {
				if (enough) return;
				try {
					enough = take(bytes);
				} catch (error) {
					enough = true;
					reject(error);
					return;
				}
				if (enough) resolve();
			},
			end: resolve,
			failed: reject,
		});
	});
}

const REST_MS = 1_000;

/** What may be left after `[DONE]` is read by nobody, so that the connection can be used again; one that does not end is closed. */
function leaveOpen(body: Body | null, exchange: Exchange): void {
	if (!body || body.over) return;
	const timer = setTimeout(() => exchange.abort(), REST_MS);
	timer.unref();
	body.read({ data: () => {}, end: () => clearTimeout(timer), failed: () => clearTimeout(timer) });
}

interface Watch {
	/** What ran out, as a sentence; null while nothing did. */
	readonly fired: string | null;
	/** Something came: re-arms. */
	byte(): void;
	/** Only the rest of a complete answer is missing. */
	tail(): void;
	/** Ends the timers. */
	stop(): void;
}

/** One timer for first byte and silence, one for the whole; each ends the exchange, and so does the halt. */
function createWatch(halt: Halt, limits: ModelLimits, firstByteMs: number, exchange: Exchange): Watch {
	let fired: string | null = null;
	let tailing = false;
	const fire = (what: string) => {
		fired = what;
		exchange.abort();
	};
	let timer = setTimeout(() => fire(`no answer within ${firstByteMs} ms`), firstByteMs);
	const total = setTimeout(() => fire(`not finished within ${limits.totalMs} ms`), limits.totalMs);
	let reading = false;
	const unlisten = halt.listen(() => exchange.abort());
	return {
		get fired() {
			return fired;
		},
		byte() {
			if (reading) {
				timer.refresh();
				return;
			}
			reading = true;
			clearTimeout(timer);
			timer = setTimeout(() => fire(`silent for ${limits.idleMs} ms`), limits.idleMs);
		},
		tail() {
			if (tailing) return;
			tailing = true;
			clearTimeout(timer);
			const ms = Math.min(TAIL_MS, limits.idleMs);
			timer = setTimeout(() => fire(`silent for ${ms} ms after the end`), ms);
		},
		stop() {
			clearTimeout(timer);
			clearTimeout(total);
			unlisten();
		},
	};
}
