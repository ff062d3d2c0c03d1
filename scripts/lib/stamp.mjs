// Is what was built still what the sources say? First by looking at the files (size and times), and only when that
// differs by reading them: the usual start looks at some hundred files in a few milliseconds and reads none.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/** All files under `paths` (files or directories, relative to `root`), sorted, with `/`; what does not exist is left out. */
function listFiles(root, paths) {
	const files = [];
	const walk = (path) => {
		for (const entry of readdirSync(path, { withFileTypes: true })) {
			if (entry.name === "node_modules" || entry.name.startsWith(".")) continue;
			const child = join(path, entry.name);
			if (entry.isDirectory()) walk(child);
			else files.push(child);
		}
	};
	for (const path of paths) {
		const full = join(root, path);
		const stat = statSync(full, { throwIfNoEntry: false });
		if (stat?.isDirectory()) walk(full);
		else if (stat) files.push(full);
	}
	return files.map((file) => relative(root, file).split(sep).join("/")).sort();
}

function lookOf(root, files) {
	const hash = createHash("sha256");
	for (const file of files) {
		const stat = statSync(join(root, file), { throwIfNoEntry: false });
		hash.update(`${file}\0${stat?.size}\0${stat?.mtimeMs}\0${stat?.ctimeMs}\n`);
	}
	return hash.digest("hex");
}

function contentOf(root, files, extra) {
	const hash = createHash("sha256").update(`${extra}\n`);
	for (const file of files) {
		const content = readFileSync(join(root, file));
		hash.update(`${file}\0${content.length}\0`).update(content);
	}
	return hash.digest("hex");
}

/** Writes a file so that a reader sees the old one or the new one, never half. */
export function writeWhole(path, text) {
	mkdirSync(dirname(path), { recursive: true });
	const temporary = `${path}.${process.pid}.tmp`;
	try {
		writeFileSync(temporary, text);
		renameSync(temporary, path);
	} catch (error) {
		rmSync(temporary, { force: true });
		throw error;
	}
}

export function readJson(path) {
	try {
		return JSON.parse(readFileSync(path, "utf8"));
	} catch {
		return null; // missing or torn: the same as never built
	}
}

/**
 * The state of the sources in `paths`. `extra` is what else the result depends on (a version, a mode).
 * `isFresh` answers whether the stamp file was written for exactly this content; `write` says that it now is.
 */
export function sourceState({ root, paths, stampFile, extra = "" }) {
	const files = listFiles(root, paths);
	const look = lookOf(root, files);
	let content = null;
	const readContent = () => {
		content ??= contentOf(root, files, extra);
		return content;
	};
	return {
		isFresh() {
			const stamp = readJson(stampFile);
			if (!stamp || stamp.extra !== extra) return false;
			if (stamp.look === look) return true;
			if (stamp.content !== readContent()) return false;
			// Same content with other times (a fresh checkout, a copy): remember the new look.
			try {
				writeWhole(stampFile, JSON.stringify({ extra, look, content: stamp.content }));
			} catch {
				// A read-only tree stays usable; the next start reads the files again.
			}
			return true;
		},
		content: readContent,
		write() {
			writeWhole(stampFile, JSON.stringify({ extra, look, content: readContent() }));
		},
	};
}
