/** Writing so that a crash at any instant leaves either the old file or the new one, whole. */
import { randomBytes } from "node:crypto";
import { close, fstat, fsync, open, type PathLike, rename, type Stats, statSync, write } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

// Plain descriptors: a conversation's file is written often, and a FileHandle costs as much again as the write.
const fs = {
	open: promisify(open) as (path: PathLike, flags: string, mode?: number) => Promise<number>,
	write: promisify(write) as (file: number, data: Uint8Array, from: number) => Promise<{ bytesWritten: number }>,
	stat: promisify(fstat) as (file: number) => Promise<Stats>,
	sync: promisify(fsync),
	close: promisify(close),
	rename: promisify(rename),
};

export interface AtomicOptions {
	/** Default: the old file's, or 0600. */
	mode?: number;
	/** Called in the last moment before the new file takes the place; what it throws leaves the old one. */
	before?(): void;
}

/** Temp file beside it, fsync, rename, fsync of the folder. Answers what the new file looked like when it was put in place. */
export async function writeFileAtomic(path: string, data: string | Uint8Array, options: AtomicOptions = {}): Promise<Stats> {
	const folder = dirname(path);
	const mode = options.mode ?? modeOf(path) ?? 0o600;
	const temp = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
	const bytes = typeof data === "string" ? Buffer.from(data) : data;
	let file: number | null = null;
	let made: Stats;
	try {
		file = await fs.open(temp, "wx", mode);
		for (let from = 0; from < bytes.length; ) from += (await fs.write(file, bytes, from)).bytesWritten;
		await fs.sync(file);
		made = await fs.stat(file);
		const closing = fs.close(file);
		file = null;
		await closing;
		options.before?.();
		await fs.rename(temp, path);
	} catch (error) {
		if (file !== null) await fs.close(file).catch(() => undefined);
		await rm(temp, { force: true }).catch(() => undefined);
		// Whoever reads the fault knows the file by its own name.
		if ((error as NodeJS.ErrnoException).path === temp) (error as NodeJS.ErrnoException).path = path;
		throw error;
	}
	await syncFolder(folder);
	return made;
}

/** Makes a rename in `folder` durable; where the system refuses to sync folders, the rename is all there is. */
export async function syncFolder(folder: string): Promise<void> {
	try {
		const file = await fs.open(folder, "r");
		try {
			await fs.sync(file);
		} finally {
			await fs.close(file);
		}
	} catch {
		// Not possible on this file system.
	}
}

function modeOf(path: string): number | null {
	try {
		const found = statSync(path, { throwIfNoEntry: false });
		return found?.isFile() ? found.mode & 0o777 : null;
	} catch {
		return null;
	}
}
