import type { Message } from "../http/contract.ts";

/** Who waits for the answer to a message (`?wait=`, the OpenAI endpoint, the command line). */
export interface Answered {
	replyId: string | null;
	turnId: string;
	/** The reply as people see it, where it has just been shown; else it is to be looked up. */
	reply?: Message;
}

export function createWaiters() {
	const waiting = new Map<string, Set<(answer: Answered | null) => void>>();
	/** Turns whose reply is stored and on its way: their waiters are told when it has left. */
	const leaving = new Map<string, { messageIds: string[]; answer: Answered }>();

	function tell(messageIds: string[], answer: Answered): void {
		for (const id of messageIds) {
			for (const resolve of waiting.get(id) ?? []) resolve(answer);
			waiting.delete(id);
		}
	}

	return {
		/** A message of this process that has no answer yet: whoever waits for it need not look whether it has. */
		open: new Set<string>(),
		/** Resolves with the answer, or null when the signal ends the wait. */
		wait(messageId: string, signal: AbortSignal): Promise<Answered | null> {
			return new Promise((resolve) => {
				const set = waiting.get(messageId) ?? new Set();
				waiting.set(messageId, set);
				const done = (answer: Answered | null) => {
					signal.removeEventListener("abort", aborted);
					set.delete(done);
					if (set.size === 0 && waiting.get(messageId) === set) waiting.delete(messageId);
					resolve(answer);
				};
				const aborted = () => done(null);
				set.add(done);
				if (signal.aborted) aborted();
				else signal.addEventListener("abort", aborted);
			});
		},
		tell(messageIds: string[], answer: Answered): void {
			for (const id of messageIds) this.open.delete(id);
			tell(messageIds, answer);
		},
		/** The answer is told once the outbox row has left. */
		whenSent(outboxId: string, messageIds: string[], answer: Answered): void {
			leaving.set(outboxId, { messageIds, answer });
		},
		/** The row has been shown as this message. */
		shown(outboxId: string, reply: Message): void {
			const one = leaving.get(outboxId);
			if (one) one.answer.reply = reply;
		},
		sent(outboxId: string): void {
			const one = leaving.get(outboxId);
			if (!one) return;
			leaving.delete(outboxId);
			this.tell(one.messageIds, one.answer);
		},
	};
}
