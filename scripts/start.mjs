// npm start: set up what is missing or stale, then be the daemon. Flags after `--` go to it.
import * as nodeModule from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ignoreEchoedSignals, stopWithParent } from "./lib/signals.mjs";
import { main, ROOT, setup } from "./setup.mjs";

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
