/**
 * The agent's work area, `<home>/workspace/files`: the one place where its file tools read and write. A path is walked from the
 * root one name at a time and links are never followed, so nothing in it can lead outside, not even a link that is put there
 * between check and use: on Linux each step starts from the directory that is already open.
 */
import { randomBytes } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, unlink } from "node:fs/promises";
import { join } from "node:path";

/** A path or file that cannot be used; `message` is written for the model. */
export class PathError extends Error {
	constructor(message: string) {
		super(message);
		this.name = "PathError";
	}
}

export interface OpenFile {
	/** The caller closes it. */
	handle: FileHandle;
	/** The path as it is shown: relative, without `./`. */
	path: string;
	bytes: number;
	mtimeMs: number;
	mode: number;
	ino: number;
}

export interface Entry {
	name: string;
	kind: "file" | "directory" | "link" | "other";
	bytes: number;
}

export interface WorkArea {
	/** Opens a regular file for reading. Throws `PathError`. */
	open(path: string): Promise<OpenFile>;
	/** The entries of a directory by name; empty path = the root. Throws `PathError`. */
	list(path: string): Promise<Entry[]>;
	/** Writes a file whole (temp, fsync, rename), making directories as needed. With `unchanged` it is refused if the file is no longer that one. */
	write(path: string, data: string | Uint8Array, options?: { unchanged?: OpenFile }): Promise<{ path: string; created: boolean }>;
	/** The path as it is shown; throws `PathError` when it is none of ours. */
	normalise(path: string): string;
}

const FLAGS = { nofollow: constants.O_NOFOLLOW ?? 0, directory: constants.O_DIRECTORY ?? 0, nonblock: constants.O_NONBLOCK ?? 0 };

/** The names of a path inside the work area. */
export function pathParts(path: string): string[] {
	if (path.includes("\0")) throw new PathError("The path holds a NUL character.");
	const text = process.platform === "win32" ? path.replaceAll("\\", "/") : path;
	if (text.startsWith("/") || /^[A-Za-z]:[/\\]/.test(text))
		throw new PathError(`"${path}" is absolute; paths are relative to the work area.`);
	if (text === "~" || text.startsWith("~/") || /^~[^/]*\//.test(text))
		throw new PathError(`"${path}" points to a home directory; paths are relative to the work area.`);
	const parts = text.split("/").filter((part) => part !== "" && part !== ".");
	if (parts.includes("..")) throw new PathError(`"${path}" contains ".."; paths stay inside the work area.`);
	if (parts.some((part) => Buffer.byteLength(part) > 255) || text.length > 2_000) throw new PathError("The path is too long.");
	return parts;
}

interface Directory {
	/** Where names in this directory can be reached. */
	at: string;
	close(): Promise<void>;
}

export function createWorkArea(root: string): WorkArea {
	// Paths through an open directory's descriptor exist only where there is a /proc.
	const byDescriptor = process.platform === "linux" && existsSync("/proc/self/fd");

	async function enter(base: string): Promise<Directory> {
		if (!byDescriptor) {
			if (!(await lstat(base)).isDirectory()) throw Object.assign(new Error("not a directory"), { code: "ENOTDIR" });
			return { at: base, close: async () => {} };
		}
		const handle = await open(base, constants.O_RDONLY | FLAGS.directory | FLAGS.nofollow);
		return { at: `/proc/self/fd/${handle.fd}`, close: () => handle.close() };
	}

	async function openDirectory(parts: string[], create: boolean): Promise<Directory> {
		await mkdir(root, { recursive: true });
		let directory = await enter(await realpath(root));
		for (const [index, part] of parts.entries()) {
			const next = `${directory.at}/${part}`;
			try {
				if (create) await mkdir(next).catch(ignore("EEXIST"));
				const inner = await enter(next);
				await directory.close();
				directory = inner;
			} catch (error) {
				await directory.close();
				throw explain(error, parts.slice(0, index + 1).join("/"), "directory");
			}
		}
		return directory;
	}

	return {
		normalise: (path) => pathParts(path).join("/"),
		async open(path) {
			const parts = pathParts(path);
			const shown = parts.join("/");
			const name = parts.at(-1);
			if (name === undefined) throw new PathError("The path names the work area itself, not a file.");
			const directory = await openDirectory(parts.slice(0, -1), false);
			try {
				const full = `${directory.at}/${name}`;
				// Looked at before it is opened: opening a device or a pipe can itself do something.
				regular(await lstat(full), shown);
				const handle = await open(full, constants.O_RDONLY | FLAGS.nofollow | FLAGS.nonblock);
				try {
					const stat = await handle.stat();
					regular(stat, shown);
					if (!byDescriptor) await verify(root, parts, stat.ino);
					return { handle, path: shown, bytes: stat.size, mtimeMs: stat.mtimeMs, mode: stat.mode & 0o777, ino: stat.ino };
				} catch (error) {
					await handle.close();
					throw error;
				}
			} catch (error) {
				throw explain(error, shown, "file");
			} finally {
				await directory.close();
			}
		},
		async list(path) {
			const parts = pathParts(path);
			const directory = await openDirectory(parts, false);
			try {
				const entries = await readdir(directory.at, { withFileTypes: true });
				return await Promise.all(
					entries
						.sort((a, b) => (a.name < b.name ? -1 : 1))
						.map(async (entry): Promise<Entry> => {
							const kind = entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other";
							const bytes =
								kind === "file"
									? await lstat(`${directory.at}/${entry.name}`).then(
											(stat) => stat.size,
											() => 0,
										)
									: 0;
							return { name: entry.name, kind, bytes };
						}),
				);
			} catch (error) {
				throw explain(error, parts.join("/"), "directory");
			} finally {
				await directory.close();
			}
		},
		async write(path, data, options = {}) {
			const parts = pathParts(path);
			const shown = parts.join("/");
			const name = parts.at(-1);
			if (name === undefined || path.endsWith("/")) throw new PathError("The path names a directory, not a file.");
			const directory = await openDirectory(parts.slice(0, -1), true);
			const target = `${directory.at}/${name}`;
			const temp = `${directory.at}/.tmp-${randomBytes(8).toString("hex")}`;
			try {
				const old = await lstat(target).catch(ignore("ENOENT"));
				if (old) regular(old, shown);
				const expected = options.unchanged;
				if (expected && (!old || old.ino !== expected.ino || old.mtimeMs !== expected.mtimeMs || old.size !== expected.bytes))
					throw new PathError(`${shown} was changed meanwhile; read it again.`);
				const handle = await open(
					temp,
					constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | FLAGS.nofollow,
					old ? old.mode & 0o777 : 0o644,
				);
				try {
					await handle.writeFile(data);
					await handle.sync();
				} finally {
					await handle.close();
				}
				await rename(temp, target);
				await syncDirectory(directory.at);
				return { path: shown, created: !old };
			} catch (error) {
				await unlink(temp).catch(() => {});
				throw explain(error, shown, "file");
			} finally {
				await directory.close();
			}
		},
	};
}

async function syncDirectory(path: string): Promise<void> {
	if (process.platform === "win32") return;
	const handle = await open(path, constants.O_RDONLY);
	await handle.sync().finally(() => handle.close());
}

function ignore(code: string): (error: unknown) => undefined {
	return (error) => {
		if ((error as { code?: string }).code !== code) throw error;
		return undefined;
	};
}

function regular(stat: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }, path: string): void {
	if (stat.isFile()) return;
	const what = stat.isDirectory()
		? "a directory"
		: stat.isSymbolicLink()
			? "a link, and links are not followed"
			: "a device, pipe or socket";
	throw new PathError(`${path} is ${what}.`);
}

/** Where no descriptor paths exist: what was opened must be what the name, free of links, still leads to. */
async function verify(root: string, parts: string[], ino: number): Promise<void> {
	const full = join(await realpath(root), ...parts);
	if ((await realpath(full)) !== full || (await lstat(full)).ino !== ino)
		throw new PathError(`${parts.join("/")} leads outside the work area.`);
}

function explain(error: unknown, path: string, kind: "file" | "directory"): unknown {
	if (error instanceof PathError) return error;
	switch ((error as { code?: string }).code) {
		case "ENOENT":
			return new PathError(`There is no ${kind} ${path}.`);
		case "ENOTDIR":
			return new PathError(`${path} is not a directory (links are not followed).`);
		case "ELOOP":
			return new PathError(`${path} is a link, and links are not followed.`);
		case "EISDIR":
			return new PathError(`${path} is a directory.`);
		case "EACCES":
		case "EPERM":
		case "EROFS":
			return new PathError(`No permission for ${path}.`);
		case "ENOSPC":
		case "EDQUOT":
			return new PathError("The disk is full; nothing was written.");
		case "ENAMETOOLONG":
			return new PathError("The path is too long.");
		case "ENXIO":
			return new PathError(`${path} is a device, pipe or socket.`);
		default:
			return error;
	}
}
