/** Loads the built program's files, with what is kept of their compiled form where that fits. */
import { isAscii } from "node:buffer";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { Script } from "node:vm";
import { type Loaded, openCompiled } from "./compiled.ts";

export { writeCompiled } from "./compiled.ts";

/**
 * How much the heap may grow between two full collections, in percent. Left alone the engine lets a small heap grow to four times its
 * size before it looks, and a resident service never gives that back. Looking more often costs less than a tenth of a millisecond a message.
 */
const heapGrowthPercent = 80;

type Require = (id: string) => unknown;
type Wrapped = (exports: unknown, require: Require, module: { exports: unknown }, filename: string, dirname: string) => void;

const wrap = (text: string) => `(function (exports, require, module, __filename, __dirname) {${text}\n})`;

export interface LoaderOptions {
	/** Where the program's files lie. */
	dir: string;
	/** Told of each file before it runs. */
	onLoaded?(loaded: Loaded): void;
}

/** Sets the engine up and answers `load`: a file of the program, run once, and what it exports. */
export function createLoader({ dir, onLoaded }: LoaderOptions): (file: string) => unknown {
	// Before anything is loaded: compiled code fits only the flags that it was made under.
	setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`);
	const compiled = openCompiled(dir, "main.js");
	const modules = new Map<string, { exports: unknown }>();

	function load(file: string): unknown {
		const known = modules.get(file);
		if (known) return known.exports;
		const path = join(dir, file);
		const source = readFileSync(path);
		const cachedData = compiled(file, source);
		const script = new Script(wrap(isAscii(source) ? source.toString("latin1") : source.toString("utf8")), {
			filename: path,
			cachedData,
		});
		onLoaded?.({ file, source, script, kept: cachedData !== undefined && script.cachedDataRejected === false });
		const module = { exports: {} as unknown };
		modules.set(file, module);
		const others = createRequire(path);
		const require: Require = Object.assign((id: string) => (id.startsWith("./") ? load(id.slice(2)) : others(id)), {
			resolve: others.resolve,
			cache: others.cache,
		});
		try {
			(script.runInThisContext() as Wrapped)(module.exports, require, module, path, dir);
		} catch (error) {
			modules.delete(file);
			throw error;
		}
		return module.exports;
	}
	return load;
}
