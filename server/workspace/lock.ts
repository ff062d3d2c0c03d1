/** One daemon a home: a lock file that names its process, so that one left behind by a crash is known as such. */
import { randomBytes } from "node:crypto";
import { readFileSync, utimesSync } from "node:fs";
import { link, mkdir, readFile, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { writeFileAtomic } from "./atomic.ts";

interface LockRecord {
	pid: number;
	/** When the process began, in the system's own terms: a process id is used again, this is not. Null where the system does not say. */
	processStart: string | null;
	host: string;
	/** Names this lock among all. */
	nonce: string;
	at: string;
}

/** The home is in use. `message` is for people. */
export class HomeLocked extends Error {
	readonly pid: number;
	constructor(home: string, pid: number, host: string) {
		super(
			`OpenLani is already running with the home ${home} (process ${pid}${host === hostname() ? "" : ` on ${host}`}). Stop it first, or use another home with --home DIR.`,
		);
		this.name = "HomeLocked";
		this.pid = pid;
	}
}

export interface HomeLock {
	release(): Promise<void>;
}

const lockFile = (home: string) => join(home, "data", "daemon.lock");
const runtimeFile = (home: string) => join(home, "data", "daemon.json");
/** Another machine's process cannot be looked at: its lock counts as alive while its file is touched. */
const touchEveryMs = 20_000;
const deadAfterMs = 90_000;
const guardDeadAfterMs = 10_000;
/** Looks at the lock before giving up; each waits 10 ms at most. */
const lockAttempts = 2000;

/** Takes the home for this process. Throws `HomeLocked`. */
export async function lockHome(home: string): Promise<HomeLock> {
	const path = lockFile(home);
	await mkdir(join(home, "data"), { recursive: true, mode: 0o700 });
	const record: LockRecord = {
		pid: process.pid,
		processStart: processStart(process.pid),
		host: hostname(),
		nonce: randomBytes(8).toString("hex"),
		at: new Date().toISOString(),
	};
	const mine = `${path}.${record.nonce}`;
	await writeFile(mine, JSON.stringify(record), { mode: 0o600, flag: "wx" });
	try {
		for (let attempt = 1; ; attempt++) {
			try {
				await link(mine, path);
				break;
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
			}
			const holder = await readLock(path);
			if (holder && (await isAlive(holder, path))) throw new HomeLocked(home, holder.pid, holder.host);
			if (attempt > lockAttempts) throw new Error(`the lock ${path} cannot be taken`);
			await removeStale(path, holder);
		}
	} finally {
		await rm(mine, { force: true });
	}
	const touching = setInterval(() => {
		try {
			utimesSync(path, new Date(), new Date());
		} catch {
			// Gone: somebody cleared the home. Nothing to keep alive.
		}
	}, touchEveryMs).unref();
	return {
		async release() {
			clearInterval(touching);
			if ((await readLock(path))?.nonce === record.nonce) await rm(path, { force: true });
			const runtime = await readRuntimeFile(home);
			if (runtime?.pid === process.pid) await rm(runtimeFile(home), { force: true });
		},
	};
}

/** The process that holds the home, or null. */
export async function homeHolder(home: string): Promise<{ pid: number; host: string } | null> {
	const holder = await readLock(lockFile(home));
	return holder && (await isAlive(holder, lockFile(home))) ? { pid: holder.pid, host: holder.host } : null;
}

/** Where a running daemon is found. */
export interface Runtime {
	pid: number;
	/** Address that answers on this machine. */
	url: string;
	startedAt: string;
}

export async function writeRuntime(home: string, runtime: Runtime): Promise<void> {
	await writeFileAtomic(runtimeFile(home), `${JSON.stringify(runtime)}\n`, { mode: 0o600 });
}

/** The daemon that runs with this home, or null; a file left behind by a crash is not believed. */
export async function readRuntime(home: string): Promise<Runtime | null> {
	const runtime = await readRuntimeFile(home);
	if (!runtime) return null;
	const holder = await homeHolder(home);
	return holder?.pid === runtime.pid ? runtime : null;
}

async function readRuntimeFile(home: string): Promise<Runtime | null> {
	try {
		const value = JSON.parse(await readFile(runtimeFile(home), "utf8")) as Runtime;
		return typeof value.pid === "number" && typeof value.url === "string" ? value : null;
	} catch {
		return null;
	}
}

async function readLock(path: string): Promise<LockRecord | null> {
	try {
		const value = JSON.parse(await readFile(path, "utf8")) as LockRecord;
		return Number.isInteger(value.pid) ? value : null;
	} catch {
		return null;
	}
}

async function isTorn(path: string): Promise<boolean> {
	const text = await readFile(path, "utf8").catch(() => null);
	if (text === null) return false;
	try {
		return !Number.isInteger((JSON.parse(text) as LockRecord).pid);
	} catch {
		return true;
	}
}

async function isAlive(record: LockRecord, path: string): Promise<boolean> {
	if (record.host !== hostname()) {
		const found = await stat(path).catch(() => null);
		return found !== null && Date.now() - found.mtimeMs < deadAfterMs;
	}
	try {
		process.kill(record.pid, 0);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
	}
	const start = processStart(record.pid);
	return start === null || record.processStart === null || start === record.processStart;
}

/**
 * Removes a lock that nobody holds any more. Only one process at a time may, and it looks again first: otherwise a slow one
 * would remove the new lock of the one that was quicker.
 */
async function removeStale(path: string, expected: LockRecord | null): Promise<void> {
	const guard = `${path}.clearing`;
	try {
		await mkdir(guard, { mode: 0o700 });
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
		const found = await stat(guard).catch(() => null);
		// Left behind by a crash in that very moment.
		if (found && Date.now() - found.mtimeMs > guardDeadAfterMs) await rmdir(guard).catch(() => undefined);
		await new Promise((resolve) => setTimeout(resolve, 10));
		return;
	}
	try {
		// What is not there any more is not ours to remove: somebody may be taking it.
		const now = await readLock(path);
		if (now ? now.nonce === expected?.nonce : expected === null && (await isTorn(path))) await rm(path, { force: true });
	} finally {
		await rmdir(guard).catch(() => undefined);
	}
}

/** Start of a process in clock ticks, with the id of this boot; null where /proc is not there. */
function processStart(pid: number): string | null {
	try {
		const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ");
		return `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()} ${fields?.[19]}`;
	} catch {
		return null;
	}
}
