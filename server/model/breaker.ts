/**
 * The state of one host (scheme, host, port), shared by all models on it: a breaker against hosts that are down, and the
 * back-off that a 429 asks for.
 */

const FAILURES_TO_OPEN = 5;
const OPEN_MS = 30_000;
/** A Retry-After on a 5xx may hold the breaker open longer, but not for ever. */
const MOST_OPEN_MS = 15 * 60_000;

export type BreakerState = "closed" | "open" | "half-open";

export interface HostStatus {
	key: string;
	state: BreakerState;
	failures: number;
	/** Ms since the epoch when it may be tried again; null when it may be now. */
	retryAt: number | null;
}

export interface Hosts {
	/** Ms until the host may be called: 0 = now (and a half-open breaker's one probe is taken), null = not before somebody else's probe is back. */
	enter(origin: string): { waitMs: number; why: "free" | "open" | "paused" | "probing" };
	/** The same without taking anything. */
	peek(origin: string): number;
	/** The attempt that `enter` let through ended. `neutral`: said nothing about the host's health (4xx, aborted). */
	leave(origin: string, outcome: "ok" | "failed" | "neutral", retryAfterMs?: number | null): void;
	/** A 429: nobody calls this host before then. Never shortens. */
	pause(origin: string, ms: number): void;
	status(): HostStatus[];
}

interface Host {
	failures: number;
	openUntil: number;
	pausedUntil: number;
	probing: boolean;
}

export function createHosts(clock: { now(): number }): Hosts {
	const hosts = new Map<string, Host>();
	const of = (origin: string): Host => {
		let host = hosts.get(origin);
		if (!host) {
			host = { failures: 0, openUntil: 0, pausedUntil: 0, probing: false };
			hosts.set(origin, host);
		}
		return host;
	};
	return {
		enter(origin) {
			const host = of(origin);
			const now = clock.now();
			if (host.openUntil > now) return { waitMs: host.openUntil - now, why: "open" };
			if (host.pausedUntil > now) return { waitMs: host.pausedUntil - now, why: "paused" };
			if (host.openUntil > 0) {
				if (host.probing) return { waitMs: 1_000, why: "probing" };
				host.probing = true;
			}
			return { waitMs: 0, why: "free" };
		},
		peek(origin) {
			const host = hosts.get(origin);
			return host ? Math.max(0, host.openUntil - clock.now(), host.pausedUntil - clock.now()) : 0;
		},
		leave(origin, outcome, retryAfterMs) {
			const host = of(origin);
			host.probing = false;
			if (outcome === "neutral") return;
			if (outcome === "ok") {
				host.failures = 0;
				host.openUntil = 0;
				return;
			}
			host.failures++;
			const again = host.openUntil > 0;
			if (again || host.failures >= FAILURES_TO_OPEN)
				host.openUntil = clock.now() + Math.min(MOST_OPEN_MS, Math.max(OPEN_MS, retryAfterMs ?? 0));
		},
		pause(origin, ms) {
			const host = of(origin);
			host.pausedUntil = Math.max(host.pausedUntil, clock.now() + ms);
		},
		status() {
			const now = clock.now();
			return [...hosts].map(([key, host]) => {
				const open = host.openUntil > now;
				const until = Math.max(host.openUntil, host.pausedUntil);
				return {
					key,
					state: open ? "open" : host.openUntil > 0 ? "half-open" : "closed",
					failures: host.failures,
					retryAt: until > now ? until : null,
				} satisfies HostStatus;
			});
		},
	};
}
