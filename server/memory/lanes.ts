/** When background work is done: some jobs at a time, and not in the moment in which people are waiting for answers. */
export interface LaneOptions {
	/** Jobs at a time. */
	count: number;
	/** Quiet time after the last message before work begins, and the longest it is put off, ms. */
	quietMs: number;
	patienceMs: number;
	/** Somebody waits for an answer in this moment. */
	answering(): boolean;
	/** Ends all work and all waiting. */
	signal: AbortSignal;
	/** Takes a job and does it. False when there is none to take. */
	next(): Promise<boolean>;
	failed(error: unknown): void;
}

export interface Lanes {
	/** Something may be to do. */
	wake(): void;
	/** Somebody is about: work waits a moment, but not for ever. */
	busy(): void;
	/** Works at once, until there is nothing to take. */
	work(): Promise<void>;
	/** Whether some lane is at work. */
	active(): boolean;
	/** Resolves when what runs has come to its end. After the signal. */
	ended(): Promise<void>;
}

export function createLanes({ count, quietMs, patienceMs, answering, signal, next, failed }: LaneOptions): Lanes {
	const lanes = new Set<Promise<void>>();
	let timer: NodeJS.Timeout | null = null;
	let busyUntil = 0;
	/** Something came since a lane last looked. */
	let woken = false;

	function busy(): void {
		busyUntil = performance.now() + quietMs;
	}

	/** Resolves when nobody was about for a moment, or when a lane has waited long enough for that. */
	async function quiet(): Promise<void> {
		const latest = performance.now() + patienceMs;
		while (!signal.aborted) {
			if (answering()) busy();
			const now = performance.now();
			const until = Math.min(busyUntil, latest);
			if (now >= until) return;
			await new Promise<void>((resolve) => {
				const handle = setTimeout(done, until - now);
				handle.unref();
				signal.addEventListener("abort", done, { once: true });
				function done(): void {
					clearTimeout(handle);
					signal.removeEventListener("abort", done);
					resolve();
				}
			});
		}
	}

	async function lane(patient: boolean): Promise<void> {
		while (!signal.aborted) {
			if (patient) await quiet();
			if (signal.aborted) return;
			woken = false;
			if (!(await next()) && !woken) return;
		}
	}

	function open(patient: boolean): void {
		while (lanes.size < count && !signal.aborted) {
			const opened = lane(patient)
				.catch(failed)
				.finally(() => lanes.delete(opened));
			lanes.add(opened);
		}
	}

	const ended = async (): Promise<void> => {
		await Promise.all(lanes);
	};

	return {
		wake() {
			woken = true;
			if (timer !== null || signal.aborted) return;
			timer = setTimeout(() => {
				timer = null;
				open(true);
			}, quietMs);
			timer.unref();
		},
		busy,
		work() {
			open(false);
			return ended();
		},
		active: () => lanes.size > 0,
		ended,
	};
}
