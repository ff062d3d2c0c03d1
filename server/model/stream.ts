/** A request's events as they are read: one queue between whoever makes them and the reader, however many calls lie between. */
import type { ModelEvent } from "./model.ts";

/** Why a request need not go on: it was stopped, or nobody reads it any more. */
export interface Halt {
	/** Null while it may go on. */
	readonly why: string | null;
	/** Calls `listener` when it happens, at once if it has. Answers how to stop listening. */
	listen(listener: () => void): () => void;
}

export type Emit = (event: ModelEvent) => void;

/** A halt that happens when `halt` is called, once. */
export function createHalt(): Halt & { halt(why: string): void } {
	const listeners = new Set<() => void>();
	let why: string | null = null;
	return {
		get why() {
			return why;
		},
		listen(listener) {
			if (why !== null) listener();
			else listeners.add(listener);
			return () => listeners.delete(listener);
		},
		halt(reason) {
			if (why !== null) return;
			why = reason;
			for (const listener of listeners) listener();
		},
	};
}

/** The halt of a request that `signal` can stop as well; `end` lets go of the signal. */
export function haltOn(signal: AbortSignal): ReturnType<typeof createHalt> & { end(): void } {
	const halt = createHalt();
	const stop = () => halt.halt("stopped");
	if (signal.aborted) stop();
	else signal.addEventListener("abort", stop, { once: true });
	return Object.assign(halt, { end: () => signal.removeEventListener("abort", stop) });
}

/**
 * What `produce` emits, in order; it begins with the first read, and its failure is thrown after the events before it. A reader that goes
 * away halts it and waits for its end.
 */
export function eventStream(signal: AbortSignal, produce: (emit: Emit, halt: Halt) => Promise<void>): AsyncIterableIterator<ModelEvent> {
	const ready: ModelEvent[] = [];
	let reader: { resolve(result: IteratorResult<ModelEvent>): void; reject(error: unknown): void } | null = null;
	let running: Promise<void> | null = null;
	let halt: ReturnType<typeof haltOn> | null = null;
	let over: "open" | "ended" | "failed" = "open";
	let failure: unknown;

	function answer(): void {
		if (!reader) return;
		const { resolve, reject } = reader;
		const event = ready.shift();
		if (event) resolve({ value: event, done: false });
		else if (over === "ended") resolve({ value: undefined, done: true });
		else if (over === "failed") {
			over = "ended";
			reject(failure);
		} else return;
		reader = null;
	}

	function emit(event: ModelEvent): void {
		ready.push(event);
		answer();
	}

	async function run(): Promise<void> {
		halt = haltOn(signal);
		try {
			await produce(emit, halt);
			over = "ended";
		} catch (error) {
			over = "failed";
			failure = error;
		}
		halt.end();
		answer();
	}

	return {
		next() {
			if (over === "open") running ??= run();
			return new Promise((resolve, reject) => {
				reader = { resolve, reject };
				answer();
			});
		},
		async return() {
			halt?.halt("the answer was not read to its end");
			await running;
			over = "ended";
			ready.length = 0;
			answer();
			return { value: undefined, done: true };
		},
		[Symbol.asyncIterator]() {
			return this;
		},
	};
}
