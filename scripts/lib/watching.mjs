// Changes of sources below some folders. Each folder is watched by itself: Node 20, told to watch a tree, loses a file that an editor replaces.
import { readdirSync, watch } from "node:fs";
import { join } from "node:path";

/** An editor writes a file in several steps, and several files at once. */
const SETTLED_MS = 100;

/** Calls back with the last file that changed, once nothing changes any more. The answer ends that. */
export function watchSources(folders, onChange) {
	const watchers = new Map();
	let settling;

	function add(folder) {
		if (watchers.has(folder)) return;
		try {
			const watcher = watch(folder, (_event, name) => {
				if (!name || name.startsWith(".")) return;
				const path = join(folder, name);
				if (/\.(ts|json)$/.test(name)) changed(path);
				else if (!watchers.has(path)) {
					add(path);
					// A folder that has come with its files in it.
					if (watchers.has(path)) changed(path);
				}
			});
			watchers.set(folder, watcher);
			watcher.on("error", () => remove(folder));
			for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) add(join(folder, entry.name));
		} catch {
			// Gone by now, or no folder.
			remove(folder);
		}
	}

	function remove(folder) {
		watchers.get(folder)?.close();
		watchers.delete(folder);
	}

	function changed(path) {
		clearTimeout(settling);
		settling = setTimeout(() => onChange(path), SETTLED_MS);
	}

	for (const folder of folders) add(folder);
	return () => {
		clearTimeout(settling);
		for (const folder of [...watchers.keys()]) remove(folder);
	};
}
