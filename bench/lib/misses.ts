/** Why recall did not bring an answer, in a phrase made of what can be measured: its rank and distance by meaning, its rank and its words by wording. */
import { type Cutter, termsOf } from "../../server/memory/text/terms.ts";

export interface MissParts {
	/** Texts of all memories. */
	memories: string[];
	/** Cuts Chinese as the search engine does. */
	cutter(text: string): Cutter | null;
	/** What the vectors compare: meaning, or pieces of words. */
	vectors: "meaning" | "lexical vectors";
	/** One vector a text, in order. */
	embed(texts: string[]): Promise<ArrayLike<number>[]>;
	/** How many each half brings. */
	semantic: number;
	keyword: number;
	/** What was brought for the question, and what the keyword half would bring if it brought more: texts, best first. */
	brought(question: string): Promise<{ text: string; by: "semantic" | "keyword" }[]>;
	byWords(question: string): Promise<string[]>;
}

/** A word is rare when no more than this share of the memories has it, as in the ranking. */
const rareShare = 0.02;
const length = (vector: ArrayLike<number>): number => Math.sqrt(Array.from(vector).reduce((sum, value) => sum + value * value, 0));

function cosine(one: ArrayLike<number>, two: ArrayLike<number>): number {
	let dot = 0;
	for (let at = 0; at < one.length; at++) dot += (one[at] as number) * (two[at] as number);
	return dot / (length(one) * length(two) || 1);
}

/** Vectors of the memories are made once. Answers how to explain that `answer` was not brought for `question`. */
export async function createExplainer(parts: MissParts): Promise<(question: string, answer: string) => Promise<string>> {
	const { memories, cutter } = parts;
	const vectors: ArrayLike<number>[] = [];
	for (let at = 0; at < memories.length; at += 64) vectors.push(...(await parts.embed(memories.slice(at, at + 64))));
	/** Word -> in how many memories it is; marks of a shared meaning and pieces of words are none. */
	const spread = new Map<string, number>();
	const words = (text: string): Set<string> =>
		new Set(
			termsOf(text, cutter(text)).flatMap((term) =>
				term.stop || !["word", "name", "number", "date"].includes(term.kind) ? [] : [term.token],
			),
		);
	for (const memory of memories) for (const word of words(memory)) spread.set(word, (spread.get(word) ?? 0) + 1);

	async function meaning(question: string, answer: string, took: number): Promise<string> {
		if (parts.semantic === 0) return "";
		const [asked] = await parts.embed([question]);
		const near = vectors
			.map((vector, at) => ({ text: memories[at] as string, near: cosine(asked as ArrayLike<number>, vector) }))
			.sort((one, two) => two.near - one.near);
		const rank = near.findIndex((one) => one.text === answer);
		const own = near[rank]?.near ?? 0;
		const last = near[parts.semantic - 1]?.near ?? 0;
		if (rank >= parts.semantic) return `rank ${rank + 1} by ${parts.vectors}, ${(last - own).toFixed(3)} under number ${parts.semantic}`;
		return `rank ${rank + 1} by ${parts.vectors} (${own.toFixed(3)}), but the half brought ${took === 0 ? "nothing: none is close enough" : `${took} others`}`;
	}

	async function wording(question: string, answer: string): Promise<string> {
		if (parts.keyword === 0) return "";
		const rank = (await parts.byWords(question)).indexOf(answer);
		if (rank >= 0) return `rank ${rank + 1} by words`;
		const own = words(answer);
		const shared = [...words(question)].filter((word) => own.has(word)).sort((one, two) => (spread.get(one) ?? 0) - (spread.get(two) ?? 0));
		const [rarest] = shared;
		if (rarest === undefined) return "no word in common";
		const count = spread.get(rarest) ?? 0;
		const where = `${count} of ${memories.length} memories`;
		return count > memories.length * rareShare
			? `no rare word in common ("${rarest}" is in ${where})`
			: `one rare word in common ("${rarest}", in ${where}) is too little of the question`;
	}

	return async (question, answer) => {
		const took = (await parts.brought(question)).filter((one) => one.by === "semantic").length;
		return [await meaning(question, answer, took), await wording(question, answer)].filter((part) => part !== "").join("; ");
	};
}
