/**
 * The daily stop. What a call may use is reserved on disk before it is made and settled after it; what does not fit is not made.
 * The first refused call of a person blows the fuse until the day ends or the master raises the limit.
 */
import type { Tier } from "../agent/types.ts";
import type { CallSource, CallStart } from "../model/model.ts";
import type { Calendar } from "../observe/day.ts";
import { isBlown, roomOf } from "../store/ledger-rules.ts";
import {
	backgroundSources,
	type DayLimits,
	type DayState,
	type DayUse,
	type Ledger,
	type Limit,
	type OpenOutcome,
} from "../store/ledger-store.ts";
import { fuseSentence } from "./fuse-sentence.ts";

/** `budget` and `people.dailyShare` of config.yaml. */
export interface FuseBudget {
	/** Null = no limit; 0 = nothing. */
	dailyTokens: number | null;
	dailyCost: number | null;
	/** Parts of a limit at which a warning is given, once a day each. */
	warnAt: number[];
	/** Part of the limits (0..1) that heartbeat, alarms, jobs and memory leave alone. */
	reserveForPeople: number;
	/** Currency of `dailyCost`. Default USD. */
	currency?: string;
	/** What one unit of another currency is worth in `currency`. A price in a currency that is not here counts as unknown for the money limit. */
	exchange?: Record<string, number>;
	/** What happens to messages while the fuse is blown. Default wait. */
	whenBlown?: "wait" | "decline";
	dailyShare: { stranger: number | null; known: number | null; group: number | null };
}

/** Who causes a call. */
export interface Payer {
	personId: string | null;
	tier: Tier;
	/** Set when the conversation is a group's. */
	groupId: string | null;
	source: CallSource;
	/** True when nobody waits for it, whatever its source says (the critique of a heartbeat's answer, a re-indexing). Default: by source. */
	background?: boolean;
}

export type Admission =
	| { admitted: true }
	| {
			admitted: false;
			/** `tokens`, `cost`: the fuse has blown. `room`: for the moment, calls in flight hold the rest. `share`: this person's or group's part of the day is used up. `people`: the rest is kept for people. */
			limit: Limit;
			/** When it may go on (ms). */
			resetsAt: number;
			/** `wait`: keep the message, it is answered then. `decline`: end it with the sentence. */
			policy: "wait" | "decline";
	  };

export interface FuseState {
	day: string;
	limitTokens: number | null;
	usedTokens: number;
	reservedTokens: number;
	limitCost: number | null;
	usedCost: number;
	reservedCost: number;
	currency: string;
	/** Tokens whose price nobody knows: the money limit does not see them. */
	unpricedTokens: number;
	state: "ok" | "warn" | "blown";
	blownBy: Limit | null;
	resetsAt: number;
}

export type FuseEvent =
	| { type: "warned"; threshold: number; limit: "tokens" | "cost"; state: FuseState }
	| { type: "blown"; state: FuseState; payer: Payer }
	/** Background work was stopped at what is kept for people. */
	| { type: "reserve-reached"; state: FuseState }
	/** Turns that waited may be tried again: a new day, a raise, a larger limit, room that calls in flight had held. */
	| { type: "opened"; reason: "day" | "raise" | "limit" | "room"; state: FuseState };

export interface Fuse {
	/** Asked before a turn is started. Cheap; changes nothing. */
	admits(payer: Payer): Promise<Admission>;
	/** True the first time today: then the person (or conversation) is told `sentence`, and not again. */
	tellOnce(who: string): Promise<boolean>;
	/** What a person is told, in their language, naming the limit and when it resets. */
	sentence(admission: Extract<Admission, { admitted: false }>, locale: string): string;
	/** Reserves for one call and stores its row. Waits while calls in flight may still leave room. Throws `FuseRefusal`. */
	reserve(
		id: string,
		call: CallStart,
		ask: { payer: Payer; tokens: number; cost: { cost: number; currency: string } | null },
		signal?: AbortSignal,
	): Promise<void>;
	/** Told after each settlement: wakes calls that wait for room and gives the warnings that are due. */
	settled(day: DayUse): Promise<void>;
	/** A cost in the budget's currency, or null when that cannot be said. */
	inBudgetCurrency(cost: { cost: number; currency: string } | null): number | null;
	state(): Promise<FuseState>;
	/** For today. Only the master may be let through to it; `by` says who it was. */
	raise(raise: { tokens?: number; cost?: number; by: string }): Promise<FuseState>;
	onEvent(listener: (event: FuseEvent) => void): () => void;
	/** Called when turns that waited should be tried again. */
	onChange(listener: () => void): () => void;
	/** Looks at the clock: a new day opens the fuse. Called by the timer, and by tests. */
	tick(): Promise<void>;
	/** Starts the timer (15 s steps against the wall clock). */
	start(): void;
	stop(): void;
}

export class FuseRefusal extends Error {
	readonly limit: Limit;
	readonly resetsAt: number;
	constructor(limit: Limit, resetsAt: number, message: string) {
		super(message);
		this.name = "FuseRefusal";
		this.limit = limit;
		this.resetsAt = resetsAt;
	}
}

export interface FuseOptions {
	ledger: Pick<Ledger, "reserve" | "day" | "use" | "share" | "raise" | "warn" | "tellOnce">;
	budget: () => FuseBudget;
	calendar: Calendar;
	/** Zone named in sentences. */
	timezone: () => string;
	clock: { now(): number };
	/** Longest time a call waits for calls in flight, ms. Default 120,000. */
	waitMs?: number;
	log?: { warn(event: string, data?: Record<string, unknown>): void; error(event: string, data?: Record<string, unknown>): void };
}

/** Whose share pays: nobody's for the master, the group's in a group, else the person's. */
export function shareOf(payer: Payer, shares: FuseBudget["dailyShare"]): { share: string; tokens: number | null } | null {
	if (payer.tier === "master") return null;
	if (payer.groupId !== null) return { share: `group:${payer.groupId}`, tokens: shares.group };
	if (payer.personId === null || payer.personId === "master") return null;
	return {
		share: payer.personId,
		tokens: payer.tier === "stranger" ? shares.stranger : payer.tier === "group" ? shares.group : shares.known,
	};
}

/** How old what is known of the day may be for letting a turn begin, ms. Its calls are decided by the ledger anyway. */
const knownMs = 1_000;
/** How long a turn waits when calls in flight hold the rest of the day, unless one of them ends before. */
const crowdedMs = 30_000;

export function createFuse(options: FuseOptions): Fuse {
	const { ledger, budget, calendar, clock, waitMs = 120_000 } = options;
	const listeners = new Set<(event: FuseEvent) => void>();
	const waiting = new Set<() => void>();
	let seenDay: string | null = null;
	let wasBlown = false;
	let reserveTold: string | null = null;
	/** A call was turned away only because others in flight held the room. */
	let crowded = false;
	/** Counts settlements and openings: one that comes between a question and the wait for its answer is not missed. */
	let changes = 0;
	/** The day as the last settlement left it. */
	let known: { use: DayUse; at: number } | null = null;
	let timer: NodeJS.Timeout | null = null;

	const today = (): string => calendar.dayOf(clock.now());
	const isBackground = (payer: Payer): boolean => payer.background ?? backgroundSources.includes(payer.source);

	function limitsFor(payer: Payer): DayLimits {
		const { dailyTokens, dailyCost, reserveForPeople, dailyShare } = budget();
		return {
			tokens: dailyTokens,
			cost: dailyCost,
			reserveForPeople: Math.min(1, Math.max(0, reserveForPeople)),
			shareTokens: shareOf(payer, dailyShare)?.tokens ?? null,
		};
	}

	const master: Payer = { personId: "master", tier: "master", groupId: null, source: "chat" };

	function stateOf(day: DayState): FuseState {
		const limits = limitsFor(master);
		const room = roomOf(day, limits);
		const first = Math.min(...budget().warnAt, 1);
		const part = Math.max(room.tokens ? day.usedTokens / room.tokens : 0, room.cost ? day.usedCost / room.cost : 0);
		const blown = isBlown(day, limits);
		return {
			day: day.day,
			limitTokens: room.tokens,
			usedTokens: day.usedTokens,
			reservedTokens: day.reservedTokens,
			limitCost: room.cost,
			usedCost: day.usedCost,
			reservedCost: day.reservedCost,
			currency: budget().currency ?? "USD",
			unpricedTokens: day.unpricedTokens,
			state: blown ? "blown" : part >= first ? "warn" : "ok",
			blownBy: blown ? day.blownBy : null,
			resetsAt: calendar.nextStart(clock.now()),
		};
	}

	const stateOn = async (day: string): Promise<FuseState> => stateOf(await ledger.day(day));

	function emit(event: FuseEvent): void {
		for (const listener of listeners) {
			try {
				listener(event);
			} catch (error) {
				options.log?.error("fuse.listener-failed", { error });
			}
		}
	}

	function wake(): void {
		changes += 1;
		for (const resume of [...waiting]) resume();
	}

	/** Resolves at the next settlement, opening or after `ms`; rejects on abort. */
	function nextChange(ms: number, signal: AbortSignal | undefined): Promise<void> {
		return new Promise((resolve, reject) => {
			const done = (): void => {
				clearTimeout(limit);
				signal?.removeEventListener("abort", stop);
				waiting.delete(done);
				resolve();
			};
			const stop = (): void => {
				clearTimeout(limit);
				waiting.delete(done);
				reject(signal?.reason);
			};
			const limit = setTimeout(done, ms);
			waiting.add(done);
			if (signal?.aborted) stop();
			else signal?.addEventListener("abort", stop, { once: true });
		});
	}

	function refusal(limit: Limit): FuseRefusal {
		const resetsAt = calendar.nextStart(clock.now());
		return new FuseRefusal(
			limit,
			resetsAt,
			`the daily limit (${limit}) leaves no room for this call until ${new Date(resetsAt).toISOString()}`,
		);
	}

	async function reserve(
		id: string,
		call: CallStart,
		ask: { payer: Payer; tokens: number; cost: { cost: number; currency: string } | null },
		signal?: AbortSignal,
	): Promise<void> {
		const background = isBackground(ask.payer);
		const limits = limitsFor(ask.payer);
		const share = shareOf(ask.payer, budget().dailyShare)?.share ?? null;
		const until = performance.now() + waitMs;
		for (;;) {
			const day = today();
			const seen = changes;
			const outcome: OpenOutcome = await ledger.reserve(
				id,
				call,
				{ day, share, background, tokens: ask.tokens, cost: inBudgetCurrency(ask.cost) },
				limits,
			);
			const leftMs = until - performance.now();
			if (outcome.outcome === "wait" && leftMs > 0) {
				signal?.throwIfAborted();
				if (changes === seen) await nextChange(leftMs, signal);
				continue;
			}
			if (outcome.outcome === "open") return;
			if (outcome.outcome === "wait") crowded = true;
			if (outcome.outcome === "refused" && !background && (outcome.limit === "tokens" || outcome.limit === "cost")) {
				wasBlown = true;
				known = null;
				options.log?.warn("fuse.blown", { limit: outcome.limit, day, source: ask.payer.source });
				emit({ type: "blown", state: await stateOn(day), payer: ask.payer });
				wake();
			}
			if (background && outcome.limit === "people" && reserveTold !== day) {
				reserveTold = day;
				emit({ type: "reserve-reached", state: await stateOn(day) });
			}
			throw refusal(outcome.limit);
		}
	}

	function inBudgetCurrency(cost: { cost: number; currency: string } | null): number | null {
		if (cost === null) return null;
		const { currency = "USD", exchange } = budget();
		if (cost.cost === 0 || cost.currency === currency) return cost.cost;
		const rate = exchange?.[cost.currency];
		return rate === undefined ? null : cost.cost * rate;
	}

	async function settled(day: DayUse): Promise<void> {
		known = { use: day, at: clock.now() };
		wake();
		if (crowded) {
			crowded = false;
			emit({ type: "opened", reason: "room", state: await stateOn(day.day) });
		}
		const room = roomOf(day, limitsFor(master));
		const parts = { tokens: room.tokens ? day.usedTokens / room.tokens : 0, cost: room.cost ? day.usedCost / room.cost : 0 };
		const limit = parts.cost > parts.tokens ? "cost" : "tokens";
		const due = budget().warnAt.filter((threshold) => parts[limit] >= threshold && !day.warned.includes(threshold));
		if (due.length === 0) return;
		const fresh = await ledger.warn(day.day, due);
		if (fresh.length === 0) return;
		const state = await stateOn(day.day);
		for (const threshold of fresh.sort((a, b) => a - b)) {
			options.log?.warn("fuse.warning", { threshold, limit, usedTokens: day.usedTokens, usedCost: day.usedCost });
			emit({ type: "warned", threshold, limit, state });
		}
	}

	async function judge(payer: Payer, day: DayUse): Promise<Admission> {
		const limits = limitsFor(payer);
		const { whenBlown = "wait", dailyShare } = budget();
		const refuse = (limit: Limit): Admission => ({
			admitted: false,
			limit,
			resetsAt: calendar.nextStart(clock.now()),
			policy: whenBlown,
		});
		if (isBlown(day, limits)) return refuse(day.blownBy ?? "tokens");
		if (crowded) return { admitted: false, limit: "room", resetsAt: clock.now() + crowdedMs, policy: "wait" };
		const mine = shareOf(payer, dailyShare);
		if (mine && mine.tokens !== null) {
			const { usedTokens } = await ledger.share(day.day, mine.share);
			if (usedTokens >= mine.tokens) return refuse("share");
		}
		if (isBackground(payer)) {
			// Once turned away it stays away: a smaller piece that would still fit is not worth a turn that ends in the middle.
			if (reserveTold === day.day) return refuse("people");
			const room = roomOf(day, limits);
			const part = 1 - limits.reserveForPeople;
			if (
				(room.tokens !== null && day.usedTokens >= room.tokens * part) ||
				(room.cost !== null && day.usedCost >= room.cost * part && room.cost > 0)
			)
				return refuse("people");
		}
		return { admitted: true };
	}

	async function tick(): Promise<void> {
		const state = await stateOn(today());
		const newDay = seenDay !== null && seenDay !== state.day;
		seenDay = state.day;
		const mended = wasBlown && state.state !== "blown";
		wasBlown = state.state === "blown";
		if (!newDay && !mended) return;
		reserveTold = null;
		wake();
		emit({ type: "opened", reason: newDay ? "day" : "limit", state });
	}

	return {
		async admits(payer) {
			const day = today();
			const recent = known?.use.day === day && Math.abs(clock.now() - known.at) < knownMs ? known.use : null;
			const guess = recent && (await judge(payer, recent));
			// Only a yes may rest on what is known: somebody may have raised the limit elsewhere.
			return guess?.admitted ? guess : judge(payer, await ledger.use(day));
		},
		tellOnce: (who) => ledger.tellOnce(today(), who),
		sentence: (admission, locale) => fuseSentence(admission, locale, options.timezone()),
		reserve,
		settled,
		inBudgetCurrency,
		state: () => stateOn(today()),
		async raise({ tokens = 0, cost = 0, by }) {
			const day = await ledger.raise(today(), { tokens, cost, by, at: clock.now() });
			wasBlown = false;
			reserveTold = null;
			known = null;
			options.log?.warn("fuse.raised", { tokens, cost, by, day: day.day });
			const state = stateOf(day);
			wake();
			emit({ type: "opened", reason: "raise", state });
			return state;
		},
		onEvent(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		onChange(listener) {
			const wrapped = (event: FuseEvent): void => {
				if (event.type === "opened") listener();
			};
			listeners.add(wrapped);
			return () => listeners.delete(wrapped);
		},
		tick,
		start() {
			if (timer) return;
			const look = (): void => void tick().catch((error: unknown) => options.log?.error("fuse.tick-failed", { error }));
			look();
			timer = setInterval(look, 15_000);
			timer.unref();
		},
		stop() {
			if (timer) clearInterval(timer);
			timer = null;
			wake();
		},
	};
}
