import { readdirSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, join } from "node:path";
import { defineConfig } from "vite";

/**
 * Packages that stay in node_modules: they load native code from beside themselves, or are optional and looked up at run time.
 * Everything else is bundled, because opening a thousand small files is most of what a start costs.
 */
const EXTERNAL = ["better-sqlite3", "sqlite-vec", "@node-rs/argon2", "@node-rs/jieba"];

/** Files that are started as a process or thread of their own (`*-worker.ts`): each becomes a file beside main.js. */
function workers(): Record<string, string> {
	const files = readdirSync("server", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith("-worker.ts"));
	return Object.fromEntries(files.map((file) => [basename(file, ".ts"), join("server", file)]));
}

export default defineConfig({
	publicDir: false,
	ssr: { target: "node", noExternal: true, external: EXTERNAL },
	build: {
		ssr: true,
		outDir: "dist/server",
		target: "node20",
		minify: false,
		sourcemap: true,
		rolldownOptions: {
			input: { main: "server/main.ts", ...workers() },
			external: [...builtinModules, /^node:/, ...EXTERNAL],
			output: {
				format: "esm",
				// Flat, so that a path relative to server/<room>/ means the same in the source and in the bundle.
				entryFileNames: "[name].js",
				chunkFileNames: "[name]-[hash].js",
			},
		},
	},
});
