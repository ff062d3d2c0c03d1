// The slow half of the set-up: installing and building. Loaded only when something is stale.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { ensureNative } from "./native.mjs";
import { npm, run, withProgress } from "./run.mjs";
import { readJson, writeWhole } from "./stamp.mjs";
import { buildState, installState, TARGETS } from "./targets.mjs";

/** Is node_modules what the lock says? npm keeps its own note of what it put there; optional packages may be left out. */
function isInstalled(root) {
	const wanted = readJson(join(root, "package-lock.json"))?.packages ?? {};
	const present = readJson(join(root, "node_modules", ".package-lock.json"))?.packages;
	if (!present) return false;
	const isSame = (a, b) => a?.version === b?.version && a?.integrity === b?.integrity;
	return (
		Object.entries(present).every(([path, entry]) => isSame(entry, wanted[path]) && existsSync(join(root, path))) &&
		Object.entries(wanted).every(([path, entry]) => path === "" || entry.optional || entry.devOptional || isSame(entry, present[path]))
	);
}

/** Installs what package-lock.json says, when that changed since the last time. */
export async function install(root) {
	const state = installState(root);
	if (state.isFresh()) return;
	// Without install scripts: the only one that matters is better-sqlite3's, and that has a cache.
	if (!isInstalled(root)) {
		await withProgress(
			"Installing the locked packages",
			() => npm(["ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund", "--no-progress"], { cwd: root }),
			{ own: true },
		);
	}
	await ensureNative(root);
	state.write();
}

function listFiles(directory, below = "") {
	const files = [];
	for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
		const path = below ? `${below}/${entry.name}` : entry.name;
		if (entry.isDirectory()) files.push(...listFiles(directory, path));
		else files.push(path);
	}
	return files;
}

/** So many builds before the newest keep their files. A build that is the same but for one source shares nearly all of them. */
const EARLIER_BUILDS = 8;

/**
 * Moves a finished build into place file by file and keeps the files of the builds before: a daemon or a browser tab that runs from one
 * may still load its lazy parts. New names come first, then those that were there before, for they may ask for the new ones; the entry
 * is the last.
 */
export function publish(staging, target, entry) {
	const files = listFiles(staging);
	const known = readJson(join(target, ".files.json"));
	const earlier = known ? [known.files, ...(known.earlier ?? [])].slice(0, EARLIER_BUILDS) : [];
	const before = earlier.flat();
	const rank = (file) => (file === entry ? 2 : before.includes(file) ? 1 : 0);
	for (const file of files.toSorted((one, other) => rank(one) - rank(other))) {
		mkdirSync(dirname(join(target, file)), { recursive: true });
		renameSync(join(staging, file), join(target, file));
	}
	const keep = new Set([...files, ...before, ".files.json"]);
	for (const file of listFiles(target)) if (!keep.has(file)) rmSync(join(target, file), { force: true });
	writeWhole(join(target, ".files.json"), JSON.stringify({ files, earlier }));
}

/** What a build that was killed has left behind. Only for the one who holds the set-up's lock. */
function removeLeftovers(root, name) {
	const dist = join(root, "dist");
	if (!existsSync(dist)) return;
	for (const entry of readdirSync(dist)) if (entry.startsWith(`.${name}-`)) rmSync(join(dist, entry), { recursive: true, force: true });
}

/** Builds one target into dist/. What is there stays usable until the new one is whole. */
export async function build(root, name) {
	removeLeftovers(root, name);
	const target = TARGETS[name];
	const state = buildState(root, name);
	state.content(); // as it is now: a source that changes during the build makes the next start build again
	const staging = join(root, "dist", `.${name}-${process.pid}`);
	const vite = join(root, "node_modules", "vite", "bin", "vite.js");
	await withProgress(target.label, async () => {
		try {
			await run(process.execPath, [vite, ...target.vite(staging), "--emptyOutDir", "--logLevel", "warn"], {
				cwd: root,
				quiet: true,
				// Whoever asks (a test run has its own NODE_ENV), what is built is what people run.
				env: { ...process.env, NODE_ENV: "production" },
			});
			publish(staging, join(root, "dist", name), target.entry);
			state.write();
		} finally {
			rmSync(staging, { recursive: true, force: true });
		}
	});
}
