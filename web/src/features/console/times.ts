/** Times in the configured zone. Pure. */

function inZone(options: Intl.DateTimeFormatOptions, locale: string, zone: string): Intl.DateTimeFormat {
	try {
		return new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
	} catch {
		return new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" });
	}
}

/** 07:05 in a zone. */
export function zoneClock(iso: string, locale: string, zone: string): string {
	return inZone({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, locale, zone).format(new Date(iso));
}

/** 14:02:11 on the viewer's clock. */
export function exactTime(iso: string, locale: string): string {
	return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }).format(new Date(iso));
}

/** The time of today, else the day with it. */
export function recordTime(iso: string, now: Date, locale: string): string {
	const at = new Date(iso);
	if (at.toDateString() === now.toDateString()) return exactTime(iso, locale);
	return new Intl.DateTimeFormat(locale, {
		month: "2-digit",
		day: "2-digit",
		hour: "2-digit",
		minute: "2-digit",
		hourCycle: "h23",
	}).format(at);
}

/** Nov 18, of a day like 2026-11-18. */
export function dayLabel(day: string, locale: string): string {
	return new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
}

/** Puts the instants in a sentence of the daemon's on the reader's clock. */
export function withZoneTimes(text: string, locale: string, zone: string): string {
	return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (iso) =>
		Number.isNaN(Date.parse(iso))
			? iso
			: inZone({ month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" }, locale, zone).format(
					new Date(iso),
				),
	);
}

/** A length of time in the unit that says most. */
export function spanOfTime(ms: number): { unit: "minutes" | "hours" | "days"; count: number } {
	const minutes = Math.max(0, Math.floor(ms / 60_000));
	if (minutes < 120) return { unit: "minutes", count: minutes };
	return minutes < 48 * 60 ? { unit: "hours", count: Math.floor(minutes / 60) } : { unit: "days", count: Math.floor(minutes / 1440) };
}
