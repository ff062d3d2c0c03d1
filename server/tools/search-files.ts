/** search_files: literal text in the files of the work area. */
import { globMatcher } from "./glob.ts";
import { failure, withPathErrors } from "./result.ts";
import { textKind } from "./text-file.ts";
import type { Tool } from "./tool.ts";
import { PathError, type WorkArea } from "./work-area.ts";

const NOISE = new Set([
	".git",
	".hg",
	".svn",
	"node_modules",
	"__pycache__",
	".venv",
	"venv",
	".cache",
	".tox",
	".mypy_cache",
	".idea",
	".next",
	"dist",
	"build",
	"coverage",
	"target",
	"vendor",
]);
const MAX_HITS = 100;
const MAX_HITS_PER_FILE = 20;
const MAX_FILES = 20_000;
const MAX_FILE_BYTES = 10_000_000;
const MAX_BYTES = 300_000_000;
const MAX_LINE_CHARS = 200;
const MAX_DEPTH = 40;

interface Search {
	query: string;
	fold: boolean;
	matches: (path: string) => boolean;
	hits: string[];
	files: number;
	bytes: number;
	large: string[];
	incomplete: boolean;
	signal: AbortSignal;
}

export function createSearchFiles(area: WorkArea): Tool {
	return {
		name: "search_files",
		description: "Find text in files and file names (literal; lower case ignores case). An empty query with a glob lists files.",
		parameters: {
			type: "object",
			properties: { query: { type: "string" }, path: { type: "string" }, glob: { type: "string" } },
			required: ["query"],
		},
		capability: "files",
		readOnly: true,
		effect: "none",
		run: withPathErrors(async (args, context) => {
			const query = String(args.query ?? "");
			const glob = String(args.glob ?? "");
			if (query === "" && glob === "") return failure("Give a text to find, or a glob.");
			const search: Search = {
				query,
				fold: query === query.toLowerCase(),
				matches: glob === "" ? () => true : globMatcher(glob),
				hits: [],
				files: 0,
				bytes: 0,
				large: [],
				incomplete: false,
				signal: context.signal,
			};
			const start = area.normalise(String(args.path ?? ""));
			await walk(area, search, start, 0).catch(async (error) => {
				// A path that is a file is searched by itself.
				if (!(error instanceof PathError) || start === "") throw error;
				const file = await area.open(start).catch(() => {
					throw error;
				});
				await file.handle.close();
				await searchFile(area, search, start);
			});
			const notes = [];
			if (search.incomplete) notes.push("not everything was searched; narrow it with path or glob");
			if (search.large.length > 0) notes.push(`skipped as too large: ${search.large.slice(0, 5).join(", ")}`);
			const note = notes.length > 0 ? `\n[${notes.join("; ")}]` : "";
			if (search.hits.length === 0) return { text: `Nothing found for "${query || glob}" in ${search.files} files.${note}` };
			return { text: search.hits.join("\n") + note, taint: `files:${start || "."}` };
		}),
	};
}

async function walk(area: WorkArea, search: Search, directory: string, depth: number): Promise<void> {
	for (const entry of await area.list(directory)) {
		search.signal.throwIfAborted();
		if (search.hits.length >= MAX_HITS || search.files >= MAX_FILES || search.bytes > MAX_BYTES) {
			search.incomplete = true;
			return;
		}
		const path = directory === "" ? entry.name : `${directory}/${entry.name}`;
		try {
			if (entry.kind === "directory") {
				if (depth < MAX_DEPTH && !NOISE.has(entry.name)) await walk(area, search, path, depth + 1);
			} else if (entry.kind === "file" && !entry.name.startsWith(".tmp-") && search.matches(path)) await searchFile(area, search, path);
		} catch (error) {
			// A file that vanished or may not be read is no reason to end the search.
			if (!(error instanceof PathError)) throw error;
		}
	}
}

async function searchFile(area: WorkArea, search: Search, path: string): Promise<void> {
	search.files++;
	const fold = (text: string) => (search.fold ? text.toLowerCase() : text);
	if (search.query === "" || fold(path).includes(search.query)) search.hits.push(path);
	if (search.query === "") return;
	const file = await area.open(path);
	try {
		if (file.bytes > MAX_FILE_BYTES) {
			search.large.push(path);
			return;
		}
		const { encoding } = file.bytes === 0 ? { encoding: null } : await textKind(file.handle);
		if (encoding === null) return;
		search.bytes += file.bytes;
		const text = new TextDecoder(encoding).decode(await readWhole(file.handle, file.bytes));
		if (!fold(text).includes(search.query)) return;
		let found = 0;
		for (const [index, line] of text.split(/\r?\n/).entries()) {
			if (!fold(line).includes(search.query)) continue;
			if (++found > MAX_HITS_PER_FILE || search.hits.length >= MAX_HITS) {
				search.incomplete = true;
				return;
			}
			search.hits.push(`${path}:${index + 1}: ${around(line, fold(line).indexOf(search.query))}`);
		}
	} finally {
		await file.handle.close();
	}
}

/** From the beginning whatever was read before; never more than was there when the file was opened. */
async function readWhole(
	handle: { read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }> },
	bytes: number,
): Promise<Buffer> {
	const buffer = Buffer.alloc(bytes);
	let filled = 0;
	while (filled < bytes) {
		const { bytesRead } = await handle.read(buffer, filled, bytes - filled, filled);
		if (bytesRead === 0) break;
		filled += bytesRead;
	}
	return buffer.subarray(0, filled);
}

/** The part of a long line that holds the hit. */
function around(line: string, at: number): string {
	if (line.length <= MAX_LINE_CHARS) return line.trim();
	const from = Math.max(0, at - MAX_LINE_CHARS / 4);
	const part = line.slice(from, from + MAX_LINE_CHARS).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "");
	return `${from > 0 ? "…" : ""}${part.trim()}…`;
}
