// What `npm start`, `npm test` and the other commands do first: install when the lock changed, build what is stale.
// No dependencies: on a fresh clone there are none yet.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lib/lock.mjs";
import { ensureNative } from "./lib/native.mjs";
import { npm, run, SetupError, say, withProgress } from "./lib/run.mjs";
import { readJson, sourceState, writeWhole } from "./lib/stamp.mjs";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

const COMMON = ["package.json", "package-lock.json", "tsconfig.json"];
const TARGETS = {
	server: {
		label: "Building the server",
		sources: ["server", "channels", "vite.server.config.ts", ...COMMON],
		vite: (staging) => ["build", "--config", "vite.server.config.ts", "--outDir", staging],
		entry: "main.js",
	},
	page: {
		label: "Building the page",
		sources: ["web", "server/http/contract.ts", ...COMMON],
		vite: (staging) => ["build", "web", "--outDir", staging],
		entry: "index.html",
	},
};

function installState(root) {
	const runtime = `${process.platform}-${process.arch}-abi${process.versions.modules}`;
	return sourceState({
		root,
		paths: ["package-lock.json"],
		stampFile: join(root, "node_modules", ".openlani-install.json"),
		extra: runtime,
	});
}

function buildState(root, name) {
	const stampFile = join(root, "dist", name, ".stamp.json");
	return sourceState({ root, paths: TARGETS[name].sources, stampFile, extra: `v1-${name}` });
}

function isBuilt(root, name) {
	return existsSync(join(root, "dist", name, TARGETS[name].entry)) && buildState(root, name).isFresh();
}

async function install(root) {
	const state = installState(root);
	if (state.isFresh()) return;
	await withProgress("Installing the locked packages", () =>
		npm(["ci", "--ignore-scripts", "--include=dev", "--no-audit", "--no-fund", "--no-progress"], { cwd: root }),
	);
	await ensureNative(root);
	state.write();
}

function listBuilt(directory, below = "") {
	const files = [];
	for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
		const path = below ? `${below}/${entry.name}` : entry.name;
		if (entry.isDirectory()) files.push(...listBuilt(directory, path));
		else files.push(path);
	}
	return files;
}

/**
 * Moves a finished build into place file by file, the entry last, and keeps the files of the build before: a daemon or a
 * browser tab that runs from it may still load its lazy parts.
 */
function publish(staging, target, entry) {
	const files = listBuilt(staging);
	const before = readJson(join(target, ".files.json"))?.files ?? [];
	for (const file of [...files.filter((name) => name !== entry), entry]) {
		mkdirSync(dirname(join(target, file)), { recursive: true });
		renameSync(join(staging, file), join(target, file));
	}
	const keep = new Set([...files, ...before, ".files.json", ".stamp.json"]);
	for (const file of listBuilt(target)) if (!keep.has(file)) rmSync(join(target, file), { force: true });
	writeWhole(join(target, ".files.json"), JSON.stringify({ files }));
}

async function build(root, name) {
	const target = TARGETS[name];
	const state = buildState(root, name);
	const staging = join(root, "dist", `.${name}-${process.pid}`);
	await withProgress(target.label, async () => {
		try {
			const vite = join(root, "node_modules", "vite", "bin", "vite.js");
			await run(process.execPath, [vite, ...target.vite(staging), "--emptyOutDir", "--logLevel", "warn"], { cwd: root, quiet: true });
			rmSync(join(root, "dist", name, ".stamp.json"), { force: true });
			publish(staging, join(root, "dist", name), target.entry);
			// The state was read before the build: a source that changed meanwhile makes the next start build again.
			state.write();
		} finally {
			rmSync(staging, { recursive: true, force: true });
		}
	});
}

function checkNode(root) {
	const wanted = readJson(join(root, "package.json")).engines.node.replace(">=", "").split(".").map(Number);
	const [major, minor] = process.versions.node.split(".").map(Number);
	if (major < wanted[0] || (major === wanted[0] && minor < wanted[1])) {
		throw new SetupError(`Node ${wanted.join(".")} or newer is needed; this is ${process.versions.node}`);
	}
}

/**
 * Makes the clone ready: packages, and the builds named in `targets` ("server", "page"). When all is fresh this is a look at
 * the files and nothing else. Throws `SetupError` with a sentence for a person.
 * @param {{ root?: string, targets?: ("server" | "page")[] }} [options]
 */
export async function setup({ root = ROOT, targets = [] } = {}) {
	checkNode(root);
	const stale = () => targets.filter((name) => !isBuilt(root, name));
	if (installState(root).isFresh() && stale().length === 0) return;
	await withLock(
		join(root, ".cache", "setup.lock"),
		async () => {
			await install(root);
			await Promise.all(stale().map((name) => build(root, name)));
		},
		() => say("another set-up is running in this clone; waiting for it"),
	);
}

/** Runs a command's main function; a failed set-up ends with its sentence and code 1, not with a stack. */
export async function main(work) {
	try {
		await work();
	} catch (error) {
		if (!(error instanceof SetupError)) throw error;
		say(error.message);
		process.exit(1);
	}
}
