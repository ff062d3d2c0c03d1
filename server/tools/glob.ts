/** Glob patterns for `search_files`: `*`, `?`, `**`, `{a,b}`. Linear matching, so no pattern can hang the process. */

/** A test for relative paths. A pattern without `/` is matched against the file name alone. */
export function globMatcher(glob: string): (path: string) => boolean {
	const patterns = expandBraces(glob.slice(0, 500)).map((pattern) => pattern.replace(/^\.?\//, ""));
	return (path) => {
		const segments = path.split("/");
		return patterns.some((pattern) =>
			pattern.includes("/") ? matchSegments(pattern.split("/"), segments) : wildcard(pattern, segments.at(-1) ?? ""),
		);
	};
}

function expandBraces(glob: string): string[] {
	let list = [glob];
	for (let round = 0; round < 5; round++) {
		const next = list.flatMap((item) => {
			const match = /\{([^{}]*)\}/.exec(item);
			return match
				? (match[1] as string).split(",").map((choice) => item.slice(0, match.index) + choice + item.slice(match.index + match[0].length))
				: [item];
		});
		if (next.length > 64 || next.join("\n") === list.join("\n")) break;
		list = next;
	}
	return list;
}

/** `**` stands for any number of segments: a table of what is reachable, row by row. */
function matchSegments(pattern: string[], segments: string[]): boolean {
	let reachable = segments.map(() => false);
	reachable = [true, ...reachable];
	for (const part of pattern) {
		const next = reachable.map(() => false);
		for (let index = 0; index < reachable.length; index++) {
			if (part === "**") next[index] = (reachable[index] as boolean) || (index > 0 && (next[index - 1] as boolean));
			else if (index > 0 && reachable[index - 1]) next[index] = wildcard(part, segments[index - 1] as string);
		}
		reachable = next;
	}
	return reachable.at(-1) === true;
}

/** `*` and `?` inside one name, with two pointers. */
export function wildcard(pattern: string, name: string): boolean {
	let p = 0;
	let n = 0;
	let star = -1;
	let mark = 0;
	while (n < name.length) {
		if (p < pattern.length && pattern[p] === "*") {
			star = p++;
			mark = n;
		} else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === name[n])) {
			p++;
			n++;
		} else if (star !== -1) {
			p = star + 1;
			n = ++mark;
		} else return false;
	}
	while (pattern[p] === "*") p++;
	return p === pattern.length;
}
