/** Rows as people see them, with what has to be looked up for that: used by the routes and, through the composition root, by the gateway and the bus. */
import type { ConversationRow, MessageRow, Store } from "../store/store.ts";
import type { LiveBody, Message, ToolLine } from "./contract.ts";
import { toConversation, toMessage, toolLine } from "./present.ts";

export interface Presenter {
	message(row: MessageRow): Promise<Message>;
	messages(rows: MessageRow[]): Promise<Message[]>;
	/** The messages with these ids as they are now; unknown ids are left out. */
	byIds(ids: string[]): Promise<Map<string, Message>>;
	tool(record: Parameters<typeof toolLine>[0]): ToolLine;
	/** A message of a person, or an answer without tools and plan: nothing has to be looked up. */
	plain(row: MessageRow): Message;
	/** The frame that tells of a new or changed conversation. */
	conversation(row: ConversationRow, change?: "created" | "changed"): LiveBody;
}

export function createPresenter(store: Pick<Store, "messages" | "turns">): Presenter {
	async function messages(rows: MessageRow[]): Promise<Message[]> {
		const turnIds = [...new Set(rows.flatMap((row) => (row.role !== "user" && row.turnId !== null ? [row.turnId] : [])))];
		if (turnIds.length === 0) return rows.map((row) => toMessage(row));
		const [calls, turns] = await Promise.all([store.turns.calls(turnIds), Promise.all(turnIds.map((id) => store.turns.get(id)))]);
		const known = new Map(turns.flatMap((turn) => (turn ? [[turn.id, turn] as const] : [])));
		return rows.map((row) => {
			const turn = known.get(row.turnId ?? "");
			return toMessage(row, { tools: calls.get(row.turnId ?? "") ?? [], plan: turn?.plan ?? [], stopped: turn?.state === "stopped" });
		});
	}

	return {
		messages,
		message: async (row) => (await messages([row]))[0] as Message,
		async byIds(ids) {
			const rows = await Promise.all(ids.map((id) => store.messages.get(id)));
			const found = await messages(rows.filter((row) => row !== null));
			return new Map(found.map((message) => [message.id, message]));
		},
		tool: toolLine,
		plain: (row) => toMessage(row),
		conversation: (row, change = "created") => ({ type: "conversation", conversation: row.id, change, value: toConversation(row) }),
	};
}
