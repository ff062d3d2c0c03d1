/**
 * Vectors from a model on this machine, through the optional package @huggingface/transformers: from a directory that the owner filled
 * (config.json, tokenizer.json, onnx/model.onnx), never from the network. The package is not a dependency: it is large and few need it.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocalModelCall, LocalModelPlace, LocalModelReply } from "./local-model-worker.ts";
import type { Embedder } from "./options.ts";

/** The name is put together so that no bundler takes the package in. */
const packageName = ["@huggingface", "transformers"].join("/");

export interface LocalEmbedderOptions {
	/** The model's directory. */
	directory: string;
	/** Directories with a `node_modules` in which the package may be, besides the program's own. The first that has it is taken. */
	packageDirs: string[];
	/** What a person types to install the package, for the sentence that says it is missing. */
	installHint?: string;
	/** Ends the process after this time without a text. Default 10 min. */
	idleMs?: number;
}

export interface LocalEmbedder extends Embedder {
	/** The process in which the model runs; null while there is none. */
	pid(): number | null;
	stop(): Promise<void>;
}

/** The model cannot be used as things are: its files or the package are missing, or they do not work together. */
export class LocalModelMissing extends Error {
	constructor(message: string) {
		super(message);
		this.name = "LocalModelMissing";
	}
}

const isFile = async (path: string): Promise<boolean> => (await stat(path).catch(() => null))?.isFile() ?? false;

/** A file from whose place `require` finds the package; null = it is nowhere. */
async function findPackage(packageDirs: string[]): Promise<string | null> {
	const own = fileURLToPath(import.meta.url);
	for (const dir of packageDirs)
		if (await isFile(join(dir, "node_modules", packageName, "package.json"))) return join(resolve(dir), "package.json");
	try {
		createRequire(own).resolve(packageName);
		return own;
	} catch {
		return null;
	}
}

/** Looks at the files and starts nothing. Its name holds a hash of the model's settings, so that another model in the same directory is another model. */
export async function createLocalEmbedder(options: LocalEmbedderOptions): Promise<LocalEmbedder> {
	const directory = resolve(options.directory);
	const folder = await stat(directory).catch(() => null);
	if (!folder?.isDirectory())
		throw new LocalModelMissing(`there is no directory ${directory}; put config.json, tokenizer.json and onnx/model.onnx there`);
	for (const file of ["config.json", "tokenizer.json", join("onnx", "model.onnx")]) {
		if (!(await isFile(join(directory, file))))
			throw new LocalModelMissing(
				`${join(directory, file)} is missing: the directory of a local embedding model needs config.json, tokenizer.json and onnx/model.onnx`,
			);
	}
	const from = await findPackage(options.packageDirs);
	if (from === null)
		throw new LocalModelMissing(
			`the package ${packageName} is not installed; local embeddings need it${options.installHint ? `: ${options.installHint}` : ""}`,
		);
	const weights = await stat(join(directory, "onnx", "model.onnx"));
	const mark = createHash("sha256")
		.update(await readFile(join(directory, "config.json")))
		.update(await readFile(join(directory, "tokenizer.json")))
		.update(`${weights.size} ${Math.trunc(weights.mtimeMs)}`)
		.digest("hex")
		.slice(0, 8);
	const host = createHost({ directory, from, packageName }, options.idleMs ?? 10 * 60_000);
	return {
		model: `local:${basename(directory)}:${mark}`,
		batch: 16,
		embed: (texts, _context, signal) => host.embed(texts, signal),
		pid: host.pid,
		stop: host.stop,
	};
}

interface Running {
	child: ChildProcess;
	waiting: Map<number, { resolve(value: Float32Array[] | null): void; reject(error: Error): void }>;
	next: number;
	ready: Promise<unknown>;
}

/** Starts the model's process at the first text, ends it when it is idle, and begins anew when it died. */
function createHost(place: LocalModelPlace, idleMs: number) {
	let running: Running | null = null;
	let idle: NodeJS.Timeout | null = null;
	let stopped = false;

	function post(
		on: Running,
		call: { type: "open"; place: LocalModelPlace } | { type: "embed"; texts: string[] },
	): Promise<Float32Array[] | null> {
		return new Promise((resolve, reject) => {
			const id = on.next++;
			on.waiting.set(id, { resolve, reject });
			on.child.send({ id, ...call } satisfies LocalModelCall, (error) => {
				if (error && on.waiting.delete(id)) reject(error);
			});
		});
	}

	function start(): Running {
		const sources = import.meta.url.endsWith(".ts");
		const file = fileURLToPath(new URL(sources ? "./local-model-worker.ts" : "./local-model-worker.js", import.meta.url));
		// No keys and no settings of the daemon reach it.
		const child = fork(file, [], {
			env: {},
			execArgv: sources ? ["--import", "tsx"] : [],
			serialization: "advanced",
			stdio: ["ignore", "ignore", "pipe", "ipc"],
		});
		const made: Running = { child, waiting: new Map(), next: 1, ready: Promise.resolve() };
		let stderr = "";
		function end(why: string): void {
			if (running === made) running = null;
			for (const one of made.waiting.values()) one.reject(new Error(why));
			made.waiting.clear();
		}
		child.stderr?.setEncoding("utf8");
		child.stderr?.on("data", (text: string) => {
			stderr = (stderr + text).slice(-500);
		});
		child.on("message", (reply: LocalModelReply) => {
			const one = made.waiting.get(reply.id);
			made.waiting.delete(reply.id);
			if (reply.error !== undefined) one?.reject(new Error(reply.error));
			else one?.resolve(reply.value ?? null);
		});
		child.on("error", (error) => end(`the local model's process cannot run: ${error.message}`));
		child.on("exit", (code, signal) => end(`the local model's process ended (${signal ?? code}) ${stderr}`.trim()));
		// The daemon's exit must not wait for it.
		child.unref();
		(child.stderr as unknown as { unref?(): void } | null)?.unref?.();
		running = made;
		made.ready = post(made, { type: "open", place }).catch((error: Error) => {
			const told = child.exitCode === null && child.signalCode === null && child.connected;
			child.kill("SIGKILL");
			// A process that died may live the next time; one that says why it cannot load will say so again.
			throw told ? new LocalModelMissing(`the local model in ${place.directory} cannot be loaded: ${error.message.split("\n")[0]}`) : error;
		});
		made.ready.catch(() => undefined);
		return made;
	}

	function rest(on: Running): void {
		if (on.waiting.size > 0 || running !== on) return;
		on.child.channel?.unref();
		if (idle) clearTimeout(idle);
		idle = setTimeout(() => {
			idle = null;
			if (running !== on || on.waiting.size > 0) return;
			running = null;
			on.child.disconnect();
		}, idleMs);
		idle.unref();
	}

	return {
		async embed(texts: string[], signal: AbortSignal): Promise<Float32Array[]> {
			signal.throwIfAborted();
			if (stopped) throw new Error("the local model is stopped");
			const on = running ?? start();
			on.child.channel?.ref();
			if (idle) clearTimeout(idle);
			idle = null;
			const work = on.ready.then(() => post(on, { type: "embed", texts })).then((vectors) => vectors ?? []);
			// It is rested also after a caller who went away.
			work.then(
				() => rest(on),
				() => rest(on),
			);
			return untilAborted(work, signal);
		},
		pid: (): number | null => running?.child.pid ?? null,
		async stop(): Promise<void> {
			stopped = true;
			if (idle) clearTimeout(idle);
			const on = running;
			running = null;
			if (!on || on.child.exitCode !== null || on.child.signalCode !== null) return;
			await new Promise<void>((resolve) => {
				on.child.once("exit", () => resolve());
				on.child.ref();
				// It keeps nothing: there is nothing to wait for.
				on.child.kill("SIGKILL");
			});
		},
	};
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
	return new Promise((resolve, reject) => {
		const onAbort = () => reject(signal.reason as Error);
		signal.addEventListener("abort", onAbort, { once: true });
		work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
	});
}
