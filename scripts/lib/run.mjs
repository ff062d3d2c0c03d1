import { spawn } from "node:child_process";
import { basename } from "node:path";
import { SetupError, say } from "./say.mjs";

/** Prints `label` now, again every ten seconds while `work` runs, and how long it took. */
export async function withProgress(label, work) {
	const startedAt = Date.now();
	const seconds = () => `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
	say(`${label} …`);
	const life = setInterval(() => say(`${label}: still at it, ${seconds()}`), 10_000);
	try {
		const result = await work();
		say(`${label}: done in ${seconds()}`);
		return result;
	} finally {
		clearInterval(life);
	}
}

/** Runs a program to its end with both outputs on our stderr. Rejects with `SetupError` when it fails. */
export function run(command, args, { cwd, env = process.env, quiet = false } = {}) {
	return new Promise((resolve, reject) => {
		const child = spawn(command, args, { cwd, env, stdio: ["ignore", quiet ? "pipe" : 2, quiet ? "pipe" : 2] });
		let kept = "";
		const keep = (chunk) => {
			kept = (kept + chunk).slice(-20_000);
		};
		child.stdout?.on("data", keep);
		child.stderr?.on("data", keep);
		const stop = (signal) => child.kill(signal);
		process.on("SIGINT", stop);
		process.on("SIGTERM", stop);
		const end = () => {
			process.off("SIGINT", stop);
			process.off("SIGTERM", stop);
		};
		child.once("error", (error) => {
			end();
			reject(new SetupError(`${command} could not be started: ${error.message}`));
		});
		child.once("close", (code, signal) => {
			end();
			if (code === 0) return resolve();
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
