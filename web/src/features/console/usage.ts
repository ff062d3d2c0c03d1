/** What the usage numbers mean: days of the configured zone, who caused what, sums and forecasts. Pure. */
import type { UsageRow } from "../../../../server/http/contract.ts";

/** Who a call was made for: people who wrote, the agent by itself, or the upkeep of both. */
export type Cause = "people" | "itself" | "upkeep";
export const causes: readonly Cause[] = ["people", "itself", "upkeep"];

/** The sources there are words for. */
export const knownSources = ["chat", "heartbeat", "alarm", "job", "critique", "memory", "embedding", "voice", "image"] as const;
export type KnownSource = (typeof knownSources)[number];

export function isKnownSource(source: string): source is KnownSource {
	return (knownSources as readonly string[]).includes(source);
}

export function causeOf(source: string): Cause {
	if (source === "chat" || source === "voice" || source === "image") return "people";
	return source === "heartbeat" || source === "alarm" || source === "job" ? "itself" : "upkeep";
}

/** YYYY-MM-DD of an instant in a zone; a name that is no zone counts as UTC, as the daemon has it. */
export function dayIn(at: number, zone: string): string {
	const parts = { year: "numeric", month: "2-digit", day: "2-digit" } as const;
	try {
		return new Intl.DateTimeFormat("sv-SE", { ...parts, timeZone: zone }).format(at);
	} catch {
		return new Intl.DateTimeFormat("sv-SE", { ...parts, timeZone: "UTC" }).format(at);
	}
}

/** By the calendar, so that days with a clock change count as one. */
export function shiftDay(day: string, days: number): string {
	return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** The `count` days that end with `today`, oldest first. */
export function lastDays(today: string, count: number): string[] {
	return Array.from({ length: count }, (_, index) => shiftDay(today, index - count + 1));
}

export type Span = "today" | "week" | "month";

/** First and last day of a span that ends today. */
export function spanDays(span: Span, today: string): { from: string; to: string } {
	const from = span === "today" ? today : span === "week" ? shiftDay(today, -6) : `${today.slice(0, 8)}01`;
	return { from, to: today };
}

export function tokensOf(row: UsageRow): number {
	return row.inputTokens + row.outputTokens;
}

/** 0 to 100, or null where nothing went in. */
export function cachedPercent(row: UsageRow): number | null {
	return row.inputTokens > 0 ? Math.round((row.cachedTokens / row.inputTokens) * 100) : null;
}

export type Measure = "tokens" | "cost";

export interface DayBar {
	day: string;
	parts: Record<Cause, number>;
	total: number;
	/** Tokens of this day that no cost stands for. */
	unpricedTokens: number;
}

/** One bar a day. `cost` counts `currency` alone: sums of different money are no sums. */
export function stackDays(days: string[], sources: Map<string, UsageRow[]>, measure: Measure, currency: string): DayBar[] {
	return days.map((day) => {
		const bar: DayBar = { day, parts: { people: 0, itself: 0, upkeep: 0 }, total: 0, unpricedTokens: 0 };
		for (const row of sources.get(day) ?? []) {
			const value = measure === "tokens" ? tokensOf(row) : (row.costs[currency] ?? 0);
			bar.parts[causeOf(row.key)] += value;
			bar.total += value;
			bar.unpricedTokens += row.unpricedTokens;
		}
		return bar;
	});
}

/** The currency most of the money was spent in; `otherwise` when none was. */
export function mainCurrency(rows: UsageRow[], otherwise: string): string {
	const sums = new Map<string, number>();
	for (const row of rows) for (const [currency, cost] of Object.entries(row.costs)) sums.set(currency, (sums.get(currency) ?? 0) + cost);
	const [first] = [...sums].filter(([, cost]) => cost > 0).sort((a, b) => b[1] - a[1]);
	return first?.[0] ?? otherwise;
}

/** Largest first; what cost tokens but has no price counts by its tokens. */
export function sortRows(rows: UsageRow[]): UsageRow[] {
	return [...rows].sort((a, b) => tokensOf(b) - tokensOf(a) || a.key.localeCompare(b.key));
}

export function sumRows(rows: UsageRow[], key: string): UsageRow {
	const sum: UsageRow = {
		key,
		calls: 0,
		inputTokens: 0,
		cachedTokens: 0,
		outputTokens: 0,
		reasoningTokens: 0,
		cost: rows.some((row) => row.cost !== null) ? 0 : null,
		currency: mainCurrency(rows, rows[0]?.currency ?? "USD"),
		costs: {},
		unpricedTokens: 0,
		estimatedTokens: 0,
	};
	for (const row of rows) {
		sum.calls += row.calls;
		sum.inputTokens += row.inputTokens;
		sum.cachedTokens += row.cachedTokens;
		sum.outputTokens += row.outputTokens;
		sum.reasoningTokens += row.reasoningTokens;
		sum.unpricedTokens += row.unpricedTokens;
		sum.estimatedTokens += row.estimatedTokens;
		for (const [currency, cost] of Object.entries(row.costs)) sum.costs[currency] = (sum.costs[currency] ?? 0) + cost;
	}
	if (sum.cost !== null) sum.cost = sum.costs[sum.currency] ?? 0;
	return sum;
}

/**
 * This month's sum if the days to come are like the last seven whole ones. Null with fewer than three whole days of use: a guess
 * from one day is none. `days` ends with today.
 */
export function forecastMonth(days: { day: string; total: number }[], monthToDate: number): number | null {
	const today = days.at(-1)?.day;
	if (!today) return null;
	const whole = days.slice(0, -1).slice(-7);
	const first = whole.findIndex((one) => one.total > 0);
	const used = first < 0 ? [] : whole.slice(first);
	if (used.length < 3) return null;
	const mean = used.reduce((sum, one) => sum + one.total, 0) / used.length;
	const length = new Date(Date.UTC(Number(today.slice(0, 4)), Number(today.slice(5, 7)), 0)).getUTCDate();
	const left = length - Number(today.slice(8, 10));
	// Today is not over: at least its share so far, at most an ordinary day.
	const restOfToday = Math.max(0, mean - (days.at(-1)?.total ?? 0));
	return monthToDate + restOfToday + mean * left;
}

/** 0 to 1 of a limit; more than full is full. */
export function part(value: number, limit: number | null): number {
	return limit === null || limit <= 0 ? 0 : Math.min(1, Math.max(0, value / limit));
}

/** A sensible first offer for a raise: a quarter of the limit, in round numbers. */
export function suggestedRaise(limitTokens: number): number {
	const quarter = limitTokens / 4;
	if (quarter < 1000) return 1000;
	const unit = 10 ** Math.floor(Math.log10(quarter));
	return Math.ceil(quarter / unit) * unit;
}

/** Whether a limit is used so far that people should hear of it outside of the console. */
export function usedPercent(fuse: { usedTokens: number; limitTokens: number | null; usedCost: number; limitCost: number | null }): number {
	return Math.round(Math.max(part(fuse.usedTokens, fuse.limitTokens), part(fuse.usedCost, fuse.limitCost)) * 100);
}
