/** A message's way in: one transaction that stores it and, where its conversation is free, begins its turn. */

import type { Insertable, Selectable, Transaction } from "kysely";
import type { Address } from "../../channels/channel.ts";
import type { Origin, Tier } from "../agent/types.ts";
import { toConversationRow } from "./conversations.ts";
import { clean, fromJson, noUsage, previewOf } from "./json.ts";
import { toMessageRow, toTurnMessage } from "./messages.ts";
import type { Unplaced } from "./outbox-rows.ts";
import type { ConversationTable, Database, InboxTable, MessageTable, TurnTable } from "./schema.ts";
import { all, first, insert, run } from "./sql.ts";
import type { Accepted, Claim, InboxRow, InboxStore, NewInbound } from "./store.ts";
import type { Write } from "./writer.ts";

/** The conversation was deleted before its message could be stored; nothing was. */
export class ConversationGone extends Error {
	constructor(id: string) {
		super(`there is no conversation ${id}`);
		this.name = "ConversationGone";
	}
}

const noUsageText = JSON.stringify(noUsage);

export function toInboxRow(row: Unplaced<Selectable<InboxTable>>, message: Unplaced<Selectable<MessageTable>>): InboxRow {
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

/** Makes the turn unless it is there. `startedAt`: it runs since then; null: it waits. */
export async function ensureTurn(
	trx: Transaction<Database>,
	id: string,
	of: Pick<Selectable<InboxTable>, "conversation_id" | "person_id" | "tier" | "origin" | "model">,
	at: number,
	startedAt: number | null = null,
): Promise<void> {
	const { conversation_id, person_id, tier, origin, model } = of;
	const row = {
		id,
		conversation_id,
		person_id,
		tier,
		origin,
		model,
		state: startedAt === null ? "queued" : "running",
		usage: noUsageText,
		created_at: at,
		started_at: startedAt,
	};
	await insert(trx, "turns", row as Insertable<TurnTable>, "(id) do nothing");
}

/**
 * Takes messages back. Those that nobody has begun to answer are not answered any more; an answer to nothing but what was said before
 * stays, also where it came later.
 */
async function supersede(trx: Transaction<Database>, conversationId: string, from: string, at: number): Promise<string[]> {
	const start = await first<{ position: number }>(
		trx,
		"select position from messages where id = ? and conversation_id = ?",
		from,
		conversationId,
	);
	if (!start) return [];
	const rows = await all<{ id: string }>(
		trx,
		`update messages set superseded = 1 where conversation_id = ? and position >= ? and superseded = 0
		and (role = 'user' or id = ? or turn_id is null
			or turn_id in (select turn_id from messages where conversation_id = ? and position >= ? and role = 'user')
			or turn_id not in (select turn_id from messages where conversation_id = ? and position < ? and role = 'user' and turn_id is not null))
		returning id`,
		conversationId,
		start.position,
		from,
		conversationId,
		start.position,
		conversationId,
		start.position,
	);
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

/** What was stored under this message's external id before. */
async function known(trx: Transaction<Database>, message: NewInbound): Promise<Accepted | null> {
	const row = await first<Selectable<MessageTable> & { inbox_turn: string }>(
		trx,
		`select messages.*, inbox.turn_id as inbox_turn from inbox join messages on messages.id = inbox.id
		where inbox.channel = ? and inbox.account = ? and inbox.external_id = ?`,
		message.channel,
		message.account,
		message.externalId,
	);
	return row
		? { messageId: row.id, turnId: row.inbox_turn, duplicate: true, supersededIds: [], message: toMessageRow(row), claim: null }
		: null;
}

/** Nobody works in the conversation, and nobody has waited there longer. */
const isFree = `(lease_owner is null or lease_until <= ?)
	and not exists (select 1 from inbox where inbox.conversation_id = conversations.id and inbox.state = 'waiting')`;

const touched = "updated_at = ?, preview = ?, title = case when title = '' then ? else title end";

export function createAccept(write: Write): InboxStore["accept"] {
	return (message, start) =>
		write(async (trx) => {
			const { conversationId, at } = message;
			// What is said anew must not run beside what it takes back.
			const open = message.replaces ? null : await turnFor(trx, message);
			const turnId = open ?? message.newTurnId;
			const text = clean(message.message.text);
			const begins = start !== undefined && open === null;
			const inbox: Unplaced<Selectable<InboxTable>> = {
				id: message.id,
				channel: message.channel,
				account: message.account,
				external_id: message.externalId,
				conversation_id: conversationId,
				person_id: message.personId,
				tier: message.tier,
				origin: message.origin,
				priority: message.priority,
				address: JSON.stringify(message.address),
				model: message.model,
				limits: JSON.stringify(message.limits),
				turn_id: turnId,
				joined_step: begins ? 0 : null,
				attempts: begins ? 1 : 0,
				state: begins ? "claimed" : "waiting",
				created_at: at,
			};
			const made = await insert(trx, "inbox", inbox, "(channel, account, external_id) do nothing");
			if (made === 0) return (await known(trx, message)) as Accepted;
			const supersededIds = message.replaces ? await supersede(trx, conversationId, message.replaces, at) : [];
			const preview = previewOf(text);
			const touch = [at, preview, [...preview].slice(0, 40).join("")];
			let leased: Selectable<ConversationTable> | undefined;
			if (begins) {
				[leased] = await all<Selectable<ConversationTable>>(
					trx,
					`update conversations set ${touched}, lease_owner = ?, lease_until = ? where id = ? and ${isFree} returning *`,
					...touch,
					start.owner,
					at + start.leaseMs,
					conversationId,
					at,
				);
				if (!leased) await run(trx, "update inbox set state = 'waiting', joined_step = null, attempts = 0 where id = ?", message.id);
			}
			if (!leased && (await run(trx, `update conversations set ${touched} where id = ?`, ...touch, conversationId)) === 0)
				throw new ConversationGone(conversationId);
			const startedAt = leased ? at : null;
			if (!open) await ensureTurn(trx, turnId, inbox, at, startedAt);
			const stored: Unplaced<Selectable<MessageTable>> = {
				id: message.id,
				conversation_id: conversationId,
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
			return {
				messageId: message.id,
				turnId,
				duplicate: false,
				supersededIds,
				message: toMessageRow(stored),
				claim: leased ? claimOf(message, toInboxRow(inbox, stored), leased, turnId) : null,
			};
		});
}

/** The claim of a turn that has just been made. */
function claimOf(message: NewInbound, row: InboxRow, conversation: Selectable<ConversationTable>, turnId: string): Claim {
	return {
		turn: {
			id: turnId,
			conversationId: conversation.id,
			personId: message.personId,
			tier: message.tier,
			origin: message.origin,
			state: "running",
			rounds: 0,
			plan: [],
			model: message.model,
			modelName: null,
			usage: noUsage,
			why: {},
			guard: null,
			taint: [],
			error: null,
			createdAt: message.at,
			startedAt: message.at,
			endedAt: null,
		},
		rows: [row],
		steps: [],
		conversation: toConversationRow(conversation),
		poisoned: false,
	};
}
