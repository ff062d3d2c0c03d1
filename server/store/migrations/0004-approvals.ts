import { type Kysely, sql } from "kysely";
import type { Migration } from "./index.ts";

/** Calls that wait for the master's word, and what became of them. */
const statements = [
	`create table approvals (
		position integer primary key autoincrement, id text not null unique, tool text not null, arguments text not null, conversation_id text not null,
		group_id text, turn_id text not null, call_id text not null, person_id text not null, tier text not null, origin text not null,
		tainted integer not null, state text not null, scope text, created_at integer not null, expires_at integer not null, decided_at integer,
		valid_until integer, used_by text, told_turn text)`,
	// The same call asks once, however often it is made.
	`create unique index approvals_pending on approvals (conversation_id, person_id, tool, arguments) where state = 'pending'`,
	`create index approvals_place on approvals (conversation_id, tool, state)`,
	`create index approvals_expiry on approvals (expires_at) where state = 'pending'`,
	`create index approvals_untold on approvals (position) where told_turn is null and state in ('allowed', 'denied')`,
];

export const migration: Migration = {
	version: 4,
	name: "approvals",
	async up(db: Kysely<unknown>) {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
