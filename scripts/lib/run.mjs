import { spawn } from "node:child_process";
import { constants } from "node:os";
import { basename } from "node:path";
import { SetupError, say } from "./say.mjs";

/** Steps under way on a terminal. Two at once would write over each other's line: then each says only its beginning and its end. */
let steps = 0;
/** Whether the terminal's last line is a count, to be replaced by whatever is printed next. */
let counting = false;

function clearCount() {
	if (counting) process.stderr.write("\r\u001b[2K");
	counting = false;
}

/**
 * Prints `label` now and how long it took at the end. Meanwhile it counts the seconds in place on a terminal; in a file or a pipe
 * it says every half minute that it is still at it. `own`: `work` prints lines of its own, between which no line is overwritten.
 */
export async function withProgress(label, work, { own = false } = {}) {
	const startedAt = Date.now();
	const seconds = () => `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
	const terminal = process.stderr.isTTY === true;
	clearCount();
	say(`${label} …`);
	steps += 1;
	const life = setInterval(
		() => {
			if (!terminal) return say(`${label}: still at it, ${seconds()}`);
			if (own || steps > 1) return clearCount();
			const line = `openlani: still at it, ${Math.round((Date.now() - startedAt) / 1000)} s`;
			process.stderr.write(`\r\u001b[2K${line}`);
			counting = true;
		},
		terminal ? 1_000 : 30_000,
	);
	try {
		const result = await work();
		clearCount();
		say(`${label}: done in ${seconds()}`);
		return result;
	} finally {
		clearCount();
		steps -= 1;
		clearInterval(life);
	}
}

/** npm may take most of a minute to hear a signal: a program that goes on this long after one is killed. */
const GRACE_MS = 2_000;
/** npm passes on what a terminal has sent to all: two signals within this time are one key press. */
const SAME_PRESS_MS = 300;

/** Runs a program to its end with both outputs on our stderr. Rejects with `SetupError` when it fails, or was interrupted; a second signal kills it. */
export function run(command, args, { cwd, env = process.env, quiet = false } = {}) {
	return new Promise((resolve, reject) => {
		const child = spawn(command, args, { cwd, env, stdio: ["ignore", quiet ? "pipe" : 2, quiet ? "pipe" : 2] });
		let kept = "";
		const keep = (chunk) => {
			kept = (kept + chunk).slice(-20_000);
		};
		child.stdout?.on("data", keep);
		child.stderr?.on("data", keep);
		let interrupted = null;
		let late;
		const stop = (signal) => {
			const now = performance.now();
			if (interrupted && now - interrupted.at > SAME_PRESS_MS) child.kill("SIGKILL");
			if (interrupted) return;
			interrupted = { at: now, exitCode: 128 + constants.signals[signal] };
			child.kill(signal);
			late = setTimeout(() => child.kill("SIGKILL"), GRACE_MS);
		};
		process.on("SIGINT", stop);
		process.on("SIGTERM", stop);
		const end = () => {
			clearTimeout(late);
			process.off("SIGINT", stop);
			process.off("SIGTERM", stop);
		};
		child.once("error", (error) => {
			end();
			reject(new SetupError(`${command} could not be started: ${error.message}`));
		});
		child.once("close", (code, signal) => {
			end();
			if (code === 0 && !interrupted) return resolve();
			clearCount();
			if (interrupted) return reject(new SetupError("interrupted; the next start makes the rest", interrupted.exitCode));
			if (kept) process.stderr.write(kept);
			const line = [basename(command), ...args.map((arg) => basename(arg))].join(" ");
			reject(new SetupError(`"${line}" ended with ${signal ?? `code ${code}`}`));
		});
	});
}

/** Runs npm: the one that started us if there is one, so that its version and settings are the same. */
export function npm(args, options) {
	const script = process.env.npm_execpath;
	if (script && /npm-cli\.c?js$/.test(script)) return run(process.execPath, [script, ...args], options);
	return run(process.platform === "win32" ? "npm.cmd" : "npm", args, options);
}

/**
 * Hands the terminal to another program and ends as it ends: same exit code, or 128 + signal. Signals that reach us are
 * passed on.
 */
export function become(command, args, { cwd, env = process.env } = {}) {
	return new Promise((resolve, reject) => {
		const child = spawn(command, args, { cwd, env, stdio: "inherit" });
		for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
		child.once("error", reject);
		child.once("exit", (code, signal) => {
			process.exitCode = code ?? 128 + (signal === "SIGINT" ? 2 : signal === "SIGKILL" ? 9 : 15);
			resolve(process.exitCode);
		});
	});
}
