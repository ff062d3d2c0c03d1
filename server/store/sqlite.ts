/** Opening SQLite: settings, statement cache, damage, migrations, and the durable point. */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open as openFile } from "node:fs/promises";
import { dirname } from "node:path";
import SQLite from "better-sqlite3";
import { Kysely, type SqliteDatabase, SqliteDialect, type SqliteStatement, sql } from "kysely";
import { migrations } from "./migrations/index.ts";
import { cannotWriteBeside, openReadable } from "./readable.ts";
import type { Database } from "./schema.ts";
import { type Direct, runDirectly } from "./sql.ts";

/** A database that this program must not touch: it was written by a newer version. */
export class NewerSchemaError extends Error {
	constructor(found: number, known: number) {
		super(
			`the database has schema ${found}, this version of OpenLani knows ${known}: start the newer version again, or restore a backup made with this one`,
		);
		this.name = "NewerSchemaError";
	}
}

/** A database that is brought up to date by the next start, and by nothing else: another process may be using it as it is. */
export class OlderSchemaError extends Error {
	readonly found: number;
	readonly known: number;
	constructor(found: number, known: number) {
		super(`the database has schema ${found}, this version of OpenLani works with ${known}: its next start brings it up to date`);
		this.name = "OlderSchemaError";
		this.found = found;
		this.known = known;
	}
}

export interface OpenSqlite {
	raw: SQLite.Database;
	db: Kysely<Database>;
	/** Statements of this connection, from the same cache that Kysely uses. */
	prepare: Direct["prepare"];
	/** One sentence when a damaged file was set aside, else null. */
	damage: string | null;
}

/** Above this size the whole-file check waits for `doctor`: it would hold up the start. */
const quickCheckBytes = 32 * 1024 * 1024;

/** True when SQLite says that the file itself is broken, as opposed to busy, full or forbidden. */
function isDamage(error: unknown): boolean {
	const code = (error as { code?: string }).code ?? "";
	return code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB";
}

function connect(file: string): SQLite.Database {
	const raw = new SQLite(file, { timeout: 5000 });
	try {
		raw.pragma("journal_mode = WAL");
		// NORMAL keeps every commit through a crash of the process. What must outlive a power cut as well (a message before it is
		// acknowledged, a reply before it is sent) waits for `durable()`, which syncs the log off the main thread for all who wait.
		raw.pragma("synchronous = NORMAL");
		raw.pragma("cache_size = -8000");
		// The same few pages change with every message: written back less often, they are written back once for many messages. A commit
		// does it only where there is no quiet moment (`writeBack`), and then holds everybody up by some 60 ms.
		raw.pragma("wal_autocheckpoint = 8000");
		raw.pragma("journal_size_limit = 67108864");
		raw.pragma("temp_store = MEMORY");
		// What is deleted or forgotten must not be readable in the file's free pages for ever.
		raw.pragma("secure_delete = ON");
		return raw;
	} catch (error) {
		raw.close();
		throw error;
	}
}

/** Pages of the log that are worth writing back in a quiet moment. */
const pagesWorthIt = 1000;

/** Writes the log back into the database when it has grown, as far as no reader stands in the way. */
export function writeBack(raw: SQLite.Database): void {
	const [{ log, checkpointed }] = raw.pragma("wal_checkpoint(noop)") as [{ log: number; checkpointed: number }];
	if (log - checkpointed >= pagesWorthIt) raw.pragma("wal_checkpoint(passive)");
}

/** Moves a broken database with its log aside, under a name that says when. */
function quarantine(file: string, now: number): string {
	const stamp = new Date(now).toISOString().replaceAll(":", "-");
	const kept = `${file}.damaged-${stamp}`;
	for (const suffix of ["", "-wal", "-shm"]) if (existsSync(file + suffix)) renameSync(file + suffix, kept + suffix);
	return kept;
}

function check(file: string, raw: SQLite.Database): string | null {
	if (statSync(file).size > quickCheckBytes) return null;
	const result = raw.pragma("quick_check(1)", { simple: true });
	return result === "ok" ? null : String(result);
}

function connectOrQuarantine(file: string, now: number): { raw: SQLite.Database; damage: string | null } {
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
	const emptied = existsSync(file) && statSync(file).size === 0 && !existsSync(`${file}-wal`);
	if (emptied) {
		const kept = quarantine(file, now);
		return { raw: connect(file), damage: `the database file was empty; it was kept as ${kept} and a new one begun` };
	}
	let opened: SQLite.Database | null = null;
	let problem: string | null;
	try {
		opened = connect(file);
		problem = check(file, opened);
	} catch (error) {
		opened?.close();
		if (!isDamage(error)) throw error;
		opened = null;
		problem = (error as Error).message;
	}
	if (opened && problem === null) return { raw: opened, damage: null };
	opened?.close();
	const kept = quarantine(file, now);
	return {
		raw: connect(file),
		damage: `the database was damaged (${problem}); it was kept as ${kept} and a new one begun: restore a backup to get the old contents back`,
	};
}

/** A full disk makes SQLite roll back by itself; a second rollback would fail and hide the reason. */
const nothingToRollBack = "select 1 where 0";

/** Hands Kysely prepared statements from a cache: preparing costs more than most of our statements' run. */
function cachedStatements(raw: SQLite.Database): SqliteDatabase {
	const statements = new Map<string, SQLite.Statement>();
	const limit = 400;
	return {
		prepare(text: string) {
			// A deferred transaction that starts with a read may be refused when it comes to write; an immediate one waits its turn.
			const query = text === "begin" ? "begin immediate" : text === "rollback" && !raw.inTransaction ? nothingToRollBack : text;
			const known = statements.get(query);
			if (known) return known as unknown as SqliteStatement;
			const made = raw.prepare(query);
			if (statements.size >= limit) statements.delete(statements.keys().next().value as string);
			statements.set(query, made);
			return made as unknown as SqliteStatement;
		},
		close() {
			statements.clear();
			raw.close();
		},
	};
}

const copyKeptMs = 30 * 24 * 60 * 60_000;

/** Copies of the database as it was before a newer version changed its schema. */
export const copiesBefore = (file: string): string[] => migrations.map(({ version }) => copyBefore(file, version));
const copyBefore = (file: string, version: number) => `${file}.before-${version}`;

/** Whole, or not there: what a crash left of an earlier attempt is made anew. */
async function keepCopy(raw: SQLite.Database, target: string): Promise<void> {
	const part = `${target}.part`;
	for (const suffix of ["", "-journal"]) rmSync(part + suffix, { force: true });
	try {
		await raw.backup(part);
		renameSync(part, target);
	} catch (error) {
		rmSync(part, { force: true });
		throw error;
	}
}

/** What a new version has worked with for so long needs no copy of what was before. */
function dropOldCopies(file: string, now: number): void {
	for (const copy of copiesBefore(file)) {
		const changedAt = statSync(copy, { throwIfNoEntry: false })?.mtimeMs;
		if (changedAt !== undefined && changedAt < now - copyKeptMs) rmSync(copy, { force: true, recursive: true });
	}
}

const knownSchema = migrations.at(-1)?.version ?? 0;
const schemaOf = (raw: SQLite.Database) => Number(raw.pragma("user_version", { simple: true }));

async function migrate(
	raw: SQLite.Database,
	db: Kysely<Database>,
	file: string,
	now: number,
	onMigrate?: OpenHow["onMigrate"],
): Promise<void> {
	const found = schemaOf(raw);
	const known = knownSchema;
	if (found > known) throw new NewerSchemaError(found, known);
	if (found === known) return dropOldCopies(file, now);
	if (found > 0) {
		onMigrate?.({ from: found, to: known, bytes: statSync(file).size });
		await keepCopy(raw, copyBefore(file, known));
	}
	for (const migration of migrations.filter((one) => one.version > found)) {
		await db.transaction().execute(async (trx) => {
			await migration.up(trx as unknown as Kysely<unknown>);
			await sql.raw(`pragma user_version = ${migration.version}`).execute(trx);
		});
	}
}

export interface OpenHow {
	/** For a command that looks at a database which others may be using: nothing is made, migrated or set aside. */
	asItIs?: boolean;
	/** Told before an older database is brought up to date, which takes a while when it is large. */
	onMigrate?(change: { from: number; to: number; bytes: number }): void;
}

function connectOrRead(file: string): SQLite.Database {
	try {
		return connect(file);
	} catch (error) {
		if (!cannotWriteBeside(error)) throw error;
		return openReadable(file);
	}
}

function openAsItIs(file: string): SQLite.Database {
	if (!existsSync(file)) throw new Error(`there is no database ${file}`);
	const raw = connectOrRead(file);
	try {
		const found = schemaOf(raw);
		if (found !== knownSchema)
			throw found > knownSchema ? new NewerSchemaError(found, knownSchema) : new OlderSchemaError(found, knownSchema);
		return raw;
	} catch (error) {
		raw.close();
		throw error;
	}
}

/**
 * Opens (or makes) the database file, sets a damaged one aside, brings the schema up to date. Throws for a newer schema and for a file
 * that cannot be used; with `asItIs` for an older schema too.
 */
export async function openSqlite(file: string, now: number, how: OpenHow = {}): Promise<OpenSqlite> {
	const { raw, damage } = how.asItIs ? { raw: openAsItIs(file), damage: null } : connectOrQuarantine(file, now);
	const statements = cachedStatements(raw);
	const db = new Kysely<Database>({ dialect: new SqliteDialect({ database: statements }) });
	const prepare = statements.prepare as unknown as Direct["prepare"];
	runDirectly(db, { prepare, busy: () => raw.inTransaction });
	try {
		if (!how.asItIs) await migrate(raw, db, file, now, how.onMigrate);
	} catch (error) {
		await db.destroy();
		throw error;
	}
	return { raw, db, prepare, damage };
}

/**
 * A shared durable point: syncs the write-ahead log in the thread pool, one sync for all who came before it began.
 * (The log file carries none of SQLite's locks, so opening it beside SQLite is safe.)
 */
export function createDurability(file: string): { durable(): Promise<void>; close(): Promise<void> } {
	let handle: FileHandle | null = null;
	let running: Promise<void> | null = null;
	let next: Promise<void> | null = null;

	async function sync(): Promise<void> {
		handle ??= await openFile(`${file}-wal`, "r+");
		await handle.datasync();
	}
	function start(): Promise<void> {
		const mine = sync().finally(() => {
			if (running === mine) running = null;
		});
		running = mine;
		return mine;
	}
	return {
		durable() {
			if (!running) return start();
			// A sync that has begun may have missed our commit: wait for the one after it, together with everyone else.
			next ??= running
				.catch(() => undefined)
				.then(() => {
					next = null;
					return start();
				});
			return next;
		},
		async close() {
			await running?.catch(() => undefined);
			await handle?.close();
			handle = null;
		},
	};
}
