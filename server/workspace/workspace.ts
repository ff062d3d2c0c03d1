/**
 * The files of a home that people and the agent share. Reads are tolerant and cached by the file's date, so an edit by hand is
 * seen at the next read; writes are atomic, compared with what is there, and kept as versions where they are prompt files.
 */
import { accessSync, constants, type Stats, statSync } from "node:fs";
import { chmod, copyFile, lstat, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { writeFileAtomic } from "./atomic.ts";
import { containedPath, PathRefused } from "./names.ts";
import { stampAt, stampOf } from "./stamp.ts";
import { copyMissing, type TemplateLocale, templateFolder } from "./template.ts";
import { decodeText, encodeText, versionOf } from "./text.ts";
import { type ChangedBy, createVersionShelf, type VersionInfo, type VersionRecord } from "./versions.ts";

export interface WorkspaceFile {
	/** Path below `workspace/`, with slashes. */
	path: string;
	exists: boolean;
	/** Without BOM, lines ended by \n. Empty when the file is missing or cannot be read. */
	text: string;
	/** Names the content; null when there is no file. */
	version: string | null;
	/** Ms since the epoch; null when there is no file. */
	changedAt: number | null;
	/** One plain sentence when the file is there but is not what it should be; null otherwise. */
	problem: string | null;
}

export interface WriteOptions {
	by: Exclude<ChangedBy, "hand">;
	reason: string;
	/** The version that was edited; when the file has another one by now the write is refused. Null: there must be no file. */
	base?: string | null;
}

export interface WorkspaceEntry {
	path: string;
	bytes: number;
	changedAt: number;
}

/** Somebody else changed the file first: nothing was written. */
export class WorkspaceConflict extends Error {
	readonly current: string | null;
	constructor(path: string, current: string | null) {
		super(`${path} was changed meanwhile`);
		this.name = "WorkspaceConflict";
		this.current = current;
	}
}

/** A write that is never allowed: SOUL.md by anybody but a person. */
export class WorkspaceRefused extends Error {
	/** What stands at the path is no file: a folder, a pipe. It holds no text. */
	readonly noFile: boolean;
	constructor(message: string, noFile = false) {
		super(message);
		this.name = "WorkspaceRefused";
		this.noFile = noFile;
	}
}

export interface HomePaths {
	home: string;
	config: string;
	workspace: string;
	files: string;
	data: string;
	database: string;
	assets: string;
	logs: string;
	backups: string;
}

export interface Workspace {
	readonly paths: HomePaths;
	/** Makes the folders (mode 0700) and, in a home without prompt files, the first ones. Never overwrites. Answers what it made. */
	ensure(locale: TemplateLocale): Promise<{ made: string[] }>;
	/** The real place of a path below `workspace/`. Throws `PathRefused`. */
	resolve(path: string): Promise<string>;
	/** What is wrong with the file, a link out of the home included, is its `problem`. Throws `PathRefused` for what is no path below `workspace/`. */
	read(path: string): Promise<WorkspaceFile>;
	/** Writes the whole file. Throws `WorkspaceConflict`, `WorkspaceRefused`, `PathRefused`. */
	write(path: string, text: string, options: WriteOptions): Promise<WorkspaceFile>;
	/** Reads, changes and writes with nobody in between; a change by hand in that moment makes it begin anew. `change` answers null for "leave it". */
	update(path: string, change: (text: string) => string | null, options: Omit<WriteOptions, "base">): Promise<WorkspaceFile>;
	/** A link goes, what it leads to stays. False when there is nothing that could go. */
	remove(path: string): Promise<boolean>;
	/** Files below a folder, sorted by path; at most `limit`. Links are not followed; a folder that is a link out of the home, or is not there, has none. */
	list(folder: string, limit?: number): Promise<WorkspaceEntry[]>;
	/** Newest first, an edit by hand that nobody had noticed yet included. */
	versions(path: string): Promise<VersionInfo[]>;
	readVersion(path: string, version: string): Promise<VersionRecord | null>;
	/** Writes an older version as the newest one. Null when there is no such version. */
	restore(path: string, version: string, options: Omit<WriteOptions, "base">): Promise<WorkspaceFile | null>;
	/** A JSON file; one that is damaged is moved aside (and said), and reads as null: `check` answers null for what it does not accept. */
	readJson<T>(path: string, check: (value: unknown) => T | null): Promise<T | null>;
	writeJson(path: string, value: unknown): Promise<void>;
	/** Moves a damaged file out of the way into `backups/damaged/`; answers where it is. */
	quarantine(path: string, why: string): Promise<string>;
	/** SOUL.md, Agent.md, IDENTITY.md and MASTER.md for the prompt, and what is wrong with any of them. */
	prompt(): Promise<{ blocks: { name: string; text: string }[]; problems: string[] }>;
}

/** A file as it was read, and the stamp by which a change of it is noticed. */
interface Content {
	stamp: string;
	file: WorkspaceFile;
	crlf: boolean;
	bom: boolean;
}

/** Somebody changed the file while the new one was being written; that is looked at before anything is replaced. */
class ChangedMeanwhile extends Error {}

/** True when the file system does not let us, as opposed to being broken or full. */
const isForbidden = (error: unknown): error is NodeJS.ErrnoException =>
	/^(EACCES|EPERM|EROFS)$/.test((error as NodeJS.ErrnoException).code ?? "");

/** No one's to write by its mode (which binds even a process that may do everything), or not ours. */
function isReadOnly(place: string): boolean {
	try {
		accessSync(place, constants.W_OK);
		return (statSync(place).mode & 0o222) === 0;
	} catch (error) {
		return isForbidden(error);
	}
}

function notAFile(file: WorkspaceFile, place: string): WorkspaceRefused {
	const found = statSync(place, { throwIfNoEntry: false });
	return new WorkspaceRefused(file.problem ?? `${file.path} cannot be written`, found !== undefined && !found.isFile());
}

export interface WorkspaceOptions {
	home: string;
	clock: { now(): number };
	log: { info(event: string, data?: Record<string, unknown>): void; warn(event: string, data?: Record<string, unknown>): void };
}

const maxBytes = 4_000_000;
const cachedFiles = 500;
const promptFiles = [
	["soul", "SOUL.md"],
	["agent", "Agent.md"],
	["identity", "IDENTITY.md"],
	["master", "MASTER.md"],
] as const;

export function homePaths(home: string): HomePaths {
	const data = join(home, "data");
	return {
		home,
		config: join(home, "config.yaml"),
		workspace: join(home, "workspace"),
		files: join(home, "workspace", "files"),
		data,
		database: join(data, "openlani.db"),
		assets: join(data, "assets"),
		logs: join(home, "logs"),
		backups: join(home, "backups"),
	};
}

export function createWorkspace(options: WorkspaceOptions): Workspace {
	const { clock, log } = options;
	const paths = homePaths(options.home);
	const shelf = createVersionShelf(join(paths.data, "versions"));
	const cache = new Map<string, Content>();
	const waiting = new Map<string, Promise<unknown>>();

	/** One writer of a file at a time. */
	function inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
		const before = waiting.get(path) ?? Promise.resolve();
		const result = before.then(work, work);
		const settled = result.then(
			() => undefined,
			() => undefined,
		);
		waiting.set(path, settled);
		void settled.then(() => {
			if (waiting.get(path) === settled) waiting.delete(path);
		});
		return result;
	}

	let prompt: { stamp: string; made: { blocks: { name: string; text: string }[]; problems: string[] } } | null = null;

	const promptPlaces = promptFiles.map(([, file]) => join(paths.workspace, file));
	const promptStamp = (): string => promptPlaces.map(stampAt).join("|");

	const nameOf = (path: string) =>
		path
			.split(/[\\/]+/)
			.filter((part) => part !== "" && part !== ".")
			.join("/");

	function keep(content: Content): void {
		const { path } = content.file;
		cache.delete(path);
		cache.set(path, content);
		const oldest = cache.size > cachedFiles ? cache.keys().next().value : undefined;
		if (oldest !== undefined) cache.delete(oldest);
	}

	async function load(path: string): Promise<Content & { place: string }> {
		const place = await containedPath(paths.workspace, path);
		const name = nameOf(path);
		const nothing = (problem: string | null, found?: Stats) => ({
			file: { path: name, exists: found !== undefined, text: "", version: null, changedAt: found ? found.mtimeMs : null, problem },
			crlf: false,
			bom: false,
			stamp: stampOf(found),
			place,
		});
		let found: Stats | undefined;
		try {
			found = statSync(place, { throwIfNoEntry: false });
			if (!found) return nothing(null);
		} catch (error) {
			const code = (error as NodeJS.ErrnoException).code;
			return nothing(
				code === "ENOENT"
					? null
					: code === "ENOTDIR"
						? `${name}: a file stands where a folder should be`
						: `${name} cannot be read (${code})`,
			);
		}
		if (found.isDirectory()) return nothing(`${name} is a folder; it must be a file`, found);
		if (!found.isFile()) return nothing(`${name} is not a regular file`, found);
		if (found.size > maxBytes) return nothing(`${name} is too large to be read (${found.size} bytes, at most ${maxBytes})`, found);
		const stamp = stampOf(found);
		const known = cache.get(name);
		if (known?.stamp === stamp) return { ...known, place };
		let bytes: Uint8Array;
		try {
			bytes = await readFile(place);
		} catch (error) {
			return nothing(`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`, found);
		}
		const decoded = decodeText(bytes);
		const entry = {
			stamp,
			file: {
				path: name,
				exists: true,
				text: decoded.text,
				version: versionOf(decoded.text),
				changedAt: found.mtimeMs,
				problem: decoded.damaged ? `${name} holds bytes that are not text; they were left out` : null,
			},
			crlf: decoded.crlf,
			bom: decoded.bom,
		};
		keep(entry);
		return { ...entry, place };
	}

	/**
	 * The beginning of a file that is too large to be read whole, else "". In a prompt it fills any window, so that the turn names the
	 * file to blame; without it the agent would go on as somebody else.
	 */
	async function headOf(path: string): Promise<string> {
		const file = await open(await containedPath(paths.workspace, path), constants.O_RDONLY | constants.O_NONBLOCK);
		try {
			const found = await file.stat();
			if (!found.isFile() || found.size <= maxBytes) return "";
			const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
			return decodeText(buffer.subarray(0, bytesRead)).text;
		} finally {
			await file.close();
		}
	}

	/** Keeps what stands in the file when nobody has kept it yet: the state before our first change, or an edit by hand. */
	async function noticeHandEdit(file: WorkspaceFile): Promise<void> {
		if (!file.exists || file.version === null) return;
		const latest = await shelf.latest(file.path);
		if (latest?.version === file.version) return;
		await shelf.add(file.path, {
			version: file.version,
			at: Math.round(file.changedAt ?? clock.now()),
			by: "hand",
			reason: latest ? "edited by hand" : "as it was at first",
			before: latest?.version ?? null,
			text: file.text,
		});
	}

	async function writeNow(path: string, text: string, how: WriteOptions): Promise<WorkspaceFile> {
		const clean = text
			.replace(/^\uFEFF/, "")
			.replace(/\r\n?/g, "\n")
			.toWellFormed();
		const version = versionOf(clean);
		for (let attempt = 1; ; attempt++) {
			const { file, crlf, bom, stamp, place } = await load(path);
			const isSoul = basename(place).toLowerCase() === "soul.md" && dirname(place) === (await containedPath(paths.workspace, "."));
			if (isSoul && how.by !== "person") throw new WorkspaceRefused("SOUL.md is changed by people only");
			if (file.exists && file.version === null) throw notAFile(file, place);
			if (how.base !== undefined && how.base !== file.version) throw new WorkspaceConflict(file.path, file.version);
			if (file.version === version) return file;
			// Replacing it would be possible wherever its folder may be written: whoever made it read-only meant otherwise.
			if (file.exists && isReadOnly(place)) throw new WorkspaceRefused(`${file.path} is read-only`);
			const kept = isVersioned(file.path);
			if (file.problem !== null) await keepDamaged(place, file.path, file.problem);
			if (kept) await noticeHandEdit(file);
			let made: Stats;
			try {
				if (!file.exists) await mkdir(dirname(place), { recursive: true, mode: 0o700 });
				made = await writeFileAtomic(place, encodeText(clean, { crlf, bom }), {
					before() {
						if (stampAt(place) !== stamp) throw new ChangedMeanwhile();
					},
				});
			} catch (error) {
				if (isForbidden(error)) throw new WorkspaceRefused(`${file.path} cannot be written (${error.code})`);
				if (!(error instanceof ChangedMeanwhile)) throw error;
				if (attempt >= 5) throw new WorkspaceConflict(file.path, (await load(path)).file.version);
				continue;
			}
			if (kept) await shelf.add(file.path, { version, at: clock.now(), by: how.by, reason: how.reason, before: file.version, text: clean });
			const found = statSync(place, { throwIfNoEntry: false });
			const isOurs = found?.ino === made.ino && found.mtimeMs === made.mtimeMs && found.size === made.size;
			// What a reader would see differently is read.
			if (!found || !isOurs || /^\uFEFF|\0/.test(clean)) return (await load(path)).file;
			const content = {
				stamp: stampOf(found),
				file: { path: file.path, exists: true, text: clean, version, changedAt: found.mtimeMs, problem: null },
				crlf: crlf && clean.includes("\n"),
				bom,
			};
			keep(content);
			return content.file;
		}
	}

	async function damagedName(place: string): Promise<string> {
		const folder = join(paths.backups, "damaged");
		await mkdir(folder, { recursive: true, mode: 0o700 });
		const when = new Date(clock.now()).toISOString().replace(/[:.]/g, "-");
		let target = join(folder, `${when}-${basename(place)}`);
		for (let number = 2; await stat(target).catch(() => null); number++) target = join(folder, `${when}-${number}-${basename(place)}`);
		return target;
	}

	/** What could not be read as text is lost with the next write: the bytes are kept as they were. */
	async function keepDamaged(place: string, name: string, why: string): Promise<void> {
		const target = await damagedName(place);
		await copyFile(place, target, constants.COPYFILE_EXCL);
		log.warn("workspace.damaged-kept", { file: name, keptAs: target, why });
	}

	async function quarantineNow(path: string, why: string): Promise<string> {
		const place = await containedPath(paths.workspace, path);
		const target = await damagedName(place);
		await rename(place, target);
		log.warn("workspace.quarantine", { file: nameOf(path), keptAs: target, why });
		return target;
	}

	/** Takes the link itself away, where it is the last part of the path. */
	async function removeLink(path: string): Promise<boolean> {
		const parts = nameOf(path).split("/");
		const name = parts.pop() ?? "";
		try {
			const place = join(await containedPath(paths.workspace, parts.join("/")), name);
			if (!(await lstat(place)).isSymbolicLink()) return false;
			await rm(place);
			return true;
		} catch (error) {
			if (error instanceof PathRefused) return false;
			throw error;
		}
	}

	const workspace: Workspace = {
		paths,
		async ensure(locale) {
			const made: string[] = [];
			await mkdir(paths.home, { recursive: true, mode: 0o700 });
			await chmod(paths.home, 0o700).catch((error) => log.warn("workspace.home-mode", { error: String(error) }));
			const folders = [paths.workspace, paths.files, paths.data, paths.assets, paths.logs, paths.backups];
			for (const name of ["conversations", "people", "diary", "skills", "lessons", "functions"]) folders.push(join(paths.workspace, name));
			for (const folder of folders) {
				try {
					if (await mkdir(folder, { recursive: true, mode: 0o700 })) made.push(relative(paths.home, folder).split(sep).join("/"));
				} catch (error) {
					throw new Error(
						`${folder} cannot be made: a file stands in its place, or the disk refuses (${(error as NodeJS.ErrnoException).code})`,
						{ cause: error },
					);
				}
			}
			const template = templateFolder(locale);
			const isNew = (await Promise.all(promptFiles.map(([, file]) => stat(join(paths.workspace, file)).catch(() => null)))).every(
				(found) => found === null,
			);
			if (isNew) made.push(...(await copyMissing(join(template, "workspace"), paths.workspace)).map((name) => `workspace/${name}`));
			made.push(...(await copyMissing(join(template, "filter"), join(paths.home, "filter"))).map((name) => `filter/${name}`));
			return { made };
		},
		resolve: (path) => containedPath(paths.workspace, path),
		async read(path) {
			try {
				return (await load(path)).file;
			} catch (error) {
				if (!(error instanceof PathRefused && error.byLink)) throw error;
				return { path: nameOf(path), exists: true, text: "", version: null, changedAt: null, problem: error.message };
			}
		},
		write: (path, text, how) => inTurn(nameOf(path), () => writeNow(path, text, how)),
		update: (path, change, how) =>
			inTurn(nameOf(path), async () => {
				for (let attempt = 1; ; attempt++) {
					const { file, place } = await load(path);
					if (file.exists && file.version === null) throw notAFile(file, place);
					const text = change(file.text);
					if (text === null) return file;
					try {
						return await writeNow(path, text, { ...how, base: file.version });
					} catch (error) {
						if (!(error instanceof WorkspaceConflict) || attempt >= 5) throw error;
					}
				}
			}),
		remove: (path) =>
			inTurn(nameOf(path), async () => {
				const loaded = await load(path).catch((error: unknown) => {
					if (error instanceof PathRefused && error.byLink) return null;
					throw error;
				});
				if (!loaded) return removeLink(path);
				const { file, place } = loaded;
				if (!file.exists || file.version === null) return false;
				if (isVersioned(file.path)) await noticeHandEdit(file);
				await rm(place);
				cache.delete(file.path);
				return true;
			}),
		async list(folder, limit = 2000) {
			const found: WorkspaceEntry[] = [];
			const visit = async (below: string): Promise<void> => {
				const entries = await readdir(join(paths.workspace, below), { withFileTypes: true }).catch(() => []);
				for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
					if (found.length >= limit) return;
					const name = below === "" ? entry.name : `${below}/${entry.name}`;
					if (entry.isDirectory()) await visit(name);
					else if (entry.isFile()) {
						const info = await stat(join(paths.workspace, name)).catch(() => null);
						if (info) found.push({ path: name, bytes: info.size, changedAt: info.mtimeMs });
					}
				}
			};
			try {
				await containedPath(paths.workspace, folder);
			} catch (error) {
				if (error instanceof PathRefused && error.byLink) return found;
				if ((error as NodeJS.ErrnoException).code === "ENOENT") return found;
				throw error;
			}
			await visit(nameOf(folder));
			return found;
		},
		versions: (path) =>
			inTurn(nameOf(path), async () => {
				const { file } = await load(path);
				if (isVersioned(file.path)) await noticeHandEdit(file);
				return shelf.list(file.path);
			}),
		readVersion: (path, version) => shelf.read(nameOf(path), version),
		async restore(path, version, how) {
			const record = await shelf.read(nameOf(path), version);
			return record ? workspace.write(path, record.text, how) : null;
		},
		readJson: (path, check) =>
			inTurn(nameOf(path), async () => {
				const { file } = await load(path);
				if (!file.exists) return null;
				let value: unknown;
				let why = file.problem ?? (file.text.trim() === "" ? "it is empty" : null);
				if (why === null) {
					try {
						value = JSON.parse(file.text);
					} catch {
						why = "it is not JSON";
					}
				}
				const checked = why === null ? check(value) : null;
				if (checked !== null) return checked;
				await quarantineNow(path, why ?? "it does not hold what it should");
				return null;
			}),
		writeJson: (path, value) =>
			inTurn(nameOf(path), async () => {
				const place = await containedPath(paths.workspace, path);
				await mkdir(dirname(place), { recursive: true, mode: 0o700 });
				await writeFileAtomic(place, `${JSON.stringify(value, null, "\t")}\n`);
			}),
		quarantine: (path, why) => inTurn(nameOf(path), () => quarantineNow(path, why)),
		async prompt() {
			const stamp = promptStamp();
			if (prompt?.stamp === stamp) return prompt.made;
			const blocks: { name: string; text: string }[] = [];
			const problems: string[] = [];
			const files = await Promise.all(
				promptFiles.map(([, file]) =>
					workspace.read(file).catch(
						(error): WorkspaceFile => ({
							path: file,
							exists: false,
							text: "",
							version: null,
							changedAt: null,
							problem: error instanceof PathRefused ? error.message : String(error),
						}),
					),
				),
			);
			for (const [index, file] of files.entries()) {
				const unread = file.exists && file.version === null;
				const text = (unread ? await headOf(file.path).catch(() => "") : file.text).trim();
				if (file.problem) problems.push(file.problem);
				else if (!file.exists) problems.push(`${file.path} is missing`);
				else if (text === "" && index < 2) problems.push(`${file.path} is empty`);
				if (text !== "") blocks.push({ name: promptFiles[index]?.[0] ?? "", text });
			}
			// A file that changed while it was read has another stamp next time.
			prompt = { stamp, made: { blocks, problems } };
			return prompt.made;
		},
	};
	return workspace;
}

/** Prompt files and extensions keep their versions; memory, plans and the work area change too often and have their own history. */
function isVersioned(path: string): boolean {
	return /^[^/]+\.md$/i.test(path) || /^(skills|lessons|functions)\//.test(path);
}
