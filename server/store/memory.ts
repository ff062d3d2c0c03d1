/** The memory's rows: memories and their vectors, facts; the exchanges of the short term and the background work have files of their own. */
import { rm } from "node:fs/promises";
import { type Kysely, type Selectable, sql } from "kysely";
import { clean } from "./json.ts";
import { type ExchangeTable, memoryExchanges } from "./memory-exchanges.ts";
import { type JobTable, memoryJobs } from "./memory-jobs.ts";
import { memoryRedaction } from "./memory-redact.ts";
import type { Audience, EntryRow, FactRow, FactState, MemoryKey, MemoryStore, NewEntry } from "./memory-store.ts";
import type { Database } from "./schema.ts";
import { all, first, run } from "./sql.ts";
import { copiesBefore } from "./sqlite.ts";
import { turnRedaction } from "./turns-redact.ts";
import type { Write } from "./writer.ts";

interface EntryTable {
	position: number;
	id: string;
	owner: string;
	audience: string;
	at: number;
	source: string;
	ref: string | null;
	conversation_id: string | null;
	text: string;
	hash: string;
	seq: number;
	removed: number;
	used: number;
	used_at: number | null;
	vector_model: string | null;
}

interface FactTable {
	id: string;
	owner: string;
	audience: string;
	text: string;
	norm: string;
	source: string;
	message_id: string | null;
	conversation_id: string | null;
	at: number;
	refreshed_at: number;
	expires_at: number | null;
	state: FactState;
	superseded_by: string | null;
}

export interface MemoryTables {
	memory_exchanges: ExchangeTable;
	memory_entries: EntryTable;
	memory_vectors: { position: number; model: string; dimension: number; vector: Uint8Array };
	memory_embedding_cache: { hash: string; model: string; owner: string; audience: string; vector: Uint8Array; at: number };
	memory_facts: FactTable;
	memory_jobs: JobTable;
}

type Tables = Database & MemoryTables;

const toBlob = (vector: Float32Array): Uint8Array => Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
const toVector = (blob: Uint8Array): Float32Array => new Float32Array(new Uint8Array(blob).buffer);
/** Rows of one statement: small enough that no statement holds the event loop for long. */
const rowsAtOnce = 50;
/** Vectors kept by text hash, over all owners. */
const cacheRows = 20_000;

function chunks<T>(list: T[], size: number): T[][] {
	const out: T[][] = [];
	for (let from = 0; from < list.length; from += size) out.push(list.slice(from, from + size));
	return out;
}

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function toEntry(row: Selectable<EntryTable>): EntryRow {
	return {
		position: row.position,
		id: row.id,
		owner: row.owner,
		audience: row.audience as Audience,
		at: row.at,
		source: row.source,
		ref: row.ref,
		conversationId: row.conversation_id,
		text: row.text,
		used: row.used,
		usedAt: row.used_at,
	};
}

function toFact(row: Selectable<FactTable>): FactRow {
	return {
		id: row.id,
		owner: row.owner,
		audience: row.audience as Audience,
		text: row.text,
		norm: row.norm,
		source: row.source,
		messageId: row.message_id,
		conversationId: row.conversation_id,
		at: row.at,
		refreshedAt: row.refreshed_at,
		expiresAt: row.expires_at,
		state: row.state,
		supersededBy: row.superseded_by,
	};
}

/** `file` is the database's own path: the search engine reads it on a connection of its own. */
export function createMemoryStore(database: Kysely<Database>, file: string, write: Write): MemoryStore {
	const db = database as unknown as Kysely<Tables>;
	const nextSeq = async (trx: Kysely<Tables>): Promise<number> => {
		const row = await trx
			.selectFrom("memory_entries")
			.select((eb) => eb.fn.max("seq").as("seq"))
			.executeTakeFirst();
		return Number(row?.seq ?? 0) + 1;
	};

	return {
		file,

		...memoryExchanges(database, write),
		...memoryJobs(database),

		async addEntries(entries) {
			let added = 0;
			for (const part of chunks(entries, rowsAtOnce)) {
				added += await db.transaction().execute(async (trx) => {
					const seq = await nextSeq(trx);
					const rows = part.map((entry: NewEntry, index) => ({
						id: entry.id,
						owner: entry.owner,
						audience: entry.audience,
						at: entry.at,
						source: entry.source,
						ref: entry.ref,
						conversation_id: entry.conversationId,
						text: clean(entry.text),
						hash: entry.hash,
						seq: seq + index,
					}));
					const made = await trx
						.insertInto("memory_entries")
						.values(rows as never)
						.onConflict((conflict) => conflict.column("id").doNothing())
						.executeTakeFirst();
					return Number(made.numInsertedOrUpdatedRows ?? 0n);
				});
				await breathe();
			}
			return added;
		},
		async entries(key, ids) {
			const positions = (await owned(db, key, "id", ids)).map((row) => row.position);
			if (positions.length === 0) return [];
			return (await db.selectFrom("memory_entries").selectAll().where("position", "in", positions).execute()).map(toEntry);
		},
		async hasEntries(key) {
			const found = await first(
				database,
				"select position from memory_entries where owner = ? and audience = ? and removed = 0 limit 1",
				key.owner,
				key.audience,
			);
			return found !== undefined;
		},
		async countEntries(key) {
			const row = await db
				.selectFrom("memory_entries")
				.select((eb) => eb.fn.countAll().as("count"))
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.where("removed", "=", 0)
				.executeTakeFirst();
			return Number(row?.count ?? 0);
		},
		async entriesOf(key, after, limit) {
			const rows = await db
				.selectFrom("memory_entries")
				.selectAll()
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.where("removed", "=", 0)
				.where("position", ">", after)
				.orderBy("position")
				.limit(limit)
				.execute();
			return rows.map(toEntry);
		},
		async removeEntries(key, which) {
			const ids = which.ids ?? [];
			const refs = which.refs ?? [];
			if (ids.length + refs.length === 0) return 0;
			return db.transaction().execute(async (trx) => {
				const found = [...(await owned(trx, key, "id", ids)), ...(await owned(trx, key, "ref", refs))];
				const rows = [...new Map(found.map((row) => [row.position, row])).values()];
				await blank(trx, rows);
				return rows.length;
			});
		},
		async entriesUsed(key, ids, at) {
			if (ids.length === 0) return;
			// The plus keeps SQLite from walking through all that the owner has.
			await run(
				database,
				"update memory_entries set used = used + 1, used_at = ? where id in (select value from json_each(?)) and +owner = ? and +audience = ? and +removed = 0",
				at,
				JSON.stringify(ids),
				key.owner,
				key.audience,
			);
		},

		async withoutVector(model, limit) {
			const columns = ["position", "hash", "text", "owner", "audience"] as const;
			const open = (compare: (query: typeof base) => typeof base) => compare(base).orderBy("position").limit(limit).execute();
			const base = db.selectFrom("memory_entries").select(columns).where("removed", "=", 0);
			let rows = await open((query) => query.where("vector_model", "is", null));
			if (rows.length === 0) rows = await open((query) => query.where("vector_model", "<", model));
			if (rows.length === 0) rows = await open((query) => query.where("vector_model", ">", model));
			return rows.map((row) => ({ ...row, audience: row.audience as Audience }));
		},
		async setVectors(model, vectors) {
			for (const part of chunks(vectors, rowsAtOnce)) {
				await db.transaction().execute(async (trx) => {
					const seq = await nextSeq(trx);
					const positions = part.map((one) => one.position);
					const first = Math.min(...positions);
					const alive = new Set(
						(
							await trx
								.selectFrom("memory_entries")
								.select("position")
								.where("position", "in", positions)
								.where("removed", "=", 0)
								.execute()
						).map((row) => row.position),
					);
					const rows = part
						.filter((one) => alive.has(one.position))
						.map((one) => ({ position: one.position, model, dimension: one.vector.length, vector: toBlob(one.vector) }));
					if (rows.length === 0) return;
					await trx
						.insertInto("memory_vectors")
						.values(rows)
						.onConflict((conflict) =>
							conflict.column("position").doUpdateSet((eb) => ({
								model: eb.ref("excluded.model"),
								dimension: eb.ref("excluded.dimension"),
								vector: eb.ref("excluded.vector"),
							})),
						)
						.execute();
					await trx
						.updateTable("memory_entries")
						.set({ vector_model: model, seq: sql`${seq} + position - ${first}` })
						.where("position", "in", [...alive])
						.execute();
				});
				await breathe();
			}
		},
		async vectorCounts(model) {
			const rows = await db
				.selectFrom("memory_entries")
				.select((eb) => ["vector_model", eb.fn.countAll().as("count")])
				.where("removed", "=", 0)
				.groupBy("vector_model")
				.execute();
			let indexed = 0;
			let total = 0;
			for (const row of rows) {
				total += Number(row.count);
				if (row.vector_model === model) indexed += Number(row.count);
			}
			return { indexed, total };
		},
		async cachedVectors(key, model, hashes) {
			const found = new Map<string, Float32Array>();
			for (const part of chunks([...new Set(hashes)], 200)) {
				const rows = await db
					.selectFrom("memory_embedding_cache")
					.select(["hash", "vector"])
					.where("owner", "=", key.owner)
					.where("audience", "=", key.audience)
					.where("model", "=", model)
					.where("hash", "in", part)
					.execute();
				for (const row of rows) found.set(row.hash, toVector(row.vector));
			}
			return found;
		},
		async cacheVectors(key, model, vectors, at) {
			for (const part of chunks(vectors, rowsAtOnce)) {
				await db.transaction().execute(async (trx) => {
					for (const one of part)
						await sql`insert into memory_embedding_cache (hash, model, owner, audience, vector, at)
							select hash, ${model}, owner, audience, ${toBlob(one.vector)}, ${at} from memory_entries
							where position = ${one.position} and hash = ${one.hash} and owner = ${key.owner} and audience = ${key.audience} and removed = 0
							on conflict do nothing`.execute(trx);
				});
				await breathe();
			}
			await sql`delete from memory_embedding_cache where at < (select at from memory_embedding_cache order by at desc limit 1 offset ${cacheRows})`.execute(
				db,
			);
		},

		async addFact(fact) {
			await db
				.insertInto("memory_facts")
				.values({
					id: fact.id,
					owner: fact.owner,
					audience: fact.audience,
					text: clean(fact.text),
					norm: fact.norm,
					source: fact.source,
					message_id: fact.messageId,
					conversation_id: fact.conversationId,
					at: fact.at,
					refreshed_at: fact.refreshedAt,
					expires_at: fact.expiresAt,
					state: fact.state,
					superseded_by: fact.supersededBy,
				})
				.onConflict((conflict) => conflict.column("id").doNothing())
				.execute();
		},
		async fact(key, id) {
			const row = await db
				.selectFrom("memory_facts")
				.selectAll()
				.where("id", "=", id)
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.executeTakeFirst();
			return row ? toFact(row) : null;
		},
		async factOwner(id) {
			const row = await db.selectFrom("memory_facts").select(["owner", "audience"]).where("id", "=", id).executeTakeFirst();
			return row ? { owner: row.owner, audience: row.audience as Audience } : null;
		},
		async facts(key, state) {
			let query = db
				.selectFrom("memory_facts")
				.selectAll()
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.orderBy("at")
				.orderBy("id");
			if (state) query = query.where("state", "=", state);
			return (await query.execute()).map(toFact);
		},
		async factKeys() {
			const rows = await db
				.selectFrom("memory_facts")
				.select(["owner", "audience"])
				.distinct()
				.where("state", "=", "active")
				.orderBy("owner")
				.execute();
			return rows.map((row) => ({ owner: row.owner, audience: row.audience as Audience }));
		},
		async setFact(key, id, change) {
			const set = {
				...(change.text !== undefined ? { text: clean(change.text) } : {}),
				...(change.norm !== undefined ? { norm: change.norm } : {}),
				...(change.refreshedAt !== undefined ? { refreshed_at: change.refreshedAt } : {}),
				...(change.expiresAt !== undefined ? { expires_at: change.expiresAt } : {}),
				...(change.state !== undefined ? { state: change.state } : {}),
				...(change.supersededBy !== undefined ? { superseded_by: change.supersededBy } : {}),
				...(change.messageId !== undefined ? { message_id: change.messageId } : {}),
			};
			if (Object.keys(set).length === 0) return;
			await db
				.updateTable("memory_facts")
				.set(set)
				.where("id", "=", id)
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.execute();
		},
		async removeFact(key, id) {
			await db
				.deleteFrom("memory_facts")
				.where("id", "=", id)
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.execute();
		},

		...memoryRedaction(database),
		...turnRedaction(database),

		async scrub() {
			for (const copy of copiesBefore(file)) await rm(copy, { force: true, recursive: true });
			// Nobody is waited for: that would hold up the event loop. One after the other without a pause in between.
			const steps = ["pragma busy_timeout = 0", "pragma wal_checkpoint(TRUNCATE)", "pragma busy_timeout = 5000"].map((text) =>
				all<{ busy?: number }>(database, text),
			);
			const [, written] = await Promise.allSettled(steps);
			return written?.status === "fulfilled" && written.value[0]?.busy === 0;
		},
		async removeOwner(owner) {
			return db.transaction().execute(async (trx) => {
				let removed = 0;
				const rows = await trx
					.selectFrom("memory_entries")
					.select(["position", "hash"])
					.where("owner", "=", owner)
					.where("removed", "=", 0)
					.execute();
				await blank(trx, rows);
				removed += rows.length;
				await trx.deleteFrom("memory_embedding_cache").where("owner", "=", owner).execute();
				// The ids stay, so that a late repeat of an exchange is still known and not taken in again.
				const gone = await trx
					.updateTable("memory_exchanges")
					.set({ body: "{}", state: "gone" })
					.where("owner", "=", owner)
					.where("body", "!=", "{}")
					.executeTakeFirst();
				removed += Number(gone.numUpdatedRows);
				removed += Number((await trx.deleteFrom("memory_facts").where("owner", "=", owner).executeTakeFirst()).numDeletedRows);
				// What is noted to be forgotten still has to be.
				await trx.deleteFrom("memory_jobs").where("owner", "=", owner).where("kind", "!=", "forget").execute();
				return removed;
			});
		},
		async owners() {
			const rows = await sql<{ owner: string; audience: Audience }>`
				select owner, audience from memory_exchanges where state <> 'gone' union select owner, audience from memory_entries where removed = 0
				union select owner, audience from memory_facts order by owner`.execute(db);
			return rows.rows;
		},
	};

	/**
	 * The owner's living memories among these ids or refs. The owner is compared here and not in the query: asked for both, SQLite walks
	 * through all that the owner has instead of looking up a few ids.
	 */
	async function owned(
		trx: Kysely<Tables>,
		key: MemoryKey,
		column: "id" | "ref",
		values: string[],
	): Promise<{ position: number; hash: string }[]> {
		const found: { position: number; hash: string }[] = [];
		for (const part of chunks(values, 200)) {
			const rows = await trx
				.selectFrom("memory_entries")
				.select(["position", "hash", "owner", "audience", "removed"])
				.where(column, "in", part)
				.execute();
			for (const row of rows)
				if (row.owner === key.owner && row.audience === key.audience && row.removed === 0)
					found.push({ position: row.position, hash: row.hash });
		}
		return found;
	}

	/** Leaves nameless rows behind, with a new sequence number each: the index learns from them what to drop. */
	async function blank(trx: Kysely<Tables>, rows: { position: number; hash: string }[]): Promise<void> {
		for (const part of chunks(rows, 200)) {
			const positions = part.map((row) => row.position);
			const first = Math.min(...positions);
			const seq = await nextSeq(trx);
			await trx.deleteFrom("memory_vectors").where("position", "in", positions).execute();
			await trx
				.deleteFrom("memory_embedding_cache")
				.where(
					"hash",
					"in",
					part.map((row) => row.hash),
				)
				.where((eb) => eb("owner", "=", eb.selectFrom("memory_entries").select("memory_entries.owner").where("position", "=", first)))
				.execute();
			await trx
				.updateTable("memory_entries")
				.set({ removed: 1, text: "", hash: "", ref: null, vector_model: null, seq: sql`${seq} + position - ${first}` })
				.where("position", "in", positions)
				.execute();
		}
	}
}
