/** What a turn knows while it runs, and the ways it can end. */
import type { Usage } from "../model/model.ts";
import type { Streamed } from "./ask.ts";
import { errorKind } from "./ask.ts";
import type { CallsState } from "./calls.ts";
import { toolCounts } from "./fold.ts";
import { newGuards } from "./guards.ts";
import { addUsage, NO_USAGE } from "./limits.ts";
import { EMPTY_NOTE, isSilenceMarker, SHORTER_NOTE, TEXT_CALL_NOTE } from "./notes.ts";
import type { RequestState } from "./request.ts";
import { errorSentence, type Language, languageOf, plainSentence } from "./sentences.ts";
import { stripStamp } from "./stamp.ts";
import { isBlank, wellFormed } from "./text.ts";
import type { StepRecord, TurnDeps, TurnEvent, TurnInput, TurnOutcome } from "./types.ts";

/** Everything a turn knows while it runs. What must survive a crash is in the steps. */
export interface Turn extends CallsState, RequestState {
	signal: AbortSignal;
	language: Language;
	usage: Usage | null;
	model: string | null;
	modelName: string | null;
	guards: ReturnType<typeof newGuards>;
	round: number;
	/** Model calls of this round, blank answers included. */
	asked: number;
	nudged: boolean;
	shortened: number;
	partial: Streamed;
	promptTold: boolean;
}

export type Flow<T> = AsyncGenerator<TurnEvent, T>;
export type Ending = Pick<TurnOutcome, "state" | "reply"> & Partial<TurnOutcome>;

export function begin(input: TurnInput, deps: TurnDeps, signal: AbortSignal): Turn {
	const steps = input.steps.map((step) => ({ ...step, calls: step.calls.map((record) => ({ ...record })) }));
	const last = steps.at(-1);
	const round = last?.round ?? 1;
	return {
		input,
		deps,
		signal,
		language: languageOf([...input.messages, ...steps.flatMap((step) => step.joined)].at(-1)?.text ?? "", input.locale),
		steps,
		earlier: [],
		plan: input.plan.map((item) => ({ ...item })),
		taint: steps.flatMap((step) =>
			step.calls.flatMap((record) => (record.taint === undefined ? [] : [{ source: record.taint, step: step.step }])),
		),
		attachments: steps.flatMap((step) => step.calls.flatMap((record) => record.attachments ?? [])),
		opening: [],
		folded: 0,
		dropped: 0,
		squeeze: 1,
		usage: steps.reduce<Usage | null>((sum, step) => addUsage(sum, step.usage), null),
		model: last?.model ?? null,
		modelName: last?.modelName ?? null,
		guards: newGuards(),
		round,
		asked: steps.filter((step) => step.round === round).length,
		nudged: steps.some((step) => step.note?.includes(EMPTY_NOTE) || step.note?.includes(TEXT_CALL_NOTE)),
		shortened: steps.filter((step) => step.note?.includes(SHORTER_NOTE)).length,
		partial: { text: "" },
		promptTold: false,
	};
}

export function answered(text: string): Ending {
	return { state: "done", status: "done", reply: text.trim() };
}

export function silent(): Ending {
	return { state: "done", status: "done", reply: "", silent: true };
}

/** What `finish` means; null when a person waits and neither it nor the step says anything. */
export function finished(
	turn: Turn,
	step: StepRecord,
	finish: { status: "done" | "blocked"; reply: string; channel?: string; to?: string },
): Ending | null {
	const human = turn.input.origin === "human";
	const said = stripStamp(wellFormed(finish.reply)).trim();
	const blank = isBlank(said) || (!human && isSilenceMarker(said));
	if (blank && !human) return { ...silent(), status: finish.status };
	const reply = blank ? step.text.trim() : said;
	if (isBlank(reply)) return null;
	const deliverTo = finish.channel && finish.to ? { channel: finish.channel, to: finish.to } : null;
	return { state: "done", status: finish.status, reply, deliverTo };
}

export function emptyEnd(turn: Turn): Ending {
	return ours(plainSentence("empty", turn.language), { kind: "protocol", message: "the model gave no answer twice" });
}

/** The turn failed; the person reads one sentence. */
export function ours(reply: string, error: TurnOutcome["error"]): Ending {
	return { state: "failed", reply, fromUs: true, error };
}

export function failed(turn: Turn, error: unknown): Ending {
	const kind = errorKind(error);
	return ours(errorSentence(kind, turn.language), { kind, message: error instanceof Error ? error.message : String(error) });
}

/** A last line that is a mark and no word yet: a bullet, a number, the start of a heading. */
const BARE_MARK = /(?:^|\n)[ \t]*(?:[-*+•>]|#{1,6}|\d{1,3}[.)])[ \t]*$/;

/** What was streamed before the stop stays. */
export function stopped(turn: Turn): Ending {
	const text = stripStamp(wellFormed(turn.partial.text)).trim().replace(BARE_MARK, "").trimEnd();
	return isBlank(text)
		? { state: "stopped", reply: plainSentence("stopped", turn.language), fromUs: true }
		: { state: "stopped", reply: text };
}

export function outcomeOf(turn: Turn, end: Ending): TurnOutcome {
	return {
		fromUs: false,
		silent: false,
		status: null,
		deliverTo: null,
		attachments: turn.attachments,
		guard: null,
		error: null,
		rounds: turn.round,
		steps: turn.steps.length,
		usage: turn.usage ?? { ...NO_USAGE },
		model: turn.model,
		modelName: turn.modelName,
		taint: turn.taint,
		toolDigest: toolCounts(turn.steps),
		...end,
		reply: wellFormed(end.reply),
	};
}
