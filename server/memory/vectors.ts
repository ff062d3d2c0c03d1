/**
 * The vectors of the memories: made in the background, by the configured embedding model or by the built-in lexical one, and made
 * again when the model changes. Words are searched meanwhile.
 */
import { anyOf } from "../agent/abort.ts";
import { ModelError } from "../model/model.ts";
import type { MemoryKey, PendingVector } from "../store/memory-store.ts";
import { shortHash } from "./lines.ts";
import type { Embedder, MemoryOptions } from "./options.ts";
import { keyText } from "./scope.ts";
import { lexicalModel, lexicalVector } from "./text/lexical.ts";

export interface EmbeddingStatus {
	model: string;
	/** `ready`, `indexing`, or `error: …`. */
	state: string;
	indexed: number;
	total: number;
}

export interface Vectors {
	/** Something has no vector yet, or the model may have changed. */
	wake(): void;
	/** The model whose vectors are compared now. */
	model(): string;
	/** The vector of a question; "lexical": the search engine makes it; null when the model does not answer soon: then words are searched alone. */
	ofQuestion(key: MemoryKey, conversationId: string | null, text: string): Promise<Float32Array | "lexical" | null>;
	status(): Promise<EmbeddingStatus>;
	/**
	 * Called when something of this owner's was forgotten: a call that may carry it is ended and has been booked when this resolves, and
	 * questions kept in memory are dropped. What is left gets its vectors all the same.
	 */
	removed(key: MemoryKey): Promise<void>;
	settled(): Promise<void>;
	stop(): Promise<void>;
}

/** Less than a turn waits for its memories, so that words are still searched when the model is late. */
const questionMs = 1000;
const batchMs = 120_000;
const questionsKept = 200;
const lexicalBatch = 32;
/** A text this short is not refused for its length. */
const leastText = 200;
/** The model says no to what it is asked, as opposed to being away, busy or too dear. */
const isRefusal = (error: unknown): boolean =>
	error instanceof ModelError && (error.kind === "bad-request" || error.kind === "context-length");

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function createVectors(options: MemoryOptions, onIndexed: (model: string) => void): Vectors {
	const { store, clock, log } = options;
	const stopping = new AbortController();
	/** Dimension of each model's vectors: the same name with another size is another model. */
	const sizes = new Map<string, number>();
	const questions = new Map<string, Float32Array>();
	/** The call for texts of one owner that is on its way. */
	let making: { of: string; end(): void; over: Promise<unknown> } | null = null;
	/** How often something was forgotten: a question asked before that is not kept. */
	let forgotten = 0;
	let running: Promise<void> | null = null;
	let again = false;
	let failure: string | null = null;
	let failures = 0;
	let retry: NodeJS.Timeout | null = null;
	let lastModel: string | null = null;
	let counted: { model: string; at: number; counts: { indexed: number; total: number } } | null = null;

	const embedder = (): Embedder | null => options.embedder();
	function nameOf(given: Embedder | null): string {
		if (!given) return lexicalModel;
		const size = sizes.get(given.model);
		return size === undefined ? given.model : `${given.model}/${size}`;
	}

	async function ask(
		given: Embedder,
		texts: string[],
		context: { owner: string; conversationId: string | null },
		limitMs: number,
		ending?: AbortSignal,
	): Promise<Float32Array[]> {
		const limited = anyOf(ending ? [stopping.signal, ending] : [stopping.signal], limitMs);
		const vectors = await given.embed(texts, context, limited.signal).finally(limited.end);
		if (vectors.length !== texts.length) throw new Error(`${vectors.length} vectors for ${texts.length} texts`);
		const made = vectors.map((vector) => Float32Array.from(vector));
		const size = made[0]?.length ?? 0;
		if (size === 0 || made.some((vector) => vector.length !== size || vector.some((value) => !Number.isFinite(value))))
			throw new Error("vectors of unequal size or with broken numbers");
		if (sizes.get(given.model) !== size) {
			const known = sizes.has(given.model);
			sizes.set(given.model, size);
			if (known) notice(`the embedding model ${given.model} changed its dimension to ${size}: memories are indexed anew`);
		}
		return made;
	}

	/**
	 * As `ask`, where the model refuses a text as such: a text too long for it is halved, one that it never takes gets the vector that is
	 * close to nothing. One memory must not keep all others from being found.
	 */
	async function askAll(
		given: Embedder,
		texts: string[],
		context: { owner: string; conversationId: null },
		ending: AbortSignal,
	): Promise<Float32Array[]> {
		try {
			return await ask(given, texts, context, batchMs, ending);
		} catch (error) {
			if (!isRefusal(error)) throw error;
			const [text = ""] = texts;
			const size = sizes.get(given.model);
			if (texts.length > 1) {
				const half = Math.ceil(texts.length / 2);
				return [
					...(await askAll(given, texts.slice(0, half), context, ending)),
					...(await askAll(given, texts.slice(half), context, ending)),
				];
			}
			if (text.length > leastText) return askAll(given, [text.slice(0, text.length / 2).toWellFormed()], context, ending);
			if (size === undefined) throw error;
			log.warn("memory.embedding-refused", { error: (error as Error).message, characters: text.length });
			return [new Float32Array(size)];
		}
	}

	function notice(message: string): void {
		log.info("memory.embedding-model", { message });
		options.onProblem?.("embedding-model", message);
	}

	/** Null when it was ended because something of the owner's was forgotten. */
	async function make(given: Embedder, key: PendingVector, rows: PendingVector[]): Promise<Float32Array[] | null> {
		const ending = new AbortController();
		const texts = rows.map((row) => row.text.slice(0, 8000) || " ");
		const made = askAll(given, texts, { owner: key.owner, conversationId: null }, ending.signal);
		making = { of: keyText(key), end: () => ending.abort(), over: made.catch(() => undefined) };
		try {
			return await made;
		} catch (error) {
			if (ending.signal.aborted && !stopping.signal.aborted) return null;
			throw error;
		} finally {
			making = null;
		}
	}

	async function vectorsOf(given: Embedder | null, rows: PendingVector[]): Promise<{ position: number; vector: Float32Array }[]> {
		if (!given) {
			const made: { position: number; vector: Float32Array }[] = [];
			for (const [index, row] of rows.entries()) {
				made.push({ position: row.position, vector: lexicalVector(row.text.slice(0, 2000)) });
				if (index % 8 === 7) await breathe();
			}
			return made;
		}
		const found: { position: number; vector: Float32Array }[] = [];
		// Texts of different owners never share a call or a cache row.
		const groups = new Map<string, PendingVector[]>();
		for (const row of rows) groups.set(keyText(row), [...(groups.get(keyText(row)) ?? []), row]);
		for (const group of groups.values()) {
			const key = group[0] as PendingVector;
			const cached = sizes.has(given.model)
				? await store.cachedVectors(
						key,
						nameOf(given),
						group.map((row) => row.hash),
					)
				: new Map<string, Float32Array>();
			const open = group.filter((row) => !cached.has(row.hash));
			if (open.length > 0) {
				const made = await make(given, key, open);
				// Some of them were forgotten meanwhile: what is left of them is taken up again.
				if (!made) continue;
				for (const [index, row] of open.entries()) cached.set(row.hash, made[index] as Float32Array);
				await store.cacheVectors(
					key,
					nameOf(given),
					open.map(({ position, hash }, index) => ({ position, hash, vector: made[index] as Float32Array })),
					clock.now(),
				);
			}
			for (const row of group) found.push({ position: row.position, vector: cached.get(row.hash) as Float32Array });
		}
		// A dimension that changed under way makes the earlier ones another model's: they are made again.
		return found.filter((one) => one.vector.length === sizes.get(given.model));
	}

	async function pass(): Promise<void> {
		let made = 0;
		let changes = 0;
		while (!stopping.signal.aborted) {
			const given = embedder();
			// The size is part of the name: it is learned from one short text before anything is looked up under the name.
			if (given && !sizes.has(given.model)) await ask(given, ["."], { owner: "master", conversationId: null }, batchMs);
			const model = nameOf(given);
			if (lastModel !== null && lastModel !== model) notice(`memories are indexed anew for ${model}`);
			// A server that answers with one size and then another would have everything made again for ever, and paid.
			if (model !== lastModel && ++changes > 3) throw new Error("the embedding model keeps changing its dimension");
			lastModel = model;
			const rows = await store.withoutVector(model, given ? (given.batch ?? 64) : lexicalBatch);
			if (rows.length === 0) break;
			const vectors = await vectorsOf(given, rows);
			// A dimension that changed under way makes these vectors another model's.
			await store.setVectors(nameOf(given), vectors);
			made += rows.length;
			await breathe();
		}
		failure = null;
		failures = 0;
		counted = null;
		if (made > 0) onIndexed(nameOf(embedder()));
	}

	function wake(): void {
		counted = null;
		if (stopping.signal.aborted) return;
		if (running) {
			again = true;
			return;
		}
		running = (async () => {
			do {
				again = false;
				await pass();
			} while (again && !stopping.signal.aborted);
		})()
			.catch((error) => {
				if (stopping.signal.aborted) return;
				failure = (error as Error).message;
				failures++;
				log.warn("memory.embedding", { error: failure, failures });
				if (failures === 3)
					options.onProblem?.("embedding", `the embedding model does not answer (${failure}); memories are found by their words meanwhile`);
				if (retry === null) {
					retry = setTimeout(
						() => {
							retry = null;
							wake();
						},
						Math.min(600_000, 5000 * 2 ** Math.min(failures - 1, 8)),
					);
					retry.unref();
				}
			})
			.finally(() => {
				running = null;
			});
	}

	return {
		wake,
		model: () => nameOf(embedder()),
		async ofQuestion(key, conversationId, text) {
			const given = embedder();
			if (!given) return "lexical";
			const clean = text.slice(0, 2000);
			const name = `${keyText(key)} ${nameOf(given)} ${shortHash(clean)}`;
			const known = questions.get(name);
			if (known) return known;
			const before = forgotten;
			try {
				const [vector] = await ask(given, [clean], { owner: key.owner, conversationId }, questionMs);
				if (!vector) return null;
				if (forgotten !== before) return vector;
				if (questions.size >= questionsKept) questions.delete(questions.keys().next().value as string);
				questions.set(`${keyText(key)} ${nameOf(given)} ${shortHash(clean)}`, vector);
				return vector;
			} catch (error) {
				log.warn("memory.question", { error: (error as Error).message });
				return null;
			}
		},
		async status() {
			const model = nameOf(embedder());
			// Counting walks an index of every memory; a page that asks often is answered from the last count.
			if (!counted || counted.model !== model || running || Date.now() - counted.at > 5000)
				counted = { model, at: Date.now(), counts: await store.vectorCounts(model) };
			const { counts } = counted;
			return { model, state: failure !== null ? `error: ${failure}` : counts.indexed < counts.total ? "indexing" : "ready", ...counts };
		},
		async removed(key) {
			forgotten++;
			questions.clear();
			if (making?.of !== keyText(key)) return;
			making.end();
			await making.over;
		},
		async settled() {
			while (running) await running;
		},
		async stop() {
			stopping.abort();
			if (retry) clearTimeout(retry);
			await running;
		},
	};
}
