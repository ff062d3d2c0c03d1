/**
 * npm passes a signal on to its child although a terminal's Ctrl-C has reached the whole group already, so one key press
 * arrives twice, and a second signal means "at once". What comes within this time is the same key press.
 */
const SAME_PRESS_MS = 300;
const PARENT_CHECK_MS = 500;

/** From now on a key press is one signal for this process, however often it arrives. */
export function ignoreEchoedSignals() {
	const emit = process.emit;
	let lastAt = Number.NEGATIVE_INFINITY;
	process.emit = function (event, ...rest) {
		if (event === "SIGINT" || event === "SIGTERM") {
			const now = performance.now();
			const isEcho = now - lastAt < SAME_PRESS_MS;
			lastAt = now;
			if (isEcho) return true;
		}
		return emit.call(this, event, ...rest);
	};
}

/** Whoever started this was killed and could pass nothing on: a daemon that nobody can stop any more stops by itself. */
export function stopWithParent() {
	const parent = process.ppid;
	const check = setInterval(() => {
		if (process.ppid === parent) return;
		clearInterval(check);
		process.kill(process.pid, "SIGTERM");
	}, PARENT_CHECK_MS);
	check.unref();
}
