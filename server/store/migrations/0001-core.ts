import { type Kysely, sql } from "kysely";
import type { Migration } from "./index.ts";

/** Conversations, messages, turns, inbox, outbox, calls, events, people, log-ins, assets. */
const statements = [
	`create table meta (key text primary key, value text not null) without rowid`,
	`create table conversations (
		id text primary key, title text not null, titled integer not null, channel text not null, account text not null, place text not null,
		address text not null, person_id text not null, group_id text, pinned integer not null default 0, model text,
		created_at integer not null, updated_at integer not null, preview text, lease_owner text, lease_until integer not null default 0)`,
	`create unique index conversations_place on conversations (channel, account, place)`,
	`create index conversations_updated on conversations (pinned, updated_at)`,
	`create table messages (
		position integer primary key autoincrement, id text not null unique, conversation_id text not null, role text not null, text text not null,
		at integer not null, sender text, person_id text, origin text not null, model text, model_name text, turn_id text,
		attachments text not null, notes text not null, client_id text, usage text, outbox_id text, superseded integer not null default 0)`,
	`create index messages_conversation on messages (conversation_id, position)`,
	`create index messages_turn on messages (turn_id)`,
	`create index messages_answers on messages (conversation_id, position) where role = 'assistant' and superseded = 0 and turn_id is not null`,
	`create table turns (
		position integer primary key autoincrement, id text not null unique, conversation_id text not null, person_id text not null, tier text not null,
		origin text not null, state text not null, rounds integer not null default 0, plan text not null default '[]', model text, model_name text,
		usage text not null, why text not null default '{}', guard text, taint text not null default '[]', error text,
		created_at integer not null, started_at integer, ended_at integer)`,
	`create index turns_conversation on turns (conversation_id, position)`,
	`create index turns_open on turns (conversation_id, state) where state in ('queued', 'running')`,
	`create table steps (
		turn_id text not null, step integer not null, round integer not null, text text not null, reasoning text not null, usage text not null,
		model text not null, model_name text not null, call_ids text not null, note text, started_at integer not null, ended_at integer not null,
		primary key (turn_id, step)) without rowid`,
	`create table tool_calls (
		record_id text primary key, turn_id text not null, step integer not null, ordinal integer not null, call_id text not null, name text not null,
		arguments text not null, truncated integer not null default 0, state text not null, result text, taint text,
		attachments text not null default '[]', started_at integer, ended_at integer)`,
	`create index tool_calls_turn on tool_calls (turn_id, step, ordinal)`,
	`create table inbox (
		position integer primary key autoincrement, id text not null unique, channel text not null, account text not null, external_id text not null,
		conversation_id text not null, person_id text not null, tier text not null, origin text not null, priority integer not null, address text not null,
		model text, limits text not null, turn_id text not null, joined_step integer, attempts integer not null default 0, state text not null,
		created_at integer not null)`,
	`create unique index inbox_external on inbox (channel, account, external_id)`,
	`create index inbox_waiting on inbox (priority, position) where state = 'waiting'`,
	`create index inbox_turn on inbox (turn_id)`,
	`create index inbox_conversation on inbox (conversation_id)`,
	`create index inbox_conversation_waiting on inbox (conversation_id, position) where state = 'waiting'`,
	`create table outbox (
		position integer primary key autoincrement, id text not null unique, conversation_id text, message_id text, turn_id text, channel text not null,
		account text not null, place text not null, address text not null, profile text not null, text text not null, attachments text not null,
		state text not null, attempts integer not null default 0, repeated integer not null default 0, not_before integer not null default 0,
		platform_ids text not null default '[]', error text, created_at integer not null, sent_at integer)`,
	`create index outbox_lane on outbox (channel, account, position) where state in ('pending', 'sending')`,
	`create index outbox_place on outbox (channel, account, place, position) where state in ('pending', 'sending')`,
	`create index outbox_attention on outbox (state, position) where state not in ('sent', 'pending', 'sending')`,
	`create index outbox_conversation on outbox (conversation_id)`,
	`create table calls (
		position integer primary key autoincrement, id text not null unique, turn_id text, conversation_id text, person_id text, source text not null,
		model text not null, model_name text not null, at integer not null, input_tokens integer not null default 0, cached_tokens integer not null default 0,
		output_tokens integer not null default 0, reasoning_tokens integer not null default 0, estimated integer not null default 0, cost real,
		currency text not null default 'USD', ms integer, first_byte_ms integer, attempt integer not null, key text, state text not null, error text,
		request text not null, response text)`,
	`create index calls_turn on calls (turn_id)`,
	`create index calls_at on calls (at)`,
	`create table events (seq integer primary key, at integer not null, type text not null, level integer not null, conversation_id text, turn_id text, body text not null)`,
	`create table people (id text primary key, name text not null, tier text not null, created_at integer not null)`,
	`create table accounts (channel text not null, account text not null, person_id text not null, primary key (channel, account)) without rowid`,
	`create index accounts_person on accounts (person_id)`,
	`create table users (username text primary key, password_hash text not null) without rowid`,
	`create table sessions (token_hash text primary key, username text not null, created_at integer not null, expires_at integer not null, user_agent text not null) without rowid`,
	`create table assets (sha256 text primary key, name text not null, mime_type text not null, bytes integer not null, kind text not null, file text not null, created_at integer not null) without rowid`,
];

export const migration: Migration = {
	version: 1,
	name: "core",
	async up(db: Kysely<unknown>) {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
