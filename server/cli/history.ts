/** What was typed in `openlani chat`, newest first as readline wants it; kept in the home. */
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "../workspace/atomic.ts";

const keptLines = 1000;
const historyPath = (home: string) => join(home, "data", "chat-history");

export async function readHistory(home: string): Promise<string[]> {
	try {
		const lines = (await readFile(historyPath(home), "utf8")).split("\n").filter(Boolean).map(decode);
		if (lines.length > 2 * keptLines)
			await writeFileAtomic(historyPath(home), `${lines.slice(-keptLines).map(encode).join("\n")}\n`, { mode: 0o600 });
		return lines.slice(-keptLines).reverse();
	} catch {
		return [];
	}
}

/** Never fails: a history that cannot be kept must not stop a talk. */
export async function keepHistory(home: string, line: string): Promise<void> {
	try {
		await mkdir(join(home, "data"), { recursive: true, mode: 0o700 });
		await appendFile(historyPath(home), `${encode(line)}\n`, { mode: 0o600 });
	} catch {
		// The disk is full or read-only: the talk goes on.
	}
}

const encode = (line: string) => line.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const decode = (line: string) => line.replace(/\\(.)/g, (_whole, char: string) => (char === "n" ? "\n" : char));
