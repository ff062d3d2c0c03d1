// One child process at a time, started anew on demand and stopped in order.
import { spawn } from "node:child_process";

/** After a signal that means "at once". */
const AT_ONCE_MS = 1_000;

/**
 * `restart` asks the running one to end, waits as long as it needs and starts the next; calls meanwhile are one. After `stop` none is
 * started; a second `stop` gives the running one a second. `ended` resolves with its exit code when there will be no more.
 */
export function createRestarting({ command, args, options, onStart, onExit }) {
	let child = null;
	let isRestarting = false;
	let stops = 0;
	let lastCode = 0;
	let finish;
	const ended = new Promise((resolve) => {
		finish = resolve;
	});

	function start() {
		const started = spawn(command, args, options);
		child = started;
		onStart(started);
		started.once("error", (error) => exited(1, error.message));
		started.once("exit", (code, signal) => exited(code ?? 1, signal ?? `code ${code}`));
		function exited(code, how) {
			if (child !== started) return;
			child = null;
			lastCode = code;
			if (stops > 0) return finish(code);
			if (isRestarting) {
				isRestarting = false;
				return start();
			}
			onExit(how);
		}
	}

	return {
		ended,
		start,
		restart() {
			if (stops > 0 || isRestarting) return;
			if (!child) return start();
			isRestarting = true;
			child.kill("SIGTERM");
		},
		stop(signal) {
			stops += 1;
			if (!child) return finish(lastCode);
			child.kill(signal);
			if (stops > 1) setTimeout(() => child?.kill("SIGKILL"), AT_ONCE_MS).unref();
		},
	};
}
