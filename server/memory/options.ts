/** What the memory is handed by the composition root. */
import type { Exchange } from "../agent/types.ts";
import type { Model } from "../model/model.ts";
import type { Engine } from "../store/memory-search.ts";
import type { MemoryStore } from "../store/memory-store.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface MemorySettings {
	exchanges: number;
	compress: number;
	summaryLines: number;
	archive: number;
	recallSemantic: number;
	recallKeyword: number;
}

export const defaultSettings: MemorySettings = {
	exchanges: 8,
	compress: 4,
	summaryLines: 12,
	archive: 4,
	recallSemantic: 2,
	recallKeyword: 2,
};

/** Turns texts into vectors. `model` names it in rows, status and page; a vector of another model is never compared with it. */
export interface Embedder {
	readonly model: string;
	/** One vector a text, in order, all of one size. */
	embed(texts: string[], context: { owner: string; conversationId: string | null }, signal: AbortSignal): Promise<ArrayLike<number>[]>;
	/** Texts of one call. Default 64. */
	readonly batch?: number;
}

export interface MemoryLog {
	info(event: string, data?: Record<string, unknown>): void;
	warn(event: string, data?: Record<string, unknown>): void;
}

export interface MemoryOptions {
	store: MemoryStore;
	workspace: Workspace;
	settings(): MemorySettings;
	timezone(): string;
	clock: { now(): number };
	newId(): string;
	log: MemoryLog;
	/** The model that compresses; null (also from the function) = extractive sentences only, as with the demo model. */
	model(): Pick<Model, "stream"> | null;
	/** The configured embedding model, or null for the built-in lexical vectors. Asked again each time, so a change of the configuration takes effect. */
	embedder(): Embedder | null;
	/** The newest finished exchanges of a conversation from the message log, oldest first: what a crash kept from being remembered is taken from it. */
	recent?(conversationId: string, limit: number): Promise<Exchange[]>;
	/** Where the index is kept; default `data/memory-index.db` of the home. */
	indexFile?: string;
	/** How the search engine is made; default: a child process, started at the first search and ended when idle. */
	engine?: (options: { mainFile: string; indexFile: string; timezone: string }) => Engine;
	/** Quiet time after the last message before background work begins, and the longest it is put off. Default 300 ms and 5 s. */
	quietMs?: number;
	patienceMs?: number;
	/** Somebody waits for an answer in this moment: background work waits as well, as long as that. Default: nobody does. */
	answering?(): boolean;
	/** Put off writing Memory.json, so that quick messages share a write. Default 100 ms, then at most every 2 s, less often when more than twenty conversations talk at once. */
	flushMs?: number;
	/** How long a turn waits for its memories. Default 1,500. */
	recallMs?: number;
	/** Writes what is on its way to tables and log files, so that forgetting finds it there. */
	settle?(): Promise<void>;
	/** Messages were blanked in the log: pages that show them need to know. */
	onRemoved?(messageIds: string[]): void;
	/** Called when a person should know of a damaged file or of vectors being made again. */
	onProblem?(kind: string, message: string): void;
}
