import type { Kysely } from "kysely";
import type { MemoryStore } from "./memory-store.ts";
import type { Database } from "./schema.ts";
import { mark } from "./turns-redact.ts";

/** Forgetting in the log of the conversations: what was said and answered. */
export function memoryRedaction(
	db: Kysely<Database>,
): Pick<MemoryStore, "redactMessages" | "turnOfMessage" | "ownerOf" | "messagesOf" | "messageTexts"> {
	return {
		async turnOfMessage(id) {
			const rows = await db
				.selectFrom("messages")
				.select(["turn_id", "conversation_id"])
				.where((eb) => eb.or([eb("id", "=", id), eb("turn_id", "=", id)]))
				.limit(1)
				.execute();
			const row = rows[0];
			if (!row) return null;
			const mates = row.turn_id
				? await db.selectFrom("messages").select("id").where("turn_id", "=", row.turn_id).orderBy("position").execute()
				: [];
			return {
				turnId: row.turn_id,
				conversationId: row.conversation_id,
				messageIds: mates.length > 0 ? mates.map((mate) => mate.id) : [id],
			};
		},

		async ownerOf(conversationId, turnId) {
			const place = await db
				.selectFrom("conversations")
				.select(["group_id", "person_id"])
				.where("id", "=", conversationId)
				.executeTakeFirst();
			if (!place) return null;
			if (place.group_id !== null) return { owner: `group:${place.group_id}`, audience: "group" };
			const turn = turnId ? await db.selectFrom("turns").select("person_id").where("id", "=", turnId).executeTakeFirst() : undefined;
			return { owner: turn?.person_id ?? place.person_id, audience: "private" };
		},

		async messagesOf(owner, limit) {
			let query = db
				.selectFrom("messages")
				.innerJoin("turns", "turns.id", "messages.turn_id")
				.select("messages.id")
				.where("messages.text", "!=", mark)
				.orderBy("messages.position")
				.limit(limit);
			query = owner.startsWith("group:")
				? query
						.innerJoin("conversations", "conversations.id", "messages.conversation_id")
						.where("conversations.group_id", "=", owner.slice("group:".length))
				: query.where("turns.person_id", "=", owner);
			return (await query.execute()).map((row) => row.id);
		},

		async messageTexts(ids) {
			const rows: { id: string; turnId: string | null; role: "user" | "assistant" | "system"; text: string }[] = [];
			for (let at = 0; at < ids.length; at += 200)
				rows.push(
					...(await db
						.selectFrom("messages")
						.select(["id", "turn_id as turnId", "role", "text"])
						.where("id", "in", ids.slice(at, at + 200))
						.orderBy("position")
						.execute()),
				);
			return rows.filter((row) => row.text !== mark);
		},

		async redactMessages(ids) {
			for (let at = 0; at < ids.length; at += 200) {
				const some = ids.slice(at, at + 200);
				await db.transaction().execute(async (trx) => {
					await trx.updateTable("messages").set({ text: mark, attachments: "[]", notes: "[]" }).where("id", "in", some).execute();
					await trx
						.updateTable("outbox")
						.set({ text: mark, attachments: "[]" })
						.where("message_id", "in", some)
						.where("state", "in", ["sent", "failed", "dropped"])
						.execute();
				});
			}
		},
	};
}
