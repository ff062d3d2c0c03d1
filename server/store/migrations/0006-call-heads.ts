import { type Kysely, sql } from "kysely";
import type { Migration } from "./index.ts";

/**
 * What calls of one kind all begin with is kept once. A call names its head in its own row, which is written at both ends of the call
 * anyway; the index that retention reads holds it too, so that heads nobody names are found without reading what calls were answered.
 */
const statements = [
	`create table call_heads (id integer primary key, hash text not null unique, text text not null)`,
	`alter table calls add column head integer`,
	`drop index calls_bodies`,
	`create index calls_bodies on calls (at, bytes, head) where bytes > 0`,
];

export const migration: Migration = {
	version: 6,
	name: "call-heads",
	async up(db: Kysely<unknown>) {
		for (const statement of statements) await sql.raw(statement).execute(db);
	},
};
