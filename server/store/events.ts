import { type Kysely, sql } from "kysely";
import { clean, fromJson } from "./json.ts";
import { toMessageRow } from "./messages.ts";
import type { Database } from "./schema.ts";
import { run } from "./sql.ts";
import type { EventRow, EventStore } from "./store.ts";
import type { Write } from "./writer.ts";

const levels: EventRow["level"][] = ["trace", "debug", "info", "warn", "error"];
/** Events are written within moments of being said; a message older than this before the last event was told. */
const unannouncedMs = 60_000;
const sequenceKey = "events.reserved";

/** Rows of one statement: a row costs half of one alone, and few sizes are few statements to keep prepared. */
const together = [32, 8, 1];
const appendTexts = new Map<number, string>();

function appendText(rows: number): string {
	const text =
		appendTexts.get(rows) ??
		`insert into events (seq, at, type, level, conversation_id, turn_id, body) values ${Array(rows).fill("(?, ?, ?, ?, ?, ?, ?)").join(", ")} on conflict (seq) do nothing`;
	appendTexts.set(rows, text);
	return text;
}

const valuesOf = (row: EventRow) => [
	row.seq,
	row.at,
	row.type,
	levels.indexOf(row.level),
	row.conversationId,
	row.turnId,
	clean(JSON.stringify(row.body)),
];

/** `write` lets a batch share its transaction with what else is written in the moment. */
export function createEvents(db: Kysely<Database>, write: Write): EventStore {
	return {
		async reserve(count) {
			const row = await db
				.insertInto("meta")
				.values({ key: sequenceKey, value: String(count) })
				.onConflict((conflict) => conflict.column("key").doUpdateSet({ value: sql`cast(meta.value as integer) + ${count}` }))
				.returning("value")
				.executeTakeFirstOrThrow();
			return { from: Number(row.value) - count + 1 };
		},

		async append(rows) {
			if (rows.length === 0) return;
			await write(async (trx) => {
				for (let from = 0; from < rows.length; ) {
					const size = together.find((one) => one <= rows.length - from) ?? 1;
					const values: (string | number | null)[] = [];
					for (const row of rows.slice(from, from + size)) values.push(...valuesOf(row));
					await run(trx, appendText(size), ...values);
					from += size;
				}
			});
		},

		async list(filter) {
			let query = db.selectFrom("events").selectAll().where("seq", ">", filter.after).orderBy("seq").limit(filter.limit);
			if (filter.type) query = query.where("type", "=", filter.type);
			if (filter.minLevel) query = query.where("level", ">=", levels.indexOf(filter.minLevel));
			return (await query.execute()).map((row) => ({
				seq: row.seq,
				at: row.at,
				type: row.type,
				level: levels[row.level] ?? "info",
				conversationId: row.conversation_id,
				turnId: row.turn_id,
				body: fromJson<Record<string, unknown>>(row.body, {}),
			}));
		},

		async unannounced() {
			const last = await db
				.selectFrom("events")
				.select((eb) => eb.fn.max<number | null>("at").as("at"))
				.executeTakeFirst();
			const since = (last?.at ?? 0) - unannouncedMs;
			const messages = await db
				.selectFrom("messages")
				.selectAll()
				.where("at", ">=", since)
				.where("superseded", "=", 0)
				.orderBy("position", "desc")
				.limit(500)
				.execute();
			if (messages.length === 0) return [];
			const told = await db.selectFrom("events").select("body").where("type", "=", "message").where("at", ">=", since).execute();
			const ids = new Set(told.map((row) => fromJson<{ message?: string }>(row.body, {}).message));
			return messages
				.filter((row) => !ids.has(row.id))
				.reverse()
				.map(toMessageRow);
		},

		async oldest() {
			const row = await db
				.selectFrom("events")
				.select((eb) => eb.fn.min<number | null>("seq").as("seq"))
				.executeTakeFirst();
			return row?.seq ?? 0;
		},
	};
}
