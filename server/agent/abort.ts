/** Waits that end with the turn. */

/** The turn was stopped. Never leaves the agent room. */
export class Stopped extends Error {
	constructor() {
		super("stopped");
		this.name = "Stopped";
	}
}

/** Resolves with `work`, or rejects with `Stopped` as soon as `signal` aborts, whether or not `work` ever ends. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
	return new Promise<T>((resolve, reject) => {
		const stop = () => {
			signal.removeEventListener("abort", stop);
			reject(new Stopped());
		};
		work.then(
			(value) => {
				signal.removeEventListener("abort", stop);
				resolve(value);
			},
			(error) => {
				signal.removeEventListener("abort", stop);
				reject(error);
			},
		);
		if (signal.aborted) stop();
		else signal.addEventListener("abort", stop, { once: true });
	});
}

/** `untilAborted` for many waits in a row with one listener: a stream has one a token. Call `end` when done. */
export function createAbortableWaits(signal: AbortSignal): { wait<T>(work: Promise<T>): Promise<T>; end(): void } {
	let reject: ((error: Error) => void) | null = null;
	const stop = () => reject?.(new Stopped());
	signal.addEventListener("abort", stop, { once: true });
	return {
		wait: (work) =>
			new Promise((resolve, fail) => {
				reject = fail;
				work.then(resolve, fail);
				if (signal.aborted) stop();
			}),
		end: () => signal.removeEventListener("abort", stop),
	};
}

/**
 * True when the turn leaves this process rather than being stopped by a person: the abort's reason is "shutdown" or an error named
 * "LeaveTurn" (the lease was lost). Then it ends where it is, writes nothing more and goes on from its stored steps elsewhere.
 */
export function isLeaving(signal: AbortSignal): boolean {
	return signal.aborted && (signal.reason === "shutdown" || (signal.reason as { name?: unknown } | undefined)?.name === "LeaveTurn");
}

/**
 * A signal that aborts with the first of `signals`, or after `limitMs` with a `TimeoutError`, until `end` is called. For waits that every
 * turn has: once it has ended, nothing of it is left on the signals it listened to.
 */
export function anyOf(signals: readonly AbortSignal[], limitMs?: number): { signal: AbortSignal; end(): void } {
	const made = new AbortController();
	const stops = signals.map((signal) => ({ signal, stop: () => made.abort(signal.reason) }));
	const timer =
		limitMs === undefined ? undefined : setTimeout(() => made.abort(new DOMException("it took too long", "TimeoutError")), limitMs);
	timer?.unref();
	for (const { signal, stop } of stops) {
		if (signal.aborted) stop();
		signal.addEventListener("abort", stop, { once: true });
	}
	return {
		signal: made.signal,
		end() {
			clearTimeout(timer);
			for (const { signal, stop } of stops) signal.removeEventListener("abort", stop);
		},
	};
}
