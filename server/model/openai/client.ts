/** One attempt at an OpenAI-compatible server: sends through the SDK, reads tolerantly, guards every wait. */
import { Readable } from "node:stream";
import type OpenAI from "openai";
import { type Failure, kindOfStatus, kindOfStreamError, retryAfterMs } from "../errors.ts";
import { ModelError, type ModelReply, type ToolCall } from "../model.ts";
import { redact } from "../redact.ts";
import type { ModelLimits } from "../settings.ts";
import { type Collector, createCollector, type RawUsage, StreamError } from "./collect.ts";
import { createBodyReader, type Frame } from "./sse.ts";
import { createThinkFilter } from "./think.ts";
import { createTransport, NotConnected, type ProxySettings } from "./transport.ts";

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
	names: { has(name: string): boolean; fromWire(name: string): string };
	/** The model is known to begin inside thinking. */
	thinksUnopened: boolean;
	/** By our own count the request fills the model's window. */
	nearlyFull: boolean;
}

export type WireEvent =
	| { type: "text"; text: string }
	| { type: "reasoning"; text: string }
	/** All text so far was thinking. */
	| { type: "void" }
	| { type: "end"; answer: WireAnswer };

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
	/** Streams one attempt. Throws `AttemptFailed`. Returning early aborts the request. */
	chat(attempt: Attempt, signal: AbortSignal): AsyncGenerator<WireEvent>;
	/** One request with a JSON answer (embeddings, models). Throws `AttemptFailed`. */
	json(path: string, options: { baseUrl: string; key: string; body?: unknown; limits: ModelLimits }, signal: AbortSignal): Promise<unknown>;
	/** Loads the SDK, so that the first call does not wait for it. */
	warm(): Promise<void>;
	close(): void;
}

export function createClient(options: { proxy?: ProxySettings | null; newId(): string; clock: { now(): number } }): Client {
	const transport = createTransport(options.proxy ?? null);
	const clients = new Map<string, Promise<OpenAI>>();

	function sdk(baseUrl: string, key: string): Promise<OpenAI> {
		const id = `${baseUrl}\n${key}`;
		let made = clients.get(id);
		if (!made) {
			if (clients.size > 64) clients.clear();
			made = import("openai").then(
				({ OpenAI }) =>
					new OpenAI({
						baseURL: baseUrl,
						apiKey: key || "none",
						organization: null,
						project: null,
						maxRetries: 0,
						logLevel: "off",
						fetch: transport.fetch,
						...(key ? {} : { defaultHeaders: { authorization: null } }),
					}),
			);
			clients.set(id, made);
		}
		return made;
	}

	async function* chat(attempt: Attempt, signal: AbortSignal): AsyncGenerator<WireEvent> {
		const startedAt = performance.now();
		const watch = createWatch(signal, attempt.limits, attempt.firstByteMs ?? attempt.limits.firstByteMs);
		const collector = createCollector(attempt.names);
		const think = createThinkFilter(attempt.thinksUnopened);
		let text = "";
		let reasoning = "";
		let firstByteMs: number | null = null;
		let body: AsyncIterable<Uint8Array> | null = null;
		let clean = false;
		try {
			if (signal.aborted) throw new ModelError("aborted", "stopped before the call");
			const client = await sdk(attempt.baseUrl, attempt.key);
			const response = await client
				.post("/chat/completions", {
					body: attempt.json,
					headers: { "content-type": "application/json", accept: "text/event-stream" },
					signal: watch.signal,
					timeout: 2_000_000_000,
					fetchOptions: { connectMs: attempt.limits.connectMs } as object,
				})
				.asResponse();
			body = response.body as unknown as AsyncIterable<Uint8Array> | null;
			const reader = createBodyReader();
			let over = false;
			for await (const bytes of body ? pieces(body) : []) {
				firstByteMs ??= performance.now() - startedAt;
				watch.byte();
				const pushed = take(reader.push(bytes), collector);
				over = pushed.done;
				const shown = think.push(pushed.text);
				yield* show(shown, pushed.reasoning);
				if (over) break;
				if (collector.finished) watch.tail();
			}
			if (!over) {
				if (signal.aborted) throw new ModelError("aborted", "stopped");
				const pushed = take(reader.end(), collector);
				yield* show(think.push(pushed.text), pushed.reasoning);
			}
			clean = true;
			yield* end();
		} catch (error) {
			// The answer was complete; only the connection's end was not.
			if (collector.finished && !(error instanceof StreamError) && !(error instanceof ModelError) && !signal.aborted && body) {
				yield* end();
				return;
			}
			throw new AttemptFailed(classify(error, attempt, watch, signal), text + reasoning, firstByteMs);
		} finally {
			watch.stop();
			if (clean) drain(body);
			else watch.abort();
		}

		function* show(piece: { text: string; thought: string; void: boolean }, separate: string): Generator<WireEvent> {
			if (piece.void) {
				reasoning += text;
				text = "";
				yield { type: "void" };
			}
			const thought = separate + piece.thought;
			if (thought !== "") {
				reasoning += thought;
				yield { type: "reasoning", text: thought };
			}
			if (piece.text !== "") {
				text += piece.text;
				yield { type: "text", text: piece.text };
			}
		}

		function* end(): Generator<WireEvent> {
			const result = collector.result(options.newId);
			if (!result)
				throw new ModelError("protocol", collector.started ? "the answer ended before it was complete" : "the server sent no answer");
			yield* show(think.end(), "");
			const calls = result.calls.map((call) => ({ ...call, name: attempt.names.fromWire(call.name) }));
			yield {
				type: "end",
				answer: {
					text,
					reasoning,
					calls,
					finish: result.finish,
					usage: result.usage,
					extras: result.extras,
					firstByteMs: firstByteMs ?? 0,
					strayClose: think.strayClose,
				},
			};
		}
	}

	function classify(error: unknown, attempt: { key: string; nearlyFull: boolean }, watch: Watch, signal: AbortSignal): Failure {
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
		if (signal.aborted) return make("aborted", "stopped", true);
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

	async function json(
		path: string,
		request: { baseUrl: string; key: string; body?: unknown; limits: ModelLimits },
		signal: AbortSignal,
	): Promise<unknown> {
		const watch = createWatch(signal, request.limits, request.limits.firstByteMs);
		const startedAt = performance.now();
		let firstByteMs: number | null = null;
		try {
			const client = await sdk(request.baseUrl, request.key);
			const shared = { signal: watch.signal, timeout: 2_000_000_000, fetchOptions: { connectMs: request.limits.connectMs } as object };
			const sending =
				request.body === undefined ? client.get(path, shared) : client.post(path, { ...shared, body: request.body as object });
			const response = await sending.asResponse();
			firstByteMs = performance.now() - startedAt;
			watch.byte();
			const parts: Uint8Array[] = [];
			for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
				watch.byte();
				parts.push(part);
			}
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
			throw new AttemptFailed(classify(error, { key: request.key, nearlyFull: false }, watch, signal), "", firstByteMs);
		} finally {
			watch.stop();
			watch.abort();
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

interface Watch {
	signal: AbortSignal;
	/** What ran out, as a sentence; null while nothing did. */
	readonly fired: string | null;
	/** Something came: re-arms. */
	byte(): void;
	/** Only the rest of a complete answer is missing. */
	tail(): void;
	/** Ends the timers. */
	stop(): void;
	/** Ends the request if it is still open. */
	abort(): void;
}

/** Pieces of a body; leaving the loop does not destroy it. */
function pieces(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
	return body instanceof Readable ? (body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) : body;
}

const DRAIN_MS = 1_000;

/** Reads what may be left after `[DONE]`, so that the connection can be used again; one that does not end is closed. */
function drain(body: AsyncIterable<Uint8Array> | null): void {
	if (!(body instanceof Readable) || body.destroyed || body.readableEnded) return;
	const timer = setTimeout(() => body.destroy(), DRAIN_MS);
	timer.unref();
	body.once("close", () => clearTimeout(timer));
	body.on("error", () => {});
	body.resume();
}

/** One timer for first byte and silence, one for the whole; each aborts the request. */
function createWatch(outer: AbortSignal, limits: ModelLimits, firstByteMs: number): Watch {
	const controller = new AbortController();
	let fired: string | null = null;
	let tailing = false;
	const fire = (what: string) => {
		fired = what;
		controller.abort();
	};
	let timer = setTimeout(() => fire(`no answer within ${firstByteMs} ms`), firstByteMs);
	const total = setTimeout(() => fire(`not finished within ${limits.totalMs} ms`), limits.totalMs);
	let reading = false;
	const onAbort = () => controller.abort();
	outer.addEventListener("abort", onAbort, { once: true });
	if (outer.aborted) controller.abort();
	return {
		signal: controller.signal,
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
			outer.removeEventListener("abort", onAbort);
		},
		abort: () => controller.abort(),
	};
}
