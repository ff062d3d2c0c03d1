/** Tables as Kysely sees them. JSON columns are text; flags are 0 or 1; times are ms since the epoch. */
import type { Generated } from "kysely";

export interface MetaTable {
	key: string;
	value: string;
}

export interface ConversationTable {
	id: string;
	title: string;
	titled: number;
	channel: string;
	account: string;
	/** The platform's id of the place; unique with channel and account. */
	place: string;
	address: string;
	person_id: string;
	group_id: string | null;
	pinned: number;
	model: string | null;
	created_at: number;
	updated_at: number;
	preview: string | null;
	lease_owner: string | null;
	lease_until: number;
}

export interface MessageTable {
	/** Order of arrival: clocks jump, this does not. */
	position: Generated<number>;
	id: string;
	conversation_id: string;
	role: "user" | "assistant" | "system";
	text: string;
	at: number;
	sender: string | null;
	person_id: string | null;
	origin: string;
	model: string | null;
	model_name: string | null;
	turn_id: string | null;
	attachments: string;
	notes: string;
	client_id: string | null;
	usage: string | null;
	outbox_id: string | null;
	superseded: number;
}

export interface TurnTable {
	position: Generated<number>;
	id: string;
	conversation_id: string;
	person_id: string;
	tier: string;
	origin: string;
	state: "queued" | "running" | "done" | "failed" | "stopped";
	rounds: number;
	plan: string;
	model: string | null;
	model_name: string | null;
	usage: string;
	why: string;
	guard: string | null;
	taint: string;
	error: string | null;
	created_at: number;
	started_at: number | null;
	ended_at: number | null;
}

export interface StepTable {
	turn_id: string;
	step: number;
	round: number;
	text: string;
	reasoning: string;
	usage: string;
	model: string;
	model_name: string;
	call_ids: string;
	note: string | null;
	started_at: number;
	ended_at: number;
}

export interface ToolCallTable {
	record_id: string;
	turn_id: string;
	step: number;
	ordinal: number;
	call_id: string;
	name: string;
	arguments: string;
	truncated: number;
	state: "open" | "started" | "done" | "failed" | "skipped" | "interrupted";
	result: string | null;
	taint: string | null;
	attachments: string;
	started_at: number | null;
	ended_at: number | null;
}

export interface InboxTable {
	position: Generated<number>;
	/** Also the id of the message it made. */
	id: string;
	channel: string;
	account: string;
	external_id: string;
	conversation_id: string;
	person_id: string;
	tier: string;
	origin: string;
	priority: number;
	address: string;
	model: string | null;
	limits: string;
	turn_id: string;
	/** Null: not in a turn yet. 0: it began the turn. n: it joined after step n. */
	joined_step: number | null;
	attempts: number;
	state: "waiting" | "claimed" | "done" | "failed";
	created_at: number;
}

export interface OutboxTable {
	position: Generated<number>;
	id: string;
	conversation_id: string | null;
	message_id: string | null;
	turn_id: string | null;
	channel: string;
	account: string;
	place: string;
	address: string;
	profile: string;
	text: string;
	attachments: string;
	state: "pending" | "sending" | "sent" | "failed" | "unknown" | "held" | "dropped";
	attempts: number;
	/** 1 once an attempt of unknown outcome was repeated. */
	repeated: number;
	not_before: number;
	platform_ids: string;
	error: string | null;
	created_at: number;
	sent_at: number | null;
}

export interface CallTable {
	position: Generated<number>;
	id: string;
	turn_id: string | null;
	conversation_id: string | null;
	person_id: string | null;
	source: string;
	model: string;
	model_name: string;
	at: number;
	input_tokens: number;
	cached_tokens: number;
	output_tokens: number;
	reasoning_tokens: number;
	estimated: number;
	cost: number | null;
	currency: string;
	ms: number | null;
	first_byte_ms: number | null;
	attempt: number;
	key: string | null;
	state: "open" | "done" | "failed";
	error: string | null;
	response: string | null;
	/** Characters that are kept for this call alone: what it sent, without a head that it shares, and what it was answered. 0 = nothing is kept. */
	bytes: Generated<number>;
	/** Row in `call_heads` with which its request begins; null = its request is kept whole, or not at all. Always null where `bytes` is 0. */
	head: number | null;
}

/** What a call sent, without its head; `position` is its row in `calls`. No row: nothing is kept of it. */
export interface CallRequestTable {
	position: number;
	request: string;
}

/** What the requests of many calls begin with, once; `hash` is of the text. */
export interface CallHeadTable {
	id: Generated<number>;
	hash: string;
	text: string;
}

export interface EventTable {
	seq: number;
	at: number;
	type: string;
	level: number;
	conversation_id: string | null;
	turn_id: string | null;
	body: string;
}

export interface PersonTable {
	id: string;
	name: string;
	tier: string;
	created_at: number;
}

export interface AccountTable {
	channel: string;
	account: string;
	person_id: string;
}

export interface UserTable {
	username: string;
	password_hash: string;
}

export interface SessionTable {
	token_hash: string;
	username: string;
	created_at: number;
	expires_at: number;
	user_agent: string;
}

export interface AssetTable {
	sha256: string;
	name: string;
	mime_type: string;
	bytes: number;
	kind: string;
	/** File name inside the assets folder. */
	file: string;
	created_at: number;
}

/** The core tables. Other rooms of the store add theirs by their own migrations and their own table types. */
export interface Database {
	meta: MetaTable;
	conversations: ConversationTable;
	messages: MessageTable;
	turns: TurnTable;
	steps: StepTable;
	tool_calls: ToolCallTable;
	inbox: InboxTable;
	outbox: OutboxTable;
	calls: CallTable;
	call_requests: CallRequestTable;
	call_heads: CallHeadTable;
	events: EventTable;
	people: PersonTable;
	accounts: AccountTable;
	users: UserTable;
	sessions: SessionTable;
	assets: AssetTable;
}
