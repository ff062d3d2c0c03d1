/**
 * Guards against loops: a pure state machine fed with each finished step. It warns first (a note to the model) and ends the
 * turn when the warning did not help. Feeding it the stored steps again gives the same state.
 */
import { canonicalArguments } from "./arguments.ts";
import type { CallRecord, GuardKind } from "./types.ts";

export interface ObservedCall {
	name: string;
	/** Canonical arguments. */
	args: string;
	result: string;
	failed: boolean;
	known: boolean;
	readOnly: boolean;
}

export interface GuardState {
	/** Step signatures with and without results, newest last, at most `MEMORY`. */
	exact: string[];
	loose: string[];
	seen: Set<string>;
	seenCalls: Set<string>;
	/** Steps in a row that brought nothing new; a write with new arguments counts little. */
	stale: number;
	failures: number;
	unknown: number;
	unknownInAll: number;
}

export type Verdict = { action: "go" } | { action: "warn" | "stop"; kind: GuardKind; detail: string };

const MEMORY = 40;
/** [warn, stop] in steps. Results that stay the same end it sooner than results that change (polling). */
const SAME = [3, 5] as const;
const POLLING = [6, 10] as const;
const CYCLES = [3, 4] as const;
const CYCLES_POLLING = [5, 8] as const;
const STALE = [5, 8] as const;
const FAILURES = [4, 8] as const;
const UNKNOWN = 4;
const UNKNOWN_IN_ALL = 12;

export function newGuards(): GuardState {
	return { exact: [], loose: [], seen: new Set(), seenCalls: new Set(), stale: 0, failures: 0, unknown: 0, unknownInAll: 0 };
}

export function observedCall(record: CallRecord, tool: { readOnly: boolean } | undefined): ObservedCall {
	return {
		name: record.call.name,
		args: canonicalArguments(record.call.arguments),
		result: record.result ?? "",
		failed: record.state !== "done",
		known: tool !== undefined,
		readOnly: tool?.readOnly ?? false,
	};
}

/** The result without what the call itself put into it and without times: two results with one fingerprint tell the same. */
function fingerprint(call: ObservedCall): string {
	let text = call.result.slice(0, 4_000);
	for (const value of strings(call.args)) if (value.length >= 2) text = text.replaceAll(value, "");
	return text
		.replace(/\d{4}-\d\d-\d\d[T ]?/g, "")
		.replace(/\d{1,2}:\d\d(:\d\d)?(\.\d+)?/g, "")
		.replace(/\s+/g, " ")
		.trim();
}

function strings(json: string): string[] {
	try {
		const out: string[] = [];
		JSON.parse(json, (_key, value) => {
			if (typeof value === "string") out.push(value.slice(0, 4_000));
			else if (typeof value === "number") out.push(String(value));
			return value;
		});
		return out.sort((a, b) => b.length - a.length).slice(0, 20);
	} catch {
		return [];
	}
}

/** Takes a finished step in and says what to do. The state is a new one; the old is left as it was, but for its sets, which only grow. */
export function observe(state: GuardState, calls: ObservedCall[]): { state: GuardState; verdict: Verdict } {
	if (calls.length === 0) return { state, verdict: { action: "go" } };
	const loose = calls.map((call) => `${call.name} ${call.args}`).join("\n");
	const exact = calls.map((call) => `${call.name} ${call.args} ${fingerprint(call)}`).join("\n");
	let weight = 1;
	let news = false;
	for (const call of calls) {
		const print = `${call.name} ${fingerprint(call)}`;
		const key = `${call.name} ${call.args}`;
		if (!call.failed && !state.seen.has(print)) news = true;
		// New writes with much the same answer are work (many files, many messages); the cap on steps ends what never ends.
		if (!call.failed && !call.readOnly && !state.seenCalls.has(key)) weight = 0.15;
		state.seen.add(print);
		state.seenCalls.add(key);
	}
	const unknown = calls.every((call) => !call.known);
	const next: GuardState = {
		...state,
		exact: [...state.exact, exact].slice(-MEMORY),
		loose: [...state.loose, loose].slice(-MEMORY),
		stale: news ? 0 : state.stale + weight,
		failures: calls.every((call) => call.failed) ? state.failures + 1 : 0,
		unknown: unknown ? state.unknown + 1 : 0,
		unknownInAll: state.unknownInAll + calls.filter((call) => !call.known).length,
	};
	return { state: next, verdict: judge(next, calls) };
}

function judge(state: GuardState, calls: ObservedCall[]): Verdict {
	const name = calls[0]?.name ?? "";
	const found: Verdict[] = [
		level("unknown-tool", state.unknown, [UNKNOWN - 1, UNKNOWN], name),
		level("unknown-tool", state.unknownInAll, [Number.POSITIVE_INFINITY, UNKNOWN_IN_ALL], name),
		level("same-call", repeats(state.exact, 1), SAME, name),
		level("same-call", repeats(state.loose, 1), POLLING, name),
		...[2, 3, 4].flatMap((period) => [
			level("alternating", cycles(state.exact, period), CYCLES, name),
			level("alternating", cycles(state.loose, period), CYCLES_POLLING, name),
		]),
		level("failures", state.failures, FAILURES, name),
		level("no-news", Math.floor(state.stale), STALE, name),
	];
	return found.find((verdict) => verdict.action === "stop") ?? found.find((verdict) => verdict.action === "warn") ?? { action: "go" };
}

function level(kind: GuardKind, count: number, [warn, stop]: readonly [number, number], name: string): Verdict {
	if (count >= stop) return { action: "stop", kind, detail: `${name} ×${count}` };
	// Warned once, at the threshold: repeating the note each step would only cost.
	return count === warn ? { action: "warn", kind, detail: `${name} ×${count}` } : { action: "go" };
}

/** How often the last `period` entries stand in a row at the end of the list. */
function repeats(list: string[], period: number): number {
	let count = 1;
	for (let end = list.length - period; end - period >= 0; end -= period) {
		for (let offset = 1; offset <= period; offset++) if (list[end - offset] !== list[list.length - offset]) return count;
		count++;
	}
	return count;
}

/** Like `repeats`, but a period that is itself a repetition of one entry does not count (that is `same-call`). */
function cycles(list: string[], period: number): number {
	if (list.length < period * 2 || new Set(list.slice(-period)).size < 2) return 0;
	const count = repeats(list, period);
	return count < 2 ? 0 : count;
}

const WARNINGS: Record<GuardKind, string> = {
	"same-call":
		"You made the same call several times in a row. Its result will not change by asking again. Use what you have, try another way, or answer now and say what is missing.",
	alternating:
		"You are going round in circles between the same calls. Use what you have, try another way, or answer now and say what is missing.",
	"no-news": "Your last calls brought nothing new. Stop searching; answer with what you have and say what you could not find.",
	"unknown-tool": "The tools you ask for do not exist. Use only the tools you were given, or answer without tools.",
	failures: "Your last calls all failed. Read the errors, change the approach, or answer now and say what does not work.",
	"empty-calls": "You announced tool calls but sent none. Send the call, or answer.",
	steps: "The budget of steps is used up.",
	length: "Your answer was cut by the output limit.",
};

export function warning(kind: GuardKind): string {
	return WARNINGS[kind];
}
