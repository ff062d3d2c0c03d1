/** One row an incident: opened once, counted while it lasts, resolved when it is over. */
import { type Kysely, sql } from "kysely";
import type { AlertRow, AlertStore } from "./ledger-store.ts";
import type { Database } from "./schema.ts";

interface Row {
	id: string;
	kind: string;
	incident: string;
	severity: AlertRow["severity"];
	state: AlertRow["state"];
	message_en: string;
	message_zh: string;
	conversation_id: string | null;
	turn_id: string | null;
	opened_at: number;
	last_at: number;
	resolved_at: number | null;
	acked_at: number | null;
	count: number;
}

const toAlert = (row: Row): AlertRow => ({
	id: row.id,
	kind: row.kind,
	incident: row.incident,
	severity: row.severity,
	state: row.state,
	message: { en: row.message_en, zh: row.message_zh },
	conversationId: row.conversation_id,
	turnId: row.turn_id,
	openedAt: row.opened_at,
	lastAt: row.last_at,
	resolvedAt: row.resolved_at,
	ackedAt: row.acked_at,
	count: row.count,
});

/** Resolved alerts beyond this number go, oldest first. */
const keptAlerts = 2_000;

export function createAlerts(db: Kysely<Database>): AlertStore {
	return {
		async open(alert) {
			const { rows } =
				await sql<Row>`insert into alerts (id, kind, incident, severity, state, message_en, message_zh, conversation_id, turn_id, opened_at, last_at)
				values (${alert.id}, ${alert.kind}, ${alert.incident}, ${alert.severity}, 'open', ${alert.message.en}, ${alert.message.zh}, ${alert.conversationId}, ${alert.turnId}, ${alert.at}, ${alert.at})
				on conflict (kind, incident) where state = 'open' do update set count = count + 1, last_at = excluded.last_at, message_en = excluded.message_en, message_zh = excluded.message_zh
				returning *`.execute(db);
			const row = toAlert(rows[0] as Row);
			const opened = row.id === alert.id;
			if (opened)
				await sql`delete from alerts where state = 'resolved' and position <= (select max(position) from alerts) - ${keptAlerts}`.execute(
					db,
				);
			return { row, opened };
		},
		async resolve(kind, incident, at) {
			const { rows } =
				await sql<Row>`update alerts set state = 'resolved', resolved_at = ${at} where kind = ${kind} and incident = ${incident} and state = 'open' returning *`.execute(
					db,
				);
			return rows[0] ? toAlert(rows[0]) : null;
		},
		async ack(id, at) {
			const { rows } = await sql<Row>`update alerts set acked_at = coalesce(acked_at, ${at}) where id = ${id} returning *`.execute(db);
			return rows[0] ? toAlert(rows[0]) : null;
		},
		async list({ state, limit, before }) {
			const wanted = state ?? null;
			const below = before ?? null;
			const { rows } = await sql<Row>`select * from alerts where (${wanted} is null or state = ${wanted})
				and (${below} is null or position < (select position from alerts where id = ${below})) order by position desc limit ${limit}`.execute(
				db,
			);
			return rows.map(toAlert);
		},
		async get(id) {
			const { rows } = await sql<Row>`select * from alerts where id = ${id}`.execute(db);
			return rows[0] ? toAlert(rows[0]) : null;
		},
	};
}
