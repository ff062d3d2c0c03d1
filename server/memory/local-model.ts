/** The local embedding model that the settings name, while it can be used: it comes and goes with the setting, its files and the package. */
import { createLocalEmbedder, type LocalEmbedder, LocalModelMissing } from "./local-embedder.ts";
import type { Embedder, MemoryLog } from "./options.ts";

export interface LocalModelOptions {
	packageDirs: string[];
	installHint: string;
	log: MemoryLog;
	/** Called when another model, or none, is to be used from now on. */
	onChange(): void;
	/** How often files that were missing are looked for again. Default 1 min. */
	lookMs?: number;
}

export interface LocalModel {
	/** From now on the model in this directory (absolute), or none. Resolves when it is known whether it can be used; never rejects. */
	use(directory: string | null): Promise<void>;
	/** Null when none is named, and while the one that is named cannot be used. */
	embedder(): Embedder | null;
	/** Why the named model is not used: one sentence; null when it is, or none is named. */
	problem(): string | null;
	stop(): Promise<void>;
}

/** What a person types to install the package where it is looked for. The version is the one that is tested; its CUDA download is not needed. */
export const installHintOf = (directory: string): string =>
	`ONNXRUNTIME_NODE_INSTALL_CUDA=skip npm i --prefix "${directory}" @huggingface/transformers@4.3.2`;

export function createLocalModel(options: LocalModelOptions): LocalModel {
	const { log, packageDirs, installHint } = options;
	let wanted: string | null = null;
	let current: LocalEmbedder | null = null;
	let problem: string | null = null;
	/** The model that did not load: it is not tried again before its files change. */
	let broken: string | null = null;
	let looking: NodeJS.Timeout | null = null;
	/** The newest wish; what an older one still finds is dropped. */
	let wish = 0;

	function say(message: string | null): void {
		if (message !== null && message !== problem)
			log.warn("memory.local-model", { message: `${message}; memories are found by words and lexical vectors meanwhile` });
		problem = message;
	}

	function lookAgain(): void {
		if (looking) clearTimeout(looking);
		looking = setTimeout(() => void look(wish), options.lookMs ?? 60_000);
		looking.unref();
	}

	async function look(mine: number): Promise<void> {
		if (wanted === null) return;
		try {
			const made = await createLocalEmbedder({ directory: wanted, packageDirs, installHint });
			if (mine !== wish) return;
			if (made.model === broken) return lookAgain();
			current = made;
			broken = null;
			say(null);
			log.info("memory.local-model", { model: made.model });
			options.onChange();
		} catch (error) {
			if (mine !== wish) return;
			say((error as Error).message);
			lookAgain();
		}
	}

	function drop(): Promise<void> {
		const old = current;
		current = null;
		if (looking) clearTimeout(looking);
		looking = null;
		return old?.stop() ?? Promise.resolve();
	}

	return {
		async use(directory) {
			if (directory === wanted && problem === null) return;
			const mine = ++wish;
			const had = current !== null;
			wanted = directory;
			broken = null;
			problem = null;
			await drop();
			if (mine !== wish) return;
			await look(mine);
			if (had && current === null && mine === wish) options.onChange();
		},
		embedder() {
			const using = current;
			if (!using) return null;
			return {
				model: using.model,
				...(using.batch === undefined ? {} : { batch: using.batch }),
				async embed(texts, context, signal) {
					try {
						return await using.embed(texts, context, signal);
					} catch (error) {
						if (error instanceof LocalModelMissing && current === using) {
							broken = using.model;
							say(error.message);
							void drop();
							lookAgain();
							options.onChange();
						}
						throw error;
					}
				},
			};
		},
		problem: () => problem,
		async stop() {
			wish++;
			wanted = null;
			await drop();
		},
	};
}
