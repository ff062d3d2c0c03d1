/** A `Client` whose connections live in a thread of their own: reading many streams does not hold up everything else. */
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";
import type { WireEvent } from "../joining.ts";
import { ModelError } from "../model.ts";
import { redact } from "../redact.ts";
import { haltOn } from "../stream.ts";
import { AttemptFailed, type Client, createClient, type WireAnswer } from "./client.ts";
import type { ClientCall, ClientReply, ClientWorkerData, PlainFailure } from "./client-worker.ts";
import type { ProxySettings } from "./transport.ts";

export interface ClientHostOptions {
	proxy?: ProxySettings | null;
	newId(): string;
	clock: { now(): number };
	log: { warn(event: string, data?: Record<string, unknown>): void };
	/** The thread's environment: what Node itself looks for when it connects. */
	env?: Record<string, string>;
	/** The thread's program. For tests. */
	file?: string;
	/** Time between two looks at whether the thread still answers. For tests. */
	lookMs?: number;
}

/** Longest fault of ours that is told: enough for a stack. */
const faultChars = 4000;

const keyOf = (call: Open["call"]): string => (call.type === "chat" ? call.attempt.key : call.type === "json" ? call.request.key : "");

/** Room for young objects in the thread, MB. */
const youngMb = 12;

const lookMs = 10_000;
/** Looks in a row at which nothing had come from a thread that has work: it hangs, and would keep everybody waiting for ever. */
const mostSilent = 3;

interface Open {
	call: Exclude<ClientCall, { type: "halt" } | { type: "ping" }>;
	/** Ends the listening for a halt. */
	unlisten(): void;
	event(event: WireEvent): void;
	resolve(value: unknown): void;
	reject(error: unknown): void;
}

/** The thread's program: beside this one in a build, or among the sources, which a thread needs help to read. */
function createWorker(file: string | undefined, options: WorkerOptions): Worker {
	const isSource = import.meta.url.endsWith(".ts");
	const program = file ?? fileURLToPath(new URL(isSource ? "./client-worker.ts" : "./client-worker.js", import.meta.url));
	if (!program.endsWith(".ts")) return new Worker(program, options);
	const tsx = new URL("./dist/esm/api/index.mjs", pathToFileURL(createRequire(import.meta.url).resolve("tsx/package.json"))).href;
	const load = `import(${JSON.stringify(tsx)}).then((tsx) => (tsx.register(), import(${JSON.stringify(pathToFileURL(program).href)})))`;
	return new Worker(load, { ...options, eval: true });
}

function failedWith(plain: PlainFailure): AttemptFailed {
	const { kind, message, status, retryAfterMs, refusal, mayHaveCost, received, firstByteMs } = plain;
	const error = new ModelError(kind, message, { status, retryAfterMs });
	return new AttemptFailed({ error, refusal, mayHaveCost }, received, firstByteMs);
}

/**
 * The thread starts with the first call or with `warm`. When it ends unasked, what it was at fails as a connection that broke, and the next
 * call starts another one; one that hangs is ended. Where no thread can be had at all, calls are made in this one.
 */
export function createClientHost(options: ClientHostOptions): Client & { threadId(): number | null } {
	const { log } = options;
	const calls = new Map<number, Open>();
	let worker: Worker | null = null;
	let inside: Client | null = null;
	let count = 0;
	let closed = false;

	function start(): Worker {
		const made = createWorker(options.file, {
			// No settings of the daemon reach it: the SDK would look for some.
			env: options.env ?? {},
			execArgv: [],
			// What it reads it hands on: room for more young objects would only be held, not used.
			resourceLimits: { maxYoungGenerationSizeMb: youngMb },
			workerData: { proxy: options.proxy ?? null } satisfies ClientWorkerData,
			name: "models",
		});
		let isUp = false;
		let why: Error | null = null;
		let silent = 0;
		const looking = setInterval(() => {
			if (!isUp || calls.size === 0) return;
			if (silent++ < mostSilent) made.postMessage({ type: "ping" } satisfies ClientCall);
			else {
				why = new Error("it did not answer any more");
				void made.terminate();
			}
		}, options.lookMs ?? lookMs);
		looking.unref();
		made.on("message", (replies: ClientReply[]) => {
			isUp = true;
			silent = 0;
			for (const reply of replies) take(reply);
		});
		made.on("error", (error) => {
			why = error;
		});
		made.on("exit", (code) => {
			clearInterval(looking);
			if (worker === made) worker = null;
			if (closed) return;
			log.warn("models.thread-ended", { code, isUp, error: why?.message ?? null });
			if (isUp) failAll(`the thread of the models ended: ${why?.message ?? `code ${code}`}`);
			else goInside();
		});
		if (calls.size === 0) made.unref();
		return made;
	}

	function post(call: ClientCall): void {
		if (!worker) {
			try {
				worker = start();
			} catch (error) {
				log.warn("models.thread-ended", { code: null, isUp: false, error: (error as Error).message });
				goInside();
				return;
			}
		}
		worker.postMessage(call);
	}

	function take(reply: ClientReply): void {
		const open = calls.get(reply.id);
		if (!open) return;
		if ("event" in reply) {
			open.event(reply.event);
			return;
		}
		drop(reply.id, open);
		if ("failed" in reply) open.reject(failedWith(reply.failed));
		else if ("fault" in reply) open.reject(new Error(redact(reply.fault, [keyOf(open.call)], faultChars)));
		else open.resolve("answer" in reply ? reply.answer : reply.value);
	}

	function drop(id: number, open: Open): void {
		calls.delete(id);
		open.unlisten();
		// A thread that nobody waits for must not keep the process.
		if (calls.size === 0) worker?.unref();
	}

	function failAll(message: string): void {
		for (const [id, open] of calls) {
			drop(id, open);
			const error = new ModelError(closed ? "aborted" : "network", message);
			open.reject(new AttemptFailed({ error, refusal: null, mayHaveCost: true }, "", null));
		}
	}

	/** No thread came up, so nothing was sent: what waits for it is done here. */
	function goInside(): void {
		inside = createClient(options);
		for (const [id, open] of calls) {
			drop(id, open);
			open.reject(new NoThread());
		}
	}

	/** Sends a call and follows it to its end; `again` makes it in this thread where there is no other. */
	function ask<T>(
		make: (id: number) => Open["call"],
		listen: (halt: (why: string) => void) => () => void,
		event: (event: WireEvent) => void,
		again: (client: Client) => Promise<T>,
	): Promise<T> {
		if (closed) {
			const error = new ModelError("aborted", "the service is stopping");
			return Promise.reject(new AttemptFailed({ error, refusal: null, mayHaveCost: false }, "", null));
		}
		if (inside) return again(inside);
		const id = ++count;
		return new Promise<T>((resolve, reject) => {
			const open: Open = { call: make(id), unlisten: () => {}, event, resolve: resolve as (value: unknown) => void, reject };
			if (calls.size === 0) worker?.ref();
			calls.set(id, open);
			post(open.call);
			if (calls.has(id)) open.unlisten = listen((why) => post({ type: "halt", id, why }));
		}).catch((error: unknown) => {
			if (error instanceof NoThread && inside) return again(inside);
			throw error;
		});
	}

	return {
		chat: (attempt, halt, emit) =>
			ask<WireAnswer>(
				(id) => ({ type: "chat", id, attempt }),
				(stop) => halt.listen(() => stop(halt.why ?? "stopped")),
				emit,
				(client) => client.chat(attempt, halt, emit),
			),
		async json(path, request, signal) {
			const halt = haltOn(signal);
			try {
				return await ask<unknown>(
					(id) => ({ type: "json", id, path, request }),
					(stop) => halt.listen(() => stop(halt.why ?? "stopped")),
					() => {},
					(client) => client.json(path, request, signal),
				);
			} finally {
				halt.end();
			}
		},
		warm: () =>
			ask<void>(
				(id) => ({ type: "warm", id }),
				() => () => {},
				() => {},
				(client) => client.warm(),
			),
		close() {
			closed = true;
			failAll("the service is stopping");
			inside?.close();
			void worker?.terminate();
		},
		threadId: () => worker?.threadId ?? null,
	};
}

/** The thread never came up. */
class NoThread extends Error {}
