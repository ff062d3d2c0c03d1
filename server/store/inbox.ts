import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { Address } from "../../channels/channel.ts";
import type { Origin, Tier } from "../agent/types.ts";
import { toConversationRow } from "./conversations.ts";
import { clean, fromJson, noUsage, previewOf } from "./json.ts";
import { toMessageRow, toTurnMessage } from "./messages.ts";
import type { ConversationTable, Database, InboxTable, MessageTable, TurnTable } from "./schema.ts";
import { all, type Executor, first, insert, marks, run } from "./sql.ts";
import { loadSteps } from "./steps.ts";
import type { Accepted, Claim, InboxRow, InboxStore, NewInbound } from "./store.ts";
import { toTurnRow } from "./turn-rows.ts";
import type { Write } from "./writer.ts";

/** A message that was running in this many processes when they died is not run again. */
const maxAttempts = 2;
/** Owner of leases that stand for waiting, not for work. */
export const holder = "hold";

const noUsageText = JSON.stringify(noUsage);

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
async function turnFor(trx: Transaction<Database>, message: NewInbound): Promise<string | null> {
	const open = await all<{ id: string; state: string }>(
		trx,
		"select id, state from turns where conversation_id = ? and state in ('queued', 'running') and person_id = ? and origin = ?",
		message.conversationId,
		message.personId,
		message.origin,
	);
	return (open.find((turn) => turn.state === "queued") ?? open[0])?.id ?? null;
}

async function ensureTurn(
	trx: Transaction<Database>,
	id: string,
	of: Pick<Selectable<InboxTable>, "conversation_id" | "person_id" | "tier" | "origin" | "model">,
	at: number,
): Promise<void> {
	const { conversation_id, person_id, tier, origin, model } = of;
	await insert(
		trx,
		"turns",
		{ id, conversation_id, person_id, tier, origin, model, state: "queued", usage: noUsageText, created_at: at } as Insertable<TurnTable>,
		"(id) do nothing",
	);
}

/** Takes messages back. Those that nobody has begun to answer are not answered any more. */
async function supersede(trx: Transaction<Database>, conversationId: string, from: string, at: number): Promise<string[]> {
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
	const back = "in (select id from messages where conversation_id = ? and position >= ? and superseded = 1)";
	await run(trx, `update inbox set state = 'done' where state = 'waiting' and id ${back}`, conversationId, start.position);
	await run(
		trx,
		`update turns set state = 'stopped', ended_at = ? where conversation_id = ? and state = 'queued'
		and not exists (select 1 from inbox where inbox.turn_id = turns.id and inbox.state in ('waiting', 'claimed'))`,
		at,
		conversationId,
	);
	return rows.map((row) => row.id);
}

export function createInbox(db: Kysely<Database>, write: Write, newId: () => string): InboxStore {
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

	function accept(message: NewInbound): Promise<Accepted> {
		return write(async (trx) => {
			// What is said anew must not run beside what it takes back.
			const open = message.replaces ? null : await turnFor(trx, message);
			const turnId = open ?? message.newTurnId;
			const row: Insertable<InboxTable> = {
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
			};
			const made = await insert(trx, "inbox", row, "(channel, account, external_id) do nothing");
			if (made === 0) return (await known(trx, message)) as Accepted;
			const supersededIds = message.replaces ? await supersede(trx, message.conversationId, message.replaces, message.at) : [];
			if (!open) await ensureTurn(trx, turnId, { ...row, model: message.model }, message.at);
			const text = clean(message.message.text);
			const stored: Insertable<MessageTable> = {
				id: message.id,
				conversation_id: message.conversationId,
				role: "user",
				text,
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
			};
			await insert(trx, "messages", stored);
			const preview = previewOf(text);
			await run(
				trx,
				"update conversations set updated_at = ?, preview = ?, title = case when title = '' then ? else title end where id = ?",
				message.at,
				preview,
				[...preview].slice(0, 40).join(""),
				message.conversationId,
			);
			return {
				messageId: message.id,
				turnId,
				duplicate: false,
				supersededIds,
				message: toMessageRow({ ...stored, position: 0 } as Selectable<MessageTable>),
			};
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
		accept,
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
	};
}
