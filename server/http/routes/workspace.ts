/** A person's editor for the files below `workspace/`, SOUL.md included, with their versions. */
import { stat } from "node:fs/promises";
import { z } from "zod";
import type { Workspace, WorkspaceFile as WorkspaceFileState } from "../../workspace/workspace.ts";
import { type App, wellFormed } from "../context.ts";
import { WorkspaceFile, WorkspaceFolder, WorkspaceVersion, WorkspaceVersionText } from "../contract.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { answering } from "./refusals.ts";

export interface WorkspaceRouteDeps {
	workspace: Pick<Workspace, "resolve" | "read" | "write" | "list" | "versions" | "readVersion" | "restore">;
	/** Told after a person changed a file. */
	changed?(path: string): void;
}

/** What the workspace reads at most: more would be stored and never seen again. */
const mostBytes = 4_000_000;
/** The same in escaped JSON. */
const bodyBytes = 9_000_000;
const mostListed = 2000;
const reason = "edited on the page or through the API";

const base = "/api/v1/workspace/files";
const Path = z.object({ "*": z.string().max(1000) });
const iso = (at: number): string => new Date(at).toISOString();

function toFile(file: WorkspaceFileState): z.infer<typeof WorkspaceFile> {
	return {
		path: file.path,
		content: file.text,
		version: file.version,
		changedAt: file.changedAt === null ? null : iso(file.changedAt),
		problem: file.problem,
	};
}

export function workspaceRoutes(app: App, deps: WorkspaceRouteDeps): void {
	const { workspace } = deps;

	/** What stands at a path below `workspace/`; null when nothing does. */
	async function kindOf(path: string): Promise<"file" | "folder" | null> {
		const found = await stat(await workspace.resolve(path)).catch((error: NodeJS.ErrnoException) => {
			if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
			throw error;
		});
		return found === null ? null : found.isDirectory() ? "folder" : "file";
	}

	/** `FILE/versions` and the like, when FILE is not a folder that holds a thing of this name itself. */
	async function asked(path: string, pattern: RegExp): Promise<RegExpExecArray | null> {
		const match = pattern.exec(path);
		return match && (await kindOf(match[1] ?? "")) !== "folder" ? match : null;
	}

	async function folder(path: string): Promise<z.infer<typeof WorkspaceFolder>> {
		const files = await workspace.list(path, mostListed + 1);
		return {
			path: path
				.split("/")
				.filter((part) => part !== "" && part !== ".")
				.join("/"),
			files: files.slice(0, mostListed).map(({ changedAt, ...file }) => ({ ...file, changedAt: iso(changedAt) })),
			more: files.length > mostListed,
		};
	}

	async function versions(path: string): Promise<{ versions: z.infer<typeof WorkspaceVersion>[] }> {
		const rows = await workspace.versions(path);
		if (rows.length === 0 && (await kindOf(path)) === null) throw notFound("file");
		return { versions: rows.map(({ at, ...row }) => ({ ...row, at: iso(at) })) };
	}

	async function version(path: string, name: string): Promise<z.infer<typeof WorkspaceVersionText>> {
		const record = await workspace.readVersion(path, name);
		if (record === null) throw notFound("version");
		const { text, at, ...row } = record;
		return { version: row.version, at: iso(at), by: row.by, reason: row.reason, before: row.before, content: text };
	}

	async function read(path: string): Promise<z.infer<typeof WorkspaceFile>> {
		const file = await workspace.read(path);
		if (!file.exists) throw notFound("file");
		return toFile(file);
	}

	app.get(base, { schema: { response: { 200: WorkspaceFolder } } }, () => answering(() => folder("")));

	app.get(
		`${base}/*`,
		{
			schema: {
				summary: "A file, the files of a folder, `FILE/versions`, or `FILE/versions/VERSION`",
				params: Path,
				response: {
					200: z.union([WorkspaceFile, WorkspaceFolder, z.object({ versions: z.array(WorkspaceVersion) }), WorkspaceVersionText]),
				},
			},
		},
		({ params }) =>
			answering(async () => {
				const path = params["*"];
				const all = await asked(path, /^(.+)\/versions$/);
				if (all) return versions(all[1] ?? "");
				const one = await asked(path, /^(.+)\/versions\/([0-9a-f]{1,64})$/);
				if (one) return version(one[1] ?? "", one[2] ?? "");
				return (await kindOf(path)) === "folder" ? folder(path) : read(path);
			}),
	);

	app.put(
		`${base}/*`,
		{
			bodyLimit: bodyBytes,
			schema: {
				params: Path,
				body: z.object({
					content: z.string().transform(wellFormed),
					/** The version that was edited; null: there was no file. Left out: whatever stands there is replaced. */
					base: z.string().max(100).nullish(),
				}),
				response: { 200: WorkspaceFile, 201: WorkspaceFile },
			},
		},
		({ params, body }, reply) =>
			answering(async () => {
				const path = params["*"];
				if (Buffer.byteLength(body.content) > mostBytes)
					throw new HttpProblem(413, "too-large", `A file has at most ${mostBytes} bytes here.`);
				const before = await kindOf(path);
				const file = await workspace.write(path, body.content, {
					by: "person",
					reason,
					...(body.base === undefined ? {} : { base: body.base }),
				});
				deps.changed?.(file.path);
				return reply.code(before === null ? 201 : 200).send(toFile(file));
			}),
	);

	app.post(
		`${base}/*`,
		{
			schema: {
				summary: "`FILE/restore`: an older version becomes the newest",
				params: Path,
				body: z.object({ version: z.string().min(1).max(100) }),
				response: { 200: WorkspaceFile },
			},
		},
		({ params, body }) =>
			answering(async () => {
				const match = await asked(params["*"], /^(.+)\/restore$/);
				if (!match) throw new HttpProblem(404, "not-found", "There is nothing here.");
				const path = match[1] ?? "";
				if (!/^[0-9a-f]{1,64}$/.test(body.version)) throw notFound("version");
				const file = await workspace.restore(path, body.version, { by: "person", reason: `version ${body.version} restored` });
				if (file === null) throw notFound("version");
				deps.changed?.(file.path);
				return toFile(file);
			}),
	);
}
