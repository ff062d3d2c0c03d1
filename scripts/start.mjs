// npm start: set up what is missing or stale, then be the daemon. Flags after `--` go to it.
import * as nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { main, ROOT, setup } from "./setup.mjs";

/**
 * npm passes a signal on to its child although a terminal's Ctrl-C has reached the whole group already, so one key press
 * arrives twice, and a second signal means "at once". What comes within this time is the same key press.
 */
const SAME_PRESS_MS = 300;
const PARENT_CHECK_MS = 500;

function ignoreEchoedSignals() {
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

/** npm or its shell was killed and could pass nothing on: a daemon that nobody can stop any more stops by itself. */
function stopWithParent() {
	const parent = process.ppid;
	const check = setInterval(() => {
		if (process.ppid === parent) return;
		clearInterval(check);
		process.kill(process.pid, "SIGTERM");
	}, PARENT_CHECK_MS);
	check.unref();
}

await main(async () => {
	await setup({ targets: ["server", "page"] });
	if (process.env.npm_lifecycle_event) {
		ignoreEchoedSignals();
		stopWithParent();
	}
	// Node 22.8 and later keep compiled code between starts.
	nodeModule.enableCompileCache?.(join(ROOT, ".cache", "compiled"));
	// In this very process: signals, terminal and exit code are the daemon's own, and no second Node has to start.
	const entry = join(ROOT, "dist", "server", "main.js");
	process.argv[1] = entry;
	await import(pathToFileURL(entry).href);
});
