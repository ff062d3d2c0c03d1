import type { Kysely, Selectable } from "kysely";
import type { Attachment } from "../../channels/channel.ts";
import type { Origin, TurnMessage } from "../agent/types.ts";
import { fromJson } from "./json.ts";
import type { Unplaced } from "./outbox-rows.ts";
import type { Database, MessageTable, OutboxTable } from "./schema.ts";
import { all, first, marks } from "./sql.ts";
import type { MessageRow, MessageStore } from "./store.ts";

type Row = Unplaced<Selectable<MessageTable>> & { delivery?: OutboxTable["state"] | null };

export function toMessageRow(row: Row): MessageRow {
	return {
		id: row.id,
		conversationId: row.conversation_id,
		role: row.role,
		text: row.text,
		at: row.at,
		from: row.sender,
		personId: row.person_id,
		origin: row.origin as Origin,
		model: row.model,
		modelName: row.model_name,
		turnId: row.turn_id,
		attachments: fromJson<Attachment[]>(row.attachments, []),
		notes: fromJson<string[]>(row.notes, []),
		clientId: row.client_id,
		usage: fromJson<MessageRow["usage"]>(row.usage, null),
		outboxId: row.outbox_id,
		delivery: row.delivery ?? null,
		superseded: row.superseded === 1,
	};
}

export function toTurnMessage(row: Unplaced<Selectable<MessageTable>>): TurnMessage {
	return {
		id: row.id,
		text: row.text,
		from: row.sender,
		at: row.at,
		attachments: fromJson<Attachment[]>(row.attachments, []),
		notes: fromJson<string[]>(row.notes, []),
	};
}

export function createMessages(db: Kysely<Database>): MessageStore {
	const withDelivery = () =>
		db
			.selectFrom("messages")
			.leftJoin("outbox", "outbox.id", "messages.outbox_id")
			.selectAll("messages")
			.select("outbox.state as delivery");

	return {
		async get(id) {
			const row = await first<Row>(
				db,
				"select messages.*, outbox.state as delivery from messages left join outbox on outbox.id = messages.outbox_id where messages.id = ?",
				id,
			);
			return row ? toMessageRow(row) : null;
		},

		async list(conversationId, page) {
			let query = withDelivery()
				.where("messages.conversation_id", "=", conversationId)
				.orderBy("messages.position", "desc")
				.limit(page.limit);
			if (page.before)
				query = query.where("messages.position", "<", (eb) =>
					eb
						.selectFrom("messages as b")
						.select("b.position")
						.where("b.id", "=", page.before as string),
				);
			if (!page.superseded) query = query.where("messages.superseded", "=", 0);
			return (await query.execute()).reverse().map(toMessageRow);
		},

		async exchanges(conversationId, limit) {
			const finished = "from messages where conversation_id = ? and role = 'assistant' and superseded = 0 and turn_id is not null";
			const { count } = (await first<{ count: number }>(db, `select count(*) as count ${finished}`, conversationId)) ?? { count: 0 };
			const answers = (
				await all<Selectable<MessageTable>>(db, `select * ${finished} order by position desc limit ?`, conversationId, limit)
			).reverse();
			if (answers.length === 0) return { exchanges: [], count };
			const turnIds = answers.map((row) => row.turn_id as string);
			const asked = await all<Selectable<MessageTable>>(
				db,
				`select * from messages where turn_id in (${marks(turnIds)}) and role = 'user' and superseded = 0 order by position`,
				...turnIds,
			);
			return {
				count,
				exchanges: answers.map((answer) => ({
					user: asked.filter((row) => row.turn_id === answer.turn_id).map(toMessageRow),
					assistant: toMessageRow(answer),
				})),
			};
		},

		async ofTurn(turnId) {
			return (await withDelivery().where("messages.turn_id", "=", turnId).orderBy("messages.position").execute()).map(toMessageRow);
		},

		async replyOf(turnId) {
			const row = await withDelivery()
				.where("messages.turn_id", "=", turnId)
				.where("messages.role", "!=", "user")
				.orderBy("messages.position", "desc")
				.executeTakeFirst();
			return row ? toMessageRow(row) : null;
		},
	};
}
