/** Images named by path in what a person types. */
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const imageName = /\.(png|jpe?g|gif|webp|bmp)$/i;

/** A path as a terminal writes it (quotes, backslashes, `~`, file://) as the file system knows it. */
export function realPath(word: string): string {
	let path = word.trim().replace(/^(["'])(.*)\1$/s, "$2");
	if (path === word.trim()) path = path.replace(/\\(.)/g, "$1");
	if (path.startsWith("file://")) return fileURLToPath(path);
	return resolve(path === "~" || path.startsWith("~/") ? homedir() + path.slice(1) : path);
}

/** Takes the paths of existing image files out of a line: dropped onto the terminal or typed. Words that only look like one stay. */
export async function takeImages(line: string): Promise<{ text: string; paths: string[] }> {
	const paths: string[] = [];
	let text = line;
	for (const [word] of line.matchAll(/"[^"]+"|'[^']+'|(?:\\.|[^\s"'])+/g)) {
		if (!imageName.test(word.replace(/["']$/, "")) || !/[/\\]|^["'~.]|^file:/.test(word)) continue;
		let path: string;
		try {
			path = realPath(word);
		} catch {
			continue;
		}
		if (!(await stat(path).catch(() => null))?.isFile()) continue;
		paths.push(path);
		text = text.replace(word, "");
	}
	return { text: paths.length > 0 ? text.replace(/\s+/g, " ").trim() : line, paths };
}
