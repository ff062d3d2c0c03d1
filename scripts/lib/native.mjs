// better-sqlite3 is the one dependency that may have to be compiled (a minute, on a busy small machine five). The compiled file is kept in the
// user's cache directory, under a name that says everything it depends on, and used again only when its checksum is right.
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { npm, run, withProgress } from "./run.mjs";
import { SetupError, say } from "./say.mjs";

const BINARY = join("node_modules", "better-sqlite3", "build", "Release", "better_sqlite3.node");

const sha256 = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");

function cacheRoot() {
	const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
	if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, "openlani");
	if (process.platform === "win32") return LOCALAPPDATA ? join(LOCALAPPDATA, "openlani", "cache") : null;
	const home = homedir();
	if (!home || home === "/" || !existsSync(home)) return null;
	return process.platform === "darwin" ? join(home, "Library", "Caches", "openlani") : join(home, ".cache", "openlani");
}

/** Native code is only taken from a directory that nobody but this user can write to. */
function isOurs(directory) {
	const stat = statSync(directory, { throwIfNoEntry: false });
	if (!stat) return false;
	if (process.platform === "win32") return true;
	return stat.uid === process.getuid() && (stat.mode & 0o022) === 0;
}

/** Directory of the cached binary for this package, Node and machine; null where no cache can be had. */
export function cacheDirectory(root) {
	const base = cacheRoot();
	if (!base) return null;
	const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
	const { version, integrity } = lock.packages["node_modules/better-sqlite3"];
	const libc = process.platform === "linux" ? (process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl") : "system";
	const source = createHash("sha256").update(String(integrity)).digest("hex").slice(0, 12);
	return join(
		base,
		"native",
		`better-sqlite3-${version}-${source}-abi${process.versions.modules}-${process.platform}-${process.arch}-${libc}`,
	);
}

async function works(root) {
	const code =
		"const D = require('better-sqlite3'); const d = new D(':memory:'); if (d.prepare('select 1 as one').get().one !== 1) process.exit(1); d.close()";
	try {
		await run(process.execPath, ["-e", code], { cwd: root, quiet: true });
		return true;
	} catch {
		return false;
	}
}

function takeFromCache(root, directory) {
	const cached = join(directory, "better_sqlite3.node");
	if (!existsSync(cached) || !isOurs(directory)) return false;
	try {
		if (readFileSync(`${cached}.sha256`, "utf8").trim() !== sha256(cached)) return false;
		mkdirSync(dirname(join(root, BINARY)), { recursive: true });
		copyFileSync(cached, join(root, BINARY));
		return true;
	} catch {
		return false; // damaged or unreadable: build it instead
	}
}

function putIntoCache(root, directory) {
	try {
		mkdirSync(directory, { recursive: true, mode: 0o700 });
		if (!isOurs(directory)) return;
		const target = join(directory, "better_sqlite3.node");
		const temporary = `${target}.${randomBytes(6).toString("hex")}`;
		copyFileSync(join(root, BINARY), temporary);
		chmodSync(temporary, 0o600);
		writeFileSync(`${temporary}.sha256`, `${sha256(temporary)}\n`, { mode: 0o600 });
		renameSync(`${temporary}.sha256`, `${target}.sha256`);
		renameSync(temporary, target);
	} catch (error) {
		say(`the compiled better-sqlite3 could not be cached (${error.code ?? error.message}); going on without`);
	}
}

/** Node's own headers, when they lie beside this very Node: then compiling needs no download. */
function withHeaders(env) {
	const directory = dirname(dirname(process.execPath));
	const file = join(directory, "include", "node", "node_version.h");
	if (env.npm_config_nodedir || !existsSync(file)) return env;
	const text = readFileSync(file, "utf8");
	const part = (name) => new RegExp(`#define NODE_${name}_VERSION (\\d+)`).exec(text)?.[1];
	const version = [part("MAJOR"), part("MINOR"), part("PATCH")].join(".");
	return version === process.versions.node ? { ...env, npm_config_nodedir: directory } : env;
}

/** Makes better-sqlite3 usable by this Node: what is there, else the cache, else a build of this one package. */
export async function ensureNative(root) {
	if (existsSync(join(root, BINARY)) && (await works(root))) return;
	const directory = cacheDirectory(root);
	if (directory && takeFromCache(root, directory)) {
		if (await works(root)) return say("better-sqlite3 taken from the cache");
		rmSync(join(root, BINARY), { force: true });
	}
	await withProgress("Building better-sqlite3 (once, one to five minutes on a small machine)", () =>
		npm(["rebuild", "better-sqlite3", "--ignore-scripts=false", "--no-audit", "--no-fund"], {
			cwd: root,
			env: withHeaders(process.env),
			quiet: true,
		}),
	);
	if (!(await works(root))) throw new SetupError("better-sqlite3 was built but does not load; a C++ compiler, make and python3 are needed");
	if (directory) putIntoCache(root, directory);
}
