import { type Stats, statSync } from "node:fs";

/** What of a file's state changes with every write: equal stamps, same content. "none" where there is no file. */
export const stampOf = (found: Stats | undefined): string =>
	found ? `${found.mtimeMs} ${found.ctimeMs} ${found.size} ${found.ino}` : "none";

/**
 * The stamp of what stands at a path, or the error's code. Every message asks for several: synchronous on purpose, it costs
 * microseconds, and a trip through the thread pool costs more.
 */
export function stampAt(place: string): string {
	try {
		return stampOf(statSync(place, { throwIfNoEntry: false }));
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code ?? String(error);
		return code === "ENOTDIR" ? "none" : code;
	}
}
