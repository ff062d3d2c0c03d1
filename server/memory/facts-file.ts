/** Fact.md as data: sections per person, one fact a line with date and source. Pure. */
import type { FactRow } from "../store/memory-store.ts";
import { oneLine } from "./lines.ts";
import { dayOf } from "./text/dates.ts";

export interface FactLine {
	/** Null for a line that a person wrote. */
	id: string | null;
	owner: string;
	text: string;
	/** `YYYY-MM-DD`, or null. */
	until: string | null;
}

const row = /^\s*[-*+]\s+(.*?)\s*(?:<!--\s*f:([a-z0-9-]+)\s*-->)?\s*$/;
const tail = /\s+\((\d{4}-\d{2}-\d{2})(?:[^()]*?)(?:;\s*until (\d{4}-\d{2}-\d{2}))?\)\s*$/;

/** Facts of the file; lines before the first `## person` heading are the master's. */
export function parseFacts(text: string): FactLine[] {
	let owner = "master";
	return text.split("\n").flatMap((raw) => {
		const heading = /^##\s+(.+?)\s*$/.exec(raw);
		if (heading) {
			owner = heading[1] as string;
			return [];
		}
		const found = row.exec(raw);
		if (!found?.[1]) return [];
		const notes = tail.exec(found[1]);
		const bare = notes ? found[1].slice(0, notes.index) : found[1];
		return [{ id: found[2] ?? null, owner, text: bare.trim(), until: notes?.[2] ?? null }];
	});
}

export function formatFact(
	fact: Pick<FactRow, "id" | "text" | "refreshedAt" | "source" | "messageId" | "expiresAt">,
	timezone: string,
): string {
	const origin = fact.source === "said" && fact.messageId ? `said, ${fact.messageId}` : fact.source;
	// A year of five digits is as good as never, and would not be read back.
	const day = fact.expiresAt === null ? "" : dayOf(fact.expiresAt, timezone);
	const until = /^\d{4}-/.test(day) ? `; until ${day}` : "";
	return `- ${oneLine(fact.text)} (${dayOf(fact.refreshedAt, timezone)}, ${origin}${until}) <!--f:${fact.id}-->`;
}

/** Puts, replaces or (with null) takes out the line of a fact; everything else in the file stays as it is. Null when nothing changes. */
export function withFact(text: string, owner: string, id: string, line: string | null): string | null {
	const rows = text.split("\n");
	const at = rows.findIndex((raw) => row.exec(raw)?.[2] === id);
	if (at >= 0) {
		if (line === rows[at]) return null;
		rows.splice(at, 1, ...(line === null ? [] : [line]));
		return rows.join("\n");
	}
	if (line === null) return null;
	const head = rows.findIndex((raw) => new RegExp(`^##\\s+${owner.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}\\s*$`).test(raw));
	if (head < 0) {
		const begun = text.trimEnd();
		return `${begun === "" ? "# Facts" : begun}\n\n## ${owner}\n\n${line}\n`;
	}
	let end = head + 1;
	for (let next = head + 1; next < rows.length && !/^#{1,2}\s/.test(rows[next] as string); next++)
		if ((rows[next] as string).trim() !== "") end = next + 1;
	rows.splice(end, 0, ...(end === head + 1 ? ["", line] : [line]));
	return rows.join("\n");
}

/** Gives a hand-written line its id, so that it is known from now on. */
export function markFact(text: string, bare: FactLine, line: string): string | null {
	let owner = "master";
	const rows = text.split("\n");
	for (const [at, raw] of rows.entries()) {
		const heading = /^##\s+(.+?)\s*$/.exec(raw);
		if (heading) owner = heading[1] as string;
		const found = row.exec(raw);
		if (!found || found[2] || owner !== bare.owner) continue;
		const notes = tail.exec(found[1] ?? "");
		if ((notes ? (found[1] as string).slice(0, notes.index) : (found[1] ?? "")).trim() !== bare.text) continue;
		rows[at] = line;
		return rows.join("\n");
	}
	return null;
}
