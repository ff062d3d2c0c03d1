/** Several keys of one model: taken in turn, a refused one set aside for a while with its reason. */
import { maskKey } from "./redact.ts";

/** A refused key is tried again after this time: the owner may have paid, or the provider may have had a fault. */
const REFUSED_MS = 10 * 60_000;
const MOST_TURNS = 500;

export interface KeyStatus {
	key: string;
	state: "ok" | "set-aside";
	reason: string | null;
	until: number | null;
}

export interface KeyRing {
	/**
	 * The next healthy key; "" when the model needs none (`keys` is empty). Null when every key is set aside. Steps of one turn stay on one
	 * key while it is healthy: a provider's prefix cache belongs to the account.
	 */
	take(origin: string, model: string, keys: string[], turnId: string | null): string | null;
	/** The turn's next call takes the next key. */
	rotate(origin: string, model: string, turnId: string | null): void;
	/** `model` given: only for that model (a 403 may be about the model). */
	setAside(origin: string, key: string, reason: string, options?: { model?: string; ms?: number }): void;
	/** The key worked: forgives it. */
	good(origin: string, key: string, model: string): void;
	status(origin: string, model: string, keys: string[]): KeyStatus[];
	/** Ms until the first of these keys is free again; null if one is. */
	freeIn(origin: string, model: string, keys: string[]): number | null;
	/** Drops what is remembered of keys that are configured no more. */
	keep(keys: string[]): void;
}

export function createKeyRing(clock: { now(): number }): KeyRing {
	const aside = new Map<string, { key: string; until: number; reason: string }>();
	const next = new Map<string, number>();
	const turns = new Map<string, string>();
	const name = (origin: string, key: string, model?: string) => `${origin}\n${key}\n${model ?? ""}`;
	const blocked = (origin: string, key: string, model: string) => {
		const now = clock.now();
		const found = [aside.get(name(origin, key)), aside.get(name(origin, key, model))].filter(
			(entry) => entry !== undefined && entry.until > now,
		);
		return found.length === 0 ? null : (found.reduce((a, b) => ((a?.until ?? 0) > (b?.until ?? 0) ? a : b)) ?? null);
	};
	return {
		take(origin, model, keys, turnId) {
			if (keys.length === 0) return "";
			const turn = turnId === null ? null : `${turnId}\n${origin}\n${model}`;
			const before = turn === null ? undefined : turns.get(turn);
			if (before !== undefined && keys.includes(before) && !blocked(origin, before, model)) return before;
			const start = next.get(`${origin}\n${model}`) ?? 0;
			for (let step = 0; step < keys.length; step++) {
				const place = (start + step) % keys.length;
				const key = keys[place];
				if (key === undefined || blocked(origin, key, model)) continue;
				next.set(`${origin}\n${model}`, place + 1);
				if (turn !== null) {
					if (turns.size >= MOST_TURNS) turns.delete(turns.keys().next().value ?? "");
					turns.set(turn, key);
				}
				return key;
			}
			return null;
		},
		rotate: (origin, model, turnId) => void turns.delete(`${turnId}\n${origin}\n${model}`),
		setAside(origin, key, reason, options = {}) {
			if (key === "") return;
			aside.set(name(origin, key, options.model), { key, until: clock.now() + (options.ms ?? REFUSED_MS), reason });
		},
		good(origin, key, model) {
			if (aside.size === 0) return;
			aside.delete(name(origin, key));
			aside.delete(name(origin, key, model));
		},
		status: (origin, model, keys) =>
			keys.map((key) => {
				const entry = blocked(origin, key, model);
				return { key: maskKey(key), state: entry ? "set-aside" : "ok", reason: entry?.reason ?? null, until: entry?.until ?? null };
			}),
		freeIn(origin, model, keys) {
			let least: number | null = null;
			for (const key of keys) {
				const entry = blocked(origin, key, model);
				if (!entry) return null;
				least = Math.min(least ?? Number.POSITIVE_INFINITY, entry.until - clock.now());
			}
			return least;
		},
		keep(keys) {
			for (const [id, entry] of aside) if (!keys.includes(entry.key)) aside.delete(id);
		},
	};
}
