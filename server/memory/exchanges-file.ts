/** Memory.json as data: tolerant of what a person may do to it. Pure. */
import type { Exchange } from "../agent/types.ts";
import { shortHash } from "./lines.ts";

const text = (value: unknown): string =>
	typeof value === "string" ? value.toWellFormed() : value === null || value === undefined ? "" : String(value);

/** The end of the year 9999: what lies behind it, a calendar does not show and a file does not carry. */
const latest = 253_402_300_799_999;

/** The records of the file; null when it is not a list of records at all. Records without an id get one from their content; `at` is 0 where no time can be read. */
export function parseExchanges(value: unknown): Exchange[] | null {
	const list = Array.isArray(value)
		? value
		: Array.isArray((value as { exchanges?: unknown } | null)?.exchanges)
			? (value as { exchanges: unknown[] }).exchanges
			: null;
	if (!list) return null;
	const seen = new Set<string>();
	return list.flatMap((raw: unknown) => {
		if (typeof raw !== "object" || raw === null) return [];
		const record = raw as Record<string, unknown>;
		const said = text(record.said);
		const replied = text(record.replied);
		if (said === "" && replied === "") return [];
		const id = text(record.id) || `hand-${shortHash(`${said}\n${replied}`)}`;
		if (seen.has(id)) return [];
		seen.add(id);
		const given = typeof record.at === "number" ? record.at : Date.parse(text(record.at));
		const exchange: Exchange = {
			id,
			at: given >= 0 && given <= latest ? given : 0,
			channel: text(record.channel),
			from: typeof record.from === "string" ? record.from : null,
			said,
			replied,
		};
		if (typeof record.tools === "string" && record.tools !== "") exchange.tools = record.tools;
		return [exchange];
	});
}

/** As it is written: times readable, one record a block. */
export function formatExchanges(exchanges: Exchange[]): string {
	return `${JSON.stringify(
		exchanges.map((one) => ({
			id: one.id,
			at: new Date(one.at).toISOString(),
			channel: one.channel,
			from: one.from,
			said: one.said,
			replied: one.replied,
			...(one.tools ? { tools: one.tools } : {}),
		})),
		null,
		"\t",
	)}\n`;
}

/** True when both say the same (the file keeps whole milliseconds and no empty fields). */
export const sameExchange = (a: Exchange, b: Exchange): boolean =>
	a.said.toWellFormed() === b.said.toWellFormed() &&
	a.replied.toWellFormed() === b.replied.toWellFormed() &&
	a.from === b.from &&
	a.channel === b.channel &&
	(a.tools ?? "") === (b.tools ?? "") &&
	Math.trunc(a.at) === Math.trunc(b.at);
