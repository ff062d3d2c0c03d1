/** The search engine as it runs: index, ranking and the Chinese dictionary, which is loaded at the first text that needs it. */
import { createRequire } from "node:module";
import { createRanking } from "../memory/ranking.ts";
import { madeMarks } from "../memory/text/dates.ts";
import { lexicalVector } from "../memory/text/lexical.ts";
import { type Cutter, hasHan, termsOf } from "../memory/text/terms.ts";
import { openMemoryIndex } from "./memory-index.ts";
import type { Engine, EngineOptions, SearchAnswer, SearchRequest, SyncState } from "./memory-search.ts";

/** Longest part of a memory that is segmented; the rest is kept but not found by its words. */
const indexedChars = 4000;
/** Longest part of a question that its built-in vector is made of. */
const lexicalChars = 2000;
/** Rows taken in before a search, when the index is only a little behind. */
const catchUp = 400;

function placeOf(load: NodeJS.Require, name: string): string {
	try {
		return load.resolve(name);
	} catch {
		throw Object.assign(new Error(`the dictionary's package ${name} is missing`), { code: "MEMORY_ENGINE" });
	}
}

/** Loads the dictionary (about 100 MB) at the first Chinese text. Throws while its package is missing. */
export function createCutter(): (text: string) => Cutter | null {
	let cut: Cutter | null | undefined;
	return (text) => {
		if (!hasHan(text)) return null;
		if (cut === undefined) {
			const load = createRequire(import.meta.url);
			// It is always installed. Where it is gone, packages are being installed anew: what is cut without it now would not be found after.
			const [code, words] = ["@node-rs/jieba", "@node-rs/jieba/dict.js"].map((name) => placeOf(load, name)) as [string, string];
			try {
				const { Jieba } = load(code) as typeof import("@node-rs/jieba");
				const { dict } = load(words) as typeof import("@node-rs/jieba/dict.js");
				const jieba = Jieba.withDict(dict);
				cut = (part) => jieba.cutForSearch(part, true);
			} catch {
				// No build of the dictionary for this platform: pairs and single characters carry the search alone.
				cut = null;
			}
		}
		return cut;
	};
}

/** Opens the index. Synchronous work behind promises: run it where it blocks nobody. */
export function createEngine(options: EngineOptions, cutter = createCutter()): Engine {
	let index = openMemoryIndex(options);
	let rebuilt: string | null = index.rebuilt;
	let ranking = createRanking(index, options.timezone, cutter);

	function take(model: string, limit: number): number {
		index.useModel(model);
		const rows = index.changed(index.lastSeq(), limit);
		const last = rows.at(-1);
		if (!last) return 0;
		index.transaction(() => {
			for (const row of rows) {
				if (row.removed) {
					index.drop(row.position);
					continue;
				}
				const text = row.text.slice(0, indexedChars);
				const scope = index.scope({ owner: row.owner, audience: row.audience as "private" | "group" }, true);
				if (!scope) continue;
				if (index.hashOf(row.position) !== row.hash) {
					const seg = termsOf(text, cutter(text)).map((term) => term.token);
					index.put(scope, row, seg, madeMarks(row.at, options.timezone));
				}
				index.putVector(scope, row, model);
			}
			index.setLastSeq(last.seq, last.id);
		});
		return index.maxSeq() - last.seq;
	}

	/** Runs `work`; when the index file turns out to be damaged, begins a new one and runs it again. */
	function guarded<T>(work: () => T): T {
		try {
			return work();
		} catch (error) {
			const code = (error as { code?: string }).code ?? "";
			if (!/^SQLITE_(CORRUPT|NOTADB|IOERR)/.test(code)) throw error;
			index.close();
			index = openMemoryIndex(options);
			// Damage that the check at opening does not see is still damage.
			if (index.rebuilt === null && index.lastSeq() > 0) {
				index.close();
				index = openMemoryIndex({ ...options, fresh: true });
			}
			rebuilt = index.rebuilt ?? code;
			ranking = createRanking(index, options.timezone, cutter);
			return work();
		}
	}

	return {
		async search(request: SearchRequest): Promise<SearchAnswer> {
			return guarded(() => {
				const behind = index.maxSeq() - index.lastSeq();
				const left = behind > 0 && behind <= catchUp ? take(request.model, catchUp) : behind;
				index.useModel(request.model);
				const vector = request.vector === "lexical" ? lexicalVector(request.text.slice(0, lexicalChars)) : request.vector;
				return { ...ranking.search({ ...request, vector }), behind: left };
			});
		},
		async sync(model: string, limit: number): Promise<SyncState> {
			return guarded(() => {
				const behind = take(model, limit);
				if (behind <= 0 && index.soiled()) index.scrub();
				const state = { behind, rebuilt };
				rebuilt = null;
				return state;
			});
		},
		async close() {
			index.close();
		},
	};
}
