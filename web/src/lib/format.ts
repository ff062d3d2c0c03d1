/** Numbers, times and sizes as people read them. All pure; `locale` is "zh-CN" or "en". */
import type { Usage } from "../../../server/http/contract.ts";

/** A name inside a sentence: Chinese text sets Latin apart with spaces and nothing else. */
export function nameInText(name: string, locale: string): string {
	return locale.startsWith("zh") && !/[\u3400-\u9fff]/.test(name) ? ` ${name} ` : name;
}

/** 950, 18.4k, 418k, 2M: at most three significant digits, no trailing zero. */
export function shortCount(count: number): string {
	if (count < 1000) return String(Math.round(count));
	const [value, unit] = count < 999_500 ? [count / 1000, "k"] : [count / 1_000_000, "M"];
	const text = value < 100 ? value.toFixed(1) : value.toFixed(0);
	return `${text.replace(/\.0$/, "")}${unit}`;
}

export function fullCount(count: number, locale: string): string {
	return new Intl.NumberFormat(locale).format(Math.round(count));
}

/** Money with enough digits to be not zero: $0.0006, $0.21, ¥12.40. */
export function money(cost: number, currency: string, locale: string): string {
	const digits = cost === 0 || cost >= 0.1 ? 2 : cost >= 0.001 ? 3 : 4;
	try {
		return new Intl.NumberFormat(locale, {
			style: "currency",
			currency,
			currencyDisplay: "narrowSymbol",
			minimumFractionDigits: digits,
			maximumFractionDigits: cost > 0 && cost < 0.0001 ? 6 : digits,
		}).format(cost);
	} catch {
		return `${cost.toFixed(digits)} ${currency}`;
	}
}

/** Tokens of an answer in and out together; a guess carries the sign for "about". */
export function usageTokens(usage: Usage, locale: string): string {
	return `${usage.estimated ? "≈ " : ""}${fullCount(usage.inputTokens + usage.outputTokens, locale)}`;
}

export function clockTime(iso: string, locale: string): string {
	return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(new Date(iso));
}

export function fullTime(iso: string, locale: string): string {
	return new Intl.DateTimeFormat(locale, { dateStyle: "long", timeStyle: "medium", hourCycle: "h23" }).format(new Date(iso));
}

/** 12 ms, 0.4 s, 1 m 05 s. */
export function duration(ms: number): string {
	if (ms < 100) return `${Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
	const seconds = Math.round(ms / 1000);
	return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
}

export function fileSize(bytes: number): string {
	if (bytes < 1000) return `${bytes} B`;
	if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(1)} kB`;
	return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Midnight of the viewer's own day. */
function dayStart(at: Date): number {
	return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

export type DayKey = { kind: "today" | "yesterday" } | { kind: "day" | "month"; label: string };

/** The heading a moment stands under in a list: today, yesterday, one of the last seven days by name, then its month. */
export function dayKey(iso: string, now: Date, locale: string): DayKey {
	const at = new Date(iso);
	// Rounded, because a day with a clock change has 23 or 25 hours.
	const days = Math.round((dayStart(now) - dayStart(at)) / 86_400_000);
	if (days <= 0) return { kind: "today" };
	if (days === 1) return { kind: "yesterday" };
	if (days < 7)
		return { kind: "day", label: new Intl.DateTimeFormat(locale, { weekday: "long", month: "short", day: "numeric" }).format(at) };
	return { kind: "month", label: new Intl.DateTimeFormat(locale, { year: "numeric", month: "long" }).format(at) };
}
