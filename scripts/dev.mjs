// npm run dev: the daemon from its sources, restarted on change, and the page from vite's own server. Its home is
// .cache/dev-home unless OPENLANI_HOME or --home says otherwise.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { main, ROOT, setup } from "./setup.mjs";

await main(async () => {
	await setup();
	const flags = process.argv.slice(2);
	const env = { OPENLANI_HOME: join(ROOT, ".cache", "dev-home"), ...process.env };
	const bin = (name) => join(ROOT, "node_modules", ".bin", name);
	const children = [
		spawn(bin("tsx"), ["watch", "--clear-screen=false", "server/main.ts", "serve", ...flags], { cwd: ROOT, env, stdio: "inherit" }),
		spawn(bin("vite"), ["--config", "vite.config.ts"], { cwd: ROOT, env, stdio: "inherit" }),
	];
	const stop = (signal) => {
		for (const child of children) child.kill(signal);
	};
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => stop(signal));
	for (const child of children) {
		child.once("exit", (code) => {
			process.exitCode ||= code ?? 0;
			stop("SIGTERM");
		});
	}
});
