/** Writing so that a crash at any instant leaves either the old file or the new one, whole. */
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Temp file beside it, fsync, rename, fsync of the folder. `mode` defaults to the old file's, or 0600. */
export async function writeFileAtomic(path: string, data: string | Uint8Array, options: { mode?: number } = {}): Promise<void> {
	const folder = dirname(path);
	const mode = options.mode ?? (await modeOf(path)) ?? 0o600;
	const temp = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
	let handle: FileHandle | null = null;
	try {
		handle = await open(temp, "wx", mode);
		await handle.writeFile(data);
		await handle.sync();
		await handle.close();
		handle = null;
		await rename(temp, path);
	} catch (error) {
		await handle?.close().catch(() => undefined);
		await rm(temp, { force: true });
		throw error;
	}
	await syncFolder(folder);
}

/** Makes a rename in `folder` durable; where the system refuses to sync folders, the rename is all there is. */
export async function syncFolder(folder: string): Promise<void> {
	try {
		const handle = await open(folder, "r");
		try {
			await handle.sync();
		} finally {
			await handle.close();
		}
	} catch {
		// Not possible on this file system.
	}
}

async function modeOf(path: string): Promise<number | null> {
	try {
		const found = await stat(path);
		return found.isFile() ? found.mode & 0o777 : null;
	} catch {
		return null;
	}
}
