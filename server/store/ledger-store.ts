/** The ledger's contract: every model call, what it cost, what is left of the day. Written by the meter and the fuse, read by the page. */
import type { CallEnd, CallSource, CallStart } from "../model/model.ts";
import type { CallRow, CallStore } from "./store.ts";

/** What a call asks of the day before it is made. */
export interface Reservation {
	/** The day (YYYY-MM-DD in the configured zone) that pays, also when the call ends after midnight. */
	day: string;
	/** Whose daily share pays as well: a person id or `group:<id>`; null = nobody's (the master). */
	share: string | null;
	/** True for what nobody waits for: it may not touch what is kept for people. */
	background: boolean;
	/** Input as estimated plus all the output that is allowed. */
	tokens: number;
	/** Highest cost in the budget's currency; null = price unknown. */
	cost: number | null;
}

/** What the day allows, as the fuse knows it from the configuration. Null = no limit. */
export interface DayLimits {
	tokens: number | null;
	cost: number | null;
	/** Part of the limits (0..1) that background work leaves alone. */
	reserveForPeople: number;
	/** Tokens a day of the reservation's share. */
	shareTokens: number | null;
}

/** Which limit stands in the way of a call. `room`: none, but calls in flight hold what is left. */
export type Limit = "tokens" | "cost" | "share" | "people" | "room";

/**
 * `wait`: it would fit if the calls in flight end below what they reserved. `refused`: it does not fit, whatever they use.
 * `blown`: the fuse had blown before.
 */
export type OpenOutcome = { outcome: "open" } | { outcome: "wait" | "refused"; limit: Limit } | { outcome: "blown"; limit: Limit };

/** What of a day is spent, and what became of its limits. */
export interface DayUse {
	day: string;
	usedTokens: number;
	/** In the budget's currency. */
	usedCost: number;
	/** Tokens of calls whose price nobody knows. */
	unpricedTokens: number;
	/** What the master added for this day. */
	raisedTokens: number;
	raisedCost: number;
	/** When a person's call was first refused; null = not blown. */
	blownAt: number | null;
	blownBy: Limit | null;
	/** The limit (raises included) that was in force when it blew. */
	blownLimit: number | null;
	/** Warning thresholds that were told already. */
	warned: number[];
}

/** A day with the calls in flight. */
export interface DayState extends DayUse {
	/** Sum of the reservations that are not settled. */
	reservedTokens: number;
	reservedCost: number;
}

/** What a call really used. */
export interface Settlement {
	/** Cost in the budget's currency; null = price unknown. */
	budgetCost: number | null;
}

export type UsageBy = "day" | "source" | "model" | "conversation";

export interface UsageRow {
	key: string;
	calls: number;
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
	reasoningTokens: number;
	/** Sum of the known costs in the most used currency of this row; null when no call had a price. */
	cost: number | null;
	currency: string;
	/** Every currency with its sum, when there are several. */
	costs: Record<string, number>;
	/** Tokens (in and out) of calls whose price is unknown. */
	unpricedTokens: number;
	/** Tokens that were estimated because the server reported none. */
	estimatedTokens: number;
}

/** How a model's reported tokens compare with our estimate: `ratio` on average, `high` for reservations. */
export interface TokenRatio {
	model: string;
	ratio: number;
	high: number;
	samples: number;
}

/** A stored call with what only the ledger knows. */
export interface LedgerCall extends CallRow {
	request: unknown;
	response: unknown;
	errorKind: string | null;
	errorStatus: number | null;
	/** Where the price came from ("table 2026-09-23", "config"), null = unknown. */
	price: string | null;
}

export interface AlertRow {
	id: string;
	/** What kind of incident ("fuse-blown", "model-failing"). */
	kind: string;
	/** Which one of its kind: a second report of the same open incident makes no second alert. */
	incident: string;
	severity: "info" | "warn" | "error";
	state: "open" | "resolved";
	/** What happened, why, and what to do, in both languages. */
	message: { en: string; zh: string };
	conversationId: string | null;
	turnId: string | null;
	openedAt: number;
	lastAt: number;
	resolvedAt: number | null;
	ackedAt: number | null;
	/** How often it was reported while open. */
	count: number;
}

export interface AlertStore {
	/** Opens an incident, or counts one more report of an open one. `opened` is true only the first time. */
	open(alert: {
		id: string;
		kind: string;
		incident: string;
		severity: AlertRow["severity"];
		message: AlertRow["message"];
		conversationId: string | null;
		turnId: string | null;
		at: number;
	}): Promise<{ row: AlertRow; opened: boolean }>;
	/** Ends an open incident; null when there is none. */
	resolve(kind: string, incident: string, at: number): Promise<AlertRow | null>;
	ack(id: string, at: number): Promise<AlertRow | null>;
	/** Newest first. */
	list(filter: { state?: AlertRow["state"]; limit: number; before?: string }): Promise<AlertRow[]>;
	get(id: string): Promise<AlertRow | null>;
}

export interface Ledger extends CallStore {
	/**
	 * Stores the call's row and its reservation in one transaction, if the day still has room for it. A person's call that does not
	 * fit blows the day's fuse in the same transaction; nothing else is stored of a call that is not made.
	 */
	reserve(id: string, start: CallStart, reservation: Reservation, limits: DayLimits): Promise<OpenOutcome>;
	/**
	 * Stores the outcome, frees the reservation and adds the real figures to the day, the share and the usage table, in one
	 * transaction. A second settlement of the same call changes nothing. Answers the day as it stands.
	 */
	settle(id: string, end: CallEnd, settlement: Settlement & { price: string | null; ratio: TokenRatio | null }): Promise<DayUse>;
	day(day: string): Promise<DayState>;
	/** The day without the calls in flight: one row, however many they are. */
	use(day: string): Promise<DayUse>;
	/** Tokens of a share on a day, used and reserved. */
	share(day: string, share: string): Promise<{ usedTokens: number; reservedTokens: number }>;
	/** Adds to the day's limits, lets the fuse hold again and keeps who did it. */
	raise(day: string, raise: { tokens: number; cost: number; by: string; at: number }): Promise<DayState>;
	raises(day: string): Promise<{ at: number; tokens: number; cost: number; by: string }[]>;
	/** Marks thresholds as told; answers those that were not yet. */
	warn(day: string, thresholds: number[]): Promise<number[]>;
	/** True the first time for this day and person (or conversation). */
	tellOnce(day: string, who: string): Promise<boolean>;
	/** At start: calls that were in flight when the process ended count as spent. Answers how many. */
	recover(now: number): Promise<number>;
	call(id: string): Promise<LedgerCall | null>;
	/** The calls of a turn with their bodies, oldest first. */
	callsOf(turnId: string): Promise<LedgerCall[]>;
	/** From `from` (inclusive) to `to` (exclusive), ms. Whole days are read from the daily totals, which are kept for ever. */
	usage(filter: { from: number; to: number; by: UsageBy; dayOf(at: number): string; startOfDay(day: string): number }): Promise<UsageRow[]>;
	ratios(): Promise<TokenRatio[]>;
	keepRatio(ratio: TokenRatio): Promise<void>;
	/** Conversations in which a message has waited since before `before` while no turn runs and nothing holds it on purpose. */
	forgotten(before: number, now: number): Promise<{ conversationId: string; since: number }[]>;
	/**
	 * Removes bodies and rows of calls beyond age and size, oldest first, a bounded number at a time, and the heads that no call begins with
	 * any more. `bytes` is compared with what calls keep for themselves: heads count for nobody. Answers how many rows it touched.
	 */
	pruneCalls(now: number, keep: { days: number; bytes: number }): Promise<number>;
	alerts: AlertStore;
}

/** Sources whose calls nobody waits for. */
export const backgroundSources: readonly CallSource[] = ["heartbeat", "alarm", "job", "memory"];
