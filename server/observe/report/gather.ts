/** Reads what a report shows: one turn, or all turns of a day. */
import type { PlanItem } from "../../agent/types.ts";
import type { CallSource } from "../../model/model.ts";
import type { Ledger, UsageRow } from "../../store/ledger-store.ts";
import type { CallRow, Store, TurnRow } from "../../store/store.ts";
import type { Calendar } from "../day.ts";

export interface ReportTool {
	name: string;
	arguments: string;
	state: string;
	result: string | null;
	ms: number | null;
}

export interface ReportStep {
	step: number;
	round: number;
	/** What the model said, without its thinking. */
	text: string;
	model: string;
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
	cost: number | null;
	note: string | null;
	tools: ReportTool[];
}

export interface ReportTurn {
	id: string;
	conversation: string;
	origin: string;
	state: string;
	startedAt: number;
	ms: number | null;
	model: string | null;
	guard: string | null;
	error: string | null;
	said: { from: string | null; at: number; text: string }[];
	reply: string | null;
	steps: ReportStep[];
	/** Every state of the plan, in order. */
	plans: PlanItem[][];
	calls: CallRow[];
	blocks: { name: string; chars: number }[];
	recalled: { text: string; score: number; source: string }[];
}

/** A change of a prompt file. */
export interface ReportFile {
	file: string;
	at: number;
	by: string;
	reason: string;
	before: string;
	after: string;
}

export interface ReportData {
	kind: "turn" | "day";
	/** The turn's id or the day. */
	name: string;
	createdAt: number;
	timezone: string;
	turns: ReportTurn[];
	files: ReportFile[];
	bySource: UsageRow[];
	byModel: UsageRow[];
	/** Tokens of each hour of the day (of the turn: of each step). */
	bars: { label: string; input: number; output: number }[];
}

export interface GatherOptions {
	store: Pick<Store, "turns" | "messages" | "conversations" | "events">;
	ledger: Pick<Ledger, "list" | "usage">;
	calendar: Calendar;
	timezone: string;
	clock: { now(): number };
	/** Changes of prompt files in a span. */
	changes?(from: number, to: number): Promise<ReportFile[]>;
}

/** Turns of one report: a longer day shows its newest, and says so by its count. */
const mostTurns = 500;

async function plansOf(store: GatherOptions["store"], ids: Set<string>, from: number, to: number): Promise<Map<string, PlanItem[][]>> {
	const plans = new Map<string, PlanItem[][]>();
	for (let after = 0; ; ) {
		const rows = await store.events.list({ after, limit: 1_000, type: "plan" });
		for (const row of rows) {
			if (row.turnId === null || !ids.has(row.turnId) || row.at < from || row.at > to) continue;
			const { items } = row.body as { items?: PlanItem[] };
			if (Array.isArray(items)) plans.set(row.turnId, [...(plans.get(row.turnId) ?? []), items]);
		}
		const last = rows.at(-1);
		if (rows.length < 1_000 || !last || last.at > to) return plans;
		after = last.seq;
	}
}

async function callsOf(ledger: GatherOptions["ledger"], turnId: string): Promise<CallRow[]> {
	return (await ledger.list({ turnId, limit: 1_000 })).reverse();
}

async function turnOf(options: GatherOptions, row: TurnRow, plans: PlanItem[][]): Promise<ReportTurn> {
	const { store, ledger } = options;
	const [steps, messageIds, reply, conversation, calls] = await Promise.all([
		store.turns.steps(row.id),
		store.turns.messageIds(row.id),
		store.messages.replyOf(row.id),
		store.conversations.get(row.conversationId),
		callsOf(ledger, row.id),
	]);
	const said: ReportTurn["said"] = [];
	for (const id of messageIds) {
		const message = await store.messages.get(id);
		if (message && message.role === "user") said.push({ from: message.from, at: message.at, text: message.text });
	}
	const why = row.why as { blocks?: unknown; recalled?: unknown };
	const startedAt = row.startedAt ?? row.createdAt;
	return {
		id: row.id,
		conversation: conversation?.title ?? row.conversationId,
		origin: row.origin,
		state: row.state,
		startedAt,
		ms: row.endedAt === null ? null : row.endedAt - startedAt,
		model: row.modelName ?? row.model,
		guard: row.guard,
		error: row.error,
		said,
		reply: reply?.text ?? null,
		steps: steps.map((step) => ({
			step: step.step,
			round: step.round,
			text: step.text,
			model: step.modelName,
			inputTokens: step.usage.inputTokens,
			cachedTokens: step.usage.cachedTokens,
			outputTokens: step.usage.outputTokens,
			cost: step.usage.cost,
			note: step.note,
			tools: step.calls.map(({ call, state, result, startedAt: from, endedAt: to }) => ({
				name: call.name,
				arguments: call.arguments,
				state,
				result,
				ms: from !== null && to !== null ? to - from : null,
			})),
		})),
		plans: plans.length > 0 ? plans : row.plan.length > 0 ? [row.plan] : [],
		calls,
		blocks: Array.isArray(why.blocks) ? (why.blocks as ReportTurn["blocks"]) : [],
		recalled: Array.isArray(why.recalled) ? (why.recalled as ReportTurn["recalled"]) : [],
	};
}

function sums(calls: CallRow[], keyOf: (call: CallRow) => string): UsageRow[] {
	const rows = new Map<string, UsageRow>();
	for (const call of calls) {
		if (call.state === "open") continue;
		const key = keyOf(call);
		const row = rows.get(key) ?? {
			key,
			calls: 0,
			inputTokens: 0,
			cachedTokens: 0,
			outputTokens: 0,
			reasoningTokens: 0,
			cost: null,
			currency: call.usage.currency,
			costs: {},
			unpricedTokens: 0,
			estimatedTokens: 0,
		};
		const tokens = call.usage.inputTokens + call.usage.outputTokens;
		row.calls += 1;
		row.inputTokens += call.usage.inputTokens;
		row.cachedTokens += call.usage.cachedTokens;
		row.outputTokens += call.usage.outputTokens;
		row.reasoningTokens += call.usage.reasoningTokens;
		if (call.usage.cost === null) row.unpricedTokens += tokens;
		else if (tokens > 0) row.cost = (row.cost ?? 0) + call.usage.cost;
		if (call.usage.estimated) row.estimatedTokens += tokens;
		rows.set(key, row);
	}
	return [...rows.values()];
}

/** Null when there is no such turn. */
export async function gatherTurn(options: GatherOptions, turnId: string): Promise<ReportData | null> {
	const { store, clock } = options;
	const row = await store.turns.get(turnId);
	if (!row) return null;
	const from = row.createdAt;
	const to = row.endedAt ?? clock.now();
	const plans = await plansOf(store, new Set([row.id]), from, to);
	const turn = await turnOf(options, row, plans.get(row.id) ?? []);
	return {
		kind: "turn",
		name: row.id,
		createdAt: clock.now(),
		timezone: options.timezone,
		turns: [turn],
		files: (await options.changes?.(from, to)) ?? [],
		bySource: sums(turn.calls, (call) => call.source),
		byModel: sums(turn.calls, (call) => call.model),
		bars: turn.steps.map((step) => ({ label: String(step.step), input: step.inputTokens, output: step.outputTokens })),
	};
}

export async function gatherDay(options: GatherOptions, day: string): Promise<ReportData> {
	const { store, ledger, calendar, clock } = options;
	const from = calendar.startOf(day);
	const to = calendar.startOf(calendar.shift(day, 1));
	const rows: TurnRow[] = [];
	for (let before: string | undefined; rows.length < mostTurns; ) {
		const page = await store.turns.list({ limit: 200, ...(before ? { before } : {}) });
		rows.push(...page.filter((row) => row.createdAt >= from && row.createdAt < to));
		const last = page.at(-1);
		if (page.length < 200 || !last || last.createdAt < from) break;
		before = last.id;
	}
	const plans = await plansOf(store, new Set(rows.map((row) => row.id)), from, to);
	const turns: ReportTurn[] = [];
	for (const row of rows.slice(0, mostTurns).reverse()) turns.push(await turnOf(options, row, plans.get(row.id) ?? []));
	const span = { from, to, dayOf: calendar.dayOf, startOfDay: calendar.startOf };
	const hours = Array.from({ length: Math.round((to - from) / 3_600_000) }, (_, hour) => ({ label: String(hour), input: 0, output: 0 }));
	for (const turn of turns)
		for (const call of turn.calls) {
			const bar = hours[Math.floor((call.at - from) / 3_600_000)];
			if (!bar || call.state === "open") continue;
			bar.input += call.usage.inputTokens;
			bar.output += call.usage.outputTokens;
		}
	return {
		kind: "day",
		name: day,
		createdAt: clock.now(),
		timezone: options.timezone,
		turns,
		files: (await options.changes?.(from, to)) ?? [],
		bySource: await ledger.usage({ ...span, by: "source" }),
		byModel: await ledger.usage({ ...span, by: "model" }),
		bars: hours,
	};
}

export const sourceNames: Record<CallSource, { en: string; zh: string }> = {
	chat: { en: "chat", zh: "聊天" },
	heartbeat: { en: "heartbeat", zh: "心跳" },
	alarm: { en: "alarms", zh: "闹钟" },
	job: { en: "jobs", zh: "后台任务" },
	critique: { en: "critique", zh: "审查" },
	memory: { en: "memory", zh: "记忆" },
	embedding: { en: "embeddings", zh: "向量" },
	voice: { en: "voice", zh: "语音" },
	image: { en: "images", zh: "图片" },
};
