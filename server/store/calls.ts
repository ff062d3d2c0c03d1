import type { Kysely, Selectable } from "kysely";
import { clean, fromJson } from "./json.ts";
import type { CallTable, Database } from "./schema.ts";
import type { CallRow, CallStore } from "./store.ts";

type Summary = Omit<Selectable<CallTable>, "request" | "response">;

const summaryColumns = [
	"position",
	"id",
	"turn_id",
	"conversation_id",
	"person_id",
	"source",
	"model",
	"model_name",
	"at",
	"input_tokens",
	"cached_tokens",
	"output_tokens",
	"reasoning_tokens",
	"estimated",
	"cost",
	"currency",
	"ms",
	"first_byte_ms",
	"attempt",
	"key",
	"state",
	"error",
] as const;

function toCallRow(row: Summary): CallRow {
	return {
		id: row.id,
		turnId: row.turn_id,
		conversationId: row.conversation_id,
		personId: row.person_id,
		source: row.source,
		model: row.model,
		modelName: row.model_name,
		at: row.at,
		usage: {
			inputTokens: row.input_tokens,
			cachedTokens: row.cached_tokens,
			outputTokens: row.output_tokens,
			reasoningTokens: row.reasoning_tokens,
			estimated: row.estimated === 1,
			cost: row.cost,
			currency: row.currency,
		},
		ms: row.ms,
		firstByteMs: row.first_byte_ms,
		attempt: row.attempt,
		key: row.key,
		state: row.state,
		error: row.error,
	};
}

export function createCalls(db: Kysely<Database>): CallStore {
	return {
		async open(id, start) {
			await db
				.insertInto("calls")
				.values({
					id,
					turn_id: start.context.turnId,
					conversation_id: start.context.conversationId,
					person_id: start.context.personId,
					source: start.context.source,
					model: start.model,
					model_name: start.modelName,
					at: start.startedAt,
					// Until it is settled, an open call counts as what it may cost at the most.
					input_tokens: start.estimatedInputTokens,
					cached_tokens: 0,
					output_tokens: start.maxOutputTokens,
					reasoning_tokens: 0,
					estimated: 1,
					cost: null,
					currency: "USD",
					attempt: start.attempt,
					key: start.key,
					state: "open",
					request: clean(JSON.stringify(start.request)),
				})
				.execute();
		},

		async close(id, end) {
			const usage = end.usage ?? {
				inputTokens: 0,
				cachedTokens: 0,
				outputTokens: 0,
				reasoningTokens: 0,
				estimated: false,
				cost: 0,
				currency: "USD",
			};
			await db
				.updateTable("calls")
				.set({
					input_tokens: usage.inputTokens,
					cached_tokens: usage.cachedTokens,
					output_tokens: usage.outputTokens,
					reasoning_tokens: usage.reasoningTokens,
					estimated: usage.estimated ? 1 : 0,
					cost: usage.cost,
					currency: usage.currency,
					ms: end.ms,
					first_byte_ms: end.firstByteMs,
					state: end.error ? "failed" : "done",
					error: end.error ? `${end.error.kind}: ${clean(end.error.message)}` : null,
					response: end.response === undefined ? null : clean(JSON.stringify(end.response)),
				})
				.where("id", "=", id)
				.execute();
		},

		async get(id) {
			const row = await db.selectFrom("calls").selectAll().where("id", "=", id).executeTakeFirst();
			return row
				? { ...toCallRow(row), request: fromJson<unknown>(row.request, null), response: fromJson<unknown>(row.response, null) }
				: null;
		},

		async list(filter) {
			let query = db
				.selectFrom("calls")
				.select([...summaryColumns])
				.orderBy("position", "desc")
				.limit(filter.limit);
			if (filter.turnId) query = query.where("turn_id", "=", filter.turnId);
			if (filter.source) query = query.where("source", "=", filter.source);
			if (filter.before)
				query = query.where("position", "<", (eb) =>
					eb
						.selectFrom("calls as b")
						.select("b.position")
						.where("b.id", "=", filter.before as string),
				);
			return (await query.execute()).map(toCallRow);
		},
	};
}
