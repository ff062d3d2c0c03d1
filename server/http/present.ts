/** Rows to contract shapes, purely. REST answers and live frames are made by the same functions, so they cannot differ. */
import type { CallRecord, PlanItem, StepRecord } from "../agent/types.ts";
import { explainTurn } from "../observe/why.ts";
import { readDecision, waitingText } from "../safety/approvals.ts";
import type { CallRow, ConversationRow, EventRow, MessageRow, OutboxRow, TurnRow } from "../store/store.ts";
import type {
	Call,
	CallDetail,
	Conversation,
	EventItem,
	Message,
	OutboxItem,
	Step,
	ToolLine,
	Turn,
	TurnSummary,
	Usage,
} from "./contract.ts";

const LINE_CHARS = 2000;

/** ISO 8601 in UTC, or null. */
export function iso(at: number): string;
export function iso(at: number | null): string | null;
export function iso(at: number | null): string | null {
	return at === null ? null : new Date(at).toISOString();
}

/** At most `limit` UTF-16 units, never half a character. */
export function cut(text: string, limit: number): string {
	if (text.length <= limit) return text;
	const last = text.charCodeAt(limit - 1);
	return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}

function usageOf(usage: Usage): Usage {
	const { inputTokens, cachedTokens, outputTokens, reasoningTokens, estimated, cost, currency, calls } = usage;
	return { inputTokens, cachedTokens, outputTokens, reasoningTokens, estimated, cost, currency, calls };
}

function attachmentsOf(list: MessageRow["attachments"]): Message["attachments"] {
	return list.map(({ sha256, name, mimeType, bytes, kind }) => ({ sha256, name, mimeType, bytes, kind }));
}

function duration(record: { startedAt: number | null; endedAt: number | null }): number | null {
	return record.startedAt === null || record.endedAt === null ? null : Math.max(0, record.endedAt - record.startedAt);
}

/** A tool call in progress, as `tool` frames show it. */
export function toolLine(record: Omit<ToolLine, "name" | "arguments"> & { call: { name: string; arguments: string } }): ToolLine {
	return {
		recordId: record.recordId,
		step: record.step,
		name: record.call.name,
		arguments: cut(record.call.arguments, LINE_CHARS),
		state: record.state,
		...(record.state === "skipped" && record.result?.startsWith(waitingText) ? { asked: true } : {}),
		result: record.result === null ? null : cut(record.result, LINE_CHARS),
		ms: record.ms,
	};
}

/** A stored tool call, as messages show it. */
export function toToolLine(record: CallRecord & { step: number }): ToolLine {
	return toolLine({ ...record, ms: duration(record) });
}

/** A message as the page and the API see it. `tools`, `plan` and `stopped` are those of its turn; only answers carry them. */
export function toMessage(
	row: MessageRow,
	{ tools = [], plan = [], stopped = false }: { tools?: (CallRecord & { step: number })[]; plan?: PlanItem[]; stopped?: boolean } = {},
): Message {
	const answer = row.role !== "user";
	const decision = row.clientId?.startsWith("approval:") ? readDecision(row.text) : null;
	return {
		id: row.id,
		conversationId: row.conversationId,
		role: row.role,
		text: row.text,
		at: iso(row.at),
		from: row.from,
		model: row.model,
		modelName: row.modelName,
		turnId: row.turnId,
		attachments: attachmentsOf(row.attachments),
		// A dropped message will never be sent: for the reader of the conversation that is a failure to deliver.
		delivery: row.delivery === "dropped" ? "failed" : row.delivery,
		clientId: row.clientId,
		usage: row.usage === null ? null : usageOf(row.usage),
		tools: answer ? tools.map(toToolLine) : [],
		plan: answer ? plan.map(({ text, done }) => ({ text, done })) : [],
		...(decision ? { decision } : {}),
		...(answer && stopped ? { stopped } : {}),
		superseded: row.superseded,
	};
}

export function toConversation(row: ConversationRow & { busy?: "queued" | "running" | null }): Conversation {
	return {
		id: row.id,
		title: row.title,
		channel: row.channel,
		pinned: row.pinned,
		createdAt: iso(row.createdAt),
		updatedAt: iso(row.updatedAt),
		preview: row.preview,
		model: row.model,
		busy: row.busy ?? null,
	};
}

export function toTurnSummary(row: TurnRow): TurnSummary {
	return {
		id: row.id,
		conversationId: row.conversationId,
		origin: row.origin,
		state: row.state,
		rounds: row.rounds,
		startedAt: iso(row.startedAt),
		endedAt: iso(row.endedAt),
		model: row.model,
		usage: usageOf(row.usage),
		error: row.error,
	};
}

export function toStep(record: StepRecord): Step {
	return {
		step: record.step,
		round: record.round,
		text: record.text,
		model: record.model,
		modelName: record.modelName,
		usage: usageOf({ ...record.usage, calls: record.callIds.length }),
		startedAt: iso(record.startedAt),
		endedAt: iso(record.endedAt),
		note: record.note,
		calls: record.calls.map((call) => ({
			recordId: call.recordId,
			id: call.call.id,
			name: call.call.name,
			arguments: call.call.arguments,
			state: call.state,
			result: call.result,
			startedAt: iso(call.startedAt),
			endedAt: iso(call.endedAt),
			ms: duration(call),
		})),
	};
}

/** `calls` are the turn's model calls, oldest first: they say which model answered, why, and what it cost. */
export function toTurn(row: TurnRow, { steps, messageIds, calls }: { steps: StepRecord[]; messageIds: string[]; calls: CallRow[] }): Turn {
	return {
		...toTurnSummary(row),
		messageIds,
		plan: row.plan.map(({ text, done }) => ({ text, done })),
		steps: steps.map(toStep),
		// Where nothing counted the tokens, four characters are taken for one, as everywhere before a call.
		why: explainTurn(row, calls, (chars) => Math.ceil(chars / 4)),
		guard: row.guard,
		taint: row.taint.map(({ source, step }) => ({ source, step })),
		critique: listOf<Turn["critique"][number]>(row.why.critique),
	};
}

function listOf<T>(value: unknown): T[] {
	return Array.isArray(value) ? (value as T[]) : [];
}

export function toCall(row: CallRow): Call {
	const { inputTokens, cachedTokens, outputTokens, reasoningTokens, estimated, cost, currency } = row.usage;
	return {
		id: row.id,
		turnId: row.turnId,
		conversationId: row.conversationId,
		source: row.source,
		model: row.model,
		modelName: row.modelName,
		at: iso(row.at),
		inputTokens,
		cachedTokens,
		outputTokens,
		reasoningTokens,
		estimated,
		cost,
		currency,
		ms: row.ms,
		firstByteMs: row.firstByteMs,
		attempts: row.attempt,
		key: row.key,
		state: row.state,
		error: row.error,
	};
}

export function toCallDetail(row: CallRow & { request: unknown; response: unknown }): CallDetail {
	return { ...toCall(row), request: row.request ?? null, response: row.response ?? null };
}

export function toOutboxItem(row: OutboxRow): OutboxItem {
	return {
		id: row.id,
		conversationId: row.conversationId,
		channel: row.channel,
		to: row.address.conversation,
		text: row.text,
		state: row.state,
		attempts: row.attempts,
		platformIds: row.platformIds,
		error: row.error,
		createdAt: iso(row.createdAt),
		sentAt: iso(row.sentAt),
	};
}

export function toEvent(row: EventRow): EventItem {
	return {
		seq: row.seq,
		at: iso(row.at),
		type: row.type,
		level: row.level,
		conversation: row.conversationId,
		turnId: row.turnId,
		body: row.body,
	};
}
