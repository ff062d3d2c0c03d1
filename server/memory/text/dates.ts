/** Dates inside texts and of memories, as marks that both sides of a search share. Pure. */

const monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const monthPattern =
	"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
const two = (value: number | string): string => String(value).padStart(2, "0");

const iso = /(?<!\d)(\d{4})\s?[-/.年]\s?(\d{1,2})(?:\s?[-/.月]\s?(\d{1,2})\s?[日号]?|\s?月)?(?!\d)/g;
const hanDay = /(?<!\d)(\d{1,2})\s?月(?:\s?(\d{1,2})\s?[日号]?)?/g;
const hanYear = /(?<!\d)((?:19|20)\d{2})\s?年?(?!\d)/g;
const monthDay = new RegExp(`\\b${monthPattern}\\.?\\s+(\\d{1,2})(?:st|nd|rd|th)?\\b(?!\\d)`, "g");
const dayMonth = new RegExp(`\\b(\\d{1,2})(?:st|nd|rd|th)?\\s+(?:of\\s+)?${monthPattern}\\b`, "g");
const monthAlone = new RegExp(`\\b${monthPattern}\\b`, "g");

const hanDigits = "零一二三四五六七八九";

/** Chinese numerals before 年, 月, 日, 号 as digits: 十一月九号 becomes 11月9号. */
export function digitsInDates(text: string): string {
	return text.replace(/[〇零一二三四五六七八九十]{1,4}(?=[年月日号])/g, (found) => {
		if (found.length === 4 && !found.includes("十")) return [...found].map((one) => Math.max(0, hanDigits.indexOf(one))).join("");
		const [tens, ones] = found.includes("十") ? found.split("十") : [null, found];
		const one = ones === "" ? 0 : hanDigits.indexOf(ones as string);
		const ten = tens === null ? 0 : tens === "" ? 1 : hanDigits.indexOf(tens as string);
		return one < 0 || ten < 0 ? found : String(ten * 10 + one);
	});
}

/** Marks of the dates a (folded) text names: `xd0512` a day, `xm05` a month, `xy2026` a year. */
export function dateMarks(given: string): string[] {
	const text = /[一二三四五六七八九十]\s?[年月日号]/.test(given) ? digitsInDates(given) : given;
	if (!/\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec/.test(text)) return [];
	const marks = new Set<string>();
	const day = (month: number, date: number) => {
		if (month < 1 || month > 12) return;
		marks.add(`xm${two(month)}`);
		if (date >= 1 && date <= 31) marks.add(`xd${two(month)}${two(date)}`);
	};
	for (const found of text.matchAll(iso)) {
		day(Number(found[2]), Number(found[3] ?? 0));
		marks.add(`xy${found[1]}`);
	}
	for (const found of text.matchAll(hanDay)) day(Number(found[1]), Number(found[2] ?? 0));
	for (const found of text.matchAll(hanYear)) marks.add(`xy${found[1]}`);
	const month = (name: string) => monthNames.indexOf(name.slice(0, 3)) + 1;
	for (const found of text.matchAll(monthDay)) day(month(found[1] as string), Number(found[2]));
	for (const found of text.matchAll(dayMonth)) day(month(found[2] as string), Number(found[1]));
	for (const found of text.matchAll(monthAlone)) {
		// "may" and "mar" are usually not months; they count as one only beside a number, which the patterns above have seen.
		if (found[1] !== "may" && found[1] !== "mar") day(month(found[1] as string), 0);
	}
	return [...marks];
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The calendar day of an instant in a zone, `YYYY-MM-DD`. */
export function dayOf(at: number, timezone: string): string {
	let format = formats.get(timezone);
	if (!format) {
		format = new Intl.DateTimeFormat("en-CA", { timeZone: timezone, year: "numeric", month: "2-digit", day: "2-digit" });
		formats.set(timezone, format);
	}
	return format.format(at);
}

/** Marks of the day on which a memory was made. */
export function madeMarks(at: number, timezone: string): string[] {
	const day = dayOf(at, timezone);
	return [`xa${day.replaceAll("-", "")}`, `xa${day.slice(5, 7)}${day.slice(8, 10)}`, `xam${day.slice(5, 7)}`];
}

const dayMs = 86_400_000;
const relative: [RegExp, number, number][] = [
	[/\btoday\b|今天/, 0, 0],
	[/\byesterday\b|昨天|昨晚/, 1, 1],
	[/前天|day before yesterday/, 2, 2],
	[/\blast week\b|上周|上个?星期/, 3, 13],
];

/** Marks that a question's dates may have on the making day of a memory: `xd0512` asks for `xa0512`, "yesterday" for that day. */
export function askedMarks(text: string, marks: string[], now: number, timezone: string): string[] {
	const asked = marks.filter((mark) => mark.startsWith("xd")).map((mark) => `xa${mark.slice(2)}`);
	if (asked.length === 0) asked.push(...marks.filter((mark) => mark.startsWith("xm")).map((mark) => `xam${mark.slice(2)}`));
	for (const [pattern, from, to] of relative) {
		if (!pattern.test(text)) continue;
		for (let back = from; back <= to; back++) asked.push(`xa${dayOf(now - back * dayMs, timezone).replaceAll("-", "")}`);
		break;
	}
	return asked;
}
