/** Frames of one conversation, for many listeners at once: one look at each frame, however many listen. */
import type { EventBus } from "../observe/bus.ts";
import type { LiveFrame } from "./contract.ts";

export interface ConversationFeed {
	listen(conversation: string, listener: (frame: LiveFrame) => void): () => void;
	/** Everything said so far has been heard when this returns. */
	catchUp(): void;
}

export function createConversationFeed(bus: EventBus): ConversationFeed {
	const listeners = new Map<string, Set<(frame: LiveFrame) => void>>();
	let unsubscribe: (() => void) | null = null;

	function onFrame(frame: LiveFrame): void {
		if (!("conversation" in frame) || frame.conversation === null) return;
		for (const listener of listeners.get(frame.conversation) ?? []) listener(frame);
	}

	return {
		catchUp: bus.deliver,
		listen(conversation, listener) {
			const set = listeners.get(conversation) ?? new Set();
			listeners.set(conversation, set.add(listener));
			unsubscribe ??= bus.subscribe(onFrame);
			return () => {
				set.delete(listener);
				if (set.size === 0 && listeners.get(conversation) === set) listeners.delete(conversation);
				if (listeners.size === 0) {
					unsubscribe?.();
					unsubscribe = null;
				}
			};
		},
	};
}
