/** What the search engine is asked and answers. Plain data: it travels between processes. */
import type { MemoryKey } from "./memory-store.ts";

export interface SearchRequest {
	key: MemoryKey;
	text: string;
	/** The text as the embedding model sees it; "lexical": the engine makes the built-in vector itself; null searches by wording alone. */
	vector: Float32Array | "lexical" | null;
	model: string;
	now: number;
	/** How many of each half; the halves bring different memories. */
	semantic: number;
	keyword: number;
	/** When larger: each half goes on to this many, now also with what the other half has brought. */
	total: number;
	/** Give the nearest even when they are not close (a person's search, not the automatic recall). */
	loose: boolean;
}

export interface SearchHit {
	position: number;
	id: string;
	text: string;
	at: number;
	source: string;
	ref: string | null;
	conversationId: string | null;
	/** From 0 to 1. */
	score: number;
}

export interface SearchAnswer {
	semantic: SearchHit[];
	keyword: SearchHit[];
	/** How far the index is behind the database, in changed rows. */
	behind: number;
}

export interface EngineOptions {
	/** The database with the memories: opened read-only. */
	mainFile: string;
	/** The engine's own file: derived data, thrown away and made again when it is damaged or of another version. */
	indexFile: string;
	timezone: string;
	/** Begin a new index whatever is there. */
	fresh?: boolean;
}

export interface SyncState {
	behind: number;
	/** Set once when the index had to be made again. */
	rebuilt: string | null;
}

/** The search engine: in a child process, or in this one for tests and where no child can be started. */
export interface Engine {
	search(request: SearchRequest): Promise<SearchAnswer>;
	/** Takes up to `limit` changed rows into the index. */
	sync(model: string, limit: number): Promise<SyncState>;
	close(): Promise<void>;
}
