import { type Kysely, type Selectable, sql } from "kysely";
import { toConversationRow } from "./conversations.ts";
import { createAccept, ensureTurn, toInboxRow } from "./inbox-accept.ts";
import type { ConversationTable, Database, InboxTable, MessageTable, TurnTable } from "./schema.ts";
import { all, type Executor, first, marks, run } from "./sql.ts";
import { loadSteps } from "./steps.ts";
import type { Claim, InboxStore } from "./store.ts";
import { toTurnRow } from "./turn-rows.ts";
import type { Write } from "./writer.ts";

/** A message that was running in this many processes when they died is not run again. */
const maxAttempts = 2;
/** Owner of leases that stand for waiting, not for work. */
export const holder = "hold";

interface Candidate {
	conversation_id: string;
	turn_id: string;
}

export function createInbox(db: Kysely<Database>, write: Write, newId: () => string): InboxStore {
	/** Rows wait again, as if they had not been claimed; a turn without a step is queued again. The conversation is free, or leased to `owner`. */
	async function giveBack(turnId: string, owner: string | null, until: number): Promise<void> {
		await write(async (trx) => {
			await trx
				.updateTable("inbox")
				.set({ state: "waiting", attempts: sql`max(attempts - 1, 0)` })
				.where("turn_id", "=", turnId)
				.where("state", "=", "claimed")
				.execute();
			const begun = await trx.selectFrom("steps").select("step").where("turn_id", "=", turnId).limit(1).executeTakeFirst();
			if (!begun) {
				await trx.updateTable("inbox").set({ joined_step: null }).where("turn_id", "=", turnId).where("state", "=", "waiting").execute();
				await trx
					.updateTable("turns")
					.set({ state: "queued", started_at: null })
					.where("id", "=", turnId)
					.where("state", "=", "running")
					.execute();
			} else if (owner === holder) {
				// It has steps and waits: `started_at` says that it goes on from them.
				await trx.updateTable("turns").set({ state: "queued" }).where("id", "=", turnId).where("state", "=", "running").execute();
			}
			await trx
				.updateTable("conversations")
				.set({ lease_owner: owner, lease_until: until })
				.where("id", "=", (eb) => eb.selectFrom("turns").select("conversation_id").where("turns.id", "=", turnId))
				.execute();
		});
	}

	async function claim({ owner, leaseMs, now, background }: Parameters<InboxStore["claim"]>[0]): Promise<Claim | null> {
		const look = (on: Executor) =>
			first<Candidate>(
				on,
				`select inbox.conversation_id, inbox.turn_id from inbox join conversations on conversations.id = inbox.conversation_id
				where inbox.state = 'waiting' and inbox.priority <= ? and (conversations.lease_owner is null or conversations.lease_until <= ?)
				order by inbox.priority, inbox.position limit 1`,
				background ? 1 : 0,
				now,
			);
		// Asked after every turn, and mostly in vain: look before taking the write lock.
		if (!(await look(db))) return null;
		return write(async (trx) => {
			const candidate = await look(trx);
			if (!candidate) return null;
			const conversation = (await first<Selectable<ConversationTable>>(
				trx,
				"select * from conversations where id = ?",
				candidate.conversation_id,
			)) as Selectable<ConversationTable>;
			const waiting = await all<Selectable<InboxTable>>(
				trx,
				"select * from inbox where conversation_id = ? and state = 'waiting' order by position",
				candidate.conversation_id,
			);
			const begins = waiting.find((row) => row.turn_id === candidate.turn_id) as Selectable<InboxTable>;
			let turn = await first<Selectable<TurnTable>>(trx, "select * from turns where id = ?", candidate.turn_id);
			let turnId = candidate.turn_id;
			if (turn && turn.state !== "queued" && turn.state !== "running") {
				// The turn it hoped to join ended first: it and its like begin the next one.
				turnId = newId();
				turn = undefined;
			}
			const goesOn = turn?.state === "running" || (turn?.state === "queued" && turn.started_at !== null);
			const alike = waiting.filter(
				(row) => row.turn_id === candidate.turn_id && row.person_id === begins.person_id && row.origin === begins.origin,
			);
			// A turn that goes on takes back the rows it had; those that only hoped to join it wait for its next step boundary.
			const had = goesOn ? alike.filter((row) => row.joined_step !== null) : [];
			const mine = had.length > 0 ? had : alike;
			const ids = mine.map((row) => row.id);
			if (!turn) {
				await ensureTurn(trx, turnId, begins, now);
				await run(trx, `update messages set turn_id = ? where id in (${marks(ids)})`, turnId, ...ids);
				turn = (await first<Selectable<TurnTable>>(trx, "select * from turns where id = ?", turnId)) as Selectable<TurnTable>;
			}
			const startedAt = turn.started_at ?? now;
			await run(
				trx,
				`update inbox set state = 'claimed', turn_id = ?, attempts = attempts + 1, joined_step = coalesce(joined_step, 0) where id in (${marks(ids)})`,
				turnId,
				...ids,
			);
			await run(
				trx,
				"update conversations set lease_owner = ?, lease_until = ? where id = ?",
				owner,
				now + leaseMs,
				candidate.conversation_id,
			);
			await run(trx, "update turns set state = 'running', started_at = ? where id = ?", startedAt, turnId);
			const messages = await all<Selectable<MessageTable>>(trx, `select * from messages where id in (${marks(ids)})`, ...ids);
			const steps = goesOn ? await loadSteps(trx, turnId) : [];
			// Rows that joined after a step stand in that step.
			const rows = mine
				.filter((row) => (row.joined_step ?? 0) === 0)
				.map((row) =>
					toInboxRow(
						{ ...row, turn_id: turnId, state: "claimed", attempts: row.attempts + 1 },
						messages.find((one) => one.id === row.id) as Selectable<MessageTable>,
					),
				);
			return {
				turn: toTurnRow({ ...turn, state: "running", started_at: startedAt }),
				rows,
				steps,
				conversation: toConversationRow(conversation),
				poisoned: mine.some((row) => row.attempts >= maxAttempts),
			};
		});
	}

	return {
		accept: createAccept(write),
		claim,
		async extend(turnId, owner, until) {
			const kept = await run(
				db,
				"update conversations set lease_until = ? where lease_owner = ? and id = (select conversation_id from turns where turns.id = ?)",
				until,
				owner,
				turnId,
			);
			return kept > 0;
		},

		release: (turnId) => giveBack(turnId, null, 0),
		hold: (turnId, until) => giveBack(turnId, holder, until),
		async unhold() {
			await db.updateTable("conversations").set({ lease_owner: null, lease_until: 0 }).where("lease_owner", "=", holder).execute();
		},

		async recover() {
			return write(async (trx) => {
				await trx.updateTable("conversations").set({ lease_owner: null, lease_until: 0 }).where("lease_owner", "is not", null).execute();
				await trx.updateTable("inbox").set({ state: "waiting" }).where("state", "=", "claimed").execute();
				const { count } = await trx
					.selectFrom("turns")
					.select((eb) => eb.fn.countAll<number>().as("count"))
					.where("state", "in", ["running", "queued"])
					.executeTakeFirstOrThrow();
				return count;
			});
		},

		async waiting() {
			const rows = await db
				.selectFrom("inbox")
				.select(["priority", (eb) => eb.fn.countAll<number>().as("count")])
				.where("state", "=", "waiting")
				.groupBy("priority")
				.execute();
			const of = (priority: number) => rows.find((row) => row.priority === priority)?.count ?? 0;
			return { people: of(0), background: of(1) };
		},

		async outcome(messageId) {
			const row = await db.selectFrom("inbox").select(["turn_id", "state"]).where("id", "=", messageId).executeTakeFirst();
			return row ? { turnId: row.turn_id, state: row.state } : null;
		},

		async knows(channel, account, externalId) {
			const known = "select 1 from inbox where channel = ? and account = ? and external_id = ?";
			return (await first(db, known, channel, account, externalId)) !== undefined;
		},
	};
}
