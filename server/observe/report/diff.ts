/** Differences of two texts by line: enough for plans and prompt files. */

export interface DiffLine {
	kind: "same" | "added" | "removed";
	text: string;
}

/** Above this many lines on a side the middle is not compared line by line: a report must not take minutes. */
const mostLines = 2_000;

/** Longest common subsequence over lines; equal beginnings and ends are set apart first. */
export function diffLines(before: string, after: string): DiffLine[] {
	const a = before === "" ? [] : before.split("\n");
	const b = after === "" ? [] : after.split("\n");
	let start = 0;
	while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
	let end = 0;
	while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
	const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: "same", text }));
	return [
		...same(a.slice(0, start)),
		...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
		...same(a.slice(a.length - end)),
	];
}

function middle(a: string[], b: string[]): DiffLine[] {
	const removed = (text: string): DiffLine => ({ kind: "removed", text });
	const added = (text: string): DiffLine => ({ kind: "added", text });
	if (a.length > mostLines || b.length > mostLines || a.length === 0 || b.length === 0) return [...a.map(removed), ...b.map(added)];
	const width = b.length + 1;
	const lengths = new Uint16Array((a.length + 1) * width);
	for (let i = a.length - 1; i >= 0; i -= 1)
		for (let j = b.length - 1; j >= 0; j -= 1)
			lengths[i * width + j] =
				a[i] === b[j]
					? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
					: Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
	const out: DiffLine[] = [];
	let i = 0;
	let j = 0;
	while (i < a.length && j < b.length) {
		if (a[i] === b[j]) {
			out.push({ kind: "same", text: a[i] as string });
			i += 1;
			j += 1;
		} else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0)) out.push(removed(a[i++] as string));
		else out.push(added(b[j++] as string));
	}
	return [...out, ...a.slice(i).map(removed), ...b.slice(j).map(added)];
}

/** Changes with two lines around each; `null` stands for lines left out. */
export function hunks(lines: DiffLine[], around = 2): (DiffLine | null)[] {
	const near = lines.map((_, index) => lines.slice(Math.max(0, index - around), index + around + 1).some((line) => line.kind !== "same"));
	const out: (DiffLine | null)[] = [];
	for (const [index, line] of lines.entries()) {
		if (near[index]) out.push(line);
		else if (out.at(-1) !== null) out.push(null);
	}
	return out;
}
