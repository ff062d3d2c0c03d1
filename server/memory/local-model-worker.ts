/**
 * A local embedding model's own process. Running a model holds its thread for as long as it takes, its native code may fall over, and
 * its memory is large: none of that concerns the daemon. It ends with the daemon.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";

export interface LocalModelPlace {
	/** The model's directory. */
	directory: string;
	/** A file from whose place the package is looked for, as `require` does. */
	from: string;
	packageName: string;
}
export type LocalModelCall = { id: number } & ({ type: "open"; place: LocalModelPlace } | { type: "embed"; texts: string[] });
export type LocalModelReply = { id: number; value?: Float32Array[] | null; error?: string };

type Pooling = "mean" | "cls";
type Extractor = (texts: string[], options: { pooling: Pooling; normalize: boolean }) => Promise<{ tolist(): number[][] }>;
interface Transformers {
	env: { allowRemoteModels: boolean; localModelPath: string };
	pipeline(
		task: "feature-extraction",
		model: string,
		options: { dtype: "fp32"; device: "cpu"; session_options: { intraOpNumThreads: number } },
	): Promise<Extractor>;
}

let opened: { run: Extractor; pooling: Pooling } | null = null;

/** How the model's makers want its tokens put together, where they say so in the usual place. */
function poolingOf(directory: string): Pooling {
	try {
		const said = JSON.parse(readFileSync(join(directory, "1_Pooling", "config.json"), "utf8")) as { pooling_mode_cls_token?: boolean };
		return said.pooling_mode_cls_token === true ? "cls" : "mean";
	} catch {
		return "mean";
	}
}

async function answer(call: LocalModelCall): Promise<Float32Array[] | null> {
	if (call.type === "open") {
		const { directory, from, packageName } = call.place;
		const room = createRequire(from)(packageName) as Transformers;
		room.env.allowRemoteModels = false;
		room.env.localModelPath = `${dirname(directory)}/`;
		const run = await room.pipeline("feature-extraction", basename(directory), {
			dtype: "fp32",
			device: "cpu",
			// The other half of the machine is for answering people.
			session_options: { intraOpNumThreads: Math.max(1, Math.floor(availableParallelism() / 2)) },
		});
		opened = { run, pooling: poolingOf(directory) };
		return null;
	}
	if (!opened) throw new Error("not open");
	const { run, pooling } = opened;
	return (await run(call.texts, { pooling, normalize: true })).tolist().map((vector) => Float32Array.from(vector));
}

function reply(message: LocalModelReply): void {
	// The daemon may be gone by now; then this process ends as well.
	process.send?.(message, () => undefined);
}

/** One call after the other: two at once would only share the same cores. */
let last: Promise<void> = Promise.resolve();
process.on("message", (call: LocalModelCall) => {
	last = last
		.then(() => answer(call))
		.then(
			(value) => reply({ id: call.id, value }),
			(error: unknown) => reply({ id: call.id, error: error instanceof Error ? error.message : String(error) }),
		);
});
process.on("disconnect", () => process.exit(0));
// The daemon decides when this process ends; a Ctrl-C in the terminal reaches both.
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => undefined);
