/** The memory's rows: exchanges of the short term, memories and their vectors, facts, background work. */
import { type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { Exchange } from "../agent/types.ts";
import type { ToolEffect } from "../tools/tool.ts";
import { clean, fromJson } from "./json.ts";
import { memoryRedaction } from "./memory-redact.ts";
import type {
	Audience,
	EntryRow,
	ExchangeRow,
	ExchangeState,
	FactRow,
	FactState,
	JobKind,
	JobRow,
	MemoryKey,
	MemoryStore,
	NewEntry,
} from "./memory-store.ts";
import type { Database } from "./schema.ts";
import { run } from "./sql.ts";
import type { Write } from "./writer.ts";

interface ExchangeTable {
	position: number;
	id: string;
	conversation_id: string;
	owner: string;
	audience: string;
	at: number;
	body: string;
	state: ExchangeState;
	line_id: string | null;
}

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

interface JobTable {
	position: number;
	key: string;
	kind: JobKind;
	owner: string;
	audience: string;
	conversation_id: string | null;
	payload: string;
	result: string | null;
	state: "waiting" | "done";
	attempts: number;
	not_before: number;
	lease_until: number;
	error: string | null;
	created_at: number;
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

function toExchange(row: Selectable<ExchangeTable>): ExchangeRow {
	return {
		position: row.position,
		conversationId: row.conversation_id,
		owner: row.owner,
		audience: row.audience as Audience,
		exchange: fromJson<Exchange>(row.body, { id: row.id, at: row.at, channel: "", from: null, said: "", replied: "" }),
		state: row.state,
		lineId: row.line_id,
	};
}

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

function toJob(row: Selectable<JobTable>): JobRow {
	return {
		position: row.position,
		key: row.key,
		kind: row.kind,
		owner: row.owner,
		audience: row.audience as Audience,
		conversationId: row.conversation_id,
		payload: fromJson<unknown>(row.payload, null),
		result: fromJson<unknown>(row.result, null),
		attempts: row.attempts,
		createdAt: row.created_at,
	};
}

/**
 * Writes a `fact` effect inside the transaction that stores the tool's result: a job of the memory, keyed by the call. For `createTurns(db, { fact: writeFactEffect })`.
 * The row names owner and audience; the memory applies it to the facts and to Fact.md.
 */
export async function writeFactEffect(
	trx: Transaction<Database>,
	effect: ToolEffect,
	source: { turnId: string; recordId: string; at: number },
): Promise<void> {
	if (effect.type !== "fact") return;
	const row = effect.row as { owner?: unknown; audience?: unknown; conversationId?: unknown };
	if (typeof row.owner !== "string" || (row.audience !== "private" && row.audience !== "group"))
		throw new Error("a fact names owner and audience");
	await (trx as unknown as Transaction<Tables>)
		.insertInto("memory_jobs")
		.values({
			key: `fact:${source.recordId}`,
			kind: "fact",
			owner: row.owner,
			audience: row.audience,
			conversation_id: typeof row.conversationId === "string" ? row.conversationId : null,
			payload: JSON.stringify({ action: effect.action, row: effect.row }),
			state: "waiting",
			created_at: source.at,
		} as never)
		.onConflict((conflict) => conflict.column("key").doNothing())
		.execute();
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

		async addExchange(row) {
			const made = await write((trx) =>
				run(
					trx,
					"insert into memory_exchanges (id, conversation_id, owner, audience, at, body, state) values (?, ?, ?, ?, ?, ?, 'new') on conflict (id) do nothing",
					row.exchange.id,
					row.conversationId,
					row.owner,
					row.audience,
					row.exchange.at,
					clean(JSON.stringify(row.exchange)),
				),
			);
			return made > 0;
		},
		async openExchanges(conversationId) {
			const rows = await db
				.selectFrom("memory_exchanges")
				.selectAll()
				.where("conversation_id", "=", conversationId)
				.where("state", "in", ["new", "filed"])
				.orderBy("position")
				.execute();
			return rows.map(toExchange);
		},
		async knownExchanges(ids) {
			const found = new Set<string>();
			for (const part of chunks(ids, 200))
				for (const row of await db.selectFrom("memory_exchanges").select("id").where("id", "in", part).execute()) found.add(row.id);
			return found;
		},
		async exchangesOf(ids) {
			if (ids.length === 0) return [];
			return (await db.selectFrom("memory_exchanges").selectAll().where("id", "in", ids).orderBy("position").execute()).map(toExchange);
		},
		async exchangesOfLine(lineId) {
			return (await db.selectFrom("memory_exchanges").selectAll().where("line_id", "=", lineId).orderBy("position").execute()).map(
				toExchange,
			);
		},
		async setExchanges(ids, change) {
			if (ids.length === 0) return;
			const set = { ...(change.state ? { state: change.state } : {}), ...(change.lineId !== undefined ? { line_id: change.lineId } : {}) };
			for (const part of chunks(ids, 200)) await db.updateTable("memory_exchanges").set(set).where("id", "in", part).execute();
		},
		async setExchangeBody(id, exchange) {
			await db
				.updateTable("memory_exchanges")
				.set({ body: clean(JSON.stringify(exchange)) })
				.where("id", "=", id)
				.execute();
		},
		async conversationsOf(key) {
			const rows = await db
				.selectFrom("memory_exchanges")
				.select("conversation_id")
				.distinct()
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.execute();
			return rows.map((row) => row.conversation_id);
		},
		async exchangesOfOwner(key, after, limit) {
			const rows = await db
				.selectFrom("memory_exchanges")
				.selectAll()
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.where("position", ">", after)
				.where("state", "!=", "gone")
				.orderBy("position")
				.limit(limit)
				.execute();
			return rows.map(toExchange);
		},

		async exchangesBetween(key, from, to, limit) {
			const rows = await db
				.selectFrom("memory_exchanges")
				.selectAll()
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.where("at", ">=", from)
				.where("at", "<", to)
				.where("state", "!=", "gone")
				.orderBy("position", "desc")
				.limit(limit)
				.execute();
			return rows.reverse().map(toExchange);
		},

		async addJob(job, again = false) {
			const made = await db
				.insertInto("memory_jobs")
				.values({
					key: job.key,
					kind: job.kind,
					owner: job.owner,
					audience: job.audience,
					conversation_id: job.conversationId,
					payload: clean(JSON.stringify(job.payload)),
					state: "waiting",
					not_before: job.notBefore,
					created_at: job.createdAt,
				} as never)
				.onConflict((conflict) =>
					again
						? conflict
								.column("key")
								.doUpdateSet((eb) => ({
									state: "waiting",
									payload: eb.ref("excluded.payload"),
									result: null,
									not_before: eb.ref("excluded.not_before"),
									attempts: 0,
								}))
								.where("memory_jobs.state", "=", "done")
						: conflict.column("key").doNothing(),
				)
				.executeTakeFirst();
			return (made.numInsertedOrUpdatedRows ?? 0n) > 0n;
		},
		async compressionsOf(conversationId) {
			const rows = await db
				.selectFrom("memory_jobs")
				.selectAll()
				.where("conversation_id", "=", conversationId)
				.where("kind", "=", "compress")
				.where("state", "=", "waiting")
				.orderBy("position")
				.execute();
			return rows.map(toJob);
		},
		async claimJob(now, leaseMs) {
			return db.transaction().execute(async (trx) => {
				const row = await trx
					.selectFrom("memory_jobs as job")
					.selectAll()
					.where("state", "=", "waiting")
					.where("not_before", "<=", now)
					.where("lease_until", "<=", now)
					// One at a time per person: what is leased holds back the owner's others.
					.where((eb) =>
						eb.not(
							eb.exists(
								eb
									.selectFrom("memory_jobs as other")
									.select("other.position")
									.where("other.state", "=", "waiting")
									.where("other.lease_until", ">", now)
									.whereRef("other.owner", "=", "job.owner"),
							),
						),
					)
					.orderBy("position")
					.limit(1)
					.executeTakeFirst();
				if (!row) return null;
				await trx
					.updateTable("memory_jobs")
					.set({ lease_until: now + leaseMs, attempts: row.attempts + 1 })
					.where("position", "=", row.position)
					.execute();
				return toJob({ ...row, attempts: row.attempts + 1 });
			});
		},
		async claimFactJob(key, now, leaseMs) {
			const row = await db
				.updateTable("memory_jobs")
				.set({ lease_until: now + leaseMs, attempts: sql`attempts + 1` })
				.where("position", "=", (eb) =>
					eb
						.selectFrom("memory_jobs")
						.select("position")
						.where("kind", "=", "fact")
						.where("state", "=", "waiting")
						.where("owner", "=", key.owner)
						.where("audience", "=", key.audience)
						.where("not_before", "<=", now)
						.where("lease_until", "<=", now)
						.orderBy("position")
						.limit(1),
				)
				.returningAll()
				.executeTakeFirst();
			return row ? toJob(row) : null;
		},
		async clearJobResult(position) {
			await db.updateTable("memory_jobs").set({ result: null }).where("position", "=", position).execute();
		},
		async setJobResult(position, result) {
			await db
				.updateTable("memory_jobs")
				.set({ result: clean(JSON.stringify(result)) })
				.where("position", "=", position)
				.execute();
		},
		async finishJob(position) {
			// Only the key stays: what the work was about lives in files and rows that `forget` knows.
			await db
				.updateTable("memory_jobs")
				.set({ state: "done", lease_until: 0, error: null, payload: "{}", result: null })
				.where("position", "=", position)
				.execute();
		},
		async retryJob(position, error, notBefore) {
			await db
				.updateTable("memory_jobs")
				.set({ lease_until: 0, error: clean(error.slice(0, 500)), not_before: notBefore })
				.where("position", "=", position)
				.execute();
		},
		async freeJobs() {
			const freed = await db
				.updateTable("memory_jobs")
				.set({ lease_until: 0 })
				.where("state", "=", "waiting")
				.where("lease_until", ">", 0)
				.executeTakeFirst();
			return Number(freed.numUpdatedRows);
		},
		async waitingJobs(key) {
			let query = db
				.selectFrom("memory_jobs")
				.select((eb) => [eb.fn.countAll().as("count"), eb.fn.min("not_before").as("due")])
				.where("state", "=", "waiting");
			if (key) query = query.where("owner", "=", key.owner).where("audience", "=", key.audience);
			const row = await query.executeTakeFirst();
			const count = Number(row?.count ?? 0);
			return { count, dueAt: count === 0 ? null : Number(row?.due ?? 0) };
		},
		async pruneJobs(before) {
			// The key of a done job keeps its work from being done twice: it stays as long as a late repeat is thinkable.
			await db.deleteFrom("memory_jobs").where("state", "=", "done").where("created_at", "<", before).execute();
		},

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
			const row = await db
				.selectFrom("memory_entries")
				.select("position")
				.where("owner", "=", key.owner)
				.where("audience", "=", key.audience)
				.where("removed", "=", 0)
				.limit(1)
				.executeTakeFirst();
			return row !== undefined;
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
			const positions = (await owned(db, key, "id", ids)).map((row) => row.position);
			if (positions.length === 0) return;
			await db.updateTable("memory_entries").set({ used: sql`used + 1`, used_at: at }).where("position", "in", positions).execute();
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
				await db
					.insertInto("memory_embedding_cache")
					.values(part.map((one) => ({ hash: one.hash, model, owner: key.owner, audience: key.audience, vector: toBlob(one.vector), at })))
					.onConflict((conflict) => conflict.columns(["owner", "audience", "model", "hash"]).doNothing())
					.execute();
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
					.executeTakeFirst();
				removed += Number(gone.numUpdatedRows);
				removed += Number((await trx.deleteFrom("memory_facts").where("owner", "=", owner).executeTakeFirst()).numDeletedRows);
				await trx.deleteFrom("memory_jobs").where("owner", "=", owner).execute();
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
