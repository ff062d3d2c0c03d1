// What the engine has compiled of the server, kept beside it (server/launch): made by running it once, for the Node that does so.
// A server without it starts as well, only later; so nothing here fails.
import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { readJson, writeWhole } from "./stamp.mjs";

const runtime = `${process.version} ${process.platform} ${process.arch}`;
const stampOf = (root) => join(root, "dist", "server", ".compiled.json");
const builtOf = (root) => readJson(join(root, "dist", "server", ".stamp.json"))?.content ?? null;

/** Has it been made, or at least been tried, for what is built and for this Node? */
export function isCompiled(root) {
	if (!existsSync(join(root, "dist", "server", "loader.js"))) return true;
	const stamp = readJson(stampOf(root));
	if (stamp?.runtime === runtime && stamp.built === builtOf(root)) return true;
	try {
		accessSync(join(root, "dist", "server"), constants.W_OK);
		return false;
	} catch {
		return true; // not to be made here
	}
}

/** Makes it. When that fails the next start does not try again. */
export async function compile(root) {
	const { record } = await import("./record.mjs");
	const built = builtOf(root);
	const isMade = await record(join(root, "dist", "server"));
	writeWhole(stampOf(root), JSON.stringify({ runtime, built, isMade }));
}
