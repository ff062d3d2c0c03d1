import { readdirSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, join } from "node:path";
import { defineConfig, type Plugin } from "vite";

/**
 * Packages that stay in node_modules: they load native code from beside themselves, or are optional and looked up at run time.
 * Everything else is bundled, because opening a thousand small files is most of what a start costs.
 */
const EXTERNAL = ["better-sqlite3", "sqlite-vec", "@node-rs/argon2", "@node-rs/jieba"];

/** Files that are started as a process or thread of their own (`*-worker.ts`): each becomes a file beside main.js, named as `worker` says. */
function workers(): Record<string, string> {
	const files = readdirSync("server", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith("-worker.ts"));
	return Object.fromEntries(files.map((file) => [basename(file, ".ts"), join("server", file)]));
}

const isWorker = (name: string) => name.endsWith("-worker");

/** Whoever starts "./X-worker.js" starts the one of its own build: the name with its hash is put in, before what names it gets a hash itself. */
const workerNames: Plugin = {
	name: "openlani-worker-names",
	renderChunk(code, _chunk, _options, { chunks }) {
		const files = Object.values(chunks).filter((chunk) => chunk.isEntry && isWorker(chunk.name));
		const named = files.reduce((text, { name, fileName }) => text.replaceAll(`"./${name}.js"`, `"./${fileName}"`), code);
		return named === code ? null : { code: named, map: null };
	},
};

/** The same text in ASCII: read faster, and held in half the memory, because one character beyond makes a whole file two bytes wide. */
const ascii = (code: string) =>
	code.replace(/(\\*)([^\0-\x7f])/g, (_, slashes: string, char: string) => {
		// A backslash before it that escapes nothing would escape the one that is put there.
		const before = slashes.length % 2 === 1 ? slashes.slice(1) : slashes;
		return `${before}\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
	});

/** What is built are scripts, in a package of modules: says so, and loads packages as scripts do, for a script that we compile has no import(). */
const scripts: Plugin = {
	name: "openlani-scripts",
	generateBundle(_options, bundle) {
		for (const chunk of Object.values(bundle)) {
			if (chunk.type !== "chunk") continue;
			if (/String\.raw`[^`]*[^\0-\x7f]/.test(chunk.code)) this.error(`${chunk.fileName}: String.raw with a character that is not ASCII`);
			chunk.code = ascii(chunk.code.replace(/\bimport\(("[^"./][^"]*")\)/g, "Promise.resolve().then(() => require($1))"));
		}
		this.emitFile({ type: "asset", fileName: "package.json", source: '{ "type": "commonjs" }\n' });
	},
};

/** Fastify loads HTTP/2 at every start. Nothing here serves it. */
const withoutHttp2: Plugin = {
	name: "openlani-without-http2",
	transform(code, id) {
		if (!id.endsWith("/fastify/lib/server.js")) return null;
		const changed = code.replace("const http2 = require('node:http2')", "const http2 = {}");
		if (changed === code) this.error("fastify loads http2 in another way than before");
		return { code: changed, map: null };
	},
};

export default defineConfig({
	plugins: [withoutHttp2, workerNames, scripts],
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
				entryFileNames: ({ name }) => (isWorker(name) ? "[name]-[hash].js" : "[name].js"),
				chunkFileNames: "[name]-[hash].js",
			},
		},
	},
});
