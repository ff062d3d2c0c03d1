/**
 * The last exchanges of every conversation. The rows are what a crash cannot take; Memory.json is written from them soon after,
 * and what a person changes in it flows back into the rows before anything else is written.
 */
import type { Exchange } from "../agent/types.ts";
import type { ExchangeRow, MemoryKey } from "../store/memory-store.ts";
import { versionOf } from "../workspace/text.ts";
import { WorkspaceConflict, WorkspaceRefused } from "../workspace/workspace.ts";
import { formatExchanges, parseExchanges, sameExchange } from "./exchanges-file.ts";
import type { MemoryOptions } from "./options.ts";
import { exchangesPath } from "./scope.ts";
import { createStamps } from "./stamp.ts";

interface Place {
	conversationId: string;
	key: MemoryKey;
	/** What stands in the file or is to be written there, oldest first. Bounded, however far the compressions are behind. */
	rows: ExchangeRow[];
	/** Of these a compression is pending: they are left out of the request already, and of the file when it is next written. */
	pending: Set<string>;
	stamp: string;
	version: string | null;
	dirty: boolean;
	flushedAt: number;
	timer: NodeJS.Timeout | null;
	/** What happens to a place happens one after the other. */
	last: Promise<unknown>;
	usedAt: number;
	/** Exchanges may have been taken back since we last asked; they may have before we began to look. */
	doubted: boolean;
}

export interface ShortTerm {
	history(key: MemoryKey, conversationId: string): Promise<Exchange[]>;
	remember(key: MemoryKey, conversationId: string, exchange: Exchange): Promise<boolean>;
	/** Takes over what a person changed in the file: called before exchanges are compressed. */
	see(key: MemoryKey, conversationId: string): Promise<void>;
	/** Called when messages of the conversation have been taken back. */
	takenBack(conversationId: string): void;
	/** Called by a compression when its exchanges have left. */
	summed(conversationId: string, ids: string[]): Promise<void>;
	/** Removes exchanges for good, from rows' view and file. */
	drop(conversationId: string, ids: string[]): Promise<void>;
	/** The conversation is gone: what is on its way is done when this resolves, and a turn that ends from now on is not remembered. */
	close(conversationId: string): Promise<void>;
	/** Forgets the conversation's place in memory (deleted, owner forgotten). */
	evict(conversationId: string): void;
	/** Writes every file that waits. */
	flush(): Promise<void>;
	stop(): Promise<void>;
}

const placesKept = 300;
/** A busy conversation's file is written at least this often. */
const mostApartMs = 6000;
const recentChecked = 40;
const closedKept = 1000;

/** A row as `store.openExchanges` would answer it; where it stands in the table nothing here asks. */
const fresh = ({ owner, audience }: MemoryKey, conversationId: string, exchange: Exchange, state: ExchangeRow["state"]): ExchangeRow => ({
	position: 0,
	owner,
	audience,
	conversationId,
	exchange,
	state,
	lineId: null,
});

export function createShortTerm(options: MemoryOptions, onBatch: () => void): ShortTerm {
	const { store, workspace, clock, log } = options;
	const stampOf = createStamps(workspace.paths.workspace);
	const places = new Map<string, Promise<Place>>();
	const flushMs = options.flushMs ?? 100;
	let stopped = false;
	/** Places whose file waits to be written. */
	let armed = 0;
	/** Files are written one at a time: a burst of conversations must not take the disk from the messages. */
	let writing: Promise<unknown> = Promise.resolve();
	const reported = new Set<string>();
	const closed = new Set<string>();

	function inTurn<T>(place: Place, work: () => Promise<T>): Promise<T> {
		const result = place.last.then(work, work);
		place.last = result.catch(() => undefined);
		return result;
	}

	function problem(kind: string, path: string, message: string): void {
		const once = `${kind} ${path} ${message}`;
		if (reported.has(once)) return;
		reported.add(once);
		log.warn(`memory.${kind}`, { file: path, problem: message });
		options.onProblem?.(kind, message);
	}

	/** Only this key's rows: a conversation that changed hands shows nothing of the former owner's. */
	const openRows = async (key: MemoryKey, conversationId: string): Promise<ExchangeRow[]> =>
		(await store.openExchanges(conversationId)).filter((row) => row.owner === key.owner && row.audience === key.audience);

	async function open(key: MemoryKey, conversationId: string): Promise<Place> {
		const place: Place = {
			conversationId,
			key,
			rows: await openRows(key, conversationId),
			pending: new Set(),
			stamp: "",
			version: null,
			dirty: false,
			flushedAt: 0,
			timer: null,
			last: Promise.resolve(),
			usedAt: clock.now(),
			doubted: true,
		};
		const missed = (await options.recent?.(conversationId, recentChecked)) ?? [];
		if (missed.length > 0) {
			const known = await store.knownExchanges(missed.map((one) => one.id));
			for (const exchange of missed)
				if (!known.has(exchange.id) && (await store.addExchange({ ...key, conversationId, exchange }))) place.dirty = true;
			if (place.dirty) place.rows = await openRows(key, conversationId);
		}
		for (const job of await store.compressionsOf(conversationId))
			for (const id of (job.payload as { ids?: string[] } | null)?.ids ?? []) place.pending.add(id);
		await look(place);
		letGo(place);
		if (place.rows.some((row) => row.state === "new" || place.pending.has(row.exchange.id))) place.dirty = true;
		await batch(place);
		if (place.dirty) soon(place);
		return place;
	}

	function placeOf(key: MemoryKey, conversationId: string): Promise<Place> {
		const known = places.get(conversationId);
		if (known) return known;
		const made = open(key, conversationId);
		places.set(conversationId, made);
		made.catch(() => places.delete(conversationId));
		if (places.size > placesKept) void evictOldest();
		return made;
	}

	async function evictOldest(): Promise<void> {
		for (const [id, promise] of places) {
			const place = await promise.catch(() => null);
			if (place && !place.dirty && place.timer === null && clock.now() - place.usedAt > 60_000) places.delete(id);
			if (places.size <= placesKept) return;
		}
	}

	/** What waits for its compression and does not stand in the file is the background's alone. */
	function letGo(place: Place): void {
		place.rows = place.rows.filter((row) => row.state === "filed" || !place.pending.has(row.exchange.id));
		place.pending = new Set(place.rows.flatMap((row) => (place.pending.has(row.exchange.id) ? [row.exchange.id] : [])));
	}

	/** Reads the file when it changed since we last saw it, and takes over what a person changed. */
	async function look(place: Place): Promise<void> {
		const path = exchangesPath(place.conversationId);
		const stamp = stampOf(path);
		if (stamp === place.stamp) return;
		const file = await workspace.read(path);
		place.stamp = stamp;
		if (file.problem && !file.exists) {
			// It cannot be looked at: whether it is there nobody knows.
			problem("file-problem", path, file.problem);
			return;
		}
		if (!file.exists) {
			if (place.rows.length > 0) place.dirty = true;
			place.version = null;
			return;
		}
		if (file.problem && file.version === null) {
			problem("file-problem", path, file.problem);
			return;
		}
		if (file.version === place.version) return;
		let parsed: Exchange[] | null = null;
		try {
			parsed = file.text.trim() === "" ? null : parseExchanges(JSON.parse(file.text));
		} catch {
			// Not JSON: kept aside below.
		}
		if (parsed === null) {
			const why = file.text.trim() === "" ? "it is empty" : "it is not a list of exchanges";
			const kept = await workspace.quarantine(path, why).catch(() => null);
			if (kept === null) {
				problem("file-damaged", path, `${path} is damaged (${why}) and cannot be moved aside; the database goes on without it`);
				return;
			}
			problem("file-damaged", path, `${path} was damaged; it was kept as ${kept} and written anew from the database`);
			place.version = null;
			place.stamp = "";
			place.dirty = true;
			return;
		}
		place.version = file.version;
		await merge(place, parsed);
	}

	async function merge(place: Place, file: Exchange[]): Promise<void> {
		const byId = new Map(file.map((exchange) => [exchange.id, exchange]));
		const removed: string[] = [];
		for (const row of place.rows) {
			const theirs = byId.get(row.exchange.id);
			if (theirs) {
				if (row.state === "new") {
					await store.setExchanges([row.exchange.id], { state: "filed" }, "new");
					row.state = "filed";
				}
				if (!sameExchange(theirs, row.exchange)) {
					row.exchange = { ...theirs, at: theirs.at || row.exchange.at };
					await store.setExchangeBody(row.exchange.id, row.exchange);
				}
				byId.delete(row.exchange.id);
			} else if (row.state === "filed") removed.push(row.exchange.id);
			else place.dirty = true;
		}
		if (removed.length > 0) {
			await store.setExchanges(removed, { state: "gone" });
			place.rows = place.rows.filter((row) => !removed.includes(row.exchange.id));
		}
		if (byId.size === 0) return;
		// What the rows know as compressed or removed is an old copy; what they do not know, a person wrote.
		const known = await store.knownExchanges([...byId.keys()]);
		for (const theirs of byId.values()) {
			if (known.has(theirs.id)) {
				place.dirty = true;
				continue;
			}
			const exchange = { ...theirs, at: theirs.at || clock.now() };
			const { key, conversationId } = place;
			await store.addExchange({ ...key, conversationId, exchange });
			await store.setExchanges([exchange.id], { state: "filed" });
			place.rows.push(fresh(key, conversationId, exchange, "filed"));
		}
	}

	/** What a person edited and sent again, or had answered anew, is no part of the conversation any more. */
	async function takeBack(place: Place): Promise<void> {
		if (!place.doubted) return;
		// In turn: of what is being remembered in this moment, either its writer or we must see that it was taken back.
		const gone = await inTurn(place, async () => {
			place.doubted = false;
			try {
				const found = await store.supersededExchanges(place.rows.map((row) => row.exchange.id));
				if (found.length === 0) return false;
				await store.setExchanges(found, { state: "gone" });
				place.rows = place.rows.filter((row) => !found.includes(row.exchange.id));
				return true;
			} catch (error) {
				place.doubted = true;
				throw error;
			}
		});
		if (gone) soon(place);
	}

	/** Sets the oldest exchanges apart for compression, four at a time, until the rest fits the window. */
	async function batch(place: Place): Promise<void> {
		const { exchanges: most, compress } = options.settings();
		let made = false;
		for (;;) {
			const free = place.rows.filter((row) => !place.pending.has(row.exchange.id));
			if (free.length <= most) break;
			const ids = free.slice(0, Math.max(1, compress)).map((row) => row.exchange.id);
			for (const id of ids) place.pending.add(id);
			const now = clock.now();
			await store.addJob({
				...place.key,
				key: `compress:${ids[0]}`,
				kind: "compress",
				conversationId: place.conversationId,
				payload: { ids },
				notBefore: now,
				createdAt: now,
			});
			made = true;
		}
		if (!made) return;
		letGo(place);
		onBatch();
	}

	function soon(place: Place): void {
		place.dirty = true;
		if (place.timer !== null || stopped) return;
		// Where many conversations talk at once they take turns: their files together take no more of the disk and the processor.
		const apart = Math.min(mostApartMs, Math.max(20, armed) * flushMs);
		const wait = Math.max(flushMs, place.flushedAt === 0 ? 0 : apart - (Date.now() - place.flushedAt));
		armed++;
		place.timer = setTimeout(() => {
			disarm(place);
			void write(place);
		}, wait);
		place.timer.unref();
	}

	function disarm(place: Place): void {
		if (place.timer === null) return;
		clearTimeout(place.timer);
		place.timer = null;
		armed--;
	}

	function write(place: Place): Promise<void> {
		const result = writing.then(() => inTurn(place, () => writeNow(place)));
		writing = result.catch(() => undefined);
		return result;
	}

	async function writeNow(place: Place): Promise<void> {
		if (!place.dirty) return;
		const path = exchangesPath(place.conversationId);
		for (let attempt = 1; attempt <= 5; attempt++) {
			await look(place);
			place.dirty = false;
			const rows = place.rows.filter((row) => !place.pending.has(row.exchange.id));
			const leaving = place.rows.filter((row) => place.pending.has(row.exchange.id));
			try {
				// First the rows, then the file: what is missing in the file without this would count as removed by hand after a crash.
				await store.setExchanges(
					leaving.map((row) => row.exchange.id),
					{ state: "new" },
					"filed",
				);
				const text = formatExchanges(rows.map((row) => row.exchange));
				await workspace.write(path, text, {
					by: "program",
					reason: "exchanges",
					base: place.version,
				});
				// Whether what stands there now is still ours, the next look finds out: a person may have written right behind us.
				place.version = versionOf(text);
				place.stamp = "";
				place.flushedAt = Date.now();
				const unfiled = rows.filter((row) => row.state === "new");
				if (unfiled.length > 0) {
					await store.setExchanges(
						unfiled.map((row) => row.exchange.id),
						{ state: "filed" },
						"new",
					);
					for (const row of unfiled) row.state = "filed";
				}
				place.rows = rows;
				letGo(place);
				return;
			} catch (error) {
				place.dirty = true;
				if (error instanceof WorkspaceConflict) {
					place.stamp = "";
					continue;
				}
				// The rows hold everything: the file follows when it can be written again.
				problem(
					"file-not-written",
					path,
					error instanceof WorkspaceRefused
						? error.message
						: `${path} cannot be written: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`,
				);
				return;
			}
		}
	}

	const view = (place: Place): Exchange[] => {
		const { exchanges: most } = options.settings();
		return place.rows
			.filter((row) => !place.pending.has(row.exchange.id))
			.slice(-most)
			.map((row) => row.exchange);
	};

	return {
		async history(key, conversationId) {
			let place = await placeOf(key, conversationId);
			if (place.key.owner !== key.owner || place.key.audience !== key.audience) {
				places.delete(conversationId);
				place = await placeOf(key, conversationId);
			}
			place.usedAt = clock.now();
			await takeBack(place);
			if (stampOf(exchangesPath(conversationId)) !== place.stamp) {
				await inTurn(place, async () => {
					await look(place);
					await batch(place);
				});
				if (place.dirty) soon(place);
			}
			return view(place);
		},

		async remember(key, conversationId, exchange) {
			const place = await placeOf(key, conversationId);
			place.usedAt = clock.now();
			if (place.key.owner !== key.owner || place.key.audience !== key.audience) {
				places.delete(conversationId);
				return this.remember(key, conversationId, exchange);
			}
			return inTurn(place, async () => {
				if (closed.has(conversationId)) return false;
				if (!(await store.addExchange({ owner: key.owner, audience: key.audience, conversationId, exchange }))) return false;
				place.rows.push(fresh(key, conversationId, exchange, "new"));
				await batch(place);
				soon(place);
				return true;
			});
		},

		takenBack(conversationId) {
			void places.get(conversationId)?.then(
				(place) => {
					place.doubted = true;
				},
				() => undefined,
			);
		},

		async see(key, conversationId) {
			const place = await placeOf(key, conversationId);
			if (place.key.owner !== key.owner || place.key.audience !== key.audience) return;
			await inTurn(place, () => look(place));
			if (place.dirty) soon(place);
		},

		async summed(conversationId, ids) {
			const place = await places.get(conversationId);
			if (!place) return;
			await inTurn(place, async () => {
				await look(place);
				if (!place.rows.some((row) => ids.includes(row.exchange.id))) return;
				place.rows = place.rows.filter((row) => !ids.includes(row.exchange.id));
				letGo(place);
				soon(place);
			});
		},

		async drop(conversationId, ids) {
			const known = places.get(conversationId);
			const rows = await store.exchangesOf(ids);
			const place = known
				? await known
				: rows[0]
					? await placeOf({ owner: rows[0].owner, audience: rows[0].audience }, conversationId)
					: null;
			if (!place) return;
			await inTurn(place, async () => {
				place.rows = place.rows.filter((row) => !ids.includes(row.exchange.id));
				letGo(place);
				place.dirty = true;
			});
			await write(place);
		},

		async close(conversationId) {
			// A turn that runs while its conversation is deleted ends soon after: the last ones are enough.
			if (closed.size >= closedKept) closed.delete(closed.values().next().value as string);
			closed.add(conversationId);
			await (await places.get(conversationId)?.catch(() => null))?.last;
		},

		evict(conversationId) {
			void places.get(conversationId)?.then(
				(place) => {
					disarm(place);
					place.dirty = false;
				},
				() => undefined,
			);
			places.delete(conversationId);
		},

		async flush() {
			for (const promise of [...places.values()]) {
				const place = await promise.catch(() => null);
				if (!place) continue;
				disarm(place);
				await write(place);
			}
		},

		async stop() {
			await this.flush();
			stopped = true;
			await writing;
		},
	};
}
