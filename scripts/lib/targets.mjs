// What is made from what, and whether it still is.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { sourceState } from "./stamp.mjs";

const COMMON = ["package.json", "package-lock.json", "tsconfig.json"];

export const TARGETS = {
	server: {
		label: "Building the server",
		sources: ["server", "channels", "vite.server.config.ts", ...COMMON],
		vite: (staging) => ["build", "--config", "vite.server.config.ts", "--outDir", staging],
		entry: "main.js",
	},
	page: {
		label: "Building the page",
		sources: ["web", "vite.config.ts", "server/http/contract.ts", ...COMMON],
		vite: (staging) => ["build", "--config", "vite.config.ts", "--outDir", staging],
		entry: "index.html",
	},
};

/** The packages: stale when the lock changed, or Node's binary interface or the machine did (native code). */
export function installState(root) {
	const runtime = `${process.platform}-${process.arch}-abi${process.versions.modules}`;
	return sourceState({
		root,
		paths: ["package-lock.json"],
		stampFile: join(root, "node_modules", ".openlani-install.json"),
		extra: runtime,
	});
}

export function buildState(root, name) {
	return sourceState({ root, paths: TARGETS[name].sources, stampFile: join(root, "dist", name, ".stamp.json"), extra: "1" });
}

export function isBuilt(root, name) {
	return existsSync(join(root, "dist", name, TARGETS[name].entry)) && buildState(root, name).isFresh();
}
