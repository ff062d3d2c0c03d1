// One set-up at a time in one clone. The lock is a file that its holder touches every two seconds, so a holder that was
// killed, on this machine or in another container, is noticed.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";

const TOUCH_MS = 2_000;
const STALE_MS = 30_000;

function isAlive(pid) {
	try {
		process.kill(pid, 0);
		return true;
	} catch (error) {
		return error.code === "EPERM";
	}
}

function read(path) {
	try {
		return { text: readFileSync(path, "utf8"), touchedAt: statSync(path).mtimeMs };
	} catch {
		return null;
	}
}

function isStale({ text, touchedAt }) {
	if (Date.now() - touchedAt > STALE_MS) return true;
	const [pid, host] = text.split(" ");
	// A file without content is one whose holder has not written it yet: give it its time.
	return host === hostname() && Number(pid) > 0 && !isAlive(Number(pid));
}

function removeStale(path, text) {
	const aside = `${path}.${process.pid}.stale`;
	try {
		renameSync(path, aside);
		// Somebody else may have cleared the stale one and taken the lock since we looked: give it back.
		if (readFileSync(aside, "utf8") !== text) linkSync(aside, path);
	} catch {
		// Gone already, or taken again: the next round looks afresh.
	}
	rmSync(aside, { force: true });
}

/**
 * Runs `work` while holding the lock file, after waiting for whoever holds it. `onWait` is called once when there is
 * somebody to wait for. The lock is released on return, on failure and on exit.
 */
export async function withLock(path, work, onWait) {
	const mine = `${process.pid} ${hostname()} ${Date.now()}`;
	mkdirSync(dirname(path), { recursive: true });
	for (let waited = false; ; ) {
		try {
			writeFileSync(path, mine, { flag: "wx" });
			break;
		} catch (error) {
			if (error.code !== "EEXIST") throw error;
		}
		const holder = read(path);
		if (holder && isStale(holder)) {
			removeStale(path, holder.text);
			continue;
		}
		if (!waited) onWait?.();
		waited = true;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	const release = () => {
		if (read(path)?.text === mine) rmSync(path, { force: true });
	};
	const touch = setInterval(() => {
		try {
			utimesSync(path, new Date(), new Date());
		} catch {
			// Taken away from us: nothing to keep alive.
		}
	}, TOUCH_MS);
	touch.unref();
	process.once("exit", release);
	try {
		return await work();
	} finally {
		clearInterval(touch);
		process.off("exit", release);
		release();
	}
}
