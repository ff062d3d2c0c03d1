import { type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { CallRecord } from "../agent/types.ts";
import type { ToolEffect } from "../tools/tool.ts";
import { holder } from "./inbox.ts";
import { clean } from "./json.ts";
import { toMessageRow, toTurnMessage } from "./messages.ts";
import { insertOutbox, isAwaited, toOutboxRow } from "./outbox-rows.ts";
import type { Database, TurnTable } from "./schema.ts";
import { all, first, marks, run } from "./sql.ts";
import { insertStep, loadSteps, toCallRecord } from "./steps.ts";
import type { TurnStore } from "./store.ts";
import { toTurnRow } from "./turn-rows.ts";
import type { Write } from "./writer.ts";

/** Where an effect comes from, for rooms that write its row. */
export interface EffectSource {
	turnId: string;
	recordId: string;
	at: number;
}

/** Writes the rows of one kind of effect inside the transaction that stores the tool's result. */
export type EffectWriter = (trx: Transaction<Database>, effect: ToolEffect, source: EffectSource) => Promise<void>;

/** `writers` are the effects that other rooms of the store write (facts, schedules). */
export function createTurns(db: Kysely<Database>, write: Write, writers: Partial<Record<ToolEffect["type"], EffectWriter>>): TurnStore {
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
			const row = await first<Selectable<TurnTable>>(db, "select * from turns where id = ?", id);
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
			await run(db, "update turns set why = ? where id = ?", JSON.stringify(why), turnId);
		},

		async setPlan(turnId, plan) {
			await run(db, "update turns set plan = ? where id = ?", JSON.stringify(plan), turnId);
		},

		async stepStored(turnId, step) {
			await write((trx) => insertStep(trx, turnId, step));
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
			await run(db, "update tool_calls set state = 'started', started_at = ? where record_id = ? and state = 'open'", at, recordId);
		},

		callFinished(turnId, recordId, outcome) {
			return write(async (trx) => {
				const done = await run(
					trx,
					`update tool_calls set state = ?, result = ?, taint = ?, attachments = ?, ended_at = ?, started_at = coalesce(started_at, ?)
					where record_id = ? and state in ('open', 'started')`,
					outcome.state,
					clean(outcome.result),
					outcome.taint ?? null,
					JSON.stringify(outcome.attachments),
					outcome.at,
					outcome.at,
					recordId,
				);
				if (done === 0) return false;
				for (const effect of outcome.effects) await writeEffect(trx, effect, { turnId, recordId, at: outcome.at });
				for (const row of outcome.outbox) await insertOutbox(trx, row);
				return true;
			});
		},

		async takeJoining(turnId, step, now) {
			const like =
				"select inbox.id from inbox join turns on turns.conversation_id = inbox.conversation_id and turns.person_id = inbox.person_id and turns.origin = inbox.origin where turns.id = ? and inbox.state = 'waiting'";
			// Asked at every step boundary, and nearly always in vain: look before taking the write lock.
			if (!(await first(db, `${like} limit 1`, turnId))) return [];
			return write(async (trx) => {
				const ids = (await all<{ id: string }>(trx, like, turnId)).map((row) => row.id);
				if (ids.length === 0) return [];
				await run(
					trx,
					`update inbox set state = 'claimed', turn_id = ?, joined_step = ?, attempts = attempts + 1 where id in (${marks(ids)})`,
					turnId,
					step,
					...ids,
				);
				await run(trx, `update messages set turn_id = ? where id in (${marks(ids)})`, turnId, ...ids);
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
			return write(async (trx) => {
				const turn = await first<{ conversation_id: string }>(
					trx,
					"select conversation_id from turns where id = ? and state in ('queued', 'running')",
					turnId,
				);
				// Ended already (a second worker after a lost lease): nothing is written twice.
				if (!turn) return { message: null, sending: null };
				if (end.step) await insertStep(trx, turnId, end.step);
				await run(
					trx,
					`update turns set state = ?, rounds = ?, usage = ?, model = ?, model_name = ?, guard = ?, taint = ?, error = ?, ended_at = ?${end.why ? ", why = ?" : ""} where id = ?`,
					end.state,
					end.rounds,
					JSON.stringify(end.usage),
					end.model,
					end.modelName,
					end.guard,
					JSON.stringify(end.taint),
					end.error,
					end.at,
					...(end.why ? [JSON.stringify(end.why)] : []),
					turnId,
				);
				await run(
					trx,
					"update inbox set state = ? where turn_id = ? and state = 'claimed'",
					end.state === "failed" ? "failed" : "done",
					turnId,
				);
				// Calls that were open when the turn was stopped.
				await run(
					trx,
					"update tool_calls set state = 'interrupted', ended_at = ? where turn_id = ? and state in ('open', 'started')",
					end.at,
					turnId,
				);
				const here = end.reply?.conversationId === turn.conversation_id && end.reply.message !== null;
				// Edited and sent again while this turn was ending: an answer to what was taken back would stand beside the new one.
				const takenBack =
					here &&
					(
						await first<{ back: number | null }>(
							trx,
							"select min(superseded) as back from messages where turn_id = ? and role = 'user'",
							turnId,
						)
					)?.back === 1;
				const replyHere = here && !takenBack;
				if (!replyHere) await run(trx, "update conversations set lease_owner = null, lease_until = 0 where id = ?", turn.conversation_id);
				if (!end.reply || takenBack) return { message: null, sending: null };
				const sends = end.sendsReply === true && !(await isAwaited(trx, end.reply.address));
				const { outbox, message } = await insertOutbox(trx, end.reply, { release: replyHere, sending: sends });
				return {
					message: message && Object.assign(toMessageRow(message), { delivery: outbox.state }),
					sending: sends ? toOutboxRow(outbox) : null,
				};
			});
		},

		cancelQueued(turnId, at) {
			return write(async (trx) => {
				const turn = await trx
					.updateTable("turns")
					.set({ state: "stopped", ended_at: at })
					.where("id", "=", turnId)
					.where("state", "=", "queued")
					.returning(["id", "conversation_id"])
					.executeTakeFirst();
				if (!turn) return false;
				await run(
					trx,
					"update conversations set lease_owner = null, lease_until = 0 where id = ? and lease_owner = ?",
					turn.conversation_id,
					holder,
				);
				await trx.updateTable("inbox").set({ state: "done" }).where("turn_id", "=", turnId).where("state", "=", "waiting").execute();
				return true;
			});
		},
	};
}
