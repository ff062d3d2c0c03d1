import { useQuery } from "@tanstack/react-query";
import { useCallback, useState, useSyncExternalStore } from "react";
import { useSession } from "../../app/session.tsx";
import { ApiError, api } from "../../lib/api.ts";
import { emptyThread, type Thread } from "./state.ts";

const pageSize = 50;

export interface ThreadView {
	thread: Thread;
	state: "loading" | "ready" | "missing" | "failed";
	retry(): void;
	loadOlder(): void;
	loadingOlder: boolean;
}

/** One conversation as it is now: the newest page once, then frames; earlier pages on demand. */
export function useThread(id: string): ThreadView {
	const { chat } = useSession();
	const thread = useSyncExternalStore(chat.subscribe, () => chat.get().threads[id] ?? emptyThread);
	const query = useQuery({
		queryKey: ["messages", id],
		staleTime: Number.POSITIVE_INFINITY,
		queryFn: async ({ signal }) => {
			const { messages } = await api.messages(id, null, signal);
			chat.dispatch({ type: "page", conversation: id, messages, hasMore: messages.length >= pageSize, older: false });
			return messages.length;
		},
	});
	const [loadingOlder, setLoadingOlder] = useState(false);
	const loadOlder = useCallback(() => {
		const first = chat.get().threads[id]?.messages[0];
		if (!first) return;
		setLoadingOlder(true);
		api
			.messages(id, first.id)
			.then(({ messages }) =>
				chat.dispatch({ type: "page", conversation: id, messages, hasMore: messages.length >= pageSize, older: true }),
			)
			.catch(() => {})
			.finally(() => setLoadingOlder(false));
	}, [chat, id]);
	const missing = query.error instanceof ApiError && query.error.problem.status === 404;
	return {
		thread,
		state: missing ? "missing" : thread.loaded ? "ready" : query.error ? "failed" : "loading",
		retry: () => void query.refetch(),
		loadOlder,
		loadingOlder,
	};
}
