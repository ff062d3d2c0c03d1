import { statSync } from "node:fs";
import { join } from "node:path";

/**
 * Whether a file has changed, cheaply: every message asks. Synchronous on purpose: it costs microseconds, and a trip through the thread pool costs more.
 * The content itself is read through the workspace.
 */
export function createStamps(root: string): (path: string) => string {
	return (path) => {
		try {
			const found = statSync(join(root, path), { throwIfNoEntry: false });
			return found ? `${found.mtimeMs} ${found.size} ${found.ino}` : "none";
		} catch {
			return "unreadable";
		}
	};
}
