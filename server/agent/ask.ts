/** One model call: its stream as turn events, ended by stop even when the model does not listen. */
import type { Model, ModelErrorKind, ModelReply, ModelRequest } from "../model/model.ts";
import { createAbortableWaits, isLeaving } from "./abort.ts";
import { isSilenceMarker } from "./notes.ts";
import { createStampFilter } from "./stamp.ts";
import type { TurnEvent } from "./types.ts";

/** What was streamed so far, for a turn that is stopped in the middle. */
export interface Streamed {
	text: string;
}

export interface AskOptions {
	step: number;
	partial: Streamed;
	/** Nobody wrote, so the answer may be a silence: its beginning is held back until it is clear that it is none. */
	mayBeSilent: boolean;
}

/** Longer than every marker of a silence. */
const HELD_CHARS = 60;

/** So long a stopped call may take to settle what it used. */
const SETTLE_MS = 400;

/** Yields `delta`, `thinking` and `restart`; answers the reply. Throws `Stopped` on abort and whatever the model throws. */
export async function* ask(
	model: Model,
	request: ModelRequest,
	options: AskOptions,
	signal: AbortSignal,
): AsyncGenerator<TurnEvent, ModelReply> {
	const { step, partial } = options;
	const stream = model.stream(request, signal)[Symbol.asyncIterator]();
	let filter = createStampFilter();
	let told = 0;
	let thinking = false;
	let ended = false;
	const waits = createAbortableWaits(signal);
	/** Takes text in and answers what may be shown now. */
	const show = (text: string, last: boolean): string => {
		partial.text += text;
		if (options.mayBeSilent && told === 0 && (last ? isSilenceMarker(partial.text) : partial.text.length <= HELD_CHARS)) return "";
		const fresh = partial.text.slice(told);
		told = partial.text.length;
		return fresh;
	};
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
					const text = show(filter.push(event.text), false);
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
					told = 0;
					yield { type: "restart", step, model: event.model, reason: event.reason };
					break;
				case "end": {
					const text = show(filter.end(), true);
					if (text !== "") yield { type: "delta", step, text };
					return event.reply;
				}
			}
		}
	} finally {
		waits.end();
		if (!ended) {
			const settled = Promise.resolve(stream.return?.()).catch(() => {});
			// What was used belongs to the stopped answer, but a model that ignores the signal must not hold up the stop.
			if (signal.aborted && !isLeaving(signal)) await within(settled, SETTLE_MS);
		}
	}
}

async function within(work: Promise<unknown>, limitMs: number): Promise<void> {
	let timer: NodeJS.Timeout | undefined;
	const limit = new Promise((resolve) => {
		timer = setTimeout(resolve, limitMs);
	});
	await Promise.race([work, limit]);
	clearTimeout(timer);
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
