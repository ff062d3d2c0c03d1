/**
 * The loop: ask the model, store the step, run its calls, ask again, until there is an answer. Everything that happens is
 * yielded as a `TurnEvent`; the last one is `done`, and its outcome is also what the generator returns.
 */
import type { ModelReply } from "../model/model.ts";
import { isLeaving, Stopped } from "./abort.ts";
import { errorKind } from "./ask.ts";
import { type Asked, askModel } from "./ask-model.ts";
import { runCalls, storedFinish } from "./calls.ts";
import { observe, observedCall, type Verdict, warning } from "./guards.ts";
import { CLOSING_NOTE, EMPTY_NOTE, isSilenceMarker, isTextCall, roundNote, SHORTER_NOTE, TEXT_CALL_NOTE } from "./notes.ts";
import { guardSentence, languageOf, plainSentence } from "./sentences.ts";
import { stripStamp } from "./stamp.ts";
import { isBlank, wellFormed } from "./text.ts";
import {
	answered,
	begin,
	type Ending,
	emptyEnd,
	type Flow,
	failed,
	finished,
	ours,
	outcomeOf,
	silent,
	stopped,
	type Turn,
} from "./turn-state.ts";
import type { GuardKind, StepRecord, TurnDeps, TurnEvent, TurnInput, TurnOutcome } from "./types.ts";

/** What comes next: another model call, or the end. */
type Next = { end: Ending } | null;

/** Longest answers are asked for again this often. */
const SHORTER_TRIES = 2;

/**
 * Runs one turn to its end. Never throws for what a model, a tool or a person does; a failing journal ends the turn as `internal`.
 * Aborting ends it within a second as `stopped`. Aborting because the turn leaves this process (see `isLeaving`) throws and writes
 * nothing more: the turn goes on from its stored steps elsewhere.
 */
export async function* runTurn(input: TurnInput, deps: TurnDeps, signal: AbortSignal): AsyncGenerator<TurnEvent, TurnOutcome> {
	const turn = begin(input, deps, signal);
	let end: Ending;
	try {
		end = yield* loop(turn);
	} catch (error) {
		if (isLeaving(signal)) throw error;
		end = error instanceof Stopped || signal.aborted ? stopped(turn) : failed(turn, error);
	}
	const outcome = outcomeOf(turn, end);
	yield { type: "done", outcome };
	return outcome;
}

async function* loop(turn: Turn): Flow<Ending> {
	let step = resume(turn);
	for (;;) {
		if (step) {
			const next: Next = yield* finishStep(turn, step);
			if (next) return next.end;
		}
		const asked: { step: StepRecord } | { end: Ending } | null = yield* askStep(turn);
		if (asked && "end" in asked) return asked.end;
		step = asked?.step ?? null;
	}
}

/** Feeds the guards with what is stored and answers the last step if it has to be finished first. */
function resume(turn: Turn): StepRecord | null {
	for (const step of turn.steps.slice(0, -1)) turn.guards = observe(turn.guards, observedCalls(turn, step)).state;
	return turn.steps.at(-1) ?? null;
}

function observedCalls(turn: Turn, step: StepRecord) {
	return step.calls
		.filter((record) => record.state !== "skipped")
		.map((record) => observedCall(record, turn.deps.tools.get(record.call.name)));
}

/** One model call. Answers the stored step, the turn's end, or null when the model is to be asked again. */
async function* askStep(turn: Turn): Flow<{ step: StepRecord } | { end: Ending } | null> {
	if (turn.signal.aborted) throw new Stopped();
	const reply = yield* askModel(turn, true);
	if ("end" in reply) return reply;
	turn.asked++;
	const text = stripStamp(wellFormed(reply.reply.text));
	if (reply.reply.calls.length > 0) return { step: yield* storeStep(turn, reply, text, null) };
	const human = turn.input.origin === "human";
	// Not stored: the marker of a silence is for nobody's eyes.
	if (!human && reply.reply.finish === "stop" && (isBlank(text) || isSilenceMarker(text))) return { end: silent() };
	if (reply.reply.finish === "length") return yield* cutAnswer(turn, reply, text);
	if (isSilenceMarker(text)) yield { type: "restart", step: turn.steps.length + 1, model: reply.reply.model, reason: "silence" };
	if (isBlank(text) || isSilenceMarker(text)) return yield* emptyAnswer(turn, reply.reply);
	if (
		isTextCall(
			text,
			turn.deps.tools.list().map((tool) => tool.name),
			quotable(turn),
		)
	) {
		if (turn.nudged)
			return { end: ours(plainSentence("textCalls", turn.language), { kind: "protocol", message: "tool call written as text" }) };
		turn.nudged = true;
		yield* storeStep(turn, reply, text, TEXT_CALL_NOTE);
		yield { type: "restart", step: turn.steps.length, model: reply.reply.model, reason: "text-call" };
		return overBudget(turn) ? { end: yield* closeTurn(turn, "steps", `${turn.asked} steps`) } : null;
	}
	return { step: yield* storeStep(turn, reply, text, null) };
}

/** Stores what the model said. Arguments that the limit may have cut are marked, so that they are never run. */
async function* storeStep(turn: Turn, { reply, startedAt }: Asked, text: string, note: string | null): Flow<StepRecord> {
	const last = reply.calls.at(-1);
	const calls = reply.calls.map((call) =>
		reply.finish === "length" && call === last && !isJson(call.arguments) ? { ...call, truncated: true } : call,
	);
	const step: StepRecord = {
		step: turn.steps.length + 1,
		round: turn.round,
		text,
		reasoning: wellFormed(reply.reasoning),
		calls: calls.map((call) => ({ call, recordId: turn.deps.newId(), state: "open", result: null, startedAt: null, endedAt: null })),
		usage: reply.usage,
		model: reply.model,
		modelName: reply.modelName,
		callIds: reply.callIds,
		joined: [],
		note,
		startedAt,
		endedAt: turn.deps.clock.now(),
	};
	await turn.deps.journal.stepStored(step);
	turn.steps.push(step);
	if (calls.length === 0) yield { type: "step-finished", record: step };
	return step;
}

function isJson(text: string): boolean {
	try {
		JSON.parse(text);
		return true;
	} catch {
		return false;
	}
}

/** Runs what is open of a stored step and decides what follows: the turn's end, or another model call. */
async function* finishStep(turn: Turn, step: StepRecord): Flow<Next> {
	if (step.calls.length === 0) {
		// A text with a note of ours, or one that somebody answered, is not the last word.
		return step.note === null && step.joined.length === 0 ? { end: answered(step.text) } : null;
	}
	turn.earlier = turn.steps.slice(0, -1);
	const open = step.calls.some((record) => record.result === null);
	const finish = (yield* runCalls(turn, step, turn.signal)) ?? (open ? null : await storedFinish(turn, step, turn.signal));
	if (open) yield { type: "step-finished", record: step };
	if (finish) {
		const end = finished(turn, step, finish);
		if (end) return { end };
		if (turn.nudged) return { end: emptyEnd(turn) };
		turn.nudged = true;
		await amend(turn, EMPTY_NOTE);
	}
	if (turn.signal.aborted) throw new Stopped();
	const watched = observe(turn.guards, observedCalls(turn, step));
	turn.guards = watched.state;
	const verdict: Verdict = watched.verdict;
	if (verdict.action === "stop") return { end: yield* closeTurn(turn, verdict.kind, verdict.detail) };
	if (verdict.action === "warn") await amend(turn, warning(verdict.kind));
	if (overBudget(turn)) {
		if (turn.round >= turn.input.limits.maxRounds)
			return { end: yield* closeTurn(turn, "steps", `${turn.round} rounds of ${turn.input.limits.maxSteps} steps`) };
		turn.round++;
		turn.asked = 0;
		const note = roundNote(turn.round, turn.input.limits.maxRounds, turn.input.limits.maxSteps, turn.steps, turn.plan);
		await amend(turn, note);
		yield { type: "round", round: turn.round, note };
	}
	const joined = await turn.deps.journal.takeJoining(turn.input.turnId, step.step);
	if (joined.length > 0) {
		step.joined = [...step.joined, ...joined];
		turn.language = languageOf(joined.at(-1)?.text ?? "", turn.input.locale);
		yield { type: "joined", step: step.step, messages: joined };
	}
	const edited = await turn.deps.journal.editedPlan?.(turn.input.turnId);
	if (edited) {
		turn.plan = edited;
		yield { type: "plan", items: edited };
	}
	return null;
}

/** Also bounds answers without calls: a budget that is used up ends the turn whatever the answers were. */
function overBudget(turn: Turn): boolean {
	return turn.asked >= turn.input.limits.maxSteps;
}

/** Adds a note behind the last step, or before the first. A note that is there already (the turn goes on after a crash) is not added twice. */
async function amend(turn: Turn, note: string): Promise<void> {
	const last = turn.steps.at(-1);
	if (!last) {
		turn.opening.push(note);
		return;
	}
	if (last.note?.includes(note)) return;
	last.note = last.note === null ? note : `${last.note}\n${note}`;
	await turn.deps.journal.stepAmended(turn.input.turnId, last.step, { note: last.note });
}

/** An answer without text and calls is never stored: one nudge, then a sentence. */
async function* emptyAnswer(turn: Turn, reply: ModelReply): Flow<{ end: Ending } | null> {
	if (reply.finish === "filtered")
		return { end: ours(plainSentence("filtered", turn.language), { kind: "protocol", message: "withheld by the content filter" }) };
	if (!turn.nudged && !overBudget(turn)) {
		turn.nudged = true;
		await amend(turn, reply.finish === "calls" ? `${warning("empty-calls")} ${EMPTY_NOTE}` : EMPTY_NOTE);
		return null;
	}
	if (reply.finish !== "calls") return { end: emptyEnd(turn) };
	yield { type: "guard", kind: "empty-calls", detail: reply.modelName };
	return { end: { ...ours(guardSentence("empty-calls", turn.language), null), state: "done", status: "blocked", guard: "empty-calls" } };
}

/** An answer cut by the limit is asked for again, shorter; the third one is given as it is, with a sentence on what to change. */
async function* cutAnswer(turn: Turn, asked: Asked, text: string): Flow<{ end: Ending } | null> {
	const again = turn.shortened < SHORTER_TRIES && !overBudget(turn);
	if (!isBlank(text)) yield* storeStep(turn, asked, text, again ? SHORTER_NOTE : null);
	if (again) {
		turn.shortened++;
		if (isBlank(text)) await amend(turn, SHORTER_NOTE);
		yield { type: "restart", step: turn.steps.length, model: asked.reply.model, reason: "length" };
		return null;
	}
	yield { type: "guard", kind: "length", detail: asked.reply.modelName };
	const sentence = guardSentence("length", turn.language);
	return {
		end: { state: "done", reply: isBlank(text) ? sentence : `${text.trimEnd()}\n\n${sentence}`, fromUs: isBlank(text), guard: "length" },
	};
}

/** A guard ends the turn: said in a sentence of ours, followed by what the model makes of the work so far in one last call. */
async function* closeTurn(turn: Turn, kind: GuardKind, detail: string): Flow<Ending> {
	yield { type: "guard", kind, detail };
	await amend(turn, CLOSING_NOTE);
	let text = "";
	try {
		const last = yield* askModel(turn, false);
		if ("reply" in last) {
			text = stripStamp(wellFormed(last.reply.text)).trim();
			// Calls are not run any more, so they are not stored either.
			if (!isBlank(text)) yield* storeStep(turn, { ...last, reply: { ...last.reply, calls: [] } }, text, null);
		}
	} catch (error) {
		if (turn.signal.aborted || errorKind(error) === "internal") throw error;
	}
	const sentence = guardSentence(kind, turn.language);
	return {
		state: "done",
		status: "blocked",
		guard: kind,
		reply: isBlank(text) ? sentence : `${sentence}\n\n${text}`,
		fromUs: isBlank(text),
	};
}

/** What people and tools said in this turn: text that an answer may quote. */
function quotable(turn: Turn): string[] {
	return [
		...turn.input.messages.map((message) => message.text),
		...turn.steps.flatMap((step) => [...step.joined.map((message) => message.text), ...step.calls.map((record) => record.result ?? "")]),
	];
}
