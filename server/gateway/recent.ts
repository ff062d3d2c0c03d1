import { saidOf } from "../agent/prompt.ts";
import type { Exchange } from "../agent/types.ts";
import type { Store } from "../store/store.ts";

/** Finished exchanges from the message log, as memory would have kept them. */
export async function recentExchanges(
	store: Pick<Store, "messages" | "conversations">,
	conversationId: string,
	limit: number,
): Promise<Exchange[]> {
	const { exchanges } = await store.messages.exchanges(conversationId, limit);
	const conversation = await store.conversations.get(conversationId);
	return exchanges.map(({ user, assistant }) => ({
		id: assistant.turnId ?? assistant.id,
		at: user[0]?.at ?? assistant.at,
		channel: conversation?.channel ?? "web",
		from: user[0]?.from ?? null,
		said: saidOf(user),
		replied: assistant.text,
	}));
}
