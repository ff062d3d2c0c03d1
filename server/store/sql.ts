/**
 * Plain SQL for the paths that every message takes. Kysely's builder costs more than such a statement's run, and SQLite uses a
 * partial index only where the condition stands in the text as a literal. Everything else uses the builder.
 */
import { CompiledQuery, type Insertable, type Kysely, type Transaction } from "kysely";
import type { Database } from "./schema.ts";

export type Executor = Kysely<Database> | Transaction<Database>;

type Value = string | number | null;

interface Statement {
	all(...values: Value[]): unknown[];
	run(...values: Value[]): { changes: number };
}

/** How statements of an executor may be run without Kysely's queue: SQLite answers in the same moment anyway. */
export interface Direct {
	prepare(text: string): Statement;
	/** True while a transaction of somebody else is open on the connection: then one must queue, or would become part of it. */
	busy(): boolean;
}

const direct = new WeakMap<object, Direct>();

/** From now on statements of `db` are run at once whenever nobody else's transaction is open. */
export function runDirectly(db: Executor, how: Direct): void {
	direct.set(db, how);
}

function directly(db: Executor): Direct | null {
	const how = direct.get(db);
	return how && !how.busy() ? how : null;
}

export async function all<R>(db: Executor, text: string, ...values: Value[]): Promise<R[]> {
	const now = directly(db);
	if (now) return now.prepare(text).all(...values) as R[];
	return (await db.executeQuery(CompiledQuery.raw(text, values))).rows as R[];
}

export async function first<R>(db: Executor, text: string, ...values: Value[]): Promise<R | undefined> {
	return (await all<R>(db, text, ...values))[0];
}

/** Answers how many rows were changed. */
export async function run(db: Executor, text: string, ...values: Value[]): Promise<number> {
	const now = directly(db);
	if (now) return now.prepare(text).run(...values).changes;
	const { numAffectedRows } = await db.executeQuery(CompiledQuery.raw(text, values));
	return Number(numAffectedRows ?? 0n);
}

interface Inserting {
	columns: string[];
	text: string;
}

const inserts = new Map<string, Inserting[]>();

/** The statement for rows of this shape: a table has few, and comparing names costs less than joining them. */
function inserting(table: string, conflict: string, row: object): string {
	const columns = Object.keys(row);
	const key = conflict === "" ? table : `${table} ${conflict}`;
	let known = inserts.get(key);
	if (!known) {
		known = [];
		inserts.set(key, known);
	}
	for (const one of known)
		if (one.columns.length === columns.length && one.columns.every((name, n) => name === columns[n])) return one.text;
	const text = `insert into ${table} (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})${conflict ? ` on conflict ${conflict}` : ""}`;
	known.push({ columns, text });
	return text;
}

/** Inserts one row; `conflict` is what stands after "on conflict". Answers how many rows were made. */
export function insert<T extends keyof Database & string>(
	db: Executor,
	table: T,
	row: Insertable<Database[T]>,
	conflict = "",
): Promise<number> {
	return run(db, inserting(table, conflict, row), ...(Object.values(row) as Value[]));
}

/** `?, ?, ?` for a list of values. */
export const marks = (values: unknown[]) => values.map(() => "?").join(", ");
