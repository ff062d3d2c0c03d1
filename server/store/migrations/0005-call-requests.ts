import { type Kysely, sql } from "kysely";
import type { Migration } from "./index.ts";

/** What was sent stands in a table of its own: a call's row is written again when the call ends, and its request is long. */
const statements = [
	`create table call_requests (position integer primary key, request text not null)`,
	`insert into call_requests (position, request) select position, request from calls where request <> 'null'`,
	`alter table calls drop column request`,
];

export const migration: Migration = {
	version: 5,
	name: "call-requests",
	async up(db: Kysely<unknown>) {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
