/** Names and paths that come from outside, made safe for the file system. */
import { createHash } from "node:crypto";
import { lstatSync, realpathSync, type Stats } from "node:fs";
import { isAbsolute, join, relative, resolve, sep } from "node:path";

const reserved = /^(con|prn|aux|nul|com\d|lpt\d)$/i;

/**
 * A file name for an id: itself where it is harmless, otherwise its harmless part and a piece of its hash, so that two ids
 * never share a name, on case-insensitive disks too.
 */
export function safeName(id: string): string {
	if (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(id) && !reserved.test(id)) return id;
	const readable = id
		.toLowerCase()
		.replace(/[^a-z0-9_-]+/g, "-")
		.replace(/^-+|-+$/g, "")
		.slice(0, 40);
	return `${readable || "x"}.${createHash("sha256").update(id).digest("hex").slice(0, 12)}`;
}

/** A path outside of where it must stay, or one that cannot be a path. */
export class PathRefused extends Error {
	/** The path itself is harmless: a link that stands on its way leads outside or nowhere. */
	readonly byLink: boolean;
	constructor(path: string, why: string, byLink = false) {
		super(`${JSON.stringify(path.slice(0, 200))} ${why}`);
		this.name = "PathRefused";
		this.byLink = byLink;
	}
}

/**
 * The real place of `path` below `root`; links are followed, and what leads outside is refused. The last parts need not exist.
 * Looks synchronously: a few microseconds, and nobody comes in between, where the thread pool costs a hundred for each part.
 */
export async function containedPath(root: string, path: string): Promise<string> {
	if (path.includes("\0")) throw new PathRefused(path, "holds a zero byte");
	if (isAbsolute(path) || /^[a-z]:[\\/]/i.test(path) || path.startsWith("~")) throw new PathRefused(path, "must be relative");
	const parts = path.split(/[\\/]+/).filter((part) => part !== "" && part !== ".");
	if (parts.includes("..")) throw new PathRefused(path, "leads outside");
	const realRoot = realpathSync.native(root);
	let place = realRoot;
	for (const [index, part] of parts.entries()) {
		const next = join(place, part);
		const found = entryAt(next);
		if (!found) return join(place, ...parts.slice(index));
		place = found.isSymbolicLink() ? targetOf(next, path) : next;
		if (!isInside(realRoot, place)) throw new PathRefused(path, "is a link that leads outside", true);
	}
	return place;
}

function entryAt(place: string): Stats | null {
	try {
		return lstatSync(place, { throwIfNoEntry: false }) ?? null;
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return null;
		throw error;
	}
}

function targetOf(link: string, path: string): string {
	try {
		return realpathSync.native(link);
	} catch {
		throw new PathRefused(path, "is a link that leads nowhere", true);
	}
}

export function isInside(root: string, path: string): boolean {
	const way = relative(resolve(root), resolve(path));
	return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
