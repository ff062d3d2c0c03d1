// What `npm start`, `npm test` and the other commands do first: install when the lock changed, build what is stale.
// No dependencies: on a fresh clone there are none yet.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile, isCompiled } from "./lib/compiled.mjs";
import { SetupError, say } from "./lib/say.mjs";
import { readJson } from "./lib/stamp.mjs";
import { installState, isBuilt } from "./lib/targets.mjs";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

function checkNode(root) {
	const wanted = readJson(join(root, "package.json")).engines.node.replace(">=", "").split(".").map(Number);
	const [major, minor] = process.versions.node.split(".").map(Number);
	if (major < wanted[0] || (major === wanted[0] && minor < wanted[1])) {
		throw new SetupError(`Node ${wanted.join(".")} or newer is needed; this is ${process.versions.node}`);
	}
}

/**
 * Makes the clone ready: packages, and the builds named in `targets`. When all is fresh this is a look at the files and nothing
 * else. Throws `SetupError` with a sentence for a person.
 * @param {{ root?: string, targets?: ("server" | "page")[] }} [options]
 */
export async function setup({ root = ROOT, targets = [] } = {}) {
	checkNode(root);
	const stale = () => targets.filter((name) => !isBuilt(root, name));
	const needsCompiling = () => targets.includes("server") && !isCompiled(root);
	if (installState(root).isFresh() && stale().length === 0 && !needsCompiling()) return;
	const [{ withLock }, { build, install }] = await Promise.all([import("./lib/lock.mjs"), import("./lib/make.mjs")]);
	await withLock(
		join(root, ".cache", "setup.lock"),
		async () => {
			await install(root);
			const results = await Promise.allSettled(stale().map((name) => build(root, name)));
			for (const result of results) if (result.status === "rejected") throw result.reason;
			if (needsCompiling()) await compile(root);
		},
		() => say("another set-up is running in this clone; waiting for it"),
	);
}

/** Runs a command's main function; a failed set-up ends with its sentence and code 1, not with a stack. */
export async function main(work) {
	try {
		await work();
	} catch (error) {
		if (!(error instanceof SetupError)) throw error;
		say(error.message);
		process.exit(error.exitCode);
	}
}
