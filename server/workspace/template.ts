/** The files that a new home begins with. */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFileAtomic } from "./atomic.ts";

export type TemplateLocale = "zh-CN" | "en";

/** `workspace-template` of this program, from the sources and from a build. */
export function templateFolder(locale: TemplateLocale): string {
	let folder = dirname(fileURLToPath(import.meta.url));
	for (let up = 0; up < 6; up++) {
		const candidate = join(folder, "workspace-template", locale);
		if (existsSync(candidate)) return candidate;
		folder = dirname(folder);
	}
	throw new Error("the folder workspace-template of the program is missing");
}

/** Copies every file of `from` that is not there yet; answers the names of those it made. Existing files are never touched. */
export async function copyMissing(from: string, to: string, below = ""): Promise<string[]> {
	const made: string[] = [];
	await mkdir(join(to, below), { recursive: true, mode: 0o700 });
	for (const entry of await readdir(join(from, below), { withFileTypes: true })) {
		const name = below === "" ? entry.name : `${below}/${entry.name}`;
		if (entry.isDirectory()) made.push(...(await copyMissing(from, to, name)));
		else if (!existsSync(join(to, name))) {
			await writeFileAtomic(join(to, name), await readFile(join(from, name)), { mode: 0o600 });
			made.push(name);
		}
	}
	return made;
}
