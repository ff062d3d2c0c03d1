import type { EventBus } from "../observe/bus.ts";
import type { Store } from "../store/store.ts";
import type { GatewayOptions } from "./gateway.ts";

/** Shows messages, and the conversations they stand in, once more: what they say was removed. */
export async function showAgain(
	ids: string[],
	parts: { store: Pick<Store, "messages" | "conversations">; bus: EventBus; present: GatewayOptions["present"] },
): Promise<void> {
	const places = new Set<string>();
	for (const id of ids) {
		const row = await parts.store.messages.get(id);
		if (!row || row.superseded) continue;
		places.add(row.conversationId);
		parts.bus.publish({ type: "message", conversation: row.conversationId, message: await parts.present.message(row) });
	}
	for (const id of places) {
		const row = await parts.store.conversations.get(id);
		if (row) parts.bus.publish(parts.present.conversation(row, "changed"));
	}
}
