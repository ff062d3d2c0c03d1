/** The name of `known` that `name` was most likely meant to be, or null when none is close. */
export function nearest(name: string, known: Iterable<string>): string | null {
	const wanted = simple(name);
	let best: string | null = null;
	let bestDistance = Number.POSITIVE_INFINITY;
	for (const candidate of known) {
		const distance = editDistance(wanted, simple(candidate));
		if (distance < bestDistance) {
			best = candidate;
			bestDistance = distance;
		}
	}
	return bestDistance <= Math.max(1, Math.floor(wanted.length / 3)) ? best : null;
}

const simple = (name: string) => name.toLowerCase().replace(/[-_\s]/g, "");

/** Edits (insert, delete, change, swap of neighbours) that lead from one word to the other. */
function editDistance(a: string, b: string): number {
	let beforeLast: number[] = [];
	let last = Array.from({ length: b.length + 1 }, (_, index) => index);
	for (let i = 1; i <= a.length; i++) {
		const row = [i];
		for (let j = 1; j <= b.length; j++) {
			const same = a[i - 1] === b[j - 1] ? 0 : 1;
			let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
			row.push(cost);
		}
		beforeLast = last;
		last = row;
	}
	return last[b.length] ?? 0;
}
