/** One beat for all streams: what they have gathered leaves together, in one write, instead of each by its own timer. */

/** As often as text that streams looks smooth, and as seldom as it still looks alive. */
const SOON_MS = 40;
const LATE_MS = 80;

export interface Beat {
	/** Calls `listener` at every beat, until the answered function is called. */
	listen(listener: () => void): () => void;
}

/** Between two beats lies a millisecond for each listener, within the limits: a frame costs the same however little is in it. */
export function createBeat(soonMs = SOON_MS, lateMs = LATE_MS): Beat {
	const listeners = new Set<() => void>();
	let timer: NodeJS.Timeout | null = null;

	function arm(): void {
		timer = setTimeout(beat, Math.min(lateMs, Math.max(soonMs, listeners.size)));
	}

	function beat(): void {
		for (const listener of listeners) listener();
		timer = null;
		if (listeners.size > 0) arm();
	}

	return {
		listen(listener) {
			listeners.add(listener);
			if (!timer) arm();
			return () => {
				listeners.delete(listener);
				if (listeners.size > 0 || !timer) return;
				clearTimeout(timer);
				timer = null;
			};
		},
	};
}
