// npm run dev: the daemon from its sources, restarted on change, and the page from vite's own server, which passes calls on to it. The
// home is .cache/dev-home unless OPENLANI_HOME or --home says otherwise.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { main, ROOT, setup } from "./setup.mjs";

await main(async () => {
	await setup();
	const { createServer } = await import("vite");
	const env = { OPENLANI_HOME: join(ROOT, ".cache", "dev-home"), ...process.env };
	const tsx = join(ROOT, "node_modules", ".bin", "tsx");
	const daemon = spawn(tsx, ["watch", "--clear-screen=false", "server/main.ts", "serve", ...process.argv.slice(2)], {
		cwd: ROOT,
		env,
		stdio: ["inherit", "pipe", "inherit"],
	});
	let daemonUrl = null;
	let page = null;
	const pageUrl = () => page?.resolvedUrls?.local[0]?.replace(/\/$/, "");

	async function showPage() {
		await page?.close();
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
	createInterface({ input: daemon.stdout }).on("line", (line) => {
		taken = taken.then(() => take(line));
	});
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => daemon.kill(signal));
	daemon.once("exit", (code) => {
		process.exitCode ||= code ?? 0;
		void taken.then(() => page?.close());
	});
});
