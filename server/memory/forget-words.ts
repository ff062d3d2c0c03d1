/** Whether a text says again what is to be forgotten. Pure. */
import { normOf, topicOf } from "./fact-rules.ts";
import { fold, stem } from "./text/normalise.ts";
import { stopWords } from "./text/stop-words.ts";

export interface Teller {
	/** A sentence of the text says it: it holds the wording, or all of the telling words in whatever order. */
	repeats(text: string): boolean;
	/** As `repeats`, or the question and the answer say it together. */
	repeatsTalk(said: string, replied: string): boolean;
	/** The text holds a word of what is new in it (of "my PIN is 4711" the number): enough where the talk is about forgetting it. */
	touches(text: string): boolean;
	/** The sentences that say it, for finding copies of them. */
	sentences(text: string): string[];
}

interface Words {
	/** Stems. */
	words: Set<string>;
	/** Words of Chinese. */
	chinese: Set<string>;
	/** The text itself: where Chinese is cut depends on what stands beside it, so its words are looked for as they stand. */
	folded: string;
}

const run = /\p{Script=Han}+|\d+(?:[.:]\d+)*|[\p{L}\p{M}\p{N}]+?(?=[\p{Script=Han}]|[^\p{L}\p{M}\p{N}]|$)/gu;
const han = /^\p{Script=Han}/u;
const cutter = new Intl.Segmenter("zh", { granularity: "word" });
/** A model writes facts of "the user"; the user says "I". */
const speaker = new Set(["user", "person", "master", "speaker", "用户", "主人"].map(stem));

function wordsOf(text: string): Words {
	const folded = fold(text);
	const found: Words = { words: new Set(), chinese: new Set(), folded };
	for (const [part] of folded.matchAll(run)) {
		if (han.test(part)) {
			for (const { segment } of cutter.segment(part)) if (!stopWords.has(segment) && !speaker.has(segment)) found.chinese.add(segment);
		} else if (!stopWords.has(part) && !speaker.has(stem(part))) found.words.add(stem(part));
	}
	return found;
}

const without = (one: Words, two: Words): Words => ({
	...one,
	words: new Set([...one.words].filter((word) => !two.words.has(word))),
	chinese: new Set([...one.chinese].filter((word) => !two.chinese.has(word))),
});
const size = (one: Words): number => one.words.size + one.chinese.size;

const sentencesOf = (text: string): string[] =>
	text
		.split(/(?<=[.!?])\s+|(?<=[。！？；])|\n+/u)
		.map((part) => part.trim())
		.filter((part) => part !== "");

const sum = (one: Words, two: Words): Words => ({
	words: new Set([...one.words, ...two.words]),
	chinese: one.chinese,
	folded: `${one.folded}\n${two.folded}`,
});

function tellerOf(fact: string): Teller {
	const norm = normOf(fact);
	const chinese = /\p{Script=Han}/u.test(norm);
	const telling = wordsOf(fact);
	const news = without(telling, wordsOf(topicOf(fact) ?? ""));
	const value = size(news) > 0 ? news : telling;
	// One word is in too much that has nothing to do with it.
	const enough = size(telling) >= 2;

	const worded = (text: string): boolean => {
		if (norm === "") return false;
		const said = normOf(text);
		return chinese ? said.replaceAll(" ", "").includes(norm.replaceAll(" ", "")) : ` ${said} `.includes(` ${norm} `);
	};
	const holds = (said: Words): boolean =>
		enough && [...telling.words].every((word) => said.words.has(word)) && [...telling.chinese].every((word) => said.folded.includes(word));

	const sentences = (text: string): string[] => {
		if (!worded(text) && !holds(wordsOf(text))) return [];
		return sentencesOf(text).filter((part) => worded(part) || holds(wordsOf(part)));
	};
	const repeats = (text: string): boolean => worded(text) || sentences(text).length > 0;
	return {
		repeats,
		repeatsTalk(said, replied) {
			if (repeats(said) || repeats(replied)) return true;
			if (!holds(sum(wordsOf(said), wordsOf(replied)))) return false;
			const answers = sentencesOf(replied).map(wordsOf);
			return sentencesOf(said).some((asked) => answers.some((answer) => holds(sum(wordsOf(asked), answer))));
		},
		touches(text) {
			if (worded(text)) return true;
			const said = wordsOf(text);
			return [...value.words].some((word) => said.words.has(word)) || [...value.chinese].some((word) => said.folded.includes(word));
		},
		sentences,
	};
}

/** One for several facts: each of them counts. */
export function createTeller(facts: string[]): Teller {
	const each = [...new Set(facts)].map(tellerOf);
	return {
		repeats: (text) => text !== "" && each.some((one) => one.repeats(text)),
		repeatsTalk: (said, replied) => each.some((one) => one.repeatsTalk(said, replied)),
		touches: (text) => text !== "" && each.some((one) => one.touches(text)),
		sentences: (text) => [...new Set(each.flatMap((one) => one.sentences(text)))],
	};
}
