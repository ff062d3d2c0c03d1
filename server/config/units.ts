/** Durations and sizes as people write them. Both answer null for what they do not understand. */

const durationUnitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** "10s", "5m", "2h", "40d", "1h30m", or a number of milliseconds -> milliseconds. */
export function parseDuration(value: unknown): number | null {
	if (typeof value === "number") return Number.isFinite(value) && value >= 0 ? value : null;
	if (typeof value !== "string") return null;
	const text = value.trim().toLowerCase();
	if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
	if (!/^(\d+(\.\d+)?\s*(ms|[smhdw])\s*)+$/.test(text)) return null;
	let total = 0;
	for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)\s*(ms|[smhdw])/g))
		total += Number(amount) * (durationUnitMs[unit ?? ""] ?? 0);
	return Math.round(total);
}

/** "128k", "1M", "1.5M" or a plain number -> a whole number. k = 1,000 and M = 1,000,000, as model makers count. */
export function parseSize(value: unknown): number | null {
	if (typeof value === "number") return Number.isFinite(value) && value >= 0 ? Math.round(value) : null;
	if (typeof value !== "string") return null;
	const match = /^(\d+(?:\.\d+)?)\s*([kmg])?$/i.exec(value.trim().replaceAll("_", ""));
	if (!match) return null;
	const factor = { k: 1e3, m: 1e6, g: 1e9 }[(match[2] ?? "").toLowerCase()] ?? 1;
	return Math.round(Number(match[1]) * factor);
}

/** True for the ways to write "off": false, 0, "off", "false", "no", "0", "none", "never". */
export function isOff(value: unknown): boolean {
	if (value === false || value === 0) return true;
	return typeof value === "string" && /^(off|false|no|none|never|0|0(ms|[smhd]))$/i.test(value.trim());
}
