/** What the HTTP room, the tools and the command line do with the memory, beyond what a turn needs. */
import type { MemoryKey } from "../store/memory-store.ts";
import type { Recalled } from "./memory.ts";
import type { LineChange } from "./people-files.ts";
import type { EmbeddingStatus } from "./vectors.ts";

export interface Fact {
	id: string;
	text: string;
	source: string;
	/** When it was said last, ms. */
	at: number;
	/** Person id or `group:<id>`. */
	scope: string;
	messageId: string | null;
	expiresAt: number | null;
}

export interface ImportedEntry {
	text: string;
	/** Ms since the epoch. */
	at: number;
	/** Person id or `group:<id>`; default `master`. */
	person?: string;
	source?: string;
}

export interface Forgotten {
	messages: number;
	exchanges: number;
	summaryLines: number;
	diaryLines: number;
	memories: number;
	facts: number;
}

export interface ImportReport {
	taken: { from: string; to: string; items: number }[];
	skipped: { from: string; why: string }[];
}

export interface MemoryAdmin {
	/** Takes up pending work. Call it once, after the store is open; it returns at once. */
	start(): Promise<void>;
	/** A person's search in one memory: best first, at most `limit` of each half (default 10). */
	search(key: MemoryKey, query: string, limit?: number): Promise<{ semantic: Recalled[]; keyword: Recalled[] }>;
	/** Bulk import into vectors and keyword index. The same entry twice is one memory. */
	importEntries(entries: ImportedEntry[]): Promise<{ stored: number }>;
	facts(key: MemoryKey): Promise<Fact[]>;
	/** Facts that were believed before. */
	factHistory(key: MemoryKey): Promise<(Fact & { state: string; supersededBy: string | null })[]>;
	addFact(
		key: MemoryKey,
		fact: { text: string; expiresAt?: number | null; messageId?: string | null },
	): Promise<{ fact: Fact; outcome: "new" | "refreshed" | "superseded" }>;
	/** False when there is no such fact. */
	removeFact(id: string): Promise<boolean>;
	/** Removes it and everything made of it. Null when there is no such thing. `within` keeps a person's call to their own memory. */
	forget(
		what: { messageId: string } | { factId: string } | { entryId: string } | { person: string },
		within?: MemoryKey,
	): Promise<Forgotten | null>;
	/** The conversation goes: its open exchanges and its files go too, what was made of it stays. */
	conversationRemoved(conversationId: string): Promise<void>;
	updatePerson(person: string, change: LineChange, reason: string): Promise<boolean>;
	updateIdentity(change: LineChange, reason: string): Promise<boolean>;
	updateAgentNotes(change: LineChange, reason: string): Promise<boolean>;
	/** What stands about the person in MASTER.md or USER.md. */
	profile(person: string): Promise<string>;
	/** One person's whole memory as files: Markdown and JSON, by path. */
	exportPerson(key: MemoryKey): Promise<Record<string, string>>;
	/** Reads a workspace of another agent (SOUL.md, USER.md, MEMORY.md, memory/YYYY-MM-DD.md) into ours. SOUL.md is never written, only offered. */
	importWorkspace(folder: string): Promise<ImportReport>;
	/** Another embedding model may be in force: what has no vector of it gets one, in the background. */
	embedderChanged(): void;
	/** The `embeddings` of status. */
	status(): Promise<EmbeddingStatus>;
	/** Resolves when no due background work is left (tests, shutdown of a one-off command). */
	settled(): Promise<void>;
}
