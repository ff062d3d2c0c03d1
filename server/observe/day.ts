/** The day in a zone: which day an instant belongs to, and when a day begins. Daylight saving and bad zone names have an answer. */

export interface Calendar {
	/** YYYY-MM-DD of an instant (ms). */
	dayOf(at: number): string;
	/** The first instant of a day (ms). */
	startOf(day: string): number;
	/** The first instant of the day after the one `at` is in: when the fuse resets. */
	nextStart(at: number): number;
	/** The day so many days after (or before) another, by the calendar. */
	shift(day: string, days: number): string;
}

const hourMs = 3_600_000;

export function shiftDay(day: string, days: number): string {
	return new Date(Date.parse(`${day}T00:00:00Z`) + days * 24 * hourMs).toISOString().slice(0, 10);
}

/** `timezone` is asked each time: the setting may change while we run. A name that is no zone counts as UTC. */
export function createCalendar(timezone: () => string): Calendar {
	let zone: string | null = null;
	// Made when first asked: making one takes milliseconds, and a start needs none.
	let format: Intl.DateTimeFormat | null = null;
	/** The day asked for last, with its bounds: nearly every question is about it. */
	let known: { day: string; from: number; to: number } | null = null;

	function refresh(): void {
		const now = timezone();
		if (now === zone) return;
		zone = now;
		known = null;
		try {
			format = formatOf(now);
		} catch {
			format = formatOf("UTC");
		}
	}

	function reckon(at: number): string {
		format ??= formatOf("UTC");
		return format.format(at);
	}

	/** Searched, not reckoned from an offset: where midnight does not exist the day begins later. */
	function search(day: string): number {
		const noon = Date.parse(`${day}T00:00:00Z`);
		let before = noon - 15 * hourMs;
		let from = noon + 15 * hourMs;
		while (from - before > 1) {
			const middle = Math.floor((before + from) / 2);
			if (reckon(middle) >= day) from = middle;
			else before = middle;
		}
		return from;
	}

	function bounds(at: number): { day: string; from: number; to: number } {
		refresh();
		if (known && at >= known.from && at < known.to) return known;
		const day = reckon(at);
		known = { day, from: search(day), to: search(shiftDay(day, 1)) };
		// A zone that skipped a whole day (Apia, 2011) has no such day after: the next instant with another date ends it.
		if (known.to <= at) known = { ...known, to: search(shiftDay(day, 2)) };
		return known;
	}

	return {
		dayOf: (at) => bounds(at).day,
		startOf(day) {
			refresh();
			return known?.day === day ? known.from : search(day);
		},
		nextStart: (at) => bounds(at).to,
		shift: shiftDay,
	};
}

/** Swedish dates are ISO dates. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
	return new Intl.DateTimeFormat("sv-SE", { year: "numeric", month: "2-digit", day: "2-digit", timeZone });
}
