/**
 * The store's contract. Asynchronous, and spoken in claims with leases, because PostgreSQL comes later. SQL lives in this
 * folder and nowhere else. Times are ms since the epoch; ids are UUIDv7 (sortable, made anywhere).
 */
import type { Address, Attachment } from "../../channels/channel.ts";
import type { CallRecord, Origin, PlanItem, StepRecord, Tier, TurnMessage } from "../agent/types.ts";
import type { CallEnd, CallStart, Usage } from "../model/model.ts";
import type { ToolEffect } from "../tools/tool.ts";

export interface ConversationRow {
	id: string;
	title: string;
	/** False while the title was made by us; a person's rename makes it true. */
	titled: boolean;
	channel: string;
	/** Reply address of the place; for web: itself. */
	address: Address;
	/** Owner's person id (`master` for web). */
	personId: string;
	groupId: string | null;
	pinned: boolean;
	model: string | null;
	createdAt: number;
	updatedAt: number;
	preview: string | null;
}

export type MessageRole = "user" | "assistant" | "system";

export interface MessageRow {
	id: string;
	conversationId: string;
	role: MessageRole;
	text: string;
	at: number;
	/** Display name of the sender; null for the master and for the agent. */
	from: string | null;
	personId: string | null;
	origin: Origin;
	model: string | null;
	modelName: string | null;
	turnId: string | null;
	attachments: Attachment[];
	notes: string[];
	clientId: string | null;
	usage: (Usage & { calls: number }) | null;
	/** Outbox row that carries it; null for messages from people. */
	outboxId: string | null;
	delivery: OutboxState | null;
	superseded: boolean;
}

export type TurnStateValue = "queued" | "running" | "done" | "failed" | "stopped";

export interface TurnRow {
	id: string;
	conversationId: string;
	personId: string;
	tier: Tier;
	origin: Origin;
	state: TurnStateValue;
	rounds: number;
	plan: PlanItem[];
	model: string | null;
	modelName: string | null;
	usage: Usage & { calls: number };
	/** What the prompt held and what recall brought; written once by the gateway. */
	why: Record<string, unknown>;
	guard: string | null;
	taint: { source: string; step: number }[];
	error: string | null;
	createdAt: number;
	startedAt: number | null;
	endedAt: number | null;
}

export interface InboxRow {
	/** Also the id of the user message it made. */
	id: string;
	channel: string;
	account: string;
	externalId: string;
	conversationId: string;
	personId: string;
	tier: Tier;
	origin: Origin;
	/** 0 = a person, 1 = background. */
	priority: number;
	address: Address;
	model: string | null;
	limits: { maxSteps?: number; maxRounds?: number };
	turnId: string;
	attempts: number;
	state: "waiting" | "claimed" | "done" | "failed";
	message: TurnMessage;
	createdAt: number;
}

export type OutboxState = "pending" | "sending" | "sent" | "failed" | "unknown" | "held" | "dropped";

export interface OutboxRow {
	id: string;
	conversationId: string | null;
	messageId: string | null;
	turnId: string | null;
	channel: string;
	account: string;
	address: Address;
	profile: string;
	text: string;
	attachments: Attachment[];
	state: OutboxState;
	attempts: number;
	/** Not before this time (ms); grows with back-off. */
	notBefore: number;
	platformIds: string[];
	error: string | null;
	createdAt: number;
	sentAt: number | null;
}

/** A message on its way out. With `message`, it also becomes a message row of that conversation. */
export interface NewOutbox {
	id: string;
	conversationId: string | null;
	turnId: string | null;
	address: Address;
	profile: string;
	text: string;
	attachments: Attachment[];
	at: number;
	/** `turnId`: the turn that this message answers; null for a message sent beside the turn. */
	message: {
		id: string;
		turnId: string | null;
		role: "assistant" | "system";
		model: string | null;
		modelName: string | null;
		usage: (Usage & { calls: number }) | null;
	} | null;
}

export interface NewInbound {
	id: string;
	channel: string;
	account: string;
	externalId: string;
	conversationId: string;
	personId: string;
	tier: Tier;
	origin: Origin;
	priority: number;
	address: Address;
	model: string | null;
	limits: { maxSteps?: number; maxRounds?: number };
	message: TurnMessage;
	clientId: string | null;
	/** Display name kept with the message row. */
	from: string | null;
	/** This message and everything after it in the conversation are superseded in the same transaction. */
	replaces: string | null;
	/** Turn id to use when no turn is waiting or running that this message belongs to. */
	newTurnId: string;
	at: number;
}

/** `duplicate`: the (channel, account, externalId) was stored before; ids are those of the first. */
export interface Accepted {
	messageId: string;
	turnId: string;
	duplicate: boolean;
	supersededIds: string[];
	message: MessageRow;
	/** The turn that began with it, when it was asked to begin and its conversation was free. */
	claim: Claim | null;
}

/** A conversation claimed for one turn: its rows are of one person and belong to one turn. */
export interface Claim {
	turn: TurnRow;
	rows: InboxRow[];
	/** Stored steps when the turn goes on after a crash. */
	steps: StepRecord[];
	conversation: ConversationRow;
	/** Set when these rows were tried twice already: the turn must be ended with a sentence instead of being run. */
	poisoned: boolean;
}

export interface TurnEnd {
	state: "done" | "failed" | "stopped";
	rounds: number;
	usage: Usage & { calls: number };
	model: string | null;
	modelName: string | null;
	guard: string | null;
	taint: { source: string; step: number }[];
	error: string | null;
	at: number;
	/** Replaces what `setWhy` wrote; left out: it stays. */
	why?: Record<string, unknown>;
	/** The turn's last step, when nothing has stored it yet. */
	step?: StepRecord | null;
	/** The reply and its way out; null = intended silence. */
	reply: NewOutbox | null;
	/** The one who ends the turn sends the reply too, unless something else waits for its place. */
	sendsReply?: boolean;
}

export interface ConversationStore {
	create(row: {
		id: string;
		title: string;
		titled: boolean;
		channel: string;
		address: Address;
		personId: string;
		groupId: string | null;
		at: number;
	}): Promise<ConversationRow>;
	get(id: string): Promise<ConversationRow | null>;
	/** The conversation of a channel's place, or null. */
	byAddress(channel: string, account: string, conversation: string): Promise<ConversationRow | null>;
	/** Newest first, pinned before others. `query` searches titles and message texts. */
	list(filter: { query?: string; limit?: number; before?: number }): Promise<(ConversationRow & { busy: "queued" | "running" | null })[]>;
	update(id: string, change: { title?: string; pinned?: boolean; model?: string | null }): Promise<ConversationRow | null>;
	/** Removes the conversation with its messages, turns, steps, inbox and outbox rows. False if it is not there. */
	remove(id: string): Promise<boolean>;
}

export interface MessageStore {
	get(id: string): Promise<MessageRow | null>;
	/** Oldest first; `before` is a message id; superseded ones left out unless asked for. */
	list(conversationId: string, page: { before?: string; limit: number; superseded?: boolean }): Promise<MessageRow[]>;
	/** Finished exchanges for the prompt, oldest first, at most `limit` newest ones; superseded and system messages left out. `count` is how many there are in all. */
	exchanges(conversationId: string, limit: number): Promise<{ exchanges: { user: MessageRow[]; assistant: MessageRow }[]; count: number }>;
	/** Everything said in a turn, in order. */
	ofTurn(turnId: string): Promise<MessageRow[]>;
	/** The reply of a turn, when there is one. */
	replyOf(turnId: string): Promise<MessageRow | null>;
}

export interface InboxStore {
	/**
	 * Stores message, inbox row and turn in one transaction. Unique by (channel, account, externalId). With `start` it also claims, as
	 * `claim` would, when nobody works or waits in the conversation: the turn begins without another look at the store. Throws `ConversationGone`
	 * when there is no such conversation (any more).
	 */
	accept(message: NewInbound, start?: { owner: string; leaseMs: number }): Promise<Accepted>;
	/** Takes the next conversation with waiting rows, people before background, for `leaseMs`. Counts an attempt. Null when nothing waits or every such conversation is leased. */
	claim(options: { owner: string; leaseMs: number; now: number; background: boolean }): Promise<Claim | null>;
	/** Prolongs the lease of a running turn; false if it was lost. */
	extend(turnId: string, owner: string, until: number): Promise<boolean>;
	/** Gives a claimed turn back without counting the attempt (shutdown). */
	release(turnId: string): Promise<void>;
	/** Puts a claimed turn aside until a time (the daily fuse): it is given back, and nobody may claim its conversation before. */
	hold(turnId: string, until: number): Promise<void>;
	/** Ends every hold at once. */
	unhold(): Promise<void>;
	/** At start: frees every lease of processes that are gone. Answers how many turns go on. */
	recover(now: number): Promise<number>;
	/** How many rows wait. */
	waiting(): Promise<{ people: number; background: number }>;
	/** The final state of the row of a message: its turn and whether it is finished. */
	outcome(messageId: string): Promise<{ turnId: string; state: InboxRow["state"] } | null>;
	/** True when a message with this external id has been stored. */
	knows(channel: string, account: string, externalId: string): Promise<boolean>;
}

export interface TurnStore {
	get(id: string): Promise<TurnRow | null>;
	list(filter: { conversationId?: string; limit: number; before?: string }): Promise<TurnRow[]>;
	/** The running or queued turns of a conversation. */
	open(conversationId: string): Promise<TurnRow[]>;
	steps(turnId: string): Promise<StepRecord[]>;
	/** Tool calls of several turns, for message lists. */
	calls(turnIds: string[]): Promise<Map<string, (CallRecord & { step: number })[]>>;
	messageIds(turnId: string): Promise<string[]>;
	setWhy(turnId: string, why: Record<string, unknown>): Promise<void>;
	setPlan(turnId: string, plan: PlanItem[]): Promise<void>;
	stepStored(turnId: string, step: StepRecord): Promise<void>;
	stepAmended(turnId: string, step: number, change: { note: string }): Promise<void>;
	callStarted(recordId: string, at: number): Promise<void>;
	/** Result and effects in one transaction; `outbox` are the rows that `send` effects became. A call that has a result already is left as it is (false). */
	callFinished(
		turnId: string,
		recordId: string,
		outcome: {
			state: CallRecord["state"];
			result: string;
			at: number;
			taint?: string;
			attachments: Attachment[];
			effects: ToolEffect[];
			outbox: NewOutbox[];
		},
	): Promise<boolean>;
	/** Moves waiting rows of the same person into the running turn after `step`. */
	takeJoining(turnId: string, step: number, now: number): Promise<TurnMessage[]>;
	/**
	 * The final transaction: last step, reply message, outbox row, inbox rows done, turn ended, lease freed. `sending` is the outbox row
	 * when it is claimed for the caller, as `outbox.claim` would.
	 */
	end(turnId: string, end: TurnEnd): Promise<{ message: MessageRow | null; sending: OutboxRow | null }>;
	/** Ends a turn that was never started (stop while queued). False if it had started. */
	cancelQueued(turnId: string, at: number): Promise<boolean>;
}

export interface OutboxStore {
	/** Takes at most `most` due rows of a channel account, oldest first, one of each place: their order is kept. */
	claim(channel: string, account: string, now: number, most: number): Promise<OutboxRow[]>;
	/** When the next pending row of a lane is due; null if none. */
	nextDue(channel: string, account: string): Promise<number | null>;
	/** Puts a message on its way outside a turn (a notice, an alert). */
	add(row: NewOutbox): Promise<OutboxRow>;
	settle(
		id: string,
		receipt: { state: OutboxState; platformIds?: string[]; error?: string | null; notBefore?: number; at: number; text?: string },
	): Promise<void>;
	/** At start: rows found `sending` become pending once more, marked; the second time `unknown`. */
	recover(now: number): Promise<number>;
	/** Lanes with pending rows. */
	lanes(): Promise<{ channel: string; account: string }[]>;
	list(filter: { state?: OutboxState; limit: number; before?: string }): Promise<OutboxRow[]>;
	get(id: string): Promise<OutboxRow | null>;
	/** A person's decision. Null when the row is in no state for it. */
	decide(id: string, decision: "retry" | "release" | "drop", now: number): Promise<OutboxRow | null>;
}

export interface CallRow {
	id: string;
	turnId: string | null;
	conversationId: string | null;
	personId: string | null;
	source: string;
	model: string;
	modelName: string;
	at: number;
	usage: Usage;
	ms: number | null;
	firstByteMs: number | null;
	attempt: number;
	key: string | null;
	state: "open" | "done" | "failed";
	error: string | null;
}

export interface CallStore {
	/** What the request begins with (`requestHead`) is kept once for all calls that begin alike; who reads a call gets its request whole. */
	open(id: string, start: CallStart): Promise<void>;
	close(id: string, end: CallEnd): Promise<void>;
	get(id: string): Promise<(CallRow & { request: unknown; response: unknown }) | null>;
	list(filter: { turnId?: string; source?: string; limit: number; before?: string }): Promise<CallRow[]>;
}

export interface EventRow {
	seq: number;
	at: number;
	type: string;
	level: "trace" | "debug" | "info" | "warn" | "error";
	conversationId: string | null;
	turnId: string | null;
	body: Record<string, unknown>;
}

export interface EventStore {
	/** A block of sequence numbers that nobody else will get; `from` is the first. */
	reserve(count: number): Promise<{ from: number }>;
	append(rows: EventRow[]): Promise<void>;
	/** Oldest first. */
	list(filter: { after: number; limit: number; type?: string; minLevel?: EventRow["level"] }): Promise<EventRow[]>;
	/** Oldest retained sequence number, 0 when empty. */
	oldest(): Promise<number>;
	/** Messages of the last moments before a crash that no `message` event tells of: their frames were lost with the process. Oldest first. */
	unannounced(): Promise<MessageRow[]>;
}

export interface PersonRow {
	id: string;
	name: string;
	tier: Tier;
	accounts: { channel: string; account: string }[];
}

export interface PeopleStore {
	get(id: string): Promise<PersonRow | null>;
	byAccount(channel: string, account: string): Promise<PersonRow | null>;
	list(): Promise<PersonRow[]>;
	upsert(row: { id: string; name: string; tier: Tier; account?: { channel: string; account: string } }): Promise<PersonRow>;
}

export interface AuthStore {
	user(username: string): Promise<{ username: string; passwordHash: string } | null>;
	/** True when any user exists. */
	hasUser(): Promise<boolean>;
	setUser(username: string, passwordHash: string): Promise<void>;
	/** Only a hash of a session's token is ever stored. */
	createSession(row: { tokenHash: string; username: string; createdAt: number; expiresAt: number; userAgent: string }): Promise<void>;
	session(tokenHash: string, now: number): Promise<{ username: string; expiresAt: number } | null>;
	endSession(tokenHash: string): Promise<void>;
	endSessions(username: string): Promise<void>;
}

export interface AssetStore {
	/** Keeps the bytes under their hash (idempotent) in `data/assets/`. */
	put(data: Uint8Array, info: { name: string; mimeType: string }): Promise<Attachment>;
	get(sha256: string): Promise<Attachment | null>;
	read(sha256: string): Promise<Uint8Array>;
	/** Absolute path of the bytes. */
	path(sha256: string): Promise<string | null>;
}

export interface MetaStore {
	get(key: string): Promise<string | null>;
	set(key: string, value: string): Promise<void>;
	remove(key: string): Promise<void>;
}

export interface Store {
	conversations: ConversationStore;
	messages: MessageStore;
	inbox: InboxStore;
	turns: TurnStore;
	outbox: OutboxStore;
	calls: CallStore;
	events: EventStore;
	people: PeopleStore;
	auth: AuthStore;
	assets: AssetStore;
	meta: MetaStore;
	/** Resolves when everything committed so far has reached the disk (fdatasync of the log, shared by all who wait). */
	durable(): Promise<void>;
	/**
	 * Called while nobody is being answered: does what a commit would have to do later while somebody waits (writing a long log back into
	 * the database: some 60 ms). Costs microseconds when there is nothing to do.
	 */
	idle(): Promise<void>;
	/** One retention pass: bounded, oldest first. */
	prune(now: number, keep: { eventDays: number }): Promise<void>;
	/** Writes a consistent copy of the database to `file` while running. */
	backup(file: string): Promise<void>;
	/** Counts for status, doctor and metrics. */
	health(): Promise<{ ok: boolean; problem: string | null; bytes: number; schema: number }>;
	close(): Promise<void>;
}
