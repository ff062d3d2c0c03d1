import { type Kysely, sql } from "kysely";

/** Exchanges of the short term, memories with their vectors, facts, background work of the memory. Every row names owner and audience. */
const statements = [
	`create table memory_exchanges (
		position integer primary key autoincrement, id text not null unique, conversation_id text not null, owner text not null, audience text not null,
		at integer not null, body text not null, state text not null, line_id text)`,
	`create index memory_exchanges_open on memory_exchanges (conversation_id, position) where state in ('new', 'filed')`,
	`create index memory_exchanges_conversation on memory_exchanges (conversation_id, position)`,
	`create index memory_exchanges_line on memory_exchanges (line_id) where line_id is not null`,
	`create index memory_exchanges_owner on memory_exchanges (owner, audience, at)`,
	`create table memory_entries (
		position integer primary key autoincrement, id text not null unique, owner text not null, audience text not null, at integer not null,
		source text not null, ref text, conversation_id text, text text not null, hash text not null, seq integer not null,
		removed integer not null default 0, used integer not null default 0, used_at integer, vector_model text)`,
	`create unique index memory_entries_seq on memory_entries (seq)`,
	`create index memory_entries_scope on memory_entries (owner, audience, removed)`,
	`create index memory_entries_ref on memory_entries (ref) where ref is not null`,
	`create index memory_entries_vector on memory_entries (removed, vector_model)`,
	`create table memory_vectors (position integer primary key, model text not null, dimension integer not null, vector blob not null)`,
	`create table memory_embedding_cache (
		hash text not null, model text not null, owner text not null, audience text not null, vector blob not null, at integer not null,
		primary key (owner, audience, model, hash)) without rowid`,
	`create index memory_embedding_cache_at on memory_embedding_cache (at)`,
	`create table memory_facts (
		id text primary key, owner text not null, audience text not null, text text not null, norm text not null, source text not null, message_id text,
		conversation_id text, at integer not null, refreshed_at integer not null, expires_at integer, state text not null, superseded_by text)`,
	`create index memory_facts_scope on memory_facts (owner, audience, state)`,
	`create table memory_jobs (
		position integer primary key autoincrement, key text not null unique, kind text not null, owner text not null, audience text not null,
		conversation_id text, payload text not null, result text, state text not null, attempts integer not null default 0,
		not_before integer not null default 0, lease_until integer not null default 0, error text, created_at integer not null)`,
	`create index memory_jobs_waiting on memory_jobs (not_before, position) where state = 'waiting'`,
	`create index memory_jobs_conversation on memory_jobs (conversation_id) where state = 'waiting'`,
];

export const migration = {
	version: 2,
	name: "memory",
	async up(db: Kysely<unknown>): Promise<void> {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
