/** list_files, read_file, write_file, edit_file: the agent's work area. */
import { failure, withPathErrors } from "./result.ts";
import { readLines, textKind } from "./text-file.ts";
import type { Tool, ToolResult } from "./tool.ts";
import type { OpenFile, WorkArea } from "./work-area.ts";

const MAX_ENTRIES = 300;
const DEFAULT_LINES = 500;
const MAX_LINES = 5_000;
const MAX_READ_CHARS = 18_000;
const MAX_LINE_CHARS = 4_000;
const COUNT_BYTES = 20_000_000;
const MAX_EDIT_BYTES = 5_000_000;
const MAX_WRITE_CHARS = 5_000_000;

export function createFileTools(area: WorkArea): Tool[] {
	return [listFiles(area), readFile(area), writeFile(area), editFile(area)];
}

function listFiles(area: WorkArea): Tool {
	return {
		name: "list_files",
		description: "List a directory of the work area.",
		parameters: { type: "object", properties: { path: { type: "string" } } },
		capability: "files",
		readOnly: true,
		effect: "none",
		run: withPathErrors(async (args) => {
			const path = area.normalise(text(args.path ?? ""));
			const entries = await area.list(path);
			if (entries.length === 0) return { text: "(empty directory)" };
			const lines = entries.slice(0, MAX_ENTRIES).map((entry) => {
				if (entry.kind === "directory") return `${entry.name}/`;
				return entry.kind === "file" ? `${entry.name}  ${entry.bytes} bytes` : `${entry.name}  (${entry.kind}, not readable)`;
			});
			const rest = entries.length - lines.length;
			return { text: lines.join("\n") + (rest > 0 ? `\n[${rest} more; list a subdirectory or use search_files]` : "") };
		}),
	};
}

function readFile(area: WorkArea): Tool {
	return {
		name: "read_file",
		description: "Read lines of a text file.",
		parameters: {
			type: "object",
			properties: {
				path: { type: "string" },
				offset: { type: "integer", minimum: 1, description: "first line, from 1" },
				limit: { type: "integer", minimum: 1 },
			},
			required: ["path"],
		},
		capability: "files",
		readOnly: true,
		effect: "none",
		run: withPathErrors(async (args, context) => {
			const file = await area.open(text(args.path));
			try {
				return await readOpen(file, Number(args.offset ?? 1), Math.min(MAX_LINES, Number(args.limit ?? DEFAULT_LINES)), context.signal);
			} finally {
				await file.handle.close();
			}
		}),
	};
}

async function readOpen(file: OpenFile, offset: number, limit: number, signal: AbortSignal): Promise<ToolResult> {
	if (file.bytes === 0) return { text: "(empty file)" };
	const kind = await textKind(file.handle);
	if (kind.encoding === null) return failure(`${file.path} is not text: ${kind.what}, ${file.bytes} bytes.`);
	const lines = await readLines(file.handle, {
		encoding: kind.encoding,
		offset,
		limit,
		maxChars: MAX_READ_CHARS,
		maxLineChars: MAX_LINE_CHARS,
		countBytes: COUNT_BYTES,
		signal,
	});
	if (lines.last < offset) return failure(`${file.path} has only ${lines.total} lines.`);
	const notes: string[] = [];
	if (offset > 1 || lines.more)
		notes.push(
			`lines ${offset}-${lines.last}${lines.total === null ? "" : ` of ${lines.total}`}${lines.more ? `; next offset ${lines.last + 1}` : ""}`,
		);
	if (lines.crlf) notes.push("CRLF line ends");
	if (kind.encoding !== "utf-8") notes.push(`encoding ${kind.encoding}`);
	if (lines.shortened > 0) notes.push(`${lines.shortened} lines cut at ${MAX_LINE_CHARS} characters`);
	const body = notes.length === 0 ? lines.text : `${lines.text}${lines.text.endsWith("\n") ? "" : "\n"}[${notes.join("; ")}]`;
	return { text: body, taint: `file:${file.path}` };
}

function writeFile(area: WorkArea): Tool {
	return {
		name: "write_file",
		description: "Write a whole file; directories are made.",
		parameters: { type: "object", properties: { path: { type: "string" }, content: { type: "string" } }, required: ["path", "content"] },
		capability: "files",
		readOnly: false,
		effect: "outside",
		run: withPathErrors(async (args) => {
			const content = text(args.content);
			if (content.length > MAX_WRITE_CHARS)
				return failure(`The content is too long (${content.length} characters, at most ${MAX_WRITE_CHARS}).`);
			const { path, created } = await area.write(text(args.path), content);
			return { text: `${created ? "Created" : "Replaced"} ${path} (${Buffer.byteLength(content)} bytes).` };
		}),
	};
}

function editFile(area: WorkArea): Tool {
	return {
		name: "edit_file",
		description: "Replace `old`, which must occur exactly once in the file, by `new`.",
		parameters: {
			type: "object",
			properties: { path: { type: "string" }, old: { type: "string" }, new: { type: "string" } },
			required: ["path", "old", "new"],
		},
		capability: "files",
		readOnly: false,
		effect: "outside",
		run: withPathErrors(async (args) => {
			const file = await area.open(text(args.path));
			try {
				if (file.bytes > MAX_EDIT_BYTES)
					return failure(`${file.path} is too large to edit (${file.bytes} bytes, at most ${MAX_EDIT_BYTES}).`);
				const content = utf8(await file.handle.readFile());
				if (content === null) return failure(`${file.path} is not UTF-8 text and cannot be edited without damage.`);
				const edited = replaceOnce(content, text(args.old), text(args.new));
				if ("problem" in edited) return failure(`${file.path} was not changed: ${edited.problem}`);
				await area.write(file.path, edited.content, { unchanged: file });
				return { text: `Changed ${file.path} at line ${edited.line}.` };
			} finally {
				await file.handle.close();
			}
		}),
	};
}

/** Null for bytes that are no UTF-8. A byte order mark stays in the text, so that it is written back. */
function utf8(bytes: Uint8Array): string | null {
	try {
		const decoded = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
		return decoded.includes("\0") ? null : decoded;
	} catch {
		return null;
	}
}

/** One exact replacement. In a file with CRLF line ends both texts are taken in the file's line ends. */
export function replaceOnce(content: string, old: string, replacement: string): { content: string; line: number } | { problem: string } {
	if (old === "") return { problem: "`old` is empty." };
	const crlf = /\r\n/.test(content) && !/(^|[^\r])\n/.test(content);
	const toFile = (piece: string) => (crlf ? piece.replace(/\r?\n/g, "\r\n") : piece);
	const wanted = toFile(old);
	const next = toFile(replacement);
	if (wanted === next) return { problem: "`old` and `new` are the same." };
	const at = content.indexOf(wanted);
	if (at === -1) return { problem: `\`old\` was not found.${near(content, wanted)}` };
	const lineOf = (position: number) => content.slice(0, position).split("\n").length;
	const places: number[] = [];
	for (let position = at; position !== -1 && places.length < 20; position = content.indexOf(wanted, position + 1))
		places.push(lineOf(position));
	if (places.length > 1)
		return {
			problem: `\`old\` occurs ${places.length === 20 ? "20 times or more" : `${places.length} times`} (lines ${places.join(", ")}); give more of its surroundings.`,
		};
	return { content: content.slice(0, at) + next + content.slice(at + wanted.length), line: lineOf(at) };
}

function near(content: string, wanted: string): string {
	const first = wanted
		.split(/\r?\n/)
		.map((line) => line.trim())
		.find((line) => line.length > 3);
	const line = first === undefined ? -1 : content.split("\n").findIndex((candidate) => candidate.includes(first));
	return line === -1 ? "" : ` A similar text is at line ${line + 1}; spaces and line ends must match exactly.`;
}

function text(value: unknown): string {
	return typeof value === "string" ? value : "";
}
