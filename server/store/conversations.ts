import { type Kysely, type Selectable, sql } from "kysely";
import type { Address } from "../../channels/channel.ts";
import { clean, fromJson } from "./json.ts";
import type { ConversationTable, Database } from "./schema.ts";
import { first, run } from "./sql.ts";
import type { ConversationRow, ConversationStore } from "./store.ts";

export function toConversationRow(row: Selectable<ConversationTable>): ConversationRow {
	return {
		id: row.id,
		title: row.title,
		titled: row.titled === 1,
		channel: row.channel,
		address: fromJson<Address>(row.address, { channel: row.channel, account: row.account, conversation: row.place }),
		personId: row.person_id,
		groupId: row.group_id,
		pinned: row.pinned === 1,
		model: row.model,
		createdAt: row.created_at,
		updatedAt: row.updated_at,
		preview: row.preview,
	};
}

/** A LIKE pattern that finds `text` literally. */
const containing = (text: string) => `%${text.replace(/[\\%_]/g, "\\$&")}%`;

export function createConversations(db: Kysely<Database>): ConversationStore {
	const get = async (id: string) => {
		const row = await first<Selectable<ConversationTable>>(db, "select * from conversations where id = ?", id);
		return row ? toConversationRow(row) : null;
	};
	const byAddress = async (channel: string, account: string, place: string) => {
		const row = await db
			.selectFrom("conversations")
			.selectAll()
			.where("channel", "=", channel)
			.where("account", "=", account)
			.where("place", "=", place)
			.executeTakeFirst();
		return row ? toConversationRow(row) : null;
	};

	return {
		get,
		byAddress,

		async create(row) {
			const address = row.address;
			await db
				.insertInto("conversations")
				.values({
					id: row.id,
					title: clean(row.title),
					titled: row.titled ? 1 : 0,
					channel: address.channel,
					account: address.account,
					place: address.conversation,
					address: JSON.stringify(address),
					person_id: row.personId,
					group_id: row.groupId,
					pinned: 0,
					model: null,
					created_at: row.at,
					updated_at: row.at,
					preview: null,
					lease_owner: null,
					lease_until: 0,
				})
				// Two messages may open the same place at once: the first one's row counts.
				.onConflict((conflict) => conflict.columns(["channel", "account", "place"]).doNothing())
				.execute();
			return (await byAddress(address.channel, address.account, address.conversation)) as ConversationRow;
		},

		async list(filter) {
			let query = db
				.selectFrom("conversations")
				.selectAll()
				.select((eb) =>
					eb
						.selectFrom("turns")
						.select((turn) => turn.fn.max<string>("turns.state").as("state"))
						.whereRef("turns.conversation_id", "=", "conversations.id")
						// 'running' sorts after 'queued': the maximum says what counts.
						.where("turns.state", "in", ["queued", "running"])
						.as("busy"),
				)
				.orderBy("pinned", "desc")
				.orderBy("updated_at", "desc")
				.limit(filter.limit ?? 200);
			if (filter.before !== undefined) query = query.where("updated_at", "<", filter.before);
			if (filter.query) {
				const pattern = containing(filter.query);
				query = query.where((eb) =>
					eb.or([
						sql<boolean>`conversations.title like ${pattern} escape '\\'`,
						eb.exists(
							eb
								.selectFrom("messages")
								.select("messages.id")
								.whereRef("messages.conversation_id", "=", "conversations.id")
								.where("messages.superseded", "=", 0)
								.where(sql<boolean>`messages.text like ${pattern} escape '\\'`),
						),
					]),
				);
			}
			return (await query.execute()).map((row) => ({ ...toConversationRow(row), busy: (row.busy as "queued" | "running" | null) ?? null }));
		},

		async update(id, change) {
			const values: Partial<Selectable<ConversationTable>> = {};
			if (change.title !== undefined) Object.assign(values, { title: clean(change.title), titled: 1 });
			if (change.pinned !== undefined) values.pinned = change.pinned ? 1 : 0;
			if (change.model !== undefined) values.model = change.model;
			if (Object.keys(values).length > 0) await db.updateTable("conversations").set(values).where("id", "=", id).execute();
			return get(id);
		},

		async remove(id) {
			return db.transaction().execute(async (trx) => {
				const turns = trx.selectFrom("turns").select("id").where("conversation_id", "=", id);
				await trx.deleteFrom("tool_calls").where("turn_id", "in", turns).execute();
				await trx.deleteFrom("steps").where("turn_id", "in", turns).execute();
				await trx.deleteFrom("turns").where("conversation_id", "=", id).execute();
				await trx.deleteFrom("inbox").where("conversation_id", "=", id).execute();
				await trx.deleteFrom("outbox").where("conversation_id", "=", id).execute();
				await trx.deleteFrom("messages").where("conversation_id", "=", id).execute();
				await trx.deleteFrom("events").where("conversation_id", "=", id).execute();
				await run(trx, "delete from approvals where conversation_id = ?", id);
				// The money was spent: call rows stay for the sums, what was said goes.
				await trx
					.deleteFrom("call_requests")
					.where("position", "in", trx.selectFrom("calls").select("position").where("conversation_id", "=", id))
					.execute();
				await run(trx, "update calls set response = null, bytes = 0, head = null where conversation_id = ?", id);
				const gone = await trx.deleteFrom("conversations").where("id", "=", id).executeTakeFirst();
				return gone.numDeletedRows > 0n;
			});
		},
	};
}
