import { builtinModules } from "node:module";
import { defineConfig } from "vite";

/**
 * Packages that stay in node_modules: they load native code from beside themselves, or are optional and looked up at run time.
 * Everything else is bundled, because opening a thousand small files is most of what a start costs.
 */
const EXTERNAL = ["better-sqlite3", "sqlite-vec", "@node-rs/argon2", "@node-rs/jieba"];

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
			// The memory's search runs in a process of its own.
			input: { main: "server/main.ts", "memory-worker": "server/store/memory-worker.ts" },
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
