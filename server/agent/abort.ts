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

/** True when the process is going down: then a turn ends where it is, writes nothing more and goes on at the next start. */
export function isShutdown(signal: AbortSignal): boolean {
	return signal.aborted && signal.reason === "shutdown";
}
