/** Holds the chat state outside React: frames come fast, so they are applied together, once a picture. */
import type { LiveFrame } from "../../../../server/http/contract.ts";
import { type ChatAction, type ChatState, chatReducer, emptyChat, type Pending } from "./state.ts";

export interface ChatStore {
	get(): ChatState;
	subscribe(listener: () => void): () => void;
	dispatch(action: ChatAction): void;
	/** Applied with the others that arrive before the next picture. */
	frame(frame: LiveFrame): void;
}

/** `schedule` runs its argument soon, for example with the next picture. */
export function createChatStore(schedule: (run: () => void) => void): ChatStore {
	let state = emptyChat;
	let waiting: LiveFrame[] = [];
	const listeners = new Set<() => void>();

	function flush(): void {
		if (waiting.length === 0) return;
		const frames = waiting;
		waiting = [];
		set(chatReducer(state, { type: "frames", frames }));
	}

	function set(next: ChatState): void {
		if (next === state) return;
		state = next;
		for (const listener of listeners) listener();
	}

	return {
		get: () => state,
		subscribe(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		dispatch(action) {
			flush();
			set(chatReducer(state, action));
		},
		frame(frame) {
			waiting.push(frame);
			if (waiting.length === 1) schedule(flush);
		},
	};
}

/** Everything of ours that the server has not confirmed, over all conversations. */
export function pendingOf(state: ChatState): Pending[] {
	return Object.values(state.threads).flatMap((thread) => thread.pending);
}

/** The part of the browser's storage that is used here. */
interface KeyValues {
	getItem(key: string): string | null;
	setItem(key: string, value: string): void;
	removeItem(key: string): void;
}

const storageKey = "openlani.unsent";

/** Keeps unconfirmed messages over a reload of this tab; the same client ids make sending again harmless. */
export function keepUnsent(store: ChatStore, storage: KeyValues): () => void {
	let last = "";
	return store.subscribe(() => {
		const text = JSON.stringify(pendingOf(store.get()).filter((pending) => pending.refused === null));
		if (text === last) return;
		last = text;
		try {
			if (text === "[]") storage.removeItem(storageKey);
			else storage.setItem(storageKey, text);
		} catch {
			// Storage full or refused: the messages are still in memory.
		}
	});
}

export function readUnsent(storage: KeyValues): Pending[] {
	try {
		const value: unknown = JSON.parse(storage.getItem(storageKey) ?? "[]");
		return Array.isArray(value) ? (value as Pending[]) : [];
	} catch {
		return [];
	}
}
