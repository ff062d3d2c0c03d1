// npm run dev: the daemon from its sources, restarted on change, and the page from vite's own server, which passes calls on to it. The
// home is .cache/dev-home unless OPENLANI_HOME or --home says otherwise. Ctrl-C ends both in order, a second one at once.
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { createRestarting } from "./lib/restarting.mjs";
import { say } from "./lib/say.mjs";
import { ignoreEchoedSignals } from "./lib/signals.mjs";
import { watchSources } from "./lib/watching.mjs";
import { main, ROOT, setup } from "./setup.mjs";

await main(async () => {
	await setup();
	ignoreEchoedSignals();
	let daemonUrl = null;
	let page = null;
	let isEnding = false;
	const pageUrl = () => page?.resolvedUrls?.local[0]?.replace(/\/$/, "");

	async function showPage() {
		await page?.close();
		if (isEnding) return;
		const { createServer } = await import("vite");
		process.env.OPENLANI_DEV = daemonUrl;
		page = await createServer({ configFile: join(ROOT, "vite.config.ts") });
		await page.listen();
		console.log(`The page from its sources: ${pageUrl()}`);
	}

	async function take(line) {
		// What the daemon calls its page is the built one, if there is any.
		console.log(page && daemonUrl ? line.replace(`${daemonUrl}/#`, `${pageUrl()}/#`) : line);
		const url = /^OpenLani ready at (\S+)$/.exec(line)?.[1];
		if (!url || url === daemonUrl) return;
		daemonUrl = url;
		await showPage();
	}

	let taken = Promise.resolve();
	const daemon = createRestarting({
		command: process.execPath,
		args: ["--import", "tsx", join("scripts", "lib", "dev-daemon.mjs"), "serve", ...process.argv.slice(2)],
		options: {
			cwd: ROOT,
			env: { OPENLANI_HOME: join(ROOT, ".cache", "dev-home"), ...process.env },
			stdio: ["inherit", "pipe", "inherit"],
		},
		onStart(child) {
			createInterface({ input: child.stdout }).on("line", (line) => {
				taken = taken.then(() => take(line));
			});
		},
		onExit: (how) => say(`the daemon ended (${how}); it starts anew when a source changes`),
	});

	const unwatch = watchSources([join(ROOT, "server"), join(ROOT, "channels")], (path) => {
		say(`${relative(ROOT, path)} changed: the daemon starts anew`);
		daemon.restart();
	});
	for (const signal of ["SIGINT", "SIGTERM"]) {
		process.on(signal, () => {
			isEnding = true;
			daemon.stop(signal);
		});
	}
	daemon.start();
	process.exitCode = await daemon.ended;
	unwatch();
	await taken.then(() => page?.close());
});
