/** The conversation list's order and headings. Pure. */
import type { Conversation } from "../../../../server/http/contract.ts";
import { type DayKey, dayKey } from "../../lib/format.ts";

export interface Group {
	key: string;
	heading: DayKey | { kind: "pinned" };
	conversations: Conversation[];
}

/** Pinned first, then by the viewer's days, newest first. */
export function groupConversations(list: Conversation[], now: Date, locale: string): Group[] {
	const groups: Group[] = [];
	const sorted = list.toSorted((one, other) => Number(other.pinned) - Number(one.pinned) || other.updatedAt.localeCompare(one.updatedAt));
	for (const conversation of sorted) {
		const heading = conversation.pinned ? { kind: "pinned" as const } : dayKey(conversation.updatedAt, now, locale);
		const key = "label" in heading ? heading.label : heading.kind;
		const last = groups.at(-1);
		if (last?.key === key) last.conversations.push(conversation);
		else groups.push({ key, heading, conversations: [conversation] });
	}
	return groups;
}

/** Every word must occur in the title or the last line, in any order, without regard to case and width. */
export function searchConversations(list: Conversation[], query: string): Conversation[] {
	const words = fold(query).split(/\s+/).filter(Boolean);
	if (words.length === 0) return list;
	return list.filter((one) => {
		const text = fold(`${one.title} ${one.preview ?? ""} ${one.channel}`);
		return words.every((word) => text.includes(word));
	});
}

function fold(text: string): string {
	return text.normalize("NFKC").toLowerCase();
}
