import { type Kysely, type Selectable, sql, type Transaction } from "kysely";
import type { Address, Attachment } from "../../channels/channel.ts";
import { clean, fromJson, previewOf } from "./json.ts";
import type { Database, OutboxTable } from "./schema.ts";
import type { NewOutbox, OutboxRow, OutboxStore } from "./store.ts";

export function toOutboxRow(row: Selectable<OutboxTable>): OutboxRow {
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

/** Writes an outbox row, and the message row that shows it in its conversation. */
export async function insertOutbox(trx: Transaction<Database>, row: NewOutbox): Promise<Selectable<OutboxTable>> {
	const text = clean(row.text);
	const attachments = JSON.stringify(row.attachments);
	const stored = await trx
		.insertInto("outbox")
		.values({
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
			state: "pending",
			attempts: 0,
			repeated: 0,
			not_before: 0,
			platform_ids: "[]",
			error: null,
			created_at: row.at,
			sent_at: null,
		})
		.returningAll()
		.executeTakeFirstOrThrow();
	if (row.message && row.conversationId) {
		await trx
			.insertInto("messages")
			.values({
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
			})
			.execute();
		await trx
			.updateTable("conversations")
			.set({ updated_at: row.at, preview: previewOf(text) })
			.where("id", "=", row.conversationId)
			.execute();
	}
	return stored;
}

export function createOutbox(db: Kysely<Database>): OutboxStore {
	const get = async (id: string) => {
		const row = await db.selectFrom("outbox").selectAll().where("id", "=", id).executeTakeFirst();
		return row ? toOutboxRow(row) : null;
	};
	/** The lane's next row: of each place only its oldest unsent row counts, so that an answer never overtakes another. */
	const firsts = (channel: string, account: string) =>
		db
			.selectFrom("outbox")
			.selectAll()
			.where("channel", "=", channel)
			.where("account", "=", account)
			.where("state", "in", ["pending", "sending"])
			.where(
				"position",
				"in",
				db
					.selectFrom("outbox")
					.select((eb) => eb.fn.min("position").as("position"))
					.where("channel", "=", channel)
					.where("account", "=", account)
					.where("state", "in", ["pending", "sending"])
					.groupBy("place"),
			)
			.where("state", "=", "pending");

	return {
		get,

		async add(row) {
			return toOutboxRow(await db.transaction().execute((trx) => insertOutbox(trx, row)));
		},

		async claim(channel, account, now) {
			const row = await firsts(channel, account).where("not_before", "<=", now).orderBy("position").limit(1).executeTakeFirst();
			if (!row) return null;
			const claimed = await db
				.updateTable("outbox")
				.set({ state: "sending", attempts: sql`attempts + 1` })
				.where("id", "=", row.id)
				.where("state", "=", "pending")
				.returningAll()
				.executeTakeFirst();
			return claimed ? toOutboxRow(claimed) : null;
		},

		async nextDue(channel, account) {
			const row = await firsts(channel, account).clearSelect().select("not_before").orderBy("not_before").limit(1).executeTakeFirst();
			return row?.not_before ?? null;
		},

		async settle(id, receipt) {
			await db.transaction().execute(async (trx) => {
				const row = await trx
					.updateTable("outbox")
					.set({
						state: receipt.state,
						error: receipt.error ?? null,
						...(receipt.platformIds ? { platform_ids: JSON.stringify(receipt.platformIds) } : {}),
						...(receipt.notBefore === undefined ? {} : { not_before: receipt.notBefore }),
						...(receipt.text === undefined ? {} : { text: clean(receipt.text) }),
						...(receipt.state === "sent" ? { sent_at: receipt.at } : {}),
					})
					.where("id", "=", id)
					// A person may have dropped it meanwhile: that decision stands.
					.where("state", "!=", "dropped")
					.returning(["message_id"])
					.executeTakeFirst();
				// What the filter changed is what was said: the conversation shows the same.
				if (row?.message_id && receipt.text !== undefined)
					await trx
						.updateTable("messages")
						.set({ text: clean(receipt.text) })
						.where("id", "=", row.message_id)
						.execute();
			});
		},

		async recover(now) {
			return db.transaction().execute(async (trx) => {
				await trx
					.updateTable("outbox")
					.set({ state: "unknown", error: "the service stopped twice while this was being sent" })
					.where("state", "=", "sending")
					.where("repeated", "=", 1)
					.execute();
				const again = await trx
					.updateTable("outbox")
					.set({
						state: "pending",
						repeated: 1,
						not_before: now,
						error: "the service stopped while this was being sent; it is sent once more",
					})
					.where("state", "=", "sending")
					.executeTakeFirst();
				return Number(again.numUpdatedRows);
			});
		},

		async lanes() {
			return db.selectFrom("outbox").select(["channel", "account"]).distinct().where("state", "=", "pending").execute();
		},

		async list(filter) {
			let query = db.selectFrom("outbox").selectAll().orderBy("position", "desc").limit(filter.limit);
			if (filter.state) query = query.where("state", "=", filter.state);
			if (filter.before)
				query = query.where("position", "<", (eb) =>
					eb
						.selectFrom("outbox as b")
						.select("b.position")
						.where("b.id", "=", filter.before as string),
				);
			return (await query.execute()).map(toOutboxRow);
		},

		async decide(id, decision, now) {
			const from = { retry: ["failed", "unknown", "dropped"], release: ["held"], drop: ["pending", "held", "failed", "unknown"] } as const;
			const result = await db
				.updateTable("outbox")
				.set(
					decision === "drop"
						? { state: "dropped" }
						: { state: "pending", not_before: now, attempts: 0, error: null, ...(decision === "release" ? { profile: "released" } : {}) },
				)
				.where("id", "=", id)
				.where("state", "in", [...from[decision]])
				.executeTakeFirst();
			return result.numUpdatedRows > 0n ? get(id) : null;
		},
	};
}
