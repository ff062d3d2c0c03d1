/** Runs a stored turn again: from its recorded answers, offline, or with another model; tools answer with what they answered then. */
import type {
	Journal,
	PromptBlock,
	StepRecord,
	ToolBox,
	TurnDeps,
	TurnEvent,
	TurnInput,
	TurnLimits,
	TurnMessage,
	TurnOutcome,
} from "../agent/types.ts";
import {
	type Model,
	ModelError,
	type ModelErrorKind,
	type ModelReply,
	type ModelRequest,
	type ToolCall,
	type ToolSchema,
	type Usage,
} from "../model/model.ts";
import type { LedgerCall } from "../store/ledger-store.ts";
import type { MessageRow, TurnRow } from "../store/store.ts";
import type { Tool } from "../tools/tool.ts";

export interface StoredTurn {
	turn: TurnRow;
	/** The person's messages that began it, in order. */
	messages: MessageRow[];
	steps: StepRecord[];
	/** With bodies, oldest first. */
	calls: LedgerCall[];
	reply: string | null;
	timezone: string;
	locale: string;
}

export interface TranscriptStep {
	step: number;
	text: string;
	calls: { name: string; arguments: string; state: string; result: string }[];
	note: string | null;
}

/** What a turn did, in a form in which two can be compared. */
export interface Transcript {
	steps: TranscriptStep[];
	/** Of each model request: what this turn had added to the prompt so far (calls, results, notes). */
	requests: string[][];
	state: string;
	guard: string | null;
	rounds: number;
	reply: string;
	usage: Usage;
	modelName: string | null;
}

export interface Difference {
	/** "step 2, call 1", "request 3", "reply". */
	where: string;
	before: string;
	after: string;
}

/** A turn whose bodies are gone (retention) cannot be run again. */
export class NotReplayable extends Error {
	constructor(message: string) {
		super(message);
		this.name = "NotReplayable";
	}
}

const mainSources = new Set(["chat", "heartbeat", "alarm", "job"]);
const none: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };

interface WireMessage {
	role?: string;
	content?: unknown;
	tool_calls?: { function?: { name?: string; arguments?: string } }[];
}
interface WireRequest {
	messages?: WireMessage[];
	tools?: { function?: { name?: string; description?: string; parameters?: Record<string, unknown> } }[];
}
interface Recorded {
	text?: string;
	reasoning?: string;
	calls?: ToolCall[];
	finish?: ModelReply["finish"];
}

const textOf = (content: unknown): string =>
	typeof content === "string"
		? content
		: Array.isArray(content)
			? content.map((part) => (typeof part?.text === "string" ? part.text : "")).join("")
			: "";

/** The calls of the loop itself: not those of critique, memory and recall. */
function mainCalls(stored: StoredTurn): LedgerCall[] {
	return stored.calls.filter((call) => mainSources.has(call.source));
}

function firstRequest(stored: StoredTurn): WireRequest {
	const request = mainCalls(stored).find((call) => call.request !== null)?.request as WireRequest | undefined;
	if (!request?.messages) throw new NotReplayable("the bodies of this turn's calls are not kept any more");
	return request;
}

/** Calls, results and notes of a request: the history before the turn has none of them. */
function addedInWire(request: WireRequest): string[] {
	const out: string[] = [];
	for (const message of request.messages ?? []) {
		if (message.role === "tool") out.push(`result: ${textOf(message.content)}`);
		for (const call of message.tool_calls ?? []) out.push(`call: ${call.function?.name}(${call.function?.arguments})`);
		if (message.role === "user" && textOf(message.content).startsWith("<note>")) out.push(textOf(message.content));
	}
	return out;
}

function addedInRequest(request: ModelRequest): string[] {
	const out: string[] = [];
	for (const message of request.messages) {
		if (message.role === "tool") out.push(`result: ${message.text}`);
		else if (message.role === "assistant") for (const call of message.calls) out.push(`call: ${call.name}(${call.arguments})`);
		else if (message.role === "user") {
			const text = textOf(message.content);
			if (text.startsWith("<note>")) out.push(text);
		}
	}
	return out;
}

/** Answers with the recorded replies in order, and with the recorded error where they end. */
export function createRecordedModel(stored: StoredTurn): Model {
	const calls = mainCalls(stored);
	const answers = calls.filter((call) => call.state === "done");
	const lastError = calls.at(-1)?.errorKind as ModelErrorKind | null | undefined;
	let next = 0;
	return {
		contextTokens: () => 1_000_000,
		async *stream() {
			const call = answers[next];
			if (!call) throw new ModelError(lastError ?? "no-model", "the recording has no further answer");
			next += 1;
			const recorded = call.response as Recorded | null;
			if (!recorded) throw new NotReplayable("the bodies of this turn's calls are not kept any more");
			const reply: ModelReply = {
				text: recorded.text ?? "",
				reasoning: recorded.reasoning ?? "",
				calls: recorded.calls ?? [],
				finish: recorded.finish ?? "stop",
				usage: call.usage,
				model: call.model,
				modelName: call.modelName,
				callIds: [call.id],
				ms: call.ms ?? 0,
				firstByteMs: call.firstByteMs ?? 0,
			};
			if (reply.text !== "") yield { type: "text" as const, text: reply.text };
			yield { type: "end" as const, reply };
		},
	};
}

function sameArguments(a: string, b: string): boolean {
	if (a === b) return true;
	try {
		return JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
	} catch {
		return false;
	}
}

/** Tools as they were offered then. Each call is answered with what the same call was answered then; nothing is ever done. */
export function createRecordedTools(stored: StoredTurn): ToolBox {
	const schemas: ToolSchema[] = (firstRequest(stored).tools ?? []).flatMap(({ function: it }) =>
		it?.name ? [{ name: it.name, description: it.description ?? "", parameters: it.parameters ?? { type: "object", properties: {} } }] : [],
	);
	const left = stored.steps.flatMap((step) => step.calls.map((record) => ({ record, used: false })));
	const tools: Tool[] = schemas.map((schema) => ({
		...schema,
		capability: "chat",
		readOnly: false,
		effect: "none",
		async run(args) {
			const wanted = JSON.stringify(args);
			const matches = left.filter(({ record }) => record.call.name === schema.name && sameArguments(record.call.arguments, wanted));
			const found = matches.find((one) => !one.used) ?? matches[0];
			if (schema.name === "finish") {
				const { status, reply, channel, to } = args as { status?: string; reply?: string; channel?: string; to?: string };
				return {
					text: found?.record.result ?? "",
					finish: { status: status === "blocked" ? "blocked" : "done", reply: reply ?? "", ...(channel && to ? { channel, to } : {}) },
				};
			}
			if (!found) return { text: "(not run: this is a replay, and the turn had no such call)", isError: true };
			found.used = true;
			return {
				text: found.record.result ?? "",
				isError: found.record.state === "failed",
				...(schema.name === "write_plan" && Array.isArray(args.items) ? { effects: [{ type: "plan", items: args.items as never }] } : {}),
				...(found.record.taint ? { taint: found.record.taint } : {}),
			};
		},
	}));
	return { list: () => tools, get: (name) => tools.find((tool) => tool.name === name) };
}

function inputOf(stored: StoredTurn, limits: TurnLimits): TurnInput {
	const { turn, messages } = stored;
	const system = (firstRequest(stored).messages ?? []).filter((message) => message.role === "system" || message.role === "developer");
	const blocks: PromptBlock[] = system.map((message, index) => ({ name: `recorded ${index + 1}`, text: textOf(message.content) }));
	const toMessage = (row: MessageRow): TurnMessage => ({
		id: row.id,
		text: row.text,
		from: row.from,
		at: row.at,
		attachments: [],
		notes: row.notes,
	});
	return {
		turnId: `replay-${turn.id}`,
		conversationId: turn.conversationId,
		channel: "web",
		personId: turn.personId,
		tier: turn.tier,
		groupId: null,
		origin: turn.origin,
		blocks,
		history: [],
		messages: messages.map(toMessage),
		recalled: [],
		steps: [],
		plan: [],
		model: null,
		limits,
		timezone: stored.timezone,
		locale: stored.locale,
	};
}

/** What the store says the turn did. */
export function transcriptOf(stored: StoredTurn): Transcript {
	return {
		steps: stored.steps.map((step) => ({
			step: step.step,
			text: step.text,
			calls: step.calls.map(({ call, state, result }) => ({ name: call.name, arguments: call.arguments, state, result: result ?? "" })),
			note: step.note,
		})),
		requests: mainCalls(stored)
			.filter((call) => call.state === "done")
			.map((call) => addedInWire((call.request ?? {}) as WireRequest)),
		state: stored.turn.state,
		guard: stored.turn.guard,
		rounds: stored.turn.rounds,
		reply: stored.reply ?? "",
		usage: stored.turn.usage,
		modelName: stored.turn.modelName,
	};
}

export interface ReplayOptions {
	stored: StoredTurn;
	/** Today's loop. */
	runTurn(input: TurnInput, deps: TurnDeps, signal: AbortSignal): AsyncGenerator<TurnEvent, TurnOutcome>;
	limits: TurnLimits;
	/** Default: the recorded answers. */
	model?: Model;
	signal: AbortSignal;
}

/** Deterministic with the recorded model: the clock and the ids are counted, nothing is stored, sent or done. */
export async function replay(options: ReplayOptions): Promise<Transcript> {
	const { stored, signal } = options;
	const requests: string[][] = [];
	const inner = options.model ?? createRecordedModel(stored);
	const model: Model = {
		contextTokens: inner.contextTokens.bind(inner),
		stream(request, stop) {
			requests.push(addedInRequest(request));
			return inner.stream(request, stop);
		},
	};
	const steps = new Map<number, TranscriptStep>();
	let counted = 0;
	let now = stored.turn.startedAt ?? stored.turn.createdAt;
	const joined = new Map(stored.steps.map((step) => [step.step, step.joined]));
	const journal: Journal = {
		async stepStored(step) {
			steps.set(step.step, {
				step: step.step,
				text: step.text,
				calls: step.calls.map(({ call }) => ({ name: call.name, arguments: call.arguments, state: "open", result: "" })),
				note: step.note,
			});
			for (const [index, record] of step.calls.entries()) places.set(record.recordId, { step: step.step, index });
		},
		callStarted: async () => undefined,
		async callFinished(_turnId, recordId, outcome) {
			const place = places.get(recordId);
			const call = place && steps.get(place.step)?.calls[place.index];
			if (call) Object.assign(call, { state: outcome.state, result: outcome.result });
		},
		keepFullText: async (_turnId, recordId) => `results/${recordId}.txt`,
		async takeJoining(_turnId, step) {
			const messages = joined.get(step) ?? [];
			joined.delete(step);
			return messages;
		},
		async stepAmended(_turnId, step, { note }) {
			const known = steps.get(step);
			if (known) known.note = note;
		},
	};
	const places = new Map<string, { step: number; index: number }>();
	const run = options.runTurn(
		inputOf(stored, options.limits),
		{
			model,
			tools: createRecordedTools(stored),
			journal,
			clock: {
				now: () => {
					now += 1;
					return now;
				},
			},
			newId: () => `replay-${++counted}`,
		},
		signal,
	);
	for (;;) {
		const { value, done } = await run.next();
		if (!done) continue;
		return {
			steps: [...steps.values()],
			requests,
			state: value.state,
			guard: value.guard,
			rounds: value.rounds,
			reply: value.reply,
			usage: value.usage ?? none,
			modelName: value.modelName,
		};
	}
}

/** Where two transcripts part, in order. Empty = they do the same. */
export function compare(then: Transcript, now: Transcript): Difference[] {
	const found: Difference[] = [];
	const check = (where: string, a: unknown, b: unknown): void => {
		const left = typeof a === "string" ? a : JSON.stringify(a ?? null);
		const right = typeof b === "string" ? b : JSON.stringify(b ?? null);
		if (left !== right) found.push({ where, before: left, after: right });
	};
	for (let index = 0; index < Math.max(then.requests.length, now.requests.length); index += 1) {
		const [a, b] = [then.requests[index], now.requests[index]];
		if (!a || !b) check(`request ${index + 1}`, a ? "made" : "not made", b ? "made" : "not made");
		else check(`request ${index + 1}`, a, b);
	}
	for (let index = 0; index < Math.max(then.steps.length, now.steps.length); index += 1) {
		const [a, b] = [then.steps[index], now.steps[index]];
		const where = `step ${index + 1}`;
		if (!a || !b) {
			check(where, a ? "taken" : "not taken", b ? "taken" : "not taken");
			continue;
		}
		check(`${where}, text`, a.text, b.text);
		check(`${where}, note`, a.note, b.note);
		for (let call = 0; call < Math.max(a.calls.length, b.calls.length); call += 1)
			check(`${where}, call ${call + 1}`, a.calls[call], b.calls[call]);
	}
	check("state", then.state, now.state);
	check("guard", then.guard, now.guard);
	check("rounds", String(then.rounds), String(now.rounds));
	check("reply", then.reply, now.reply);
	return found;
}
