/** What the memory keeps in the database, as types. Every call that reads memories names owner and audience. */
import type { Exchange } from "../agent/types.ts";

export type Audience = "private" | "group";

/** The key of every memory row: whose it is, and among whom it was said. */
export interface MemoryKey {
	owner: string;
	audience: Audience;
}

/** `new`: not in Memory.json, or not yet. `filed`: written there. `summed`: compressed. `gone`: removed by hand or forgotten. */
export type ExchangeState = "new" | "filed" | "summed" | "gone";

export interface ExchangeRow extends MemoryKey {
	position: number;
	conversationId: string;
	exchange: Exchange;
	state: ExchangeState;
	/** The summary line it went into. */
	lineId: string | null;
}

/** `summary`: an archived summary line. `exchange`: what was said, once it left the window. `fact`, `import`, or the importer's own word. */
export interface EntryRow extends MemoryKey {
	position: number;
	id: string;
	at: number;
	source: string;
	/** Ids it came from (exchange, line, fact, message). */
	ref: string | null;
	conversationId: string | null;
	text: string;
	used: number;
	usedAt: number | null;
}

export interface NewEntry extends MemoryKey {
	id: string;
	at: number;
	source: string;
	ref: string | null;
	conversationId: string | null;
	text: string;
	hash: string;
}

export type FactState = "active" | "superseded" | "gone" | "expired";

export interface FactRow extends MemoryKey {
	id: string;
	text: string;
	norm: string;
	/** `said`, `api`, `file` or `import`. */
	source: string;
	messageId: string | null;
	conversationId: string | null;
	at: number;
	refreshedAt: number;
	expiresAt: number | null;
	state: FactState;
	supersededBy: string | null;
}

export type JobKind = "compress" | "archive" | "day" | "fact" | "forget";

export interface JobRow extends MemoryKey {
	position: number;
	key: string;
	kind: JobKind;
	conversationId: string | null;
	payload: unknown;
	/** What was worked out before files are changed; a restart goes on from it. */
	result: unknown;
	attempts: number;
	createdAt: number;
}

export interface NewJob extends MemoryKey {
	key: string;
	kind: JobKind;
	conversationId: string | null;
	payload: unknown;
	notBefore: number;
	createdAt: number;
}

export interface PendingVector extends MemoryKey {
	position: number;
	hash: string;
	text: string;
}

export interface MemoryStore {
	/** Where the database file is; the search engine reads it on its own connection. */
	readonly file: string;

	/** False when the exchange was known already, or its turn has been taken back. */
	addExchange(row: MemoryKey & { conversationId: string; exchange: Exchange }): Promise<boolean>;
	/** What is not compressed yet, oldest first. */
	openExchanges(conversationId: string): Promise<ExchangeRow[]>;
	/** Which of these ids were ever kept, in whatever state. */
	knownExchanges(ids: string[]): Promise<Set<string>>;
	exchangesOf(ids: string[]): Promise<ExchangeRow[]>;
	/** Which of these exchanges were taken back in the message log: edited and sent again, or answered anew. */
	supersededExchanges(ids: string[]): Promise<string[]>;
	/** Exchanges that went into a summary line. */
	exchangesOfLine(lineId: string): Promise<ExchangeRow[]>;
	/** With `from` only those that are in this state still. */
	setExchanges(ids: string[], change: { state?: ExchangeState; lineId?: string }, from?: ExchangeState): Promise<void>;
	setExchangeBody(id: string, exchange: Exchange): Promise<void>;
	/** Ids of conversations in which the owner has exchanges. */
	conversationsOf(key: MemoryKey): Promise<string[]>;
	/** Every exchange of the owner, oldest first, for the export. */
	exchangesOfOwner(key: MemoryKey, after: number, limit: number): Promise<ExchangeRow[]>;

	/** What the owner said and heard in this time, oldest first. */
	exchangesBetween(key: MemoryKey, from: number, to: number, limit: number): Promise<ExchangeRow[]>;

	/** Position of a waiting job by its key. */
	jobPosition(key: string): Promise<number | null>;
	/** False when a job of this key exists (waiting or done); with `again` one that is done is done once more. */
	addJob(job: NewJob, again?: boolean): Promise<boolean>;
	/** Waiting compressions of a conversation, oldest first. */
	compressionsOf(conversationId: string): Promise<JobRow[]>;
	/** Takes the job that is due longest of those whose owner has none running, for `leaseMs`. What is to be forgotten is not among them. */
	claimJob(now: number, leaseMs: number): Promise<JobRow | null>;
	/** Takes the owner's next fact job, whatever else of theirs is running. */
	claimFactJob(key: MemoryKey, now: number, leaseMs: number): Promise<JobRow | null>;
	/** Takes what has been to be forgotten longest, whatever else is running. */
	claimForgetJob(now: number, leaseMs: number): Promise<JobRow | null>;
	/** Jobs that are still being done stay taken until then. */
	extendJobs(positions: number[], leaseUntil: number): Promise<void>;
	/** What was worked out from something that is forgotten now. */
	clearJobResult(position: number): Promise<void>;
	setJobResult(position: number, result: unknown): Promise<void>;
	finishJob(position: number): Promise<void>;
	/** Back to waiting, not before `notBefore`. */
	retryJob(position: number, error: string, notBefore: number): Promise<void>;
	/** Back to waiting as if it had not been taken. */
	returnJob(position: number): Promise<void>;
	/** At start: frees leases of processes that are gone; what is to be forgotten is due at once. Answers how many leases. */
	freeJobs(): Promise<number>;
	/** Waiting jobs; `dueAt` is the earliest of them. */
	waitingJobs(key?: MemoryKey): Promise<{ count: number; dueAt: number | null }>;
	/** Done jobs older than this are dropped. */
	pruneJobs(before: number): Promise<void>;

	/** Adds memories; those whose id exists are skipped. Answers how many were new. */
	addEntries(entries: NewEntry[]): Promise<number>;
	entries(key: MemoryKey, ids: string[]): Promise<EntryRow[]>;
	hasEntries(key: MemoryKey): Promise<boolean>;
	countEntries(key: MemoryKey): Promise<number>;
	/** The owner's memories, oldest first, for the export. */
	entriesOf(key: MemoryKey, after: number, limit: number): Promise<EntryRow[]>;
	/** Removes text and vectors of memories with these ids or these refs; a nameless row stays so that the index learns of it. */
	removeEntries(key: MemoryKey, which: { ids?: string[]; refs?: string[] }): Promise<number>;
	/** Counts a use, for the ranking. */
	entriesUsed(key: MemoryKey, ids: string[], at: number): Promise<void>;

	/** Memories without a vector of `model`, oldest first. */
	withoutVector(model: string, limit: number): Promise<PendingVector[]>;
	setVectors(model: string, vectors: { position: number; vector: Float32Array }[]): Promise<void>;
	vectorCounts(model: string): Promise<{ indexed: number; total: number }>;
	cachedVectors(key: MemoryKey, model: string, hashes: string[]): Promise<Map<string, Float32Array>>;
	/** Keeps those of memories that are still there: a vector tells what its text said. */
	cacheVectors(
		key: MemoryKey,
		model: string,
		vectors: { position: number; hash: string; vector: Float32Array }[],
		at: number,
	): Promise<void>;

	addFact(fact: FactRow): Promise<void>;
	fact(key: MemoryKey, id: string): Promise<FactRow | null>;
	/** Whose fact it is, for a call of the master that has only the id. */
	factOwner(id: string): Promise<MemoryKey | null>;
	facts(key: MemoryKey, state?: FactState): Promise<FactRow[]>;
	/** All keys that have facts. */
	factKeys(): Promise<MemoryKey[]>;
	setFact(
		key: MemoryKey,
		id: string,
		change: Partial<Pick<FactRow, "text" | "norm" | "refreshedAt" | "expiresAt" | "state" | "supersededBy" | "messageId">>,
	): Promise<void>;
	removeFact(key: MemoryKey, id: string): Promise<void>;

	/** Blanks messages and what was sent of them. */
	redactMessages(ids: string[]): Promise<void>;
	/** What these messages say; those that are blanked already are left out. */
	messageTexts(ids: string[]): Promise<{ id: string; turnId: string | null; role: "user" | "assistant" | "system"; text: string }[]>;
	/** Whose memory a turn in this conversation belongs to; null when there is no such conversation. */
	ownerOf(conversationId: string, turnId: string | null): Promise<MemoryKey | null>;
	/** Ids of the messages of turns that a person (or `group:<id>`) caused, oldest first. */
	messagesOf(owner: string, limit: number): Promise<string[]>;
	/** The owner's messages in their own places, with the answers, oldest first. */
	messagesIn(
		key: MemoryKey,
		after: number,
		limit: number,
	): Promise<{ position: number; id: string; turnId: string | null; text: string }[]>;
	/** The message with its turn-mates: for `forget` by the id of a message or of its turn. */
	turnOfMessage(id: string): Promise<{ turnId: string | null; messageIds: string[]; conversationId: string } | null>;
	/**
	 * Blanks what is kept beside the messages: everything of the turns `turnIds`, and in all of the owner's places whatever holds one of
	 * `texts` (steps, tool calls, recall, plans, approvals, recorded model calls, events, titles). Answers the record ids of blanked tool calls.
	 */
	redactTraces(key: MemoryKey, texts: string[], turnIds: string[]): Promise<string[]>;
	/** Blanks every recorded model call, event, title and preview of the owner's places: for an owner who is forgotten whole. */
	redactPlaces(key: MemoryKey): Promise<void>;
	/** What was blanked leaves the database's log too, and copies of the database from before a new schema go. False when a reader held it back: then it can be tried again. */
	scrub(): Promise<boolean>;
	/** Turns (of these ids, or all of the owner's) that have not ended or whose answer has not left. */
	unfinishedTurns(key: MemoryKey, ids: string[] | null): Promise<string[]>;
	/** What the plans of these turns say, item by item. */
	plansOf(turnIds: string[]): Promise<{ conversationId: string; item: string }[]>;
	/** The owner's turns in which the tool `forget` was called with one of these words in its arguments. */
	turnsForgetting(key: MemoryKey, words: string[]): Promise<string[]>;
	/** Every call of `remember_fact` in the owner's turns. */
	factCalls(key: MemoryKey): Promise<{ turnId: string; text: string }[]>;
	/** Work of forgetting that is not done, of everybody. */
	forgetJobs(): Promise<JobRow[]>;
	/** Notes what is left of a job. */
	setJobPayload(position: number, payload: unknown): Promise<void>;
	/** Everything of this owner goes: exchanges, memories, vectors, cache, facts, jobs other than forgetting. Answers how many rows. */
	removeOwner(owner: string): Promise<number>;
	/** Every key that has rows. */
	owners(): Promise<MemoryKey[]>;
}
