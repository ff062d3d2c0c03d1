import { type Kysely, sql } from "kysely";
import type { Migration } from "./index.ts";

/** Reservations, days, shares, daily totals, token ratios, alerts; and what the ledger adds to the calls. */
const statements = [
	`alter table calls add column bytes integer not null default 0`,
	`alter table calls add column price text`,
	`alter table calls add column error_kind text`,
	`alter table calls add column error_status integer`,
	`create index calls_bodies on calls (at, bytes) where bytes > 0`,
	`create table reservations (
		call_id text primary key, day text not null, share text, background integer not null, tokens integer not null, input_tokens integer not null,
		cost real, at integer not null) without rowid`,
	`create table fuse_days (
		day text primary key, used_tokens integer not null default 0, used_cost real not null default 0, unpriced_tokens integer not null default 0,
		raised_tokens integer not null default 0, raised_cost real not null default 0, blown_at integer, blown_by text, blown_limit real,
		warned text not null default '[]') without rowid`,
	`create table fuse_shares (day text not null, share text not null, tokens integer not null, primary key (day, share)) without rowid`,
	`create table fuse_told (day text not null, who text not null, primary key (day, who)) without rowid`,
	`create table fuse_raises (at integer not null, day text not null, tokens integer not null, cost real not null, made_by text not null)`,
	// Two tables, not one with every key: a month of a busy house is then some hundred rows, whatever the number of its conversations.
	`create table usage_days (
		day text not null, source text not null, model text not null, currency text not null,
		calls integer not null, input_tokens integer not null, cached_tokens integer not null, output_tokens integer not null, reasoning_tokens integer not null,
		cost real not null, priced_calls integer not null, unpriced_tokens integer not null, estimated_tokens integer not null,
		primary key (day, source, model, currency)) without rowid`,
	`create table usage_conversations (
		day text not null, conversation_id text not null, currency text not null,
		calls integer not null, input_tokens integer not null, cached_tokens integer not null, output_tokens integer not null, reasoning_tokens integer not null,
		cost real not null, priced_calls integer not null, unpriced_tokens integer not null, estimated_tokens integer not null,
		primary key (day, conversation_id, currency)) without rowid`,
	`create table token_ratios (model text primary key, ratio real not null, high real not null, samples integer not null) without rowid`,
	`create table alerts (
		position integer primary key autoincrement, id text not null unique, kind text not null, incident text not null, severity text not null, state text not null,
		message_en text not null, message_zh text not null, conversation_id text, turn_id text, opened_at integer not null, last_at integer not null,
		resolved_at integer, acked_at integer, count integer not null default 1)`,
	`create unique index alerts_open on alerts (kind, incident) where state = 'open'`,
];

export const migration: Migration = {
	version: 3,
	name: "ledger",
	async up(db: Kysely<unknown>) {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
