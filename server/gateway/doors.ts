/** Who is on the way into a conversation, and which are being deleted: a message gets in before that, or not at all. */
import { GatewayError } from "../http/deps.ts";
import { createInOrder } from "./in-order.ts";

export function createDoors() {
	const inside = new Map<string, Set<Promise<unknown>>>();
	const deletions = createInOrder();
	return {
		/** Runs `work`, which stores a message. Throws `GatewayError` when the conversation is being deleted. */
		async through<T>(id: string, work: () => Promise<T>): Promise<T> {
			if (deletions.pending(id)) throw new GatewayError("conversation-not-found", `the conversation ${id} is being deleted`);
			const mine = work();
			const others = inside.get(id) ?? new Set();
			inside.set(id, others.add(mine));
			try {
				return await mine;
			} finally {
				others.delete(mine);
				if (others.size === 0 && inside.get(id) === others) inside.delete(id);
			}
		},
		/** Lets nobody in any more, waits for those who are inside, and runs `work`, which deletes the conversation. */
		close: <T>(id: string, work: () => Promise<T>): Promise<T> =>
			deletions.run(id, async () => {
				await Promise.allSettled(inside.get(id) ?? []);
				return work();
			}),
		/** Resolves when nobody deletes it any more. */
		opened: async (id: string): Promise<void> => void (await deletions.pending(id)),
	};
}
