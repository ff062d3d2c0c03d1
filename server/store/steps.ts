import type { Kysely, Selectable } from "kysely";
import type { Attachment } from "../../channels/channel.ts";
import type { CallRecord, StepRecord } from "../agent/types.ts";
import { clean, fromJson, noUsage } from "./json.ts";
import { toTurnMessage } from "./messages.ts";
import type { Database, ToolCallTable } from "./schema.ts";
import { type Executor, insert } from "./sql.ts";

export function toCallRecord(row: Selectable<ToolCallTable>): CallRecord {
	return {
		call: { id: row.call_id, name: row.name, arguments: row.arguments, ...(row.truncated ? { truncated: true } : {}) },
		recordId: row.record_id,
		state: row.state,
		result: row.result,
		startedAt: row.started_at,
		endedAt: row.ended_at,
		...(row.taint ? { taint: row.taint } : {}),
		...(row.attachments === "[]" ? {} : { attachments: fromJson<Attachment[]>(row.attachments, []) }),
	};
}

/** A turn's steps with their calls and the messages that joined after each, in order. */
export async function loadSteps(db: Kysely<Database>, turnId: string): Promise<StepRecord[]> {
	const steps = await db.selectFrom("steps").selectAll().where("turn_id", "=", turnId).orderBy("step").execute();
	if (steps.length === 0) return [];
	const calls = await db.selectFrom("tool_calls").selectAll().where("turn_id", "=", turnId).orderBy("step").orderBy("ordinal").execute();
	const joined = await db
		.selectFrom("inbox")
		.innerJoin("messages", "messages.id", "inbox.id")
		.selectAll("messages")
		.select("inbox.joined_step")
		.where("inbox.turn_id", "=", turnId)
		.where("inbox.joined_step", ">", 0)
		.orderBy("inbox.position")
		.execute();
	return steps.map((row) => ({
		step: row.step,
		round: row.round,
		text: row.text,
		reasoning: row.reasoning,
		calls: calls.filter((call) => call.step === row.step).map(toCallRecord),
		usage: fromJson(row.usage, noUsage),
		model: row.model,
		modelName: row.model_name,
		callIds: fromJson<string[]>(row.call_ids, []),
		joined: joined.filter((message) => message.joined_step === row.step).map(toTurnMessage),
		note: row.note,
		startedAt: row.started_at,
		endedAt: row.ended_at,
	}));
}

/** Stores a step with its calls. The same step again (a crash between commit and notice) is left as it is. */
export async function insertStep(db: Executor, turnId: string, step: StepRecord): Promise<void> {
	const made = await insert(
		db,
		"steps",
		{
			turn_id: turnId,
			step: step.step,
			round: step.round,
			text: clean(step.text),
			reasoning: clean(step.reasoning),
			usage: JSON.stringify(step.usage),
			model: step.model,
			model_name: step.modelName,
			call_ids: JSON.stringify(step.callIds),
			note: step.note,
			started_at: step.startedAt,
			ended_at: step.endedAt,
		},
		"(turn_id, step) do nothing",
	);
	if (made === 0) return;
	for (const [ordinal, record] of step.calls.entries()) {
		await insert(db, "tool_calls", {
			record_id: record.recordId,
			turn_id: turnId,
			step: step.step,
			ordinal,
			call_id: clean(record.call.id),
			name: clean(record.call.name),
			arguments: clean(record.call.arguments),
			truncated: record.call.truncated ? 1 : 0,
			state: record.state,
			result: record.result,
			taint: record.taint ?? null,
			attachments: "[]",
			started_at: record.startedAt,
			ended_at: record.endedAt,
		});
	}
}
