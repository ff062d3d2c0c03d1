/** Waiting for a disk that is full or busy. */

const firstMs = 200;
const mostMs = 15_000;

/** True when the disk or another process stands in the way, not the data: the same write can succeed later. */
export function isPassing(error: unknown): boolean {
	const code = (error as { code?: unknown } | null)?.code;
	return typeof code === "string" && /^(SQLITE_(FULL|BUSY|LOCKED|IOERR)|ENOSPC$|EDQUOT$)/.test(code);
}

/**
 * Tries until `work` succeeds: what a turn has done must be stored, however long that takes. `worthIt` says which errors are waited
 * out (default: all); others are thrown. `signal` is asked for when there is something to wait for; null when it ended the waiting.
 */
export async function insist<T>(
	work: () => Promise<T>,
	signal: () => AbortSignal,
	onError: (error: unknown) => void,
	worthIt: (error: unknown) => boolean = () => true,
): Promise<{ value: T } | null> {
	for (let delayMs = firstMs; ; delayMs = Math.min(delayMs * 2, mostMs)) {
		try {
			return { value: await work() };
		} catch (error) {
			onError(error);
			if (!worthIt(error)) throw error;
			const ends = signal();
			if (ends.aborted) return null;
			await new Promise<void>((resolve) => {
				const timer = setTimeout(done, delayMs);
				ends.addEventListener("abort", done, { once: true });
				function done() {
					clearTimeout(timer);
					ends.removeEventListener("abort", done);
					resolve();
				}
			});
		}
	}
}

/** `work` that waits out a disk that is full or busy; when the signal ends the waiting, the last error is thrown. */
export function patient<A extends unknown[], R>(
	work: (...args: A) => Promise<R>,
	signal: () => AbortSignal,
	onWait: (error: unknown) => void,
): (...args: A) => Promise<R> {
	return async (...args) => {
		let last: unknown;
		const done = await insist(
			() => work(...args),
			signal,
			(error) => {
				last = error;
				if (isPassing(error)) onWait(error);
			},
			isPassing,
		);
		if (!done) throw last;
		return done.value;
	};
}
