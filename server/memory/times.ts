/** Times as the memory's files show them. Pure. */
import { dayOf } from "./text/dates.ts";

const clocks = new Map<string, Intl.DateTimeFormat>();

/** `YYYY-MM-DD HH:MM` in the zone. */
export function minuteOf(at: number, timezone: string): string {
	let format = clocks.get(timezone);
	if (!format) {
		format = new Intl.DateTimeFormat("en-GB", { timeZone: timezone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
		clocks.set(timezone, format);
	}
	return `${dayOf(at, timezone)} ${format.format(at)}`;
}

/** The instant of a zone's wall time `YYYY-MM-DD HH:MM` (or a day's begin); null for what is no time. */
export function instantOf(when: string, timezone: string): number | null {
	const guess = Date.parse(`${when.slice(0, 10)}T${when.length >= 16 ? when.slice(11, 16) : "00:00"}:00Z`);
	if (Number.isNaN(guess)) return null;
	// Two rounds settle the zone's offset, also beside a change of the clocks.
	let at = guess;
	for (let round = 0; round < 2; round++) at += guess - Date.parse(`${minuteOf(at, timezone).replace(" ", "T")}:00Z`);
	return at;
}

/** When the zone's day that holds `at` ends. */
export function endOfDay(at: number, timezone: string): number {
	const start = instantOf(dayOf(at, timezone), timezone) ?? at;
	// 30 hours on is always in the next day, whatever the clocks do.
	return instantOf(dayOf(start + 30 * 3_600_000, timezone), timezone) ?? start + 86_400_000;
}
