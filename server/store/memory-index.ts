/**
 * The index of the memories: FTS5 over segmented text and sqlite-vec over the vectors' signs, in a file of its own that is
 * derived from the database and can be thrown away at any time. Synchronous: it runs beside the daemon, never in its event loop.
 *
 * Every term carries the number of its scope (owner and audience), so a search can only ever touch the rows of its own scope.
 */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import SQLite from "better-sqlite3";
import { getLoadablePath } from "sqlite-vec";
import { createKept } from "./kept.ts";
import type { EngineOptions } from "./memory-search.ts";
import type { MemoryKey } from "./memory-store.ts";

export const indexVersion = 3;
/** Signs kept of a vector for the first look; the second look takes the whole vector from the database. */
const maxBits = 768;

export interface IndexDoc {
	position: number;
	at: number;
	len: number;
	/** Segmented terms, in order, without the scope's number. */
	terms: string[];
	conversation: string;
}

export interface MainEntry {
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
	vector_model: string | null;
}

/** What of an entry ranking and answers need. */
export type RankedEntry = Omit<MainEntry, "hash" | "seq" | "removed" | "vector_model">;

export interface ScopeStats {
	id: number;
	docs: number;
	terms: number;
}

export interface MemoryIndex {
	readonly rebuilt: string | null;
	lastSeq(): number;
	maxSeq(): number;
	changed(after: number, limit: number): MainEntry[];
	transaction(work: () => void): void;
	scope(key: MemoryKey, make: boolean): ScopeStats | null;
	hashOf(position: number): string | null;
	put(scope: ScopeStats, entry: MainEntry, seg: string[], day: string[]): void;
	drop(position: number): void;
	/** Takes the vector of an entry in, or out when it has none of this model. */
	putVector(scope: ScopeStats, entry: MainEntry, model: string): void;
	setLastSeq(seq: number, id: string): void;
	/** Drops the signs of other models. */
	useModel(model: string): void;
	/** True when something was dropped since the last `scrub`, by whatever process. */
	soiled(): boolean;
	/** Takes the words of dropped entries out of the file: until then they stand in segments that are not merged yet. */
	scrub(): void;
	/** In how many memories of the scope the term is. */
	frequency(scope: ScopeStats, term: string): number;
	/** Positions of the memories that have any of the terms, those with more and rarer ones first; reads every row of each term. */
	match(scope: ScopeStats, terms: string[], limit: number): number[];
	nearest(scope: ScopeStats, model: string, vector: Float32Array, limit: number): number[];
	docs(positions: number[]): IndexDoc[];
	neighbours(scope: ScopeStats, position: number): { before: number | null; after: number | null };
	vectors(positions: number[], model: string): Map<number, Float32Array>;
	/** Positions spread over the scope, for the background of a similarity. */
	sample(scope: ScopeStats, model: string, count: number): number[];
	entries(positions: number[]): RankedEntry[];
	close(): void;
}

const schema = `
	create table info (key text primary key, value text not null) without rowid;
	create table scopes (id integer primary key, owner text not null, audience text not null, docs integer not null default 0, terms integer not null default 0, unique (owner, audience));
	create table docs (position integer primary key, scope integer not null, at integer not null, len integer not null, hash text not null, conversation text not null, seg text not null, model text);
	create index docs_scope on docs (scope, position);
	create virtual table words using fts5(seg, content='', contentless_delete=1, detail=none, tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co M*'");
	create virtual table vocabulary using fts5vocab(words, 'row');
`;

function open(file: string): SQLite.Database {
	const db = new SQLite(file, { timeout: 2000 });
	db.pragma("journal_mode = WAL");
	// A power cut may tear this file; then it is made again.
	db.pragma("synchronous = OFF");
	db.pragma("cache_size = -32000");
	db.pragma("secure_delete = ON");
	return db;
}

function wipe(file: string): void {
	for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

function create(file: string): SQLite.Database {
	wipe(file);
	const db = open(file);
	db.exec(schema);
	db.prepare("insert into info values ('version', ?), ('seq', '0'), ('seq-id', '')").run(String(indexVersion));
	return db;
}

/** Opens the index file, or begins a new one when it is missing, damaged, of another version, or of another database. */
function openIndex(file: string, main: SQLite.Database, fresh: boolean): { db: SQLite.Database; rebuilt: string | null } {
	mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
	if (fresh) return { db: create(file), rebuilt: "damaged" };
	if (!existsSync(file)) return { db: create(file), rebuilt: null };
	let db: SQLite.Database | null = null;
	try {
		db = open(file);
		const info = new Map(
			(db.prepare("select key, value from info").all() as { key: string; value: string }[]).map((row) => [row.key, row.value]),
		);
		if (info.get("version") !== String(indexVersion)) throw new Error("made by another version");
		const seq = Number(info.get("seq"));
		if (seq > 0) {
			const same = main.prepare("select id from memory_entries where seq = ?").get(seq) as { id: string } | undefined;
			const newer = main.prepare("select 1 from memory_entries where seq > ? limit 1").get(seq);
			// The row that was taken in last has changed since (then something newer is there), or this is the index of another database.
			if (same ? same.id !== info.get("seq-id") : !newer) throw new Error("made from another database");
		}
		if (db.pragma("quick_check(1)", { simple: true }) !== "ok") throw new Error("damaged");
		return { db, rebuilt: null };
	} catch (error) {
		db?.close();
		return { db: create(file), rebuilt: (error as Error).message };
	}
}

/** Terms, and numbers of vectors, that are kept of memories that were looked at: some ten megabytes together. */
const keptTerms = 100_000;
const keptNumbers = 1_000_000;
/** A term that more than this share of the memories have, and more than so many, tells nothing apart: of it only the newest are looked at. */
const commonShare = 0.2;
const commonDocs = 500;

const bitsOf = (vector: Float32Array): Uint8Array => {
	const count = Math.min(maxBits, vector.length) & ~7;
	const bits = new Uint8Array(count / 8);
	for (let index = 0; index < count; index++)
		if ((vector[index] as number) > 0) bits[index >> 3] = (bits[index >> 3] as number) | (1 << (index & 7));
	return bits;
};

const toVector = (blob: Buffer): Float32Array => new Float32Array(new Uint8Array(blob).buffer);

/** Opens index and database. Throws when the database cannot be read. */
export function openMemoryIndex(options: EngineOptions): MemoryIndex {
	const main = new SQLite(options.mainFile, { readonly: true, timeout: 2000 });
	let opened: { db: SQLite.Database; rebuilt: string | null };
	try {
		opened = openIndex(options.indexFile, main, options.fresh === true);
	} catch (error) {
		main.close();
		throw error;
	}
	const { db, rebuilt } = opened;
	let vectorsLoaded: boolean | null = null;
	const statements = new Map<string, SQLite.Statement>();
	const on = (base: SQLite.Database, text: string): SQLite.Statement => {
		const known = statements.get(text);
		if (known) return known;
		const made = base.prepare(text);
		statements.set(text, made);
		return made;
	};
	const frequencies = new Map<string, number>();
	const keptDocs = createKept<IndexDoc>(keptTerms, (doc) => doc.terms.length + 20);
	const keptVectors = createKept<{ model: string; vector: Float32Array }>(keptNumbers, ({ vector }) => vector.length);
	/** Whatever is kept of it is not what stands there any more. */
	const stale = (position: number): void => {
		keptDocs.drop(position);
		keptVectors.drop(position);
	};

	/** False on a platform for which sqlite-vec has no build: then meaning is searched among the keyword candidates only. */
	function loadVectors(): boolean {
		if (vectorsLoaded === null) {
			try {
				db.loadExtension(getLoadablePath());
				vectorsLoaded = true;
			} catch {
				vectorsLoaded = false;
			}
		}
		return vectorsLoaded;
	}
	const info = (key: string): string =>
		(on(db, "select value from info where key = ?").get(key) as { value: string } | undefined)?.value ?? "";
	const setInfo = (key: string, value: string): void => {
		on(db, "insert into info values (?, ?) on conflict (key) do update set value = excluded.value").run(key, value);
	};
	const list = (count: number): string => new Array(count).fill("?").join(",");

	/** The table of signs, made for the dimension of the first vector that comes; null while there is none. */
	function signTable(bits: number): boolean {
		if (!loadVectors()) return false;
		if (info("bits") === String(bits)) return true;
		dropSigns();
		db.exec(`create virtual table signs using vec0(position integer primary key, scope integer partition key, sign bit[${bits}])`);
		setInfo("bits", String(bits));
		return true;
	}
	function dropSigns(): void {
		if (info("bits") === "") return;
		loadVectors();
		for (const text of [...statements.keys()]) if (text.includes("signs")) statements.delete(text);
		db.exec("drop table if exists signs");
		db.prepare("update docs set model = null where model is not null").run();
		setInfo("bits", "");
	}
	const dropSign = (position: number): void => {
		if (info("bits") !== "" && loadVectors()) on(db, "delete from signs where position = ?").run(BigInt(position));
	};

	return {
		rebuilt,
		lastSeq: () => Number(info("seq")),
		maxSeq: () => (on(main, "select max(seq) as seq from memory_entries").get() as { seq: number | null }).seq ?? 0,
		changed: (after, limit) => on(main, "select * from memory_entries where seq > ? order by seq limit ?").all(after, limit) as MainEntry[],
		transaction(work) {
			db.transaction(work)();
			frequencies.clear();
		},
		scope(key, make) {
			const find = on(db, "select id, docs, terms from scopes where owner = ? and audience = ?");
			const found = find.get(key.owner, key.audience) as ScopeStats | undefined;
			if (found || !make) return found ?? null;
			on(db, "insert into scopes (owner, audience) values (?, ?)").run(key.owner, key.audience);
			return find.get(key.owner, key.audience) as ScopeStats;
		},
		hashOf: (position) => (on(db, "select hash from docs where position = ?").get(position) as { hash: string } | undefined)?.hash ?? null,
		put(scope, entry, seg, day) {
			this.drop(entry.position);
			on(db, "insert into docs (position, scope, at, len, hash, conversation, seg) values (?, ?, ?, ?, ?, ?, ?)").run(
				entry.position,
				scope.id,
				entry.at,
				seg.length,
				entry.hash,
				entry.conversation_id ?? entry.source,
				seg.join(" "),
			);
			const prefix = `${scope.id}q`;
			on(db, "insert into words (rowid, seg) values (?, ?)").run(
				BigInt(entry.position),
				[...seg, ...day].map((term) => prefix + term).join(" "),
			);
			on(db, "update scopes set docs = docs + 1, terms = terms + ? where id = ?").run(seg.length, scope.id);
		},
		drop(position) {
			stale(position);
			const known = on(db, "select scope, len from docs where position = ?").get(position) as { scope: number; len: number } | undefined;
			if (!known) return;
			setInfo("soiled", "1");
			dropSign(position);
			on(db, "delete from words where rowid = ?").run(BigInt(position));
			on(db, "delete from docs where position = ?").run(position);
			on(db, "update scopes set docs = docs - 1, terms = terms - ? where id = ?").run(known.len, known.scope);
		},
		putVector(scope, entry, model) {
			stale(entry.position);
			const known =
				(on(db, "select model from docs where position = ?").get(entry.position) as { model: string | null } | undefined)?.model ?? null;
			if (entry.vector_model !== model) {
				if (known === null) return;
				dropSign(entry.position);
				on(db, "update docs set model = null where position = ?").run(entry.position);
				return;
			}
			const row = on(main, "select vector from memory_vectors where position = ? and model = ?").get(entry.position, model) as
				| { vector: Buffer }
				| undefined;
			if (!row) return;
			const bits = bitsOf(toVector(row.vector));
			if (bits.length === 0 || !signTable(bits.length * 8)) return;
			dropSign(entry.position);
			on(db, "insert into signs (position, scope, sign) values (?, ?, vec_bit(?))").run(BigInt(entry.position), BigInt(scope.id), bits);
			on(db, "update docs set model = ? where position = ?").run(model, entry.position);
		},
		setLastSeq(seq, id) {
			setInfo("seq", String(seq));
			setInfo("seq-id", id);
		},
		soiled: () => info("soiled") === "1",
		scrub() {
			db.transaction(() => {
				db.prepare("insert into words (words) values ('optimize')").run();
				setInfo("soiled", "0");
			})();
			db.pragma("wal_checkpoint(TRUNCATE)");
		},
		useModel(model) {
			if (info("model") === model) return;
			db.transaction(() => {
				dropSigns();
				setInfo("model", model);
			})();
		},
		frequency(scope, term) {
			const token = `${scope.id}q${term}`;
			const known = frequencies.get(token);
			if (known !== undefined) return known;
			const count = (on(db, "select doc from vocabulary where term = ?").get(token) as { doc: number } | undefined)?.doc ?? 0;
			if (frequencies.size > 20_000) frequencies.clear();
			frequencies.set(token, count);
			return count;
		},
		match(scope, terms, limit) {
			// Without positions the index cannot rank: what many of the rarer terms are in goes first, and of equals the newest.
			const weights = new Map<number, number>();
			for (const term of terms) {
				const weight = Math.log(1 + scope.docs / Math.max(1, this.frequency(scope, term)));
				const isCommon = this.frequency(scope, term) > Math.max(commonDocs, scope.docs * commonShare);
				const rows = (
					isCommon
						? on(db, "select rowid from words where words match ? order by rowid desc limit ?").all(`"${scope.id}q${term}"`, limit)
						: on(db, "select rowid from words where words match ?").all(`"${scope.id}q${term}"`)
				) as { rowid: number }[];
				for (const { rowid } of rows) weights.set(rowid, (weights.get(rowid) ?? 0) + weight);
			}
			return [...weights]
				.sort((x, y) => y[1] - x[1] || y[0] - x[0])
				.slice(0, limit)
				.map(([position]) => position);
		},
		nearest(scope, model, vector, limit) {
			if (info("bits") === "" || info("model") !== model || !loadVectors()) return [];
			const bits = bitsOf(vector);
			if (String(bits.length * 8) !== info("bits")) return [];
			return (
				on(db, "select position from signs where scope = ? and sign match vec_bit(?) and k = ?").all(
					BigInt(scope.id),
					bits,
					BigInt(limit),
				) as { position: number }[]
			).map((row) => row.position);
		},
		docs(positions) {
			const missing = positions.filter((position) => keptDocs.get(position) === undefined);
			const found = new Map<number, IndexDoc>();
			if (missing.length > 0) {
				const text = `select position, at, len, seg, conversation from docs where position in (${list(missing.length)})`;
				for (const { seg, ...row } of on(db, text).all(...missing) as (Omit<IndexDoc, "terms"> & { seg: string })[])
					found.set(row.position, { ...row, terms: seg.split(" ") });
			}
			const docs: IndexDoc[] = [];
			for (const position of positions.toSorted((x, y) => x - y)) {
				const doc = found.get(position) ?? keptDocs.get(position);
				if (doc) docs.push(doc);
			}
			for (const [position, doc] of found) keptDocs.put(position, doc);
			return docs;
		},
		neighbours(scope, position) {
			const before = on(db, "select position from docs where scope = ? and position < ? order by position desc limit 1").get(
				scope.id,
				position,
			) as { position: number } | undefined;
			const after = on(db, "select position from docs where scope = ? and position > ? order by position limit 1").get(
				scope.id,
				position,
			) as { position: number } | undefined;
			return { before: before?.position ?? null, after: after?.position ?? null };
		},
		vectors(positions, model) {
			const vectors = new Map<number, Float32Array>();
			const missing = positions.filter((position) => {
				const known = keptVectors.get(position);
				if (known?.model !== model) return true;
				vectors.set(position, known.vector);
				return false;
			});
			if (missing.length === 0) return vectors;
			const text = `select position, vector from memory_vectors where position in (${list(missing.length)}) and model = ?`;
			for (const row of on(main, text).all(...missing, model) as { position: number; vector: Buffer }[]) {
				const vector = toVector(row.vector);
				vectors.set(row.position, vector);
				keptVectors.put(row.position, { model, vector });
			}
			return vectors;
		},
		sample(scope, model, count) {
			const step = Math.max(1, Math.floor(scope.docs / count));
			const rows = on(db, "select position from docs where scope = ? and model = ? and position % ? = 0 limit ?").all(
				scope.id,
				model,
				step,
				count,
			) as { position: number }[];
			return rows.map((row) => row.position);
		},
		entries(positions) {
			if (positions.length === 0) return [];
			const columns = "position, id, owner, audience, at, source, ref, conversation_id, text, used";
			return on(main, `select ${columns} from memory_entries where +removed = 0 and position in (${list(positions.length)})`).all(
				...positions,
			) as RankedEntry[];
		},
		close() {
			statements.clear();
			db.close();
			main.close();
		},
	};
}
