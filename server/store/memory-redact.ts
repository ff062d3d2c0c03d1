import { type Kysely, sql } from "kysely";
import type { MemoryStore } from "./memory-store.ts";
import type { Database } from "./schema.ts";

/** What stands where a forgotten text was. */
const mark = "[removed]";
/** Shorter texts ("ok") would match what has nothing to do with them. */
const leastNeedle = 8;

/** Forgetting in the log of the conversations: messages, steps, tool calls, recorded model calls and kept events that carry a text. */
export function memoryRedaction(db: Kysely<Database>): Pick<MemoryStore, "redactMessages" | "turnOfMessage" | "messagesOf"> {
	return {
		async turnOfMessage(id) {
			const row = await db.selectFrom("messages").select(["turn_id", "conversation_id"]).where("id", "=", id).executeTakeFirst();
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

		async redactMessages(ids) {
			if (ids.length === 0) return [];
			return db.transaction().execute(async (trx) => {
				const rows = await trx
					.selectFrom("messages")
					.select(["id", "text", "turn_id", "conversation_id", "outbox_id"])
					.where("id", "in", ids)
					.execute();
				const turns = [...new Set(rows.map((row) => row.turn_id).filter((turn) => turn !== null))];
				const conversations = [...new Set(rows.map((row) => row.conversation_id))];
				await trx.updateTable("messages").set({ text: mark, attachments: "[]", notes: "[]" }).where("id", "in", ids).execute();
				await trx
					.updateTable("outbox")
					.set({ text: mark, attachments: "[]" })
					.where("message_id", "in", ids)
					.where("state", "in", ["sent", "failed", "dropped"])
					.execute();
				if (turns.length > 0) {
					await trx.updateTable("steps").set({ text: mark, reasoning: "", note: null }).where("turn_id", "in", turns).execute();
					await trx
						.updateTable("tool_calls")
						.set({ arguments: "{}", result: mark, attachments: "[]" })
						.where("turn_id", "in", turns)
						.execute();
					await trx.updateTable("turns").set({ why: "{}", plan: "[]" }).where("id", "in", turns).execute();
					await trx
						.updateTable("calls")
						.set({ request: JSON.stringify(mark), response: null })
						.where("turn_id", "in", turns)
						.execute();
				}
				for (const row of rows) {
					if (row.text.length < leastNeedle) continue;
					const needle = JSON.stringify(row.text.slice(0, 200)).slice(1, -1);
					await sql`update calls set request = ${JSON.stringify(mark)}, response = null where instr(request, ${needle}) > 0 and (conversation_id is null or conversation_id in (${sql.join(conversations)}))`.execute(
						trx,
					);
					await sql`delete from events where instr(body, ${needle}) > 0 and (conversation_id is null or conversation_id in (${sql.join(conversations)}))`.execute(
						trx,
					);
					await sql`update conversations set preview = null where id in (${sql.join(conversations)}) and preview is not null and instr(${row.text}, substr(preview, 1, 40)) > 0`.execute(
						trx,
					);
				}
				return rows.map((row) => row.text);
			});
		},
	};
}
