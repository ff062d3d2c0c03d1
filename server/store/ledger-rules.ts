/** Whether a call fits into the day. Pure: the ledger asks it inside the transaction that stores the reservation. */
import type { DayLimits, DayState, DayUse, Limit, OpenOutcome, Reservation } from "./ledger-store.ts";

/** The day's limits with what was raised. Null = no limit. */
export function roomOf(day: DayUse, limits: DayLimits): { tokens: number | null; cost: number | null } {
	return {
		tokens: limits.tokens === null ? null : limits.tokens + day.raisedTokens,
		cost: limits.cost === null ? null : limits.cost + day.raisedCost,
	};
}

/** A blown fuse holds until a raise, the next day, or a limit that has grown since in the configuration. */
export function isBlown(day: DayUse, limits: DayLimits): boolean {
	if (day.blownAt === null || (day.blownBy !== "tokens" && day.blownBy !== "cost")) return false;
	const limit = roomOf(day, limits)[day.blownBy];
	return limit !== null && limit <= (day.blownLimit ?? limit);
}

interface Gauge {
	limit: Limit;
	most: number | null;
	used: number;
	reserved: number;
	asked: number | null;
}

export function decide(
	day: DayState,
	share: { usedTokens: number; reservedTokens: number } | null,
	reservation: Reservation,
	limits: DayLimits,
): OpenOutcome {
	if (isBlown(day, limits)) return { outcome: "blown", limit: day.blownBy ?? "tokens" };
	const room = roomOf(day, limits);
	const tokens = { used: day.usedTokens, reserved: day.reservedTokens, asked: reservation.tokens };
	const cost = { used: day.usedCost, reserved: day.reservedCost, asked: reservation.cost };
	const gauges: Gauge[] = [
		{
			limit: "share",
			most: share ? limits.shareTokens : null,
			used: share?.usedTokens ?? 0,
			reserved: share?.reservedTokens ?? 0,
			asked: reservation.tokens,
		},
		{ limit: "tokens", most: room.tokens, ...tokens },
		{ limit: "cost", most: room.cost, ...cost },
	];
	if (reservation.background) {
		const part = 1 - limits.reserveForPeople;
		gauges.push(
			{ limit: "people", most: room.tokens === null ? null : room.tokens * part, ...tokens },
			{ limit: "people", most: room.cost === null ? null : room.cost * part, ...cost },
		);
	}
	let waits: Limit | null = null;
	for (const { limit, most, used, reserved, asked } of gauges) {
		// A price that nobody knows cannot be held against a money limit; its tokens still count.
		if (most === null || asked === null) continue;
		if (used + asked > most) return { outcome: "refused", limit };
		if (used + reserved + asked > most) waits ??= limit;
	}
	return waits === null ? { outcome: "open" } : { outcome: "wait", limit: waits };
}
