import type { Memory, Recalled, Scope } from "../memory/memory.ts";

/** Looks asked for and not taken: a turn that waits long asks again. */
const most = 200;

/** Recall that begins when a message comes in, beside its being stored, so that the turn finds it done. */
export function createEarlyRecall(memory: Pick<Memory, "recall">) {
	const begun = new Map<string, { text: string; found: Promise<Recalled[]> }>();
	return {
		begin(messageId: string, scope: Scope, text: string): void {
			const found = memory.recall(scope, text);
			// Whoever takes it sees the failure; nobody may ever take it.
			found.catch(() => undefined);
			if (begun.size >= most) begun.delete(begun.keys().next().value as string);
			begun.set(messageId, { text, found });
		},
		/** What was begun for a turn of just this message; null when nothing was, or when the turn says something else. */
		take(messageIds: string[], text: string): Promise<Recalled[]> | null {
			const early = messageIds.length === 1 ? begun.get(messageIds[0] as string) : undefined;
			for (const id of messageIds) begun.delete(id);
			return early?.text === text ? early.found : null;
		},
	};
}
