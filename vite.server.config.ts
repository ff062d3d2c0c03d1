import { readdirSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, join } from "node:path";
import { defineConfig, type Plugin } from "vite";

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

/** What is built are scripts, in a package of modules: says so, and loads packages as scripts do, for a script that we compile has no import(). */
const scripts: Plugin = {
	name: "openlani-scripts",
	renderChunk: (code) => code.replace(/\bimport\(("[^"./][^"]*")\)/g, "Promise.resolve().then(() => require($1))"),
	generateBundle() {
		this.emitFile({ type: "asset", fileName: "package.json", source: '{ "type": "commonjs" }\n' });
	},
};

export default defineConfig({
	plugins: [scripts],
	publicDir: false,
	ssr: { target: "node", noExternal: true, external: EXTERNAL },
	build: {
		ssr: true,
		outDir: "dist/server",
		target: "node20",
		minify: false,
		sourcemap: true,
		rolldownOptions: {
			input: { main: "server/launch/main.ts", loader: "server/launch/loader.ts", program: "server/main.ts", ...workers() },
			external: [...builtinModules, /^node:/, ...EXTERNAL],
			output: {
				// Scripts, not modules: what the engine has compiled of a script can be kept (server/launch), of a module it cannot on Node 20.
				format: "cjs",
				strict: true,
				// Nobody reads them here, and each start reads the file.
				comments: { legal: true, annotation: false, jsdoc: false },
				// Flat, so that a path relative to server/<room>/ means the same in the source and in the bundle.
				entryFileNames: "[name].js",
				chunkFileNames: "[name]-[hash].js",
			},
		},
	},
});
