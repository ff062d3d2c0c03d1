import type { Selectable } from "kysely";
import type { Origin, PlanItem, Tier } from "../agent/types.ts";
import { fromJson, noUsage } from "./json.ts";
import type { TurnTable } from "./schema.ts";
import type { TurnRow } from "./store.ts";

export function toTurnRow(row: Selectable<TurnTable>): TurnRow {
	return {
		id: row.id,
		conversationId: row.conversation_id,
		personId: row.person_id,
		tier: row.tier as Tier,
		origin: row.origin as Origin,
		state: row.state,
		rounds: row.rounds,
		plan: fromJson<PlanItem[]>(row.plan, []),
		model: row.model,
		modelName: row.model_name,
		usage: fromJson<TurnRow["usage"]>(row.usage, noUsage),
		why: fromJson<Record<string, unknown>>(row.why, {}),
		guard: row.guard,
		taint: fromJson<TurnRow["taint"]>(row.taint, []),
		error: row.error,
		createdAt: row.created_at,
		startedAt: row.started_at,
		endedAt: row.ended_at,
	};
}
