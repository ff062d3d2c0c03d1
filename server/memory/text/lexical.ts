/**
 * The built-in embedding: words, concepts, Chinese pairs and letter triples, hashed into signs and added up. It measures
 * how much two texts share in wording (and in the little concept table), not what they mean, and is called lexical everywhere.
 */
import { fold } from "./normalise.ts";
import { termsOf } from "./terms.ts";

export const lexicalModel = "lexical-v1";
export const lexicalDimension = 256;

const weights = { word: 1, name: 1.2, number: 1, date: 1, concept: 0.8, gram: 0.6, char: 0.25 } as const;

function hash(text: string): number {
	let value = 0x811c9dc5;
	for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
	return value >>> 0;
}

function featuresOf(text: string): Map<string, number> {
	const features = new Map<string, number>();
	const add = (feature: string, weight: number) => features.set(feature, (features.get(feature) ?? 0) + weight);
	for (const term of termsOf(text, null)) if (!term.stop) add(term.token, weights[term.kind]);
	for (const found of fold(text).matchAll(/[a-z]{5,}/g)) {
		for (let index = 0; index + 3 <= found[0].length; index++) add(`~${found[0].slice(index, index + 3)}`, 0.2);
	}
	return features;
}

/** A vector of length one, or all zero for a text without features. */
export function lexicalVector(text: string): Float32Array {
	const vector = new Float32Array(lexicalDimension);
	for (const [feature, weight] of featuresOf(text)) {
		const strength = Math.sqrt(weight);
		let state = hash(feature) || 1;
		for (let base = 0; base < lexicalDimension; base += 32) {
			state ^= state << 13;
			state ^= state >>> 17;
			state ^= state << 5;
			let bits = Math.imul(state, 0x9e3779b1);
			bits ^= bits >>> 15;
			for (let bit = 0; bit < 32; bit++) vector[base + bit] = (vector[base + bit] as number) + ((bits >>> bit) & 1 ? strength : -strength);
		}
	}
	let sum = 0;
	for (const value of vector) sum += value * value;
	if (sum === 0) return vector;
	const scale = 1 / Math.sqrt(sum);
	for (let index = 0; index < vector.length; index++) vector[index] = (vector[index] as number) * scale;
	return vector;
}
