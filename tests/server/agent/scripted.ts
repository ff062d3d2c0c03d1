/** A scripted model, a journal in memory, and small tools: all that `runTurn` needs. */

import { defaultLimits } from "../../../server/agent/limits.ts";
import { runTurn } from "../../../server/agent/run-turn.ts";
import type { Journal, StepRecord, TurnDeps, TurnEvent, TurnInput, TurnMessage, TurnOutcome } from "../../../server/agent/types.ts";
import {
	type Model,
	ModelError,
	type ModelErrorKind,
	type ModelEvent,
	type ModelReply,
	type ModelRequest,
	type ToolCall,
} from "../../../server/model/model.ts";
import { createFinish } from "../../../server/tools/finish.ts";
import { createNow } from "../../../server/tools/now.ts";
import type { Tool, ToolEffect } from "../../../server/tools/tool.ts";
import { createToolBox } from "../../../server/tools/tool-box.ts";
import { createWritePlan } from "../../../server/tools/write-plan.ts";

export const NOW = Date.UTC(2026, 10, 30, 7, 4, 0);

export interface Say {
	text?: string;
	reasoning?: string;
	calls?: Partial<ToolCall>[];
	finish?: ModelReply["finish"];
	error?: ModelErrorKind;
	/** Streams the text and then never ends, deaf to the signal. */
	hang?: boolean;
	restart?: boolean;
}

let made = 0;

export function call(name: string, args: unknown = {}, id = `id_${++made}`): ToolCall {
	return { id, name, arguments: typeof args === "string" ? args : JSON.stringify(args) };
}

export interface Scripted extends Model {
	requests: ModelRequest[];
}

/** Answers with the script's entries in turn; the last one again and again. A function entry sees the request. */
export function scripted(script: (Say | ((request: ModelRequest) => Say))[]): Scripted {
	const requests: ModelRequest[] = [];
	return {
		requests,
		contextTokens: () => 128_000,
		async *stream(request): AsyncGenerator<ModelEvent> {
			const entry = script[Math.min(requests.length, script.length - 1)] as Say | ((request: ModelRequest) => Say);
			requests.push(structuredClone(request));
			const say = typeof entry === "function" ? entry(request) : entry;
			if (say.restart) {
				yield { type: "text", text: "void" };
				yield { type: "restart", model: "second", reason: "server" };
			}
			for (const piece of (say.text ?? "").match(/[\s\S]{1,7}/g) ?? []) yield { type: "text", text: piece };
			if (say.hang) await new Promise(() => {});
			if (say.error) throw new ModelError(say.error, `secret detail of ${say.error}`);
			const calls = (say.calls ?? []).map((item) => ({ ...call("now"), ...item }));
			yield {
				type: "end",
				reply: {
					text: say.text ?? "",
					reasoning: say.reasoning ?? "",
					calls,
					finish: say.finish ?? (calls.length > 0 ? "calls" : "stop"),
					usage: { inputTokens: 10, cachedTokens: 2, outputTokens: 5, reasoningTokens: 0, estimated: false, cost: 0.5, currency: "USD" },
					model: "main",
					modelName: "scripted-1",
					callIds: ["c1"],
					ms: 1,
					firstByteMs: 1,
				},
			};
		},
	};
}

export interface MemoryJournal extends Journal {
	log: string[];
	steps: StepRecord[];
	effects: ToolEffect[];
	kept: Map<string, string>;
	joining: TurnMessage[][];
}

export function memoryJournal(): MemoryJournal {
	const journal: MemoryJournal = {
		log: [],
		steps: [],
		effects: [],
		kept: new Map(),
		joining: [],
		async stepStored(step) {
			if (step.calls.length === 0 && step.text.trim() === "") throw new Error("an empty step was stored");
			journal.log.push(`step ${step.step}`);
			journal.steps.push(structuredClone(step));
		},
		async callStarted(_turn, recordId, at) {
			journal.log.push(`started ${recordId}`);
			for (const record of journal.steps.flatMap((step) => step.calls))
				if (record.recordId === recordId) Object.assign(record, { state: "started", startedAt: at });
		},
		async callFinished(_turn, recordId, outcome) {
			journal.log.push(`finished ${recordId} ${outcome.state}`);
			journal.effects.push(...outcome.effects);
			const record = journal.steps.flatMap((step) => step.calls).find((item) => item.recordId === recordId);
			if (record)
				Object.assign(record, {
					state: outcome.state,
					result: outcome.result,
					endedAt: outcome.at,
					...(outcome.taint ? { taint: outcome.taint } : {}),
				});
		},
		async keepFullText(_turn, recordId, text) {
			journal.kept.set(recordId, text);
			return `results/${recordId}.txt`;
		},
		async takeJoining(_turn, step) {
			const joined = journal.joining.shift() ?? [];
			const stored = journal.steps.find((item) => item.step === step);
			if (stored) stored.joined.push(...structuredClone(joined));
			return joined;
		},
		async stepAmended(_turn, step, change) {
			journal.log.push(`amended ${step}`);
			const stored = journal.steps.find((item) => item.step === step);
			if (stored) stored.note = change.note;
		},
	};
	return journal;
}

export function message(text: string, more: Partial<TurnMessage> = {}): TurnMessage {
	return { id: `m_${++made}`, text, from: null, at: NOW, attachments: [], notes: [], ...more };
}

export function input(more: Partial<TurnInput> = {}): TurnInput {
	return {
		turnId: "t1",
		conversationId: "c1",
		channel: "web",
		personId: "master",
		tier: "master",
		groupId: null,
		origin: "human",
		blocks: [
			{ name: "soul", text: "You are Lani." },
			{ name: "rules", text: "Work well." },
		],
		history: [],
		messages: [message("hi")],
		recalled: [],
		steps: [],
		plan: [],
		model: null,
		limits: defaultLimits(),
		timezone: "Asia/Shanghai",
		locale: "en",
		...more,
	};
}

export function tool(name: string, run: Tool["run"], more: Partial<Tool> = {}): Tool {
	return {
		name,
		description: name,
		parameters: { type: "object", properties: {} },
		capability: "chat",
		readOnly: true,
		effect: "none",
		run,
		...more,
	};
}

export const builtins = (): Tool[] => [createNow(), createWritePlan(), createFinish()];

export interface Ran {
	events: TurnEvent[];
	outcome: TurnOutcome;
	journal: MemoryJournal;
	model: Scripted;
	ids: string[];
}

export interface RunOptions {
	input?: Partial<TurnInput>;
	tools?: Tool[];
	journal?: MemoryJournal;
	signal?: AbortSignal;
	gate?: TurnDeps["tools"]["gate"];
	onEvent?(event: TurnEvent): void;
}

export async function run(script: Parameters<typeof scripted>[0] | Scripted, options: RunOptions = {}): Promise<Ran> {
	const model = Array.isArray(script) ? scripted(script) : script;
	const journal = options.journal ?? memoryJournal();
	const ids: string[] = [];
	const base = options.input?.steps?.length ?? 0;
	const deps: TurnDeps = {
		model,
		journal,
		clock: { now: () => NOW },
		newId: () => {
			ids.push(`r${base}_${ids.length + 1}`);
			return ids.at(-1) as string;
		},
		tools: createToolBox([...(options.tools ?? []), ...builtins()], {
			allow: ["chat", "files", "send", "web", "code"],
			...(options.gate ? { gate: options.gate } : {}),
		}),
	};
	const events: TurnEvent[] = [];
	const turn = runTurn(input(options.input), deps, options.signal ?? new AbortController().signal);
	for (;;) {
		const next = await turn.next();
		if (next.done) return { events, outcome: next.value, journal, model, ids };
		events.push(next.value);
		options.onEvent?.(next.value);
	}
}

export function texts(request: ModelRequest | undefined): string[] {
	return (request?.messages ?? []).map((item) =>
		item.role === "user"
			? item.content.map((part) => (part.type === "text" ? part.text : `<${part.attachment.name}>`)).join("|")
			: item.text,
	);
}

export function results(request: ModelRequest | undefined): string[] {
	return (request?.messages ?? []).flatMap((item) => (item.role === "tool" ? [item.text] : []));
}
