/** Slows wrong attempts down. Bounded in memory: the oldest entries are forgotten first. */

export interface Throttle {
	/** Takes one attempt; answers 0, or how many ms to wait (then nothing was taken). */
	take(key: string): number;
	/** The attempt was right: forgets the key. */
	succeeded(key: string): void;
}

export interface ThrottleOptions {
	clock: { now(): number };
	/** Attempts before waiting begins. */
	free: number;
	/** First wait; doubles with each further attempt up to `maxMs`. */
	firstMs: number;
	maxMs: number;
	/** A key that was quiet for so long starts anew. */
	forgetMs: number;
	entries: number;
}

export function createThrottle(options: ThrottleOptions): Throttle {
	const { clock, free, firstMs, maxMs, forgetMs, entries } = options;
	const seen = new Map<string, { count: number; until: number; at: number }>();

	return {
		take(key) {
			const now = clock.now();
			const entry = seen.get(key);
			const known = entry && now - entry.at < forgetMs ? entry : { count: 0, until: 0, at: now };
			if (known.until > now) return known.until - now;
			// Counted before the outcome is known: many attempts at once must not slip through together.
			known.count += 1;
			known.at = now;
			known.until = known.count < free ? 0 : now + Math.min(maxMs, firstMs * 2 ** Math.min(known.count - free, 30));
			seen.delete(key);
			seen.set(key, known);
			if (seen.size > entries) seen.delete(seen.keys().next().value as string);
			return 0;
		},
		succeeded(key) {
			seen.delete(key);
		},
	};
}
