/**
 * Vectors from a model on this machine, through the optional package @huggingface/transformers: from a directory that the owner filled
 * (config.json, tokenizer.json, onnx/model.onnx), never from the network. The package is not a dependency: it is large and few need it.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Embedder } from "./options.ts";

type Extractor = (texts: string[], options: { pooling: "mean"; normalize: boolean }) => Promise<{ tolist(): number[][] }>;

interface Transformers {
	env: { allowRemoteModels: boolean; localModelPath: string };
	pipeline(task: "feature-extraction", model: string, options: { dtype: "fp32" }): Promise<Extractor>;
}

export interface LocalEmbedderOptions {
	/** The model's directory. */
	directory: string;
	/** Finds the package; for tests. */
	load?(): Promise<Transformers>;
}

/** The name is put together so that no bundler takes the package in. */
const packageName = ["@huggingface", "transformers"].join("/");

export class LocalModelMissing extends Error {
	constructor(message: string) {
		super(message);
		this.name = "LocalModelMissing";
	}
}

/** Loads nothing until the first text. Its name holds a hash of the model's settings, so that another model in the same directory is another model. */
export async function createLocalEmbedder(options: LocalEmbedderOptions): Promise<Embedder> {
	const directory = resolve(options.directory);
	for (const file of ["config.json", "tokenizer.json", join("onnx", "model.onnx")]) {
		if (!(await stat(join(directory, file)).catch(() => null)))
			throw new LocalModelMissing(
				`${join(directory, file)} is missing: the directory of a local embedding model needs config.json, tokenizer.json and onnx/model.onnx`,
			);
	}
	const weights = await stat(join(directory, "onnx", "model.onnx"));
	const mark = createHash("sha256")
		.update(await readFile(join(directory, "config.json")))
		.update(`${weights.size} ${Math.trunc(weights.mtimeMs)}`)
		.digest("hex")
		.slice(0, 8);
	let extractor: Promise<Extractor> | null = null;

	async function load(): Promise<Extractor> {
		let room: Transformers;
		try {
			room = options.load ? await options.load() : ((await import(/* @vite-ignore */ packageName)) as Transformers);
		} catch (error) {
			throw new LocalModelMissing(
				`the package ${packageName} is not installed (${(error as NodeJS.ErrnoException).code ?? (error as Error).message}); local embeddings need it`,
			);
		}
		room.env.allowRemoteModels = false;
		room.env.localModelPath = `${dirname(directory)}/`;
		return room.pipeline("feature-extraction", basename(directory), { dtype: "fp32" });
	}

	return {
		model: `local:${basename(directory)}:${mark}`,
		batch: 16,
		async embed(texts, _context, signal) {
			signal.throwIfAborted();
			if (!extractor) {
				const mine = load();
				extractor = mine;
				mine.catch(() => {
					extractor = null;
				});
			}
			const run = await extractor;
			signal.throwIfAborted();
			return (await run(texts, { pooling: "mean", normalize: true })).tolist();
		},
	};
}
