/** Reading a database that nobody may be hindered with, and beside which perhaps nothing can be written. */
import { constants, copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import SQLite from "better-sqlite3";

function openAt(file: string): SQLite.Database {
	const raw = new SQLite(file, { readonly: true, fileMustExist: true, timeout: 5000 });
	try {
		raw.prepare("SELECT count(*) FROM sqlite_schema").get();
		return raw;
	} catch (error) {
		raw.close();
		throw error;
	}
}

/** Its files are open and need no names any more: nothing stays behind, however this process ends. */
function openCopy(file: string): SQLite.Database {
	const folder = mkdtempSync(join(tmpdir(), "openlani-look-"));
	try {
		const copy = join(folder, basename(file));
		for (const suffix of ["", "-wal"])
			if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix, constants.COPYFILE_FICLONE);
		return openAt(copy);
	} finally {
		rmSync(folder, { recursive: true, force: true });
	}
}

/** SQLite's words for a file beside which it may not make what it needs. */
export function cannotWriteBeside(error: unknown): boolean {
	const { code = "" } = error as { code?: string };
	return code.startsWith("SQLITE_CANTOPEN") || code.startsWith("SQLITE_READONLY");
}

/**
 * Opens a database for reading alone, beside whoever writes to it. SQLite needs two files beside it even to read; where they are missing and
 * cannot be made, nobody is writing, and a copy in the system's folder for such is read instead.
 */
export function openReadable(file: string): SQLite.Database {
	try {
		return openAt(file);
	} catch (error) {
		if (!cannotWriteBeside(error) || existsSync(`${file}-shm`)) throw error;
		return openCopy(file);
	}
}
