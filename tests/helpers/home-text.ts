/** Everything that a home holds, as text: for tests that look for what must not be there. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import SQLite from "better-sqlite3";

export interface HeldText {
	/** Path below the home, or `table:<name>` with the row's number. */
	where: string;
	text: string;
}

function rowsOf(file: string, name: string): HeldText[] {
	if (!existsSync(file)) return [];
	const db = new SQLite(file, { readonly: true, timeout: 5000 });
	try {
		const tables = db.prepare("select name from sqlite_master where type = 'table' and sql not like '%virtual%'").all() as {
			name: string;
		}[];
		return tables
			.filter((table) => !/^(words|signs|vocabulary)/.test(table.name))
			.flatMap((table) =>
				(db.prepare(`select * from "${table.name}"`).all() as Record<string, unknown>[]).map((row, index) => ({
					where: `${name}:${table.name}#${index}`,
					text: JSON.stringify(row, (_key, value: unknown) => (value instanceof Uint8Array ? "" : value)),
				})),
			);
	} finally {
		db.close();
	}
}

/** Files (databases apart) and every row of the database and of the memory's index. */
export async function textsOfHome(home: string): Promise<HeldText[]> {
	const found: HeldText[] = [];
	for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
		if (!entry.isFile() || /\.db(-wal|-shm)?$/.test(entry.name)) continue;
		const path = join(entry.parentPath, entry.name);
		// A file may be replaced while we look.
		const text = await readFile(path, "utf8").catch(() => "");
		found.push({ where: relative(home, path), text });
	}
	return [...found, ...rowsOf(join(home, "data", "openlani.db"), "db"), ...rowsOf(join(home, "data", "memory-index.db"), "index")];
}

/** Where one of these words stands, with what is around it. */
export const holding = (texts: HeldText[], words: string[]): string[] =>
	texts.flatMap(({ where, text }) =>
		words.flatMap((word) => {
			// Six digits of a number are in many a time.
			const at = /^\d+$/.test(word) ? text.search(new RegExp(`(?<!\\d)${word}(?!\\d)`)) : text.indexOf(word);
			return at < 0 ? [] : [`${where}: …${text.slice(Math.max(0, at - 60), at + 60)}…`];
		}),
	);
