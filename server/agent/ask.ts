/** One model call: its stream as turn events, ended by stop even when the model does not listen. */
import type { Model, ModelErrorKind, ModelReply, ModelRequest } from "../model/model.ts";
import { createAbortableWaits } from "./abort.ts";
import { createStampFilter } from "./stamp.ts";
import type { TurnEvent } from "./types.ts";

/** What was streamed so far, for a turn that is stopped in the middle. */
export interface Streamed {
	text: string;
}

/** Yields `delta`, `thinking` and `restart`; answers the reply. Throws `Stopped` on abort and whatever the model throws. */
export async function* ask(
	model: Model,
	request: ModelRequest,
	step: number,
	partial: Streamed,
	signal: AbortSignal,
): AsyncGenerator<TurnEvent, ModelReply> {
	const stream = model.stream(request, signal)[Symbol.asyncIterator]();
	let filter = createStampFilter();
	let thinking = false;
	let ended = false;
	const waits = createAbortableWaits(signal);
	try {
		for (;;) {
			const next = await waits.wait(Promise.resolve(stream.next()));
			if (next.done) {
				ended = true;
				throw Object.assign(new Error("the model's stream ended without a reply"), { name: "ModelError", kind: "protocol" });
			}
			const event = next.value;
			switch (event.type) {
				case "text": {
					const text = filter.push(event.text);
					partial.text += text;
					if (text !== "") yield { type: "delta", step, text };
					break;
				}
				case "reasoning":
					if (!thinking) yield { type: "thinking", step };
					thinking = true;
					break;
				case "restart":
					filter = createStampFilter();
					partial.text = "";
					yield { type: "restart", step, model: event.model, reason: event.reason };
					break;
				case "end": {
					const rest = filter.end();
					partial.text += rest;
					if (rest !== "") yield { type: "delta", step, text: rest };
					return event.reply;
				}
			}
		}
	} finally {
		waits.end();
		// Not awaited: a model that ignores the signal must not hold up the stop.
		if (!ended) Promise.resolve(stream.return?.()).catch(() => {});
	}
}

const KINDS: ReadonlySet<string> = new Set<ModelErrorKind>([
	"bad-request",
	"context-length",
	"auth",
	"payment",
	"rate-limited",
	"server",
	"network",
	"timeout",
	"protocol",
	"aborted",
	"fuse",
	"no-model",
]);

/** Who failed. Anything that is no `ModelError` is a fault of ours. */
export function errorKind(error: unknown): ModelErrorKind | "internal" {
	const kind = error instanceof Error && error.name === "ModelError" ? (error as Error & { kind?: unknown }).kind : undefined;
	return typeof kind === "string" && KINDS.has(kind) ? (kind as ModelErrorKind) : "internal";
}
