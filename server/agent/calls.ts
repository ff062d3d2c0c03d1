/** Runs the calls of one stored step: read-only ones side by side, the others in order, each answered exactly once. */
import type { Attachment } from "../../channels/channel.ts";
import type { Tool, ToolResult } from "../tools/tool.ts";
import { isLeaving, Stopped, untilAborted } from "./abort.ts";
import { canonicalArguments, checkArguments, signature } from "./arguments.ts";
import { capText, DEFAULT_TOOL_TIMEOUT_MS, MAX_CALLS_PER_STEP, MAX_PARALLEL_CALLS } from "./limits.ts";
import { isBlank, oneLine, wellFormed } from "./text.ts";
import type { CallRecord, GateTurn, PlanItem, StepRecord, TurnDeps, TurnEvent, TurnInput } from "./types.ts";

export interface CallsState {
	input: TurnInput;
	deps: TurnDeps;
	/** Steps before this one. */
	earlier: StepRecord[];
	/** The plan and the taint as they stand; both are brought up to date here. */
	plan: PlanItem[];
	taint: { source: string; step: number }[];
	attachments: Attachment[];
}

type Finish = NonNullable<ToolResult["finish"]>;
interface Answer {
	state: "done" | "failed" | "skipped" | "interrupted";
	result: ToolResult;
}

const failed = (text: string): Answer => ({ state: "failed", result: { text, isError: true } });
const skipped = (text: string): Answer => ({ state: "skipped", result: { text, isError: true } });
const interrupted = (text: string): Answer => ({ state: "interrupted", result: { text, isError: true } });

const CANCELLED_BEFORE = "Cancelled: the turn was stopped before this call ran.";
const INTERRUPTED =
	"Interrupted by a restart after it had started: the outcome is unknown and it was not run again. Check what happened before you repeat it.";

/**
 * Answers every call of `step` that has no result, in order, and stores each answer. On abort the rest is answered as cancelled
 * (on shutdown it is left open and `Stopped` is thrown: the next start goes on). Answers what `finish` said, or null.
 */
export async function* runCalls(state: CallsState, step: StepRecord, signal: AbortSignal): AsyncGenerator<TurnEvent, Finish | null> {
	let finish: Finish | null = null;
	const waiting = step.calls.filter((record) => record.result === null);
	const overflow = new Set(step.calls.slice(MAX_CALLS_PER_STEP));
	while (waiting.length > 0) {
		if (isLeaving(signal)) throw new Stopped();
		const batch = takeBatch(waiting, state.deps);
		for (const record of batch) yield { type: "call-started", step: step.step, recordId: record.recordId, call: record.call };
		const running = new Map(
			batch.map((record) => {
				const startedMs = performance.now();
				const early =
					finish !== null
						? skipped("Not run: `finish` ended the turn.")
						: overflow.has(record)
							? skipped("Not run: too many calls in one answer. Ask for it again in the next step.")
							: null;
				const work = (early ? Promise.resolve(early) : answer(state, step, record, signal)).then((outcome) => ({
					record,
					outcome,
					ms: Math.round(performance.now() - startedMs),
				}));
				return [record, work] as const;
			}),
		);
		try {
			while (running.size > 0) {
				const { record, outcome, ms } = await Promise.race(running.values());
				running.delete(record);
				if (outcome.result.finish && outcome.state === "done") finish = outcome.result.finish;
				yield* settle(state, step, record, outcome, ms);
			}
		} finally {
			for (const work of running.values()) work.catch(() => {});
		}
	}
	return finish;
}

/** The next calls that may run together: read-only ones in a row, or a single other one. */
function takeBatch(waiting: CallRecord[], deps: TurnDeps): CallRecord[] {
	const together = (record: CallRecord) => deps.tools.get(record.call.name)?.readOnly ?? true;
	const batch: CallRecord[] = [];
	while (waiting[0] && batch.length < MAX_PARALLEL_CALLS && (batch.length === 0 || together(waiting[0]))) {
		const record = waiting.shift() as CallRecord;
		batch.push(record);
		if (!together(record)) break;
	}
	return batch;
}

async function answer(state: CallsState, step: StepRecord, record: CallRecord, signal: AbortSignal): Promise<Answer> {
	const { call } = record;
	const tool = state.deps.tools.get(call.name);
	if (record.state === "started" && tool?.effect !== "none" && tool?.effect !== "row") return interrupted(INTERRUPTED);
	if (signal.aborted) return stopAnswer(signal, CANCELLED_BEFORE, "skipped");
	// `finish` does nothing but end the turn; answering it with an old result would keep the turn going.
	const before = call.name === "finish" ? undefined : firstResult(state.earlier, record);
	if (before)
		return {
			state: before.state === "done" ? "done" : "failed",
			result: { text: before.result ?? "", ...(before.state === "done" ? {} : { isError: true }) },
		};
	if (!tool) return failed(unknownTool(call.name, state.deps.tools.list()));
	const checked = checkArguments(call, tool);
	if (!checked.ok) return failed(`Not run: ${checked.problem}. Right: ${signature(tool)}`);
	try {
		const refusal = await untilAborted(
			Promise.resolve(state.deps.tools.gate?.(call, gateTurn(state, record, checked.args)) ?? null),
			signal,
		);
		if (refusal !== null) return skipped(refusal);
		if (tool.effect === "outside") {
			const at = state.deps.clock.now();
			await state.deps.journal.callStarted(state.input.turnId, record.recordId, at);
			record.state = "started";
			record.startedAt = at;
		} else record.startedAt ??= state.deps.clock.now();
	} catch (error) {
		if (error instanceof Stopped) return stopAnswer(signal, CANCELLED_BEFORE, "skipped");
		throw error;
	}
	return run(state, step, record, tool, checked.args, signal);
}

function gateTurn({ input, taint }: CallsState, record: CallRecord, args: Record<string, unknown>): GateTurn {
	const { turnId, conversationId, personId, tier, groupId, origin } = input;
	const { recordId } = record;
	const tainted = taint.map((entry) => entry.source);
	return {
		turnId,
		conversationId,
		personId,
		tier,
		groupId,
		origin,
		tainted,
		recordId,
		arguments: canonicalArguments(JSON.stringify(args)),
	};
}

/** On shutdown nothing is answered. */
function stopAnswer(signal: AbortSignal, text: string, kind: "skipped" | "interrupted"): Answer {
	if (isLeaving(signal)) throw new Stopped();
	return kind === "skipped" ? skipped(text) : interrupted(text);
}

/** The same id came in an earlier step with the same arguments: its result stands. A call that was not run has none. */
function firstResult(earlier: StepRecord[], record: CallRecord): CallRecord | undefined {
	const args = canonicalArguments(record.call.arguments);
	for (const step of earlier) {
		const same = step.calls.find(
			(old) =>
				old.result !== null &&
				old.state !== "skipped" &&
				old.call.id === record.call.id &&
				old.call.name === record.call.name &&
				canonicalArguments(old.call.arguments) === args,
		);
		if (same) return same;
	}
	return undefined;
}

function unknownTool(name: string, tools: Tool[]): string {
	const wanted = name.toLowerCase();
	const close = tools.find(
		(tool) => tool.name.toLowerCase() === wanted || wanted.endsWith(tool.name.toLowerCase()) || tool.name.toLowerCase().endsWith(wanted),
	);
	const hint = close ? ` Did you mean ${signature(close)}?` : "";
	return `There is no tool named "${oneLine(name, 64)}".${hint} The tools are: ${tools.map((tool) => tool.name).join(", ")}.`;
}

async function run(
	state: CallsState,
	step: StepRecord,
	record: CallRecord,
	tool: Tool,
	args: Record<string, unknown>,
	signal: AbortSignal,
): Promise<Answer> {
	const { input, deps } = state;
	const limitMs = tool.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS;
	const control = new AbortController();
	const stop = () => control.abort(signal.reason);
	let late = false;
	const timer = setTimeout(() => {
		late = true;
		control.abort(new Error("time limit"));
	}, limitMs);
	signal.addEventListener("abort", stop, { once: true });
	try {
		const context = {
			turnId: input.turnId,
			callId: record.recordId,
			conversationId: input.conversationId,
			personId: input.personId,
			tier: input.tier,
			groupId: input.groupId,
			origin: input.origin,
			timezone: input.timezone,
			locale: input.locale,
			now: () => deps.clock.now(),
			signal: control.signal,
			plan: state.plan.map((item) => ({ ...item })),
		};
		// The async wrapper turns a synchronous throw into a rejection.
		const result = await untilAborted((async () => tool.run(args, context))(), control.signal);
		return { state: result.isError ? "failed" : "done", result };
	} catch {
		const unknown = tool.effect === "outside" ? " It had started: its outcome is unknown." : "";
		if (late) return failed(`${tool.name} did not end within ${Math.round(limitMs / 1000)} s and was stopped.${unknown}`);
		if (signal.aborted) return stopAnswer(signal, `Cancelled: the turn was stopped.${unknown}`, "interrupted");
		return failed(
			`${tool.name} failed because of a fault in this program (step ${step.step}).${unknown} Do not repeat it more than once; go on without it if you can.`,
		);
	} finally {
		clearTimeout(timer);
		signal.removeEventListener("abort", stop);
	}
}

/** What a `finish` that is stored already said (the crash came right after it): it is asked again, which has no effect of its own. */
export async function storedFinish(state: CallsState, step: StepRecord, signal: AbortSignal): Promise<Finish | null> {
	const record = step.calls.find((call) => call.call.name === "finish" && call.state === "done");
	const tool = record && state.deps.tools.get(record.call.name);
	const checked = record && tool && checkArguments(record.call, tool);
	if (!record || !tool || !checked?.ok || tool.effect !== "none") return null;
	return (await run(state, step, record, tool, checked.args, signal)).result.finish ?? null;
}

/** Caps, stores and announces one answer. An effect that cannot be stored makes the call fail, not the turn. */
async function* settle(state: CallsState, step: StepRecord, record: CallRecord, outcome: Answer, ms: number): AsyncGenerator<TurnEvent> {
	try {
		yield* store(state, step, record, outcome, ms);
	} catch (error) {
		if (record.result !== null || (outcome.result.effects ?? []).length === 0) throw error;
		yield* store(state, step, record, failed(`${record.call.name} had no effect: it could not be stored. Check its arguments.`), ms);
	}
}

async function* store(state: CallsState, step: StepRecord, record: CallRecord, outcome: Answer, ms: number): AsyncGenerator<TurnEvent> {
	const { journal, clock } = state.deps;
	const { call, recordId } = record;
	const { result } = outcome;
	const full = typeof result.text === "string" && !isBlank(result.text) ? wellFormed(result.text) : "(no output)";
	const stored = await capped(state, step, record, full);
	const effects = result.effects ?? [];
	const attachments = result.attachments ?? [];
	const taint = result.taint === undefined ? {} : { taint: result.taint };
	const at = clock.now();
	await journal.callFinished(state.input.turnId, recordId, { state: outcome.state, result: stored, at, attachments, effects, ...taint });
	Object.assign(record, {
		state: outcome.state,
		result: stored,
		endedAt: at,
		...taint,
		...(attachments.length > 0 ? { attachments } : {}),
	});
	if (result.taint !== undefined) state.taint.push({ source: result.taint, step: step.step });
	state.attachments.push(...attachments);
	yield { type: "call-finished", step: step.step, recordId, call, state: outcome.state, result, stored, ms };
	for (const effect of effects) {
		if (effect.type !== "plan") continue;
		state.plan = effect.items.map((item) => ({ ...item }));
		yield { type: "plan", items: state.plan };
	}
}

/** Kept free for every call of the step that is still to be answered. */
const RESERVED_CHARS = 1_000;

/** Each result has its own limit and takes what the step has left, less a little for each open call; what is cut is kept whole and its path told. */
async function capped(state: CallsState, step: StepRecord, record: CallRecord, full: string): Promise<string> {
	const { limits, turnId } = state.input;
	const used = step.calls.reduce((sum, other) => sum + (other.result?.length ?? 0), 0);
	const open = Math.max(1, step.calls.filter((other) => other.result === null).length);
	const left = Math.max(0, limits.stepResultChars - used);
	const max = Math.min(limits.toolResultChars, left - (open - 1) * Math.min(RESERVED_CHARS, Math.floor(left / open)));
	if (full.length <= max) return full;
	// A full disk costs the rest of the text, not the turn.
	const path = await state.deps.journal.keepFullText(turnId, record.recordId, full).catch(() => null);
	return capText(full, max, `…[cut: ${full.length} characters${path === null ? "" : `; whole text in ${path}, see read_file`}]…`);
}
