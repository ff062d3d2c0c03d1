import { type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { Address } from "../../channels/channel.ts";
import type { Origin, Tier } from "../agent/types.ts";
import { toConversationRow } from "./conversations.ts";
import { clean, fromJson, noUsage, previewOf } from "./json.ts";
import { toMessageRow, toTurnMessage } from "./messages.ts";
import type { ConversationTable, Database, InboxTable, MessageTable, TurnTable } from "./schema.ts";
import { loadSteps } from "./steps.ts";
import type { Accepted, InboxRow, InboxStore, NewInbound } from "./store.ts";
import { toTurnRow } from "./turn-rows.ts";

/** A message that was running in this many processes when they died is not run again. */
const maxAttempts = 2;
/** Owner of leases that stand for waiting, not for work. */
const holder = "hold";

/** Rows sort by (conversation leased?, priority, arrival). */
interface Candidate {
	conversation_id: string;
	turn_id: string;
}

function toInboxRow(row: Selectable<InboxTable>, message: Selectable<MessageTable>): InboxRow {
	return {
		id: row.id,
		channel: row.channel,
		account: row.account,
		externalId: row.external_id,
		conversationId: row.conversation_id,
		personId: row.person_id,
		tier: row.tier as Tier,
		origin: row.origin as Origin,
		priority: row.priority,
		address: fromJson<Address>(row.address, { channel: row.channel, account: row.account, conversation: row.conversation_id }),
		model: row.model,
		limits: fromJson(row.limits, {}),
		turnId: row.turn_id,
		attempts: row.attempts,
		state: row.state,
		message: toTurnMessage(message),
		createdAt: row.created_at,
	};
}

/** The turn that a new message of this person belongs to: one that waits (they run together), else the running one it may join. */
async function turnFor(trx: Transaction<Database>, message: NewInbound): Promise<string> {
	const open = await trx
		.selectFrom("turns")
		.select(["id", "state"])
		.where("conversation_id", "=", message.conversationId)
		.where("state", "in", ["queued", "running"])
		.where("person_id", "=", message.personId)
		.where("origin", "=", message.origin)
		.execute();
	return (open.find((turn) => turn.state === "queued") ?? open.find((turn) => turn.state === "running"))?.id ?? message.newTurnId;
}

async function ensureTurn(
	trx: Transaction<Database>,
	id: string,
	of: { conversation_id: string; person_id: string; tier: string; origin: string },
	model: string | null,
	at: number,
) {
	await trx
		.insertInto("turns")
		.values({
			id,
			conversation_id: of.conversation_id,
			person_id: of.person_id,
			tier: of.tier,
			origin: of.origin,
			state: "queued",
			rounds: 0,
			plan: "[]",
			model,
			model_name: null,
			usage: JSON.stringify(noUsage),
			why: "{}",
			guard: null,
			taint: "[]",
			error: null,
			created_at: at,
			started_at: null,
			ended_at: null,
		})
		.onConflict((conflict) => conflict.column("id").doNothing())
		.execute();
}

async function supersede(trx: Transaction<Database>, conversationId: string, from: string): Promise<string[]> {
	const start = await trx
		.selectFrom("messages")
		.select("position")
		.where("id", "=", from)
		.where("conversation_id", "=", conversationId)
		.executeTakeFirst();
	if (!start) return [];
	const rows = await trx
		.updateTable("messages")
		.set({ superseded: 1 })
		.where("conversation_id", "=", conversationId)
		.where("position", ">=", start.position)
		.where("superseded", "=", 0)
		.returning("id")
		.execute();
	return rows.map((row) => row.id);
}

export function createInbox(db: Kysely<Database>, newId: () => string): InboxStore {
	async function known(trx: Transaction<Database>, message: NewInbound): Promise<Accepted | null> {
		const row = await trx
			.selectFrom("inbox")
			.innerJoin("messages", "messages.id", "inbox.id")
			.selectAll("messages")
			.select("inbox.turn_id as inbox_turn")
			.where("inbox.channel", "=", message.channel)
			.where("inbox.account", "=", message.account)
			.where("inbox.external_id", "=", message.externalId)
			.executeTakeFirst();
		return row ? { messageId: row.id, turnId: row.inbox_turn, duplicate: true, supersededIds: [], message: toMessageRow(row) } : null;
	}

	/** Rows wait again, as if they had not been claimed; a turn without a step is queued again. The conversation is free, or leased to `owner`. */
	async function giveBack(turnId: string, owner: string | null, until: number): Promise<void> {
		await db.transaction().execute(async (trx) => {
			await trx
				.updateTable("inbox")
				.set({ state: "waiting", attempts: sql`max(attempts - 1, 0)` })
				.where("turn_id", "=", turnId)
				.where("state", "=", "claimed")
				.execute();
			const begun = await trx.selectFrom("steps").select("step").where("turn_id", "=", turnId).limit(1).executeTakeFirst();
			if (!begun) {
				await trx.updateTable("inbox").set({ joined_step: null }).where("turn_id", "=", turnId).where("state", "=", "waiting").execute();
				await trx.updateTable("turns").set({ state: "queued", started_at: null }).where("id", "=", turnId).where("state", "=", "running").execute();
			}
			await trx
				.updateTable("conversations")
				.set({ lease_owner: owner, lease_until: until })
				.where("id", "=", (eb) => eb.selectFrom("turns").select("conversation_id").where("turns.id", "=", turnId))
				.execute();
		});
	}

	return {
		accept(message) {
			return db.transaction().execute(async (trx) => {
				const before = await known(trx, message);
				if (before) return before;
				const supersededIds = message.replaces ? await supersede(trx, message.conversationId, message.replaces) : [];
				const turnId = await turnFor(trx, message);
				if (turnId === message.newTurnId)
					await ensureTurn(
						trx,
						turnId,
						{ conversation_id: message.conversationId, person_id: message.personId, tier: message.tier, origin: message.origin },
						message.model,
						message.at,
					);
				const stored = await trx
					.insertInto("messages")
					.values({
						id: message.id,
						conversation_id: message.conversationId,
						role: "user",
						text: clean(message.message.text),
						at: message.message.at,
						sender: message.from,
						person_id: message.personId,
						origin: message.origin,
						model: null,
						model_name: null,
						turn_id: turnId,
						attachments: JSON.stringify(message.message.attachments),
						notes: JSON.stringify(message.message.notes),
						client_id: message.clientId,
						usage: null,
						outbox_id: null,
						superseded: 0,
					})
					.returningAll()
					.executeTakeFirstOrThrow();
				await trx
					.insertInto("inbox")
					.values({
						id: message.id,
						channel: message.channel,
						account: message.account,
						external_id: message.externalId,
						conversation_id: message.conversationId,
						person_id: message.personId,
						tier: message.tier,
						origin: message.origin,
						priority: message.priority,
						address: JSON.stringify(message.address),
						model: message.model,
						limits: JSON.stringify(message.limits),
						turn_id: turnId,
						joined_step: null,
						attempts: 0,
						state: "waiting",
						created_at: message.at,
					})
					.execute();
				const preview = previewOf(message.message.text);
				await trx
					.updateTable("conversations")
					.set({
						updated_at: message.at,
						preview,
						title: sql`case when title = '' then ${[...preview].slice(0, 40).join("")} else title end`,
					})
					.where("id", "=", message.conversationId)
					.execute();
				return { messageId: message.id, turnId, duplicate: false, supersededIds, message: toMessageRow(stored) };
			});
		},

		claim({ owner, leaseMs, now, background }) {
			return db.transaction().execute(async (trx) => {
				const next = await sql<Candidate>`
					select inbox.conversation_id, inbox.turn_id from inbox join conversations on conversations.id = inbox.conversation_id
					where inbox.state = 'waiting' and inbox.priority <= ${background ? 1 : 0} and (conversations.lease_owner is null or conversations.lease_until <= ${now})
					order by inbox.priority, inbox.position limit 1`.execute(trx);
				const candidate = next.rows[0];
				if (!candidate) return null;
				const waiting = await trx
					.selectFrom("inbox")
					.selectAll()
					.where("conversation_id", "=", candidate.conversation_id)
					.where("state", "=", "waiting")
					.orderBy("position")
					.execute();
				const first = waiting.find((row) => row.turn_id === candidate.turn_id) as Selectable<InboxTable>;
				let turn = await trx.selectFrom("turns").selectAll().where("id", "=", candidate.turn_id).executeTakeFirst();
				let turnId = candidate.turn_id;
				if (turn && turn.state !== "queued" && turn.state !== "running") {
					// The turn it hoped to join ended first: it and its like begin the next one.
					turnId = newId();
					turn = undefined;
				}
				const alike = waiting.filter(
					(row) => row.turn_id === candidate.turn_id && row.person_id === first.person_id && row.origin === first.origin,
				);
				// A turn that goes on takes back the rows it had; those that only hoped to join it wait for its next step boundary.
				const had = turn?.state === "running" ? alike.filter((row) => row.joined_step !== null) : [];
				const mine = had.length > 0 ? had : alike;
				const ids = mine.map((row) => row.id);
				if (!turn) {
					await ensureTurn(trx, turnId, first, first.model, now);
					await trx.updateTable("messages").set({ turn_id: turnId }).where("id", "in", ids).execute();
				}
				const poisoned = mine.some((row) => row.attempts >= maxAttempts);
				await trx
					.updateTable("inbox")
					.set({ state: "claimed", turn_id: turnId, attempts: sql`attempts + 1`, joined_step: sql`coalesce(joined_step, 0)` })
					.where("id", "in", ids)
					.execute();
				await trx
					.updateTable("conversations")
					.set({ lease_owner: owner, lease_until: now + leaseMs })
					.where("id", "=", candidate.conversation_id)
					.execute();
				const started = await trx
					.updateTable("turns")
					.set({ state: "running", started_at: sql`coalesce(started_at, ${now})` })
					.where("id", "=", turnId)
					.returningAll()
					.executeTakeFirstOrThrow();
				const messages = await trx.selectFrom("messages").selectAll().where("id", "in", ids).execute();
				const conversation = (await trx
					.selectFrom("conversations")
					.selectAll()
					.where("id", "=", candidate.conversation_id)
					.executeTakeFirst()) as Selectable<ConversationTable>;
				const steps = turn?.state === "running" ? await loadSteps(trx, turnId) : [];
				// Rows that joined after a step stand in that step.
				const rows = mine
					.filter((row) => (row.joined_step ?? 0) === 0)
					.map((row) =>
						toInboxRow(
							{ ...row, turn_id: turnId, state: "claimed", attempts: row.attempts + 1 },
							messages.find((one) => one.id === row.id) as Selectable<MessageTable>,
						),
					);
				return { turn: toTurnRow(started as Selectable<TurnTable>), rows, steps, conversation: toConversationRow(conversation), poisoned };
			});
		},

		async extend(turnId, owner, until) {
			const result = await db
				.updateTable("conversations")
				.set({ lease_until: until })
				.where("lease_owner", "=", owner)
				.where("id", "=", (eb) => eb.selectFrom("turns").select("conversation_id").where("turns.id", "=", turnId))
				.executeTakeFirst();
			return result.numUpdatedRows > 0n;
		},

		release: (turnId) => giveBack(turnId, null, 0),
		hold: (turnId, until) => giveBack(turnId, holder, until),
		async unhold() {
			await db.updateTable("conversations").set({ lease_owner: null, lease_until: 0 }).where("lease_owner", "=", holder).execute();
		},

		async recover() {
			return db.transaction().execute(async (trx) => {
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
	};
}
