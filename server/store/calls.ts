import type { Kysely, Selectable } from "kysely";
import { fromJson } from "./json.ts";
import type { CallTable, Database } from "./schema.ts";
import type { CallRow, CallStore } from "./store.ts";

type Summary = Omit<Selectable<CallTable>, "response" | "bytes" | "head">;

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

export function createCalls(db: Kysely<Database>): Pick<CallStore, "get" | "list"> {
	return {
		async get(id) {
			const row = await db
				.selectFrom("calls")
				.leftJoin("call_requests", "call_requests.position", "calls.position")
				.leftJoin("call_heads", "call_heads.id", "calls.head")
				.selectAll("calls")
				.select(["call_requests.request", "call_heads.text"])
				.where("calls.id", "=", id)
				.executeTakeFirst();
			if (!row) return null;
			const request = row.request === null ? null : (row.text ?? "") + row.request;
			return { ...toCallRow(row), request: fromJson<unknown>(request, null), response: fromJson<unknown>(row.response, null) };
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
