/** Full texts of results that were cut, kept in the work area where `read_file` finds them, and not for ever. */
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folderName = "results";
const keepMs = 30 * 24 * 60 * 60 * 1000;
const keepBytes = 200 * 1024 * 1024;

/** `files` is the work area's directory. */
export function createResults(files: string) {
	const folder = join(files, folderName);
	return {
		/** Answers the path that the model is told. */
		async keep(recordId: string, text: string): Promise<string> {
			await mkdir(folder, { recursive: true, mode: 0o700 });
			await writeFile(join(folder, `${recordId}.txt`), text, { mode: 0o600 });
			return `${folderName}/${recordId}.txt`;
		},
		/** Removes what is older than 30 days, and the oldest beyond 200 MB. */
		async prune(now: number): Promise<void> {
			const names = await readdir(folder).catch(() => []);
			const found = await Promise.all(
				names.map(async (name) => {
					const info = await stat(join(folder, name)).catch(() => null);
					return { name, at: info?.mtimeMs ?? now, bytes: info?.size ?? 0 };
				}),
			);
			let sum = 0;
			for (const one of found.sort((a, b) => b.at - a.at)) {
				sum += one.bytes;
				if (now - one.at > keepMs || sum > keepBytes) await rm(join(folder, one.name), { force: true });
			}
		},
	};
}
