/** A text as search terms. Both sides of a search, index and question, go through `termsOf`. Pure but for the cutter handed in. */
import { conceptsOf } from "./concepts.ts";
import { dateMarks } from "./dates.ts";
import { fold, stem } from "./normalise.ts";
import { stopWords } from "./stop-words.ts";

/** Cuts Chinese into words, longer ones also into their parts. */
export type Cutter = (text: string) => string[];

/**
 * `word`: a word or a stem; `name`: a word written with a capital inside a sentence; `number`; `date`: a mark of a date;
 * `concept`: a mark shared by words of near meaning; `gram`: two Chinese characters side by side; `char`: one of them.
 */
export type TermKind = "word" | "name" | "number" | "date" | "concept" | "gram" | "char";

export interface Term {
	token: string;
	kind: TermKind;
	/** True for words that say nothing about what is looked for. */
	stop: boolean;
	/** Of a concept: the word that stands for it here. */
	of?: string;
}

const run =
	/\p{Script=Han}+|[\p{Script=Hiragana}\p{Script=Katakana}ー]+|\d+(?:[.:]\d+)*|[\p{L}\p{M}\p{N}]+?(?=[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\p{L}\p{M}\p{N}]|$)/gu;
const han = /^\p{Script=Han}/u;
const kana = /^[\p{Script=Hiragana}\p{Script=Katakana}]/u;

function namesIn(text: string): Set<string> {
	const names = new Set<string>();
	for (const found of text.matchAll(/(?<![.!?。！？]\s)(?<=\S\s|\S|[\p{Script=Han}])\b\p{Lu}[\p{L}'’-]+/gu))
		names.add(fold(found[0].replace(/['’]s?$/, "")));
	return names;
}

function hanTerms(text: string, cutter: Cutter | null, out: Term[]): void {
	const characters = [...text];
	const words = cutter ? cutter(text).filter((word) => word.trim() !== "") : [];
	const put = (token: string, kind: TermKind, stop: boolean) => out.push({ token, kind, stop });
	const seen = new Set<string>();
	for (const word of words) {
		const stop = stopWords.has(word);
		if ([...word].length > 1 || !stop) {
			put(word, "word", stop);
			seen.add(word);
		}
		if (stop) continue;
		const whole = conceptsOf(word);
		// A compound that the table does not know may still be made of words that it knows.
		const meant = whole.length > 0 ? whole : [...word].flatMap((one) => (stopWords.has(one) ? [] : conceptsOf(one)));
		for (const concept of meant) out.push({ token: concept, kind: "concept", stop: false, of: word });
	}
	for (let index = 0; index < characters.length; index++) {
		const one = characters[index] as string;
		if (!seen.has(one)) put(one, "char", stopWords.has(one));
		const next = characters[index + 1];
		if (next !== undefined) {
			const gram = one + next;
			if (!seen.has(gram)) put(gram, "gram", stopWords.has(gram) || (stopWords.has(one) && stopWords.has(next)));
		}
		if (cutter) continue;
		for (let length = 1; length <= 4 && index + length <= characters.length; length++) {
			for (const concept of conceptsOf(characters.slice(index, index + length).join(""))) put(concept, "concept", false);
		}
	}
}

function wordTerms(raw: string, names: Set<string>, out: Term[]): void {
	if (kana.test(raw)) {
		const characters = [...raw];
		if (characters.length === 1) out.push({ token: raw, kind: "char", stop: false });
		for (let index = 0; index + 1 < characters.length; index++)
			out.push({ token: `${characters[index]}${characters[index + 1]}`, kind: "gram", stop: false });
		return;
	}
	if (/^\d/.test(raw)) {
		const token = raw.replace(/[.:]/g, "p");
		out.push({ token, kind: "number", stop: false });
		if (token !== raw) for (const part of raw.split(/[.:]/)) out.push({ token: part, kind: "char", stop: false });
		return;
	}
	const stop = stopWords.has(raw);
	const token = stem(raw);
	out.push({ token, kind: names.has(raw) && !stop ? "name" : "word", stop });
	if (!stop) for (const concept of conceptsOf(token)) out.push({ token: concept, kind: "concept", stop: false, of: token });
}

/** Every term of a text, repeats included. With no cutter Chinese is taken as pairs and single characters. */
export function termsOf(text: string, cutter: Cutter | null): Term[] {
	const folded = fold(text);
	const names = namesIn(text);
	const out: Term[] = [];
	for (const found of folded.matchAll(run)) {
		if (han.test(found[0])) hanTerms(found[0], cutter, out);
		else wordTerms(found[0], names, out);
	}
	for (const mark of dateMarks(folded)) out.push({ token: mark, kind: "date", stop: false });
	return out;
}

export const hasHan = (text: string): boolean => /\p{Script=Han}/u.test(text);

/** True when a message has nothing that a memory could be found by: greetings, thanks, bare function words. */
export function saysNothing(text: string): boolean {
	if (text.length > 60) return false;
	return termsOf(text, null).every((term) => term.stop || (term.kind === "char" && hasHan(term.token)));
}
