/** Outbox rows as they are written and read. */
import type { Selectable, Transaction } from "kysely";
import type { Address, Attachment } from "../../channels/channel.ts";
import { clean, fromJson, previewOf } from "./json.ts";
import type { Database, MessageTable, OutboxTable } from "./schema.ts";
import { first, insert, run } from "./sql.ts";
import type { NewOutbox, OutboxRow } from "./store.ts";

/** Where a row stands in its table is nothing of what is made of it. */
export type Unplaced<Row> = Omit<Row, "position">;

export function toOutboxRow(row: Unplaced<Selectable<OutboxTable>>): OutboxRow {
	return {
		id: row.id,
		conversationId: row.conversation_id,
		messageId: row.message_id,
		turnId: row.turn_id,
		channel: row.channel,
		account: row.account,
		address: fromJson<Address>(row.address, { channel: row.channel, account: row.account, conversation: row.place }),
		profile: row.profile,
		text: row.text,
		attachments: fromJson<Attachment[]>(row.attachments, []),
		state: row.state,
		attempts: row.attempts,
		notBefore: row.not_before,
		platformIds: fromJson<string[]>(row.platform_ids, []),
		error: row.error,
		createdAt: row.created_at,
		sentAt: row.sent_at,
	};
}

/** True when something else is on its way to this place: an answer must not overtake it. */
export async function isAwaited(trx: Transaction<Database>, { channel, account, conversation }: Address): Promise<boolean> {
	const waiting = "select 1 from outbox where channel = ? and account = ? and place = ? and state in ('pending', 'sending') limit 1";
	return (await first(trx, waiting, channel, account, conversation)) !== undefined;
}

/**
 * Writes an outbox row, and the message row that shows it in its conversation. `release` also frees the conversation; `sending`: the
 * caller sends it, nobody else claims it.
 */
export async function insertOutbox(
	trx: Transaction<Database>,
	row: NewOutbox,
	how: { release: boolean; sending: boolean } = { release: false, sending: false },
): Promise<{ outbox: Unplaced<Selectable<OutboxTable>>; message: Unplaced<Selectable<MessageTable>> | null }> {
	const text = clean(row.text);
	const attachments = JSON.stringify(row.attachments);
	const outbox: Unplaced<Selectable<OutboxTable>> = {
		id: row.id,
		conversation_id: row.conversationId,
		message_id: row.message?.id ?? null,
		turn_id: row.turnId,
		channel: row.address.channel,
		account: row.address.account,
		place: row.address.conversation,
		address: JSON.stringify(row.address),
		profile: row.profile,
		text,
		attachments,
		state: how.sending ? "sending" : "pending",
		attempts: how.sending ? 1 : 0,
		repeated: 0,
		not_before: 0,
		platform_ids: "[]",
		error: null,
		created_at: row.at,
		sent_at: null,
	};
	await insert(trx, "outbox", outbox);
	if (!row.message || !row.conversationId) return { outbox, message: null };
	const message: Unplaced<Selectable<MessageTable>> = {
		id: row.message.id,
		conversation_id: row.conversationId,
		role: row.message.role,
		text,
		at: row.at,
		sender: null,
		person_id: null,
		origin: "human",
		model: row.message.model,
		model_name: row.message.modelName,
		turn_id: row.message.turnId,
		attachments,
		notes: "[]",
		client_id: null,
		usage: row.message.usage ? JSON.stringify(row.message.usage) : null,
		outbox_id: row.id,
		superseded: 0,
	};
	await insert(trx, "messages", message);
	await run(
		trx,
		`update conversations set updated_at = ?, preview = ?${how.release ? ", lease_owner = null, lease_until = 0" : ""} where id = ?`,
		row.at,
		previewOf(text),
		row.conversationId,
	);
	return { outbox, message };
}
