/** Deterministic unit vectors from words and character pairs: texts that share words are close, in Chinese as well. */
export function embeddingOf(text: string, dimensions: number): number[] {
	const vector = new Array<number>(dimensions).fill(0);
	const lower = text.toLowerCase();
	const features = [...(lower.match(/[a-z0-9]+/g) ?? []), ...(lower.match(/[\u4e00-\u9fff]/g) ?? [])];
	const han = lower.replace(/[^\u4e00-\u9fff]/g, "");
	for (let i = 0; i + 1 < han.length; i++) features.push(han.slice(i, i + 2));
	for (const feature of features) {
		const hash = fnv(feature);
		const place = hash % dimensions;
		vector[place] = (vector[place] ?? 0) + ((hash >>> 16) & 1 ? 1 : -1);
	}
	const length = Math.hypot(...vector);
	if (length === 0) vector[0] = 1;
	return length === 0 ? vector : vector.map((value) => value / length);
}

function fnv(text: string): number {
	let hash = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
	return hash;
}
