import type { Exchange } from "../../server/agent/types.ts";
import type { Memory } from "../../server/memory/memory.ts";
import type { Store } from "../../server/store/store.ts";

/**
 * For tests of other rooms: memory made of the stored messages alone: the conversation's last exchanges, the window moving `step` at a time so that
 * a request's beginning stays the same from turn to turn. Nothing is summarised or recalled.
 */
export function createMessageMemory(options: { store: Pick<Store, "messages">; exchanges: number; step: number }): Memory {
	const { store, exchanges: most, step } = options;
	return {
		async history(scope) {
			const found = await store.messages.exchanges(scope.conversationId, most);
			const leftOut = found.count <= most ? 0 : Math.ceil((found.count - most) / step) * step;
			const wanted = found.count - leftOut;
			return found.exchanges.slice(found.exchanges.length - wanted).map(
				({ user, assistant }): Exchange => ({
					id: assistant.turnId ?? assistant.id,
					at: user[0]?.at ?? assistant.at,
					channel: "web",
					from: user[0]?.from ?? null,
					said: user.map((message) => message.text).join("\n\n"),
					replied: assistant.text,
				}),
			);
		},
		blocks: async () => [],
		recall: async () => [],
		takenBack: () => undefined,
		remember: async () => undefined,
		stop: async () => undefined,
	};
}
