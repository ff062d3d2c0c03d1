/**
 * Which memories answer a text: the best by wording and the best by meaning, never the same ones twice.
 *
 * By wording: BM25 over terms weighted by kind (names, numbers and dates most, single Chinese characters least) and by rarity in
 * the owner's memories, plus a share of what the neighbouring memory scores (an answer often stands beside the words of its question).
 * By meaning: cosine of the whole vectors, over the nearest by signs and the keyword candidates; with the built-in lexical vectors
 * mixed with concepts and a larger share of the neighbours, because those vectors know wording only.
 * Age weighs up to 10 % over years, repeated use up to 15 %. A memory that is not close is left out rather than shown.
 */
import type { IndexDoc, MemoryIndex, RankedEntry, ScopeStats } from "../store/memory-index.ts";
import type { SearchAnswer, SearchHit, SearchRequest } from "../store/memory-search.ts";
import { askedMarks, madeMarks } from "./text/dates.ts";
import { lexicalModel } from "./text/lexical.ts";
import { fold } from "./text/normalise.ts";
import { type Cutter, type Term, type TermKind, termsOf } from "./text/terms.ts";

const kindWeight: Record<TermKind, number> = { word: 1, name: 1.3, number: 0.9, date: 1.2, concept: 0.55, gram: 0.45, char: 0.12 };
/** How many are looked at: by their words, the nearest by signs, and of all these so many are read. Where vectors know wording only, they bring little that the words do not. */
const wide = { candidates: 90, nearest: 24, read: 24 };
const narrow = { candidates: 40, nearest: 16, read: 16 };
/** Rows that the keyword search may touch; rarer terms go first, so the common ones are what is left out. */
const touchBudget = 6000;
/** Share of the asked weight that a memory must cover to be close. */
const closeCover = 0.28;
/** Enough where a rare word is among what is covered. */
const rareCover = 0.14;
const conceptCover = 0.7;
const unknownWeight = 0.6;
const k1 = 1.2;
const b = 0.6;
const yearMs = 365 * 86_400_000;

interface Asked {
	token: string;
	weight: number;
	/** Counts for how much of the question is covered. */
	counts: boolean;
	frequency: number;
	/** Words that this concept stands for in the question. */
	of: string[];
}

interface Scored {
	doc: IndexDoc;
	own: number;
	cover: number;
	/** Shares a word (or its meaning) that few memories have. */
	rare: boolean;
}

function askedTerms(index: MemoryIndex, scope: ScopeStats, terms: Term[], made: string[]): Asked[] {
	const asked = new Map<string, Asked>();
	const add = (token: string, kindBoost: number, counts: boolean, of?: string) => {
		const known = asked.get(token);
		if (known) {
			if (of) known.of.push(of);
			return;
		}
		const frequency = index.frequency(scope, token);
		const idf = Math.log(1 + (scope.docs - frequency + 0.5) / (frequency + 0.5));
		asked.set(token, { token, weight: kindBoost * idf, counts, frequency, of: of ? [of] : [] });
	};
	for (const term of terms)
		if (!term.stop)
			add(term.token, kindWeight[term.kind], term.kind !== "char" && term.kind !== "concept" && term.kind !== "gram", term.of);
	// A question of one or two characters has nothing else to go by.
	if (![...asked.values()].some((one) => one.counts)) for (const one of asked.values()) one.counts = true;
	for (const mark of made) add(mark, made.length > 4 ? 0.5 : 0.9, false);
	return [...asked.values()];
}

/** How much of the question's weight any memory could cover. */
function reach(asked: Asked[]): number {
	let sum = 0;
	const meant = new Set(asked.flatMap((one) => (one.frequency > 0 ? one.of : [])));
	for (const one of asked) {
		if (!one.counts && !one.token.startsWith("xa")) continue;
		if (one.frequency > 0) sum += one.weight;
		else if (meant.has(one.token)) sum += one.weight * conceptCover;
	}
	return sum;
}

function pickForMatch(asked: Asked[]): string[] {
	const picked: string[] = [];
	let touched = 0;
	for (const one of asked.filter((term) => term.frequency > 0).sort((x, y) => y.weight - x.weight)) {
		if (picked.length > 0 && touched + one.frequency > touchBudget) continue;
		picked.push(one.token);
		touched += one.frequency;
		if (picked.length >= 40) break;
	}
	return picked;
}

function scoreDoc(
	doc: IndexDoc,
	asked: Asked[],
	places: Map<string, number>,
	averageLength: number,
	made: Set<string>,
	rareAt: number,
): { own: number; covered: number; rare: boolean } {
	/** How often the document has each asked term, in the order of `asked`. */
	const counts = new Array<number>(asked.length).fill(0);
	for (const token of doc.terms) {
		const place = places.get(token);
		if (place !== undefined) counts[place] = (counts[place] as number) + 1;
	}
	let own = 0;
	let covered = 0;
	let rare = false;
	const met = new Set<string>();
	const norm = k1 * (1 - b + (b * doc.len) / averageLength);
	for (const [place, one] of asked.entries()) {
		const tf = counts[place] || (made.has(one.token) ? 1 : 0);
		if (tf === 0) continue;
		own += (one.weight * tf * (k1 + 1)) / (tf + norm);
		if (one.counts) {
			covered += one.weight;
			rare ||= one.frequency <= rareAt;
			met.add(one.token);
		}
	}
	// Another word of the same meaning covers most of what the word itself would.
	for (const [place, one] of asked.entries()) {
		if (one.of.length === 0 || counts[place] === 0) continue;
		for (const word of one.of) {
			const meant = asked[places.get(word) ?? -1];
			if (!meant?.counts || met.has(word)) continue;
			covered += meant.weight * conceptCover;
			rare ||= one.frequency <= rareAt;
			met.add(word);
		}
	}
	return { own, covered, rare };
}

/** How much age and use weigh: 1 for a new memory that was never recalled. */
function standing(entry: RankedEntry, now: number): number {
	const age = Math.max(0, now - entry.at) / yearMs;
	return (0.9 + 0.1 / (1 + age)) * (1 + Math.min(0.15, 0.03 * Math.log2(1 + entry.used)));
}

function cosine(x: Float32Array, y: Float32Array): number {
	let dot = 0;
	let xx = 0;
	let yy = 0;
	for (let index = 0; index < x.length; index++) {
		const p = x[index] as number;
		const q = y[index] as number;
		dot += p * q;
		xx += p * p;
		yy += q * q;
	}
	return xx === 0 || yy === 0 ? 0 : dot / Math.sqrt(xx * yy);
}

/** True when two memories say the same: nearly the same terms and no differing number. */
function sameSaying(x: string[], y: string[]): boolean {
	const first = new Set(x);
	const second = new Set(y);
	let shared = 0;
	for (const token of first) {
		if (second.has(token)) shared++;
		else if (/^\d|^xd/.test(token)) return false;
	}
	for (const token of second) if (!first.has(token) && /^\d|^xd/.test(token)) return false;
	return shared / (first.size + second.size - shared || 1) >= 0.9;
}

export interface Ranking {
	search(request: Omit<SearchRequest, "vector"> & { vector: Float32Array | null }): Omit<SearchAnswer, "behind">;
}

/** `cutter` is asked for each search, so that a dictionary is loaded only when a text needs it. */
export function createRanking(index: MemoryIndex, timezone: string, cutter: (text: string) => Cutter | null): Ranking {
	/** Mean and spread of the similarity of unrelated memories, per question: from a fixed sample of the scope. */
	const samples = new Map<string, { docs: number; vectors: Float32Array[] }>();

	function background(scope: ScopeStats, model: string, vector: Float32Array): { mean: number; spread: number } | null {
		if (scope.docs < 40) return null;
		const key = `${scope.id} ${model}`;
		let sample = samples.get(key);
		if (!sample || Math.abs(sample.docs - scope.docs) > sample.docs * 0.2) {
			sample = { docs: scope.docs, vectors: [...index.vectors(index.sample(scope, model, 100), model).values()] };
			if (samples.size > 20) samples.clear();
			samples.set(key, sample);
		}
		if (sample.vectors.length < 20) return null;
		const values = sample.vectors.map((one) => cosine(one, vector));
		const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
		return { mean, spread: Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) };
	}

	function neighboursOf(
		scope: ScopeStats,
		ranked: Scored[],
		known: Map<number, Scored>,
		score: (doc: IndexDoc) => Scored,
	): Map<number, { before: number | null; after: number | null }> {
		const links = new Map<number, { before: number | null; after: number | null }>();
		const missing = new Set<number>();
		for (const one of ranked.slice(0, 10)) {
			const link = index.neighbours(scope, one.doc.position);
			links.set(one.doc.position, link);
			for (const side of [link.before, link.after]) if (side !== null && !known.has(side)) missing.add(side);
		}
		for (const doc of index.docs([...missing])) known.set(doc.position, score(doc));
		return links;
	}

	return {
		search(request) {
			const scope = index.scope(request.key, false);
			if (!scope || scope.docs === 0) return { semantic: [], keyword: [] };
			const folded = fold(request.text);
			const terms = termsOf(request.text.slice(0, 2000), cutter(request.text));
			const made = askedMarks(
				folded,
				terms.filter((term) => term.kind === "date").map((term) => term.token),
				request.now,
				timezone,
			);
			const asked = askedTerms(index, scope, terms, made);
			const places = new Map(asked.map((one, place) => [one.token, place]));
			// Words that no memory has tell less of what is missing than of how the question is put.
			const whole = asked.reduce((sum, one) => sum + (one.counts ? one.weight * (one.frequency === 0 ? unknownWeight : 1) : 0), 0);
			const lexical = request.model === lexicalModel;
			const breadth = lexical ? narrow : wide;
			// Words that every memory has cannot bring one close: such a question ends here, before anything is read.
			if (lexical && !request.loose && reach(asked) < whole * rareCover) return { semantic: [], keyword: [] };
			const rareAt = Math.max(2, scope.docs * 0.02);
			const averageLength = Math.max(1, scope.terms / scope.docs);

			const madeOf = (doc: IndexDoc): Set<string> => {
				if (made.length === 0) return none;
				const day = dayMarks(doc.at);
				return new Set(made.filter((mark) => day.includes(mark)));
			};
			const dayMarks = (at: number): string[] => {
				return madeMarks(at, timezone);
			};
			const score = (doc: IndexDoc): Scored => {
				const { own, covered, rare } = scoreDoc(doc, asked, places, averageLength, madeOf(doc), rareAt);
				return { doc, own, cover: whole === 0 ? 0 : Math.min(1, covered / whole), rare };
			};

			const matched = index.match(scope, pickForMatch(asked), breadth.candidates);
			const known = new Map<number, Scored>();
			for (const doc of index.docs(matched)) known.set(doc.position, score(doc));
			// Lexical vectors know wording only: where the words have found enough, they find nothing else.
			const enough = lexical && [...known.values()].filter(isClose).length >= 2 * (request.semantic + request.keyword);
			const near =
				request.vector && !enough
					? index.nearest(scope, request.model, request.vector, breadth.nearest).filter((position) => !known.has(position))
					: [];
			for (const doc of index.docs(near)) known.set(doc.position, score(doc));
			const byOwn = [...known.values()].sort((x, y) => y.own - x.own);
			const links = neighboursOf(scope, byOwn, known, score);
			const together = (x: IndexDoc, y: IndexDoc): boolean => x.conversation === y.conversation && Math.abs(x.at - y.at) <= 6 * 3_600_000;
			const lift = (one: Scored, share: number): number => {
				let best = 0;
				for (const [position, link] of links) {
					if (link.before !== one.doc.position && link.after !== one.doc.position) continue;
					const other = known.get(position) as Scored;
					if (together(one.doc, other.doc)) best = Math.max(best, other.own);
				}
				return share * best;
			};
			const lifted = new Map<number, number>();
			for (const [position, link] of links) {
				for (const side of [position, link.before, link.after]) {
					if (side === null || lifted.has(side)) continue;
					const one = known.get(side);
					if (one) lifted.set(side, lift(one, 1));
				}
			}

			// The far end of the candidates is not worth reading.
			const worth = new Set([
				...byOwn.slice(0, breadth.read).map((one) => one.doc.position),
				...near,
				...[...lifted.keys()].filter((position) => (lifted.get(position) ?? 0) > 0 || known.has(position)).slice(0, breadth.read),
			]);
			const entries = new Map<number, RankedEntry>();
			for (const entry of index.entries([...worth])) entries.set(entry.position, entry);
			const alive = [...known.values()].filter((one) => {
				const entry = entries.get(one.doc.position);
				// The database has the last word on whose memory it is, whatever the index says.
				return entry !== undefined && entry.owner === request.key.owner && entry.audience === request.key.audience;
			});

			const toHit = (one: Scored, value: number): SearchHit => {
				const entry = entries.get(one.doc.position) as RankedEntry;
				return {
					position: entry.position,
					id: entry.id,
					text: entry.text,
					at: entry.at,
					source: entry.source,
					ref: entry.ref,
					conversationId: entry.conversation_id,
					score: Math.round(Math.min(1, Math.max(0, value)) * 1000) / 1000,
				};
			};
			const taken: Scored[] = [];
			const take = (ranked: { one: Scored; rank: number; shown: number }[], count: number): SearchHit[] => {
				const hits: SearchHit[] = [];
				const own = new Set<Scored>();
				for (const { one, shown } of ranked.sort((x, y) => y.rank - x.rank)) {
					if (hits.length >= count) break;
					if (taken.some((other) => other === one || sameSaying(other.doc.terms, one.doc.terms))) continue;
					taken.push(one);
					own.add(one);
					hits.push(toHit(one, shown));
				}
				for (const { one, shown } of ranked) {
					if (hits.length >= request.total) break;
					if (!own.has(one)) hits.push(toHit(one, shown));
				}
				return hits;
			};

			const bestOwn = Math.max(...alive.map((one) => one.own), 0.0001);
			const keywordRanked = alive
				.filter((one) => one.own > 0 && (request.loose || isClose(one)))
				.map((one) => ({
					one,
					rank:
						(one.own + 0.15 * (lifted.get(one.doc.position) ?? 0)) * standing(entries.get(one.doc.position) as RankedEntry, request.now),
					shown: Math.min(1, one.cover),
				}));
			const vectors = request.vector
				? index.vectors(
						alive.map((one) => one.doc.position),
						request.model,
					)
				: new Map<number, Float32Array>();
			const ground = request.vector && !lexical ? background(scope, request.model, request.vector) : null;
			const closeAt = ground ? Math.max(ground.mean + 2.5 * ground.spread, 0.15) : 0.25;
			const semanticRanked: { one: Scored; rank: number; shown: number }[] = [];
			for (const one of alive) {
				const vector = vectors.get(one.doc.position);
				const similarity = vector && request.vector ? cosine(vector, request.vector) : 0;
				const weight = standing(entries.get(one.doc.position) as RankedEntry, request.now);
				if (lexical) {
					const beside = lifted.get(one.doc.position) ?? 0;
					const close = similarity >= 0.3 || isClose(one) || (beside >= bestOwn * 0.7 && answers(one, links, known, entries));
					if (!close && !request.loose) continue;
					const rank = (one.own / bestOwn) * 0.7 + similarity * 0.6 + 0.3 * (beside / bestOwn);
					semanticRanked.push({ one, rank: rank * weight, shown: Math.max(similarity, one.cover * 0.9) });
				} else if (vector && (similarity >= closeAt || request.loose)) {
					semanticRanked.push({ one, rank: similarity * weight, shown: similarity });
				}
			}
			// The keyword half goes first when vectors know wording only, the semantic half when they know meaning: each then brings what the other has not.
			if (lexical) {
				const keyword = take(keywordRanked, request.keyword);
				return { keyword, semantic: take(semanticRanked, request.semantic) };
			}
			const semantic = take(semanticRanked, request.semantic);
			return { semantic, keyword: take(keywordRanked, request.keyword) };
		},
	};
}

const none = new Set<string>();
const isClose = (one: Scored): boolean => one.cover >= closeCover || (one.rare && one.cover >= rareCover);

const spoken = /^[\p{L}\p{N} .'’_-]{1,30}[:：]/u;

/**
 * True when this memory carries on one that is close to what was asked: the answer to its question, or what was said just before or after it
 * in a conversation.
 */
function answers(
	one: Scored,
	links: Map<number, { before: number | null; after: number | null }>,
	known: Map<number, Scored>,
	entries: Map<number, RankedEntry>,
): boolean {
	for (const [position, link] of links) {
		if (link.after !== one.doc.position && link.before !== one.doc.position) continue;
		const other = known.get(position) as Scored;
		const text = entries.get(position)?.text ?? "";
		if (other.cover < 0.5) continue;
		if (link.after === one.doc.position && /[?？吗呢]\s*$/.test(text)) return true;
		if (spoken.test(text) && spoken.test(entries.get(one.doc.position)?.text ?? "")) return true;
	}
	return false;
}
