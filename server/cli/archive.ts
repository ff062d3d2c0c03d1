/** The one-file backup: what goes in, and how it is unpacked without trusting it. */
import { constants } from "node:fs";
import { chmod, copyFile, link, mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { create, extract, list } from "tar";
import { copyDatabase } from "../store/inspect.ts";
import { syncFolder } from "../workspace/atomic.ts";

export const archiveFormat = 1;

export interface Manifest {
	format: number;
	version: string;
	createdAt: string;
	/** How many files it holds beside this one: a file cut off between two entries is known by it. */
	files: number;
}

/** What of a home is kept. Logs and older backups are not. */
const keptFolders = ["workspace", "filter", "data"];
const keptFiles = ["config.yaml"];
/** In `data`: made anew by every process, or copied through SQLite. */
const leftOut = /^(openlani\.db.*|daemon\.(lock|json).*|.*\.tmp)$/;

export class ArchiveProblem extends Error {}

/** Writes the home into one file. `linksLeftOut` are links in the work area: a backup holds files only. */
export async function writeArchive(
	home: string,
	target: string,
	manifest: Omit<Manifest, "files">,
): Promise<{ bytes: number; files: number; linksLeftOut: number }> {
	const part = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
	const counts = { files: 0, links: 0 };
	const staging = await makeStaging(home, target);
	try {
		for (const name of keptFiles) await stageFile(join(home, name), join(staging, name), counts);
		for (const name of keptFolders) {
			if (name === "data") await stageDatabase(home, staging, counts);
			await stageFolder(join(home, name), join(staging, name), name === "data" ? leftOut : null, counts);
		}
		await writeFile(join(staging, "manifest.json"), `${JSON.stringify({ ...manifest, files: counts.files }, null, "\t")}\n`);
		await create({ gzip: { level: 6 }, file: part, cwd: staging, portable: true, mode: 0o600 }, await readdir(staging));
		await chmod(part, 0o600);
		const handle = await open(part, "r+");
		await handle.sync();
		await handle.close();
		await rename(part, target);
		await syncFolder(dirname(target));
		return { bytes: (await stat(target)).size, files: counts.files, linksLeftOut: counts.links };
	} finally {
		await rm(staging, { recursive: true, force: true });
		await rm(part, { force: true });
	}
}

/** In the home, where attachments can be linked; beside the backup where the home is only to be read. */
async function makeStaging(home: string, target: string): Promise<string> {
	try {
		const backups = join(home, "backups");
		await mkdir(backups, { recursive: true, mode: 0o700 });
		return await mkdtemp(join(backups, ".making-"));
	} catch {
		return mkdtemp(join(dirname(target), `.${basename(target)}.making-`));
	}
}

/** Before the assets: they are stored before the message that names them, so none of the copy's is missing. */
async function stageDatabase(home: string, staging: string, counts: { files: number }): Promise<void> {
	const database = join(home, "data", "openlani.db");
	if (!(await stat(database).catch(() => null))) return;
	await mkdir(join(staging, "data"), { recursive: true });
	await copyDatabase(database, join(staging, "data", "openlani.db"));
	counts.files += 1;
}

async function stageFolder(from: string, to: string, skip: RegExp | null, counts: { files: number; links: number }): Promise<void> {
	const entries = await readdir(from, { withFileTypes: true }).catch(() => []);
	await mkdir(to, { recursive: true, mode: 0o700 });
	for (const entry of entries) {
		if (skip?.test(entry.name)) continue;
		if (entry.isDirectory()) await stageFolder(join(from, entry.name), join(to, entry.name), null, counts);
		else if (entry.isFile()) await stageFile(join(from, entry.name), join(to, entry.name), counts);
		else if (entry.isSymbolicLink()) counts.links += 1;
	}
}

/** Files are only ever replaced, never changed in place by us; those of the work area may be, so they are copied. Assets are linked. */
async function stageFile(from: string, to: string, counts: { files: number }): Promise<void> {
	try {
		if (from.includes(`${join("data", "assets")}`)) await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
		else await copyFile(from, to, constants.COPYFILE_FICLONE);
		counts.files += 1;
	} catch (error) {
		// Gone since the folder was read: it is not in this backup.
		if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
	}
}

/** Looks through the whole file: only plain files and folders, only inside, with our manifest. Throws `ArchiveProblem`. */
export async function checkArchive(file: string): Promise<void> {
	let hasManifest = false;
	const bad: string[] = [];
	try {
		await list({
			file,
			strict: true,
			onReadEntry(entry) {
				const path = entry.path;
				const parts = path.split(/[\\/]+/);
				if (path === "manifest.json") hasManifest = true;
				const isPlain = entry.type === "File" || entry.type === "OldFile" || entry.type === "Directory";
				const top = parts[0] ?? "";
				const known = top === "manifest.json" || keptFiles.includes(top) || keptFolders.includes(top);
				if (!isPlain || !known || parts.includes("..") || path.startsWith("/") || /^[a-z]:/i.test(path) || path.includes("\0"))
					bad.push(`${path} (${entry.type})`);
				entry.resume();
			},
		});
	} catch (error) {
		throw new ArchiveProblem(`it is damaged or no backup (${(error as Error).message})`);
	}
	if (bad.length > 0) throw new ArchiveProblem(`it holds what a backup never holds: ${bad.slice(0, 3).join(", ")}`);
	if (!hasManifest) throw new ArchiveProblem("it holds no manifest.json");
}

/** Unpacks a checked file into a new folder, everything readable by its owner alone. */
export async function unpackArchive(file: string, folder: string): Promise<Manifest> {
	await mkdir(folder, { recursive: true, mode: 0o700 });
	await extract({
		file,
		cwd: folder,
		strict: true,
		preserveOwner: false,
		noChmod: true,
		processUmask: 0o077,
		filter: (path, entry) =>
			!path.split(/[\\/]+/).includes("..") &&
			(!("type" in entry) || entry.type === "File" || entry.type === "OldFile" || entry.type === "Directory"),
	});
	await closeToOthers(folder);
	const manifest = JSON.parse(await readFile(join(folder, "manifest.json"), "utf8")) as Manifest;
	if (manifest.format !== archiveFormat)
		throw new ArchiveProblem(`its format ${String(manifest.format)} is of another version of OpenLani`);
	await rm(join(folder, "manifest.json"));
	const files = await countFiles(folder);
	if (files !== manifest.files) throw new ArchiveProblem(`it holds ${files} files where ${String(manifest.files)} were put in`);
	return manifest;
}

async function countFiles(folder: string): Promise<number> {
	let count = 0;
	for (const entry of await readdir(folder, { withFileTypes: true }))
		count += entry.isDirectory() ? await countFiles(join(folder, entry.name)) : 1;
	return count;
}

async function closeToOthers(folder: string): Promise<void> {
	await chmod(folder, 0o700);
	for (const entry of await readdir(folder, { withFileTypes: true })) {
		const path = join(folder, entry.name);
		if (entry.isDirectory()) await closeToOthers(path);
		else await chmod(path, ((await stat(path)).mode & 0o100) | 0o600);
	}
}
