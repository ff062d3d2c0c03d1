/** A request's events as they are read: one queue between whoever makes them and the reader, however many calls lie between. */
import type { Beat } from "./beat.ts";
import type { ModelEvent } from "./model.ts";

/** Why a request need not go on: it was stopped, or nobody reads it any more. */
export interface Halt {
	/** Null while it may go on. */
	readonly why: string | null;
	/** Calls `listener` when it happens, at once if it has. Answers how to stop listening. */
	listen(listener: () => void): () => void;
}

export type Emit = (event: ModelEvent) => void;

/** The halt of a request that only `signal` can stop; `end` lets go of the signal. */
export function haltOn(signal: AbortSignal): Halt & { halt(why: string): void; end(): void } {
	const listeners = new Set<() => void>();
	let why: string | null = null;
	const halt = (reason: string) => {
		if (why !== null) return;
		why = reason;
		for (const listener of listeners) listener();
	};
	const stop = () => halt("stopped");
	if (signal.aborted) stop();
	else signal.addEventListener("abort", stop, { once: true });
	return {
		get why() {
			return why;
		},
		listen(listener) {
			if (why !== null) listener();
			else listeners.add(listener);
			return () => listeners.delete(listener);
		},
		halt,
		end: () => signal.removeEventListener("abort", stop),
	};
}

/**
 * What `produce` emits, in order; it begins with the first read, and its failure is thrown after the events before it. A reader that goes
 * away halts it and waits for its end. Text is handed on at once when none was since the last beat; what comes sooner is joined until the
 * next one, because each event costs its reader more than its words.
 */
export function eventStream(
	signal: AbortSignal,
	produce: (emit: Emit, halt: Halt) => Promise<void>,
	beat: Beat,
): AsyncIterableIterator<ModelEvent> {
	const ready: ModelEvent[] = [];
	let joined: Extract<ModelEvent, { type: "text" | "reasoning" }> | null = null;
	/** Not null: text waits for the next beat; ends the waiting. */
	let pause: (() => void) | null = null;
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

	function release(): void {
		if (joined) ready.push(joined);
		joined = null;
	}

	function rest(): void {
		if (!joined) {
			go();
			return;
		}
		release();
		answer();
	}

	function go(): void {
		pause?.();
		pause = null;
	}

	const emit: Emit = (event) => {
		if (event.type === "text" || event.type === "reasoning") {
			if (joined?.type === event.type) joined = { type: event.type, text: joined.text + event.text };
			else {
				if (joined) go();
				release();
				joined = event;
			}
			if (pause) return;
			release();
			pause = beat.listen(rest);
		} else {
			release();
			ready.push(event);
		}
		answer();
	};

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
		go();
		release();
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
