/**
 * The search engine's own process: it holds the Chinese dictionary and the index, answers one question after the other, and ends
 * with the daemon. A process rather than a thread, because its memory goes back to the system when it ends.
 */
import { createEngine } from "./memory-engine.ts";
import type { Engine, EngineOptions, SearchRequest } from "./memory-search.ts";

export type WorkerCall = { id: number } & (
	| { type: "open"; options: EngineOptions }
	| { type: "search"; request: SearchRequest }
	| { type: "sync"; model: string; limit: number }
);
export type WorkerReply = { id: number; value?: unknown; error?: { message: string; code: string | null } };

let engine: Engine | null = null;

async function answer(call: WorkerCall): Promise<unknown> {
	if (call.type === "open") {
		engine = createEngine(call.options);
		return true;
	}
	if (!engine) throw new Error("not open");
	return call.type === "search" ? engine.search(call.request) : engine.sync(call.model, call.limit);
}

function reply(message: WorkerReply): void {
	// The daemon may be gone by now; then this process ends as well.
	process.send?.(message, () => undefined);
}

function handle(call: WorkerCall): void {
	answer(call).then(
		(value) => reply({ id: call.id, value }),
		(error: Error & { code?: string }) => reply({ id: call.id, error: { message: error.message, code: error.code ?? null } }),
	);
}

// Each in a round of its own: of many questions that come together the first has its answer before the last is looked up.
process.on("message", (call: WorkerCall) => setImmediate(handle, call));
process.on("disconnect", () => {
	void (engine?.close() ?? Promise.resolve()).finally(() => process.exit(0));
});
// The daemon decides when this process ends; a Ctrl-C in the terminal reaches both.
process.on("SIGINT", () => undefined);
process.on("SIGTERM", () => undefined);
