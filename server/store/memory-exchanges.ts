/**
 * The rows of the short term. Every message reads and writes them, so this is plain SQL: states stand in the text because SQLite uses
 * a partial index only then, and a list of ids is one JSON value so that its length makes no new statement.
 */
import type { Kysely } from "kysely";
import type { Exchange } from "../agent/types.ts";
import { clean, fromJson } from "./json.ts";
import type { Audience, ExchangeRow, ExchangeState, MemoryStore } from "./memory-store.ts";
import type { Database } from "./schema.ts";
import { all, run } from "./sql.ts";
import type { Write } from "./writer.ts";

export interface ExchangeTable {
	position: number;
	id: string;
	conversation_id: string;
	owner: string;
	audience: string;
	at: number;
	body: string;
	state: ExchangeState;
	line_id: string | null;
}

const among = "in (select value from json_each(?))";

function toExchange(row: ExchangeTable): ExchangeRow {
	return {
		position: row.position,
		conversationId: row.conversation_id,
		owner: row.owner,
		audience: row.audience as Audience,
		exchange: fromJson<Exchange>(row.body, { id: row.id, at: row.at, channel: "", from: null, said: "", replied: "" }),
		state: row.state,
		lineId: row.line_id,
	};
}

export function memoryExchanges(
	db: Kysely<Database>,
	write: Write,
): Pick<
	MemoryStore,
	| "addExchange"
	| "openExchanges"
	| "knownExchanges"
	| "exchangesOf"
	| "supersededExchanges"
	| "exchangesOfLine"
	| "setExchanges"
	| "setExchangeBody"
	| "conversationsOf"
	| "exchangesOfOwner"
	| "exchangesBetween"
> {
	const read = async (text: string, ...values: (string | number)[]): Promise<ExchangeRow[]> =>
		(await all<ExchangeTable>(db, text, ...values)).map(toExchange);

	return {
		async addExchange(row) {
			const made = await write((trx) =>
				run(
					trx,
					// What was taken back before it came to be remembered never is.
					`insert into memory_exchanges (id, conversation_id, owner, audience, at, body, state) select ?, ?, ?, ?, ?, ?, 'new'
						where not exists (select 1 from messages where turn_id = ? and superseded = 1) on conflict (id) do nothing`,
					row.exchange.id,
					row.conversationId,
					row.owner,
					row.audience,
					row.exchange.at,
					clean(JSON.stringify(row.exchange)),
					row.exchange.id,
				),
			);
			return made > 0;
		},
		openExchanges: (conversationId) =>
			read("select * from memory_exchanges where conversation_id = ? and state in ('new', 'filed') order by position", conversationId),
		async knownExchanges(ids) {
			if (ids.length === 0) return new Set();
			const rows = await all<{ id: string }>(db, `select id from memory_exchanges where id ${among}`, JSON.stringify(ids));
			return new Set(rows.map((row) => row.id));
		},
		async exchangesOf(ids) {
			if (ids.length === 0) return [];
			return read(`select * from memory_exchanges where id ${among} order by position`, JSON.stringify(ids));
		},
		async supersededExchanges(ids) {
			if (ids.length === 0) return [];
			const rows = await all<{ id: string }>(
				db,
				`select distinct turn_id as id from messages where turn_id ${among} and superseded = 1`,
				JSON.stringify(ids),
			);
			return rows.map((row) => row.id);
		},
		exchangesOfLine: (lineId) => read("select * from memory_exchanges where line_id = ? order by position", lineId),
		async setExchanges(ids, change, from) {
			if (ids.length === 0 || (!change.state && change.lineId === undefined)) return;
			const set = [...(change.state ? ["state = ?"] : []), ...(change.lineId !== undefined ? ["line_id = ?"] : [])];
			await run(
				db,
				`update memory_exchanges set ${set.join(", ")} where id ${among}${from ? " and state = ?" : ""}`,
				...(change.state ? [change.state] : []),
				...(change.lineId !== undefined ? [change.lineId] : []),
				JSON.stringify(ids),
				...(from ? [from] : []),
			);
		},
		async setExchangeBody(id, exchange) {
			await run(db, "update memory_exchanges set body = ? where id = ?", clean(JSON.stringify(exchange)), id);
		},
		async conversationsOf(key) {
			const rows = await all<{ id: string }>(
				db,
				"select distinct conversation_id as id from memory_exchanges where owner = ? and audience = ?",
				key.owner,
				key.audience,
			);
			return rows.map((row) => row.id);
		},
		exchangesOfOwner: (key, after, limit) =>
			read(
				"select * from memory_exchanges where owner = ? and audience = ? and position > ? and state <> 'gone' order by position limit ?",
				key.owner,
				key.audience,
				after,
				limit,
			),
		async exchangesBetween(key, from, to, limit) {
			const rows = await read(
				"select * from memory_exchanges where owner = ? and audience = ? and at >= ? and at < ? and state <> 'gone' order by position desc limit ?",
				key.owner,
				key.audience,
				from,
				to,
				limit,
			);
			return rows.reverse();
		},
	};
}
