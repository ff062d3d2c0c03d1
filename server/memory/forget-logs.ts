/** Forgetting in the log's files. They are open and growing, so nothing is moved: the bytes of a forgotten text are written over where they stand. */
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { needlesOf } from "../store/turns-redact.ts";

/** A line shows the beginning of a long text: this much of it is looked for, and as much as follows is covered. */
const leastBytes = 40;

function cover(bytes: Buffer, needle: Buffer): { at: number; length: number }[] {
	const head = needle.subarray(0, leastBytes);
	const found: { at: number; length: number }[] = [];
	for (let at = bytes.indexOf(head); at >= 0; at = bytes.indexOf(head, at)) {
		let length = head.length;
		while (length < needle.length && bytes[at + length] === needle[length]) length++;
		found.push({ at, length });
		at += length;
	}
	return found;
}

/** Covers these texts in every file of `dir`, as they stand there: plain or inside JSON. A file that cannot be written is left as it is and answered. */
export async function maskLogs(dir: string, texts: string[]): Promise<string[]> {
	const needles = needlesOf(texts).map((needle) => Buffer.from(needle));
	const failed: string[] = [];
	if (needles.length === 0) return failed;
	for (const name of (await readdir(dir).catch(() => [])).filter((one) => one.endsWith(".log"))) {
		const path = join(dir, name);
		try {
			const file = await open(path, "r+");
			try {
				const bytes = await file.readFile();
				for (const needle of needles)
					for (const { at, length } of cover(bytes, needle)) {
						bytes.fill("*", at, at + length);
						await file.write(bytes, at, length, at);
					}
			} finally {
				await file.close();
			}
		} catch (error) {
			if ((error as NodeJS.ErrnoException).code !== "ENOENT") failed.push(name);
		}
	}
	return failed;
}
