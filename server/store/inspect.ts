/** Looking at a database file without changing it: for `doctor`, `inspect` and `backup`, beside a running daemon too. */
import { existsSync, statSync } from "node:fs";
import type SQLite from "better-sqlite3";
import { migrations } from "./migrations/index.ts";
import { openReadable } from "./readable.ts";

export interface DatabaseCheck {
	/** `older` and `newer`: the file is sound, but its schema is another version's. */
	state: "missing" | "ok" | "older" | "newer" | "damaged" | "unreadable";
	problem: string | null;
	/** The file and its write-ahead log: a running daemon's newest data is in the latter. */
	bytes: number;
	schema: number | null;
}

/** Reads the whole file and answers what is wrong with it. Never moves, migrates or repairs anything. */
export function checkDatabase(file: string): DatabaseCheck {
	if (!existsSync(file)) return { state: "missing", problem: null, bytes: 0, schema: null };
	const { size } = statSync(file);
	const wal = statSync(`${file}-wal`, { throwIfNoEntry: false });
	const bytes = size + (wal?.size ?? 0);
	if (size === 0 && !wal) return { state: "damaged", problem: "the file is empty", bytes, schema: null };
	let raw: SQLite.Database | null = null;
	try {
		raw = openReadable(file);
		const result = raw.pragma("quick_check(1)", { simple: true });
		const schema = Number(raw.pragma("user_version", { simple: true }));
		if (result !== "ok") return { state: "damaged", problem: String(result), bytes, schema };
		const known = migrations.at(-1)?.version ?? 0;
		return { state: schema === known ? "ok" : schema > known ? "newer" : "older", problem: null, bytes, schema };
	} catch (error) {
		const { code = "", message } = error as { code?: string; message: string };
		const damaged = code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_NOTADB";
		return { state: damaged ? "damaged" : "unreadable", problem: message, bytes, schema: null };
	} finally {
		raw?.close();
	}
}

/** Writes a consistent copy of `file` to `target`, whoever writes to it meanwhile. */
export async function copyDatabase(file: string, target: string): Promise<void> {
	const raw = openReadable(file);
	try {
		// Of one moment: without a transaction of its own the copy begins anew with every write, and ends when nobody talks any more.
		raw.exec("BEGIN");
		raw.prepare("SELECT count(*) FROM sqlite_schema").get();
		await raw.backup(target);
	} finally {
		raw.close();
	}
}
