/** Text for a terminal: nothing that a model or a file wrote may steer it. */

/** Without control characters and escape sequences; line breaks and tabs stay. */
export function plainText(text: string): string {
	return text
		.replace(/\r\n?/g, "\n")
		.replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g, "")
		.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");
}

/** One line of at most `width` characters. */
export function oneLine(text: string, width: number): string {
	const flat = plainText(text).replace(/\s+/g, " ").trim();
	const characters = [...flat];
	return characters.length <= width ? flat : `${characters.slice(0, Math.max(0, width - 1)).join("")}…`;
}

export interface Paint {
	dim(text: string): string;
	bold(text: string): string;
	accent(text: string): string;
	warn(text: string): string;
}

export function createPaint(color: boolean): Paint {
	const wrap = (code: string) => (text: string) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
	return { dim: wrap("2"), bold: wrap("1"), accent: wrap("36"), warn: wrap("33") };
}

export function formatBytes(bytes: number): string {
	const units = ["B", "kB", "MB", "GB", "TB"];
	let value = bytes;
	let unit = 0;
	while (value >= 1000 && unit < units.length - 1) {
		value /= 1000;
		unit += 1;
	}
	return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

export function formatDuration(ms: number): string {
	if (ms < 1000) return `${Math.round(ms)} ms`;
	if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
	return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** "1 fault", "2 faults", "4,565 tokens": for English sentences. */
export function counted(count: number, noun: string): string {
	return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** "2026-12-01 06:49:23" in that time zone. */
export function localTime(atMs: number, timeZone: string): string {
	return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(atMs);
}
