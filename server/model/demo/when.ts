/** Times in plain sentences: "in 2 minutes", "every day at 9", "明天下午3点", "半小时后". */

export interface When {
	/** The arguments of set_alarm that say it. */
	args: { in?: string; at?: string; every?: string; cron?: string };
	/** The part of the sentence that said it. */
	said: string;
}

const DIGITS: Record<string, number> = { 一: 1, 二: 2, 两: 2, 三: 3, 四: 4, 五: 5, 六: 6, 七: 7, 八: 8, 九: 9, 十: 10, 半: 0.5 };
const WORDS: Record<string, number> = {
	a: 1,
	an: 1,
	one: 1,
	two: 2,
	three: 3,
	four: 4,
	five: 5,
	six: 6,
	seven: 7,
	eight: 8,
	nine: 9,
	ten: 10,
	half: 0.5,
};
const N = "(\\d+(?:\\.\\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|half an?)";
const HAN = "([0-9]+(?:\\.[0-9]+)?|[一二两三四五六七八九十半]+)";

function number(text: string): number {
	const plain = text.toLowerCase().replace(/^half.*/, "half");
	if (/^\d/.test(plain)) return Number(plain);
	if (plain in WORDS) return WORDS[plain] as number;
	const [tens, ones] = text.split("十");
	if (ones === undefined) return DIGITS[text] ?? 1;
	return (tens ? (DIGITS[tens] ?? 1) : 1) * 10 + (ones ? (DIGITS[ones] ?? 0) : 0);
}

const SECONDS: [RegExp, number][] = [
	[/^s|^秒/i, 1],
	[/^mi|^m$|^分/i, 60],
	[/^h|小时|钟头/i, 3_600],
	[/^d|^天/i, 86_400],
	[/^w|周|星期/i, 604_800],
];

/** `90` seconds as "90s", whole minutes, hours and days as such. */
function duration(amount: string, unit: string): string {
	const seconds = Math.max(1, Math.round(number(amount) * (SECONDS.find(([pattern]) => pattern.test(unit))?.[1] ?? 60)));
	for (const [size, letter] of [
		[86_400, "d"],
		[3_600, "h"],
		[60, "m"],
	] as const)
		if (seconds % size === 0) return `${seconds / size}${letter}`;
	return `${seconds}s`;
}

function hour(text: string, half: string | undefined): number {
	const value = number(text);
	if (half && /pm|下午|晚上|傍晚/i.test(half) && value < 12) return value + 12;
	if (half && /中午/.test(half)) return value < 3 ? value + 12 : value;
	return half && /am|凌晨|上午|早/i.test(half) && value === 12 ? 0 : value;
}

const pad = (value: number) => String(value).padStart(2, "0");

/** `date` is the day on which it was said, `time` the time of day (local). */
export function readWhen(text: string, date: string, time: string): When | null {
	let m = new RegExp(
		`\\bevery\\s+(?:${N}\\s*)?(second|minute|hour|day|week|min|hr|sec)s?\\b(?:\\s+at\\s+(\\d{1,2})(?::(\\d\\d))?\\s*(am|pm)?)?|\\bdaily at (\\d{1,2})(?::(\\d\\d))?\\s*(am|pm)?`,
		"i",
	).exec(text);
	if (m) {
		const at = m[3] ?? m[6];
		if (at) return { args: { cron: `${Number(m[4] ?? m[7] ?? 0)} ${hour(at, m[5] ?? m[8])} * * *` }, said: m[0] };
		return { args: { every: duration(m[1] ?? "1", m[2] ?? "day") }, said: m[0] };
	}
	m = new RegExp(
		`每(?:天|日)(早上|上午|中午|下午|晚上)?${HAN}[点:：时]([0-9]{1,2}|半)?分?|每(?:隔)?${HAN}?\\s*个?(秒钟?|分钟|小时|天|周|星期)`,
	).exec(text);
	if (m) {
		if (m[2]) return { args: { cron: `${m[3] === "半" ? 30 : Number(m[3] ?? 0)} ${hour(m[2], m[1])} * * *` }, said: m[0] };
		return { args: { every: duration(m[4] ?? "1", m[5] ?? "天") }, said: m[0] };
	}
	m = new RegExp(`\\b(?:in|after)\\s+${N}\\s*(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?)\\b`, "i").exec(text);
	if (m) return { args: { in: duration(m[1] ?? "1", m[2] ?? "minutes") }, said: m[0] };
	m = new RegExp(`(?:过|在)?${HAN}\\s*个?(秒钟?|分钟?|小时|钟头|天|星期|周)(?:之后|以后|后)`).exec(text);
	if (m) return { args: { in: duration(m[1] ?? "1", m[2] ?? "分") }, said: m[0] };
	m = /\b(?:on\s+)?(\d{4}-\d\d-\d\d)[T ]?(?:at\s+)?(\d\d:\d\d)?/.exec(text);
	if (m) return { args: { at: `${m[1]}T${m[2] ?? "09:00"}` }, said: m[0] };
	m = /\b(?:(today|tomorrow)\s+)?at\s+(\d{1,2})(?::(\d\d))?\s*(am|pm)?\b(?:\s+(today|tomorrow))?/i.exec(text);
	if (m) return { args: { at: moment(date, time, hour(m[2] ?? "9", m[4]), Number(m[3] ?? 0), m[1] ?? m[5] ?? null) }, said: m[0] };
	m = new RegExp(`(今天|明天|后天)?(凌晨|早上|上午|中午|下午|傍晚|晚上)?${HAN}[点:：](半|[0-9]{1,2})?分?`).exec(text);
	if (m)
		return { args: { at: moment(date, time, hour(m[3] ?? "9", m[2]), m[4] === "半" ? 30 : Number(m[4] ?? 0), m[1] ?? null) }, said: m[0] };
	m = /\btomorrow\b|明天/i.exec(text);
	return m ? { args: { at: moment(date, time, 9, 0, "tomorrow") }, said: m[0] } : null;
}

/** A time of day without a day is the next one. */
function moment(date: string, time: string, hours: number, minutes: number, day: string | null): string {
	const clock = `${pad(hours)}:${pad(minutes)}`;
	const later = day === null ? (clock <= time ? 1 : 0) : /tomorrow|明天/i.test(day) ? 1 : /后天/.test(day) ? 2 : 0;
	return `${new Date(Date.parse(`${date}T00:00:00Z`) + later * 86_400_000).toISOString().slice(0, 10)}T${clock}`;
}
