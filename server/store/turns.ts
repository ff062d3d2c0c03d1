import { type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { CallRecord } from "../agent/types.ts";
import type { ToolEffect } from "../tools/tool.ts";
import { clean } from "./json.ts";
import { toMessageRow, toTurnMessage } from "./messages.ts";
import { insertOutbox } from "./outbox.ts";
import type { Database, TurnTable } from "./schema.ts";
import { insertStep, loadSteps, toCallRecord } from "./steps.ts";
import type { TurnStore } from "./store.ts";
import { toTurnRow } from "./turn-rows.ts";

/** Where an effect comes from, for rooms that write its row. */
export interface EffectSource {
	turnId: string;
	recordId: string;
	at: number;
}

/** Writes the rows of one kind of effect inside the transaction that stores the tool's result. */
export type EffectWriter = (trx: Transaction<Database>, effect: ToolEffect, source: EffectSource) => Promise<void>;

/** `writers` are the effects that other rooms of the store write (facts, schedules). */
export function createTurns(db: Kysely<Database>, writers: Partial<Record<ToolEffect["type"], EffectWriter>>): TurnStore {
	const inConversationOf = (turnId: string) => sql<string>`(select conversation_id from turns where id = ${turnId})`;

	async function writeEffect(trx: Transaction<Database>, effect: ToolEffect, source: EffectSource): Promise<void> {
		if (effect.type === "send") return; // became an outbox row, handed in beside it
		if (effect.type === "plan") {
			await trx
				.updateTable("turns")
				.set({ plan: JSON.stringify(effect.items) })
				.where("id", "=", source.turnId)
				.execute();
			return;
		}
		const writer = writers[effect.type];
		if (!writer) throw new Error(`nothing in this store writes effects of type ${effect.type}`);
		await writer(trx, effect, source);
	}

	return {
		async get(id) {
			const row = await db.selectFrom("turns").selectAll().where("id", "=", id).executeTakeFirst();
			return row ? toTurnRow(row) : null;
		},

		async list(filter) {
			let query = db.selectFrom("turns").selectAll().orderBy("position", "desc").limit(filter.limit);
			if (filter.conversationId) query = query.where("conversation_id", "=", filter.conversationId);
			if (filter.before)
				query = query.where("position", "<", (eb) =>
					eb
						.selectFrom("turns as b")
						.select("b.position")
						.where("b.id", "=", filter.before as string),
				);
			return (await query.execute()).map(toTurnRow);
		},

		async open(conversationId) {
			const rows = await db
				.selectFrom("turns")
				.selectAll()
				.where("conversation_id", "=", conversationId)
				.where("state", "in", ["queued", "running"])
				.orderBy("position")
				.execute();
			return rows.map(toTurnRow);
		},

		steps: (turnId) => loadSteps(db, turnId),

		async calls(turnIds) {
			const found = new Map<string, (CallRecord & { step: number })[]>();
			if (turnIds.length === 0) return found;
			const rows = await db
				.selectFrom("tool_calls")
				.selectAll()
				.where("turn_id", "in", turnIds)
				.orderBy("step")
				.orderBy("ordinal")
				.execute();
			for (const row of rows) found.set(row.turn_id, [...(found.get(row.turn_id) ?? []), { ...toCallRecord(row), step: row.step }]);
			return found;
		},

		async messageIds(turnId) {
			const rows = await db.selectFrom("messages").select("id").where("turn_id", "=", turnId).orderBy("position").execute();
			return rows.map((row) => row.id);
		},

		async setWhy(turnId, why) {
			await db
				.updateTable("turns")
				.set({ why: JSON.stringify(why) })
				.where("id", "=", turnId)
				.execute();
		},

		async stepStored(turnId, step) {
			// Most steps are one row without calls: one statement is its own transaction.
			await db.transaction().execute((trx) => insertStep(trx, turnId, step));
		},

		async stepAmended(turnId, step, change) {
			await db
				.updateTable("steps")
				.set({ note: clean(change.note) })
				.where("turn_id", "=", turnId)
				.where("step", "=", step)
				.execute();
		},

		async callStarted(recordId, at) {
			await db
				.updateTable("tool_calls")
				.set({ state: "started", started_at: at })
				.where("record_id", "=", recordId)
				.where("state", "=", "open")
				.execute();
		},

		callFinished(turnId, recordId, outcome) {
			return db.transaction().execute(async (trx) => {
				const done = await trx
					.updateTable("tool_calls")
					.set({
						state: outcome.state,
						result: clean(outcome.result),
						taint: outcome.taint ?? null,
						attachments: JSON.stringify(outcome.attachments),
						ended_at: outcome.at,
						started_at: sql`coalesce(started_at, ${outcome.at})`,
					})
					.where("record_id", "=", recordId)
					.where("state", "in", ["open", "started"])
					.executeTakeFirst();
				if (done.numUpdatedRows === 0n) return false;
				for (const effect of outcome.effects) await writeEffect(trx, effect, { turnId, recordId, at: outcome.at });
				for (const row of outcome.outbox) await insertOutbox(trx, row);
				return true;
			});
		},

		async takeJoining(turnId, step, now) {
			const waiting = () =>
				db
					.selectFrom("inbox")
					.innerJoin("turns", (join) =>
						join
							.onRef("turns.conversation_id", "=", "inbox.conversation_id")
							.onRef("turns.person_id", "=", "inbox.person_id")
							.onRef("turns.origin", "=", "inbox.origin"),
					)
					.select("inbox.id")
					.where("turns.id", "=", turnId)
					.where("inbox.state", "=", "waiting");
			// Asked at every step boundary, and nearly always empty: look before taking the write lock.
			if ((await waiting().limit(1).execute()).length === 0) return [];
			return db.transaction().execute(async (trx) => {
				const rows = await trx
					.updateTable("inbox")
					.set({ state: "claimed", turn_id: turnId, joined_step: step, attempts: sql`attempts + 1` })
					.where("id", "in", waiting())
					.returning(["id"])
					.execute();
				const ids = rows.map((row) => row.id);
				if (ids.length === 0) return [];
				await trx.updateTable("messages").set({ turn_id: turnId }).where("id", "in", ids).execute();
				// A turn that was queued for them has nothing left to do.
				await trx
					.deleteFrom("turns")
					.where("conversation_id", "=", inConversationOf(turnId))
					.where("state", "=", "queued")
					.where("id", "not in", trx.selectFrom("inbox").select("turn_id").where("state", "=", "waiting"))
					.execute();
				await trx
					.updateTable("conversations")
					.set({ updated_at: sql`max(updated_at, ${now})` })
					.where("id", "=", inConversationOf(turnId))
					.execute();
				const messages = await trx.selectFrom("messages").selectAll().where("id", "in", ids).orderBy("position").execute();
				return messages.map(toTurnMessage);
			});
		},

		end(turnId, end) {
			return db.transaction().execute(async (trx) => {
				const turn = await trx
					.updateTable("turns")
					.set({
						state: end.state,
						rounds: end.rounds,
						usage: JSON.stringify(end.usage),
						model: end.model,
						model_name: end.modelName,
						guard: end.guard,
						taint: JSON.stringify(end.taint),
						error: end.error,
						ended_at: end.at,
					})
					.where("id", "=", turnId)
					.where("state", "in", ["queued", "running"])
					.returningAll()
					.executeTakeFirst();
				// Ended already (a second worker after a lost lease): nothing is written twice.
				if (!turn) return { message: null };
				await trx
					.updateTable("inbox")
					.set({ state: end.state === "failed" ? "failed" : "done" })
					.where("turn_id", "=", turnId)
					.where("state", "=", "claimed")
					.execute();
				// Calls that were open when the turn was stopped.
				await trx
					.updateTable("tool_calls")
					.set({ state: "interrupted", ended_at: end.at })
					.where("turn_id", "=", turnId)
					.where("state", "in", ["open", "started"])
					.execute();
				await releaseLease(trx, turn);
				if (!end.reply) return { message: null };
				const sent = await insertOutbox(trx, end.reply);
				if (!sent.message_id) return { message: null };
				const message = await trx.selectFrom("messages").selectAll().where("id", "=", sent.message_id).executeTakeFirstOrThrow();
				return { message: { ...toMessageRow(message), delivery: "pending" as const } };
			});
		},

		cancelQueued(turnId, at) {
			return db.transaction().execute(async (trx) => {
				const turn = await trx
					.updateTable("turns")
					.set({ state: "stopped", ended_at: at })
					.where("id", "=", turnId)
					.where("state", "=", "queued")
					.returning("id")
					.executeTakeFirst();
				if (!turn) return false;
				await trx.updateTable("inbox").set({ state: "done" }).where("turn_id", "=", turnId).where("state", "=", "waiting").execute();
				return true;
			});
		},
	};
}

async function releaseLease(trx: Transaction<Database>, turn: Selectable<TurnTable>): Promise<void> {
	await trx.updateTable("conversations").set({ lease_owner: null, lease_until: 0 }).where("id", "=", turn.conversation_id).execute();
}
