// npm run check: formatting, lint and import directions (biome), types (tsc), dead code and unused packages (knip).
import { existsSync } from "node:fs";
import { join } from "node:path";
import { run } from "./lib/run.mjs";
import { say } from "./lib/say.mjs";
import { main, ROOT, setup } from "./setup.mjs";

const bin = (name) => join(ROOT, "node_modules", ".bin", name);
const CHECKS = [
	["biome", ["ci", "."]],
	["tsc", ["-p", "."]],
	["tsc", ["-p", "web"]],
	["knip", []],
];

await main(async () => {
	await setup();
	const failed = [];
	for (const [name, args] of CHECKS) {
		const label = [name, ...args].join(" ");
		if (name === "tsc" && !existsSync(join(ROOT, args[1]))) continue;
		say(label);
		await run(bin(name), args, { cwd: ROOT }).catch(() => failed.push(label));
	}
	if (failed.length > 0) {
		say(`failed: ${failed.join(", ")}`);
		process.exitCode = 1;
	}
});
