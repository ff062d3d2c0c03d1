/** Memories as they are found again later, and the names of their jobs. */
import type { MemoryKey, NewEntry } from "../store/memory-store.ts";
import { shortHash } from "./lines.ts";
import { keyText } from "./scope.ts";

export const entryOf = (
	key: MemoryKey,
	row: { id: string; at: number; source: string; ref: string | null; conversationId: string | null; text: string },
): NewEntry => ({ ...key, ...row, hash: shortHash(row.text) + shortHash(`${row.text}.`) });

/** The key of the job that writes up a day. */
export const dayJob = (key: MemoryKey, date: string): string => `day:${keyText(key)}:${date}`;
