/** What exists while somebody is signed in: the live socket, the chat store, and how frames reach the cached REST data. */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { LiveFrame, Status } from "../../../server/http/contract.ts";
import { type ConversationPage, changeList, createLiveReads } from "../features/chat/live-list.ts";
import { activeTurn, type Pending, toSendFrame } from "../features/chat/state.ts";
import { type ChatStore, createChatStore, keepUnsent, readUnsent } from "../features/chat/store.ts";
import { ApiError, api } from "../lib/api.ts";
import { newId } from "../lib/ids.ts";
import { createLive, type Live, type LiveState } from "../lib/live.ts";

export interface Session {
	chat: ChatStore;
	live: Live;
	/** Shows the message at once and sends it as soon as there is a connection. */
	send(message: Omit<Pending, "clientId" | "at" | "messageId" | "refused">): void;
	/** A read of conversations, never older than the frames that came while it was under way. */
	readConversations(fetch: () => Promise<ConversationPage>): Promise<ConversationPage>;
	/** Sends a refused message again under its own id. */
	resend(pending: Pending): void;
	watchState(listener: () => void): () => void;
	/** Every live frame as it comes, for who follows along (the log). */
	watchFrames(listener: (frame: LiveFrame) => void): () => void;
}

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
	const session = useContext(SessionContext);
	if (!session) throw new Error("useSession outside of SessionProvider");
	return session;
}

export function useLiveState(): LiveState {
	const { live, watchState } = useSession();
	return useSyncExternalStore(watchState, live.state);
}

/** True while any conversation has a turn that is not over. */
export function useBusy(): boolean {
	const { chat } = useSession();
	return useSyncExternalStore(chat.subscribe, () =>
		Object.values(chat.get().threads).some((thread) => activeTurn(thread)?.state === "running"),
	);
}

export function useStatus(): Status | undefined {
	return useQuery({ queryKey: ["status"], queryFn: ({ signal }) => api.status(signal), staleTime: 30_000, refetchInterval: 60_000 }).data;
}

/** Alerts that are open now, newest first. */
export function useOpenAlerts() {
	return useQuery({
		queryKey: ["alerts", "open"],
		queryFn: ({ signal }) => api.alerts({ state: "open", limit: 100 }, signal),
		staleTime: 30_000,
		refetchInterval: 120_000,
	});
}

export function SessionProvider({ onSignedOut, children }: { onSignedOut(): void; children: ReactNode }) {
	const queries = useQueryClient();
	const [{ session, changed }] = useState(() => createSession(queries));
	useEffect(() => {
		const forget = keepUnsent(session.chat, sessionStorage);
		changed.signedOut = onSignedOut;
		for (const pending of readUnsent(sessionStorage)) session.resend(pending);
		session.live.start();
		const wake = () => {
			if (!document.hidden) session.live.retryNow();
		};
		window.addEventListener("online", wake);
		document.addEventListener("visibilitychange", wake);
		return () => {
			forget();
			window.removeEventListener("online", wake);
			document.removeEventListener("visibilitychange", wake);
			session.live.stop();
		};
	}, [session, changed, onSignedOut]);
	return <SessionContext.Provider value={useMemo(() => session, [session])}>{children}</SessionContext.Provider>;
}

function createSession(queries: QueryClient): { session: Session; changed: { signedOut(): void } } {
	const chat = createChatStore(soon);
	const listeners = new Set<() => void>();
	const followers = new Set<(frame: LiveFrame) => void>();
	const reads = createLiveReads();
	const changed = { signedOut: () => {} };
	const live = createLive({
		url: `${window.location.origin.replace(/^http/, "ws")}/api/v1/live`,
		openSocket: (url) => new WebSocket(url),
		onFrame(frame) {
			chat.frame(frame);
			reads.frame(frame);
			toQueries(queries, frame);
			for (const follow of followers) follow(frame);
		},
		onState() {
			for (const listener of listeners) listener();
		},
		async mayRetry() {
			try {
				queries.setQueryData(["status"], await api.status());
				return true;
			} catch (error) {
				if (!(error instanceof ApiError && error.problem.status === 401)) return true;
				changed.signedOut();
				return false;
			}
		},
	});
	const resend = (pending: Pending) => {
		chat.dispatch({ type: "send", pending: { ...pending, refused: null } });
		live.send(toSendFrame(pending));
	};
	const session: Session = {
		chat,
		live,
		readConversations: reads.read,
		resend,
		send: (message) => resend({ ...message, clientId: newId(), at: new Date().toISOString(), messageId: null, refused: null }),
		watchState(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		watchFrames(listener) {
			followers.add(listener);
			return () => followers.delete(listener);
		},
	};
	return { session, changed };
}

/** With the next picture, or by a timer while the page is hidden and no pictures are made. */
function soon(run: () => void): void {
	if (document.hidden) setTimeout(run, 50);
	else requestAnimationFrame(run);
}

function toQueries(queries: QueryClient, frame: LiveFrame): void {
	switch (frame.type) {
		case "hello":
			// Missed frames, or a new daemon: everything cached is read again.
			if (frame.reset) void queries.invalidateQueries();
			return;
		case "status":
			queries.setQueryData<Status>(["status"], (status) => (status ? { ...status, ...frame.status } : status));
			void queries.invalidateQueries({ queryKey: ["fuse"] });
			return;
		case "alert":
			void queries.invalidateQueries({ queryKey: ["alerts"] });
			void queries.invalidateQueries({ queryKey: ["fuse"] });
			void queries.invalidateQueries({ queryKey: ["status"] });
			return;
		case "approval":
			void queries.invalidateQueries({ queryKey: ["approvals"] });
			return;
		case "conversation":
			toList(queries, frame);
			// Whoever has it open asks once more, and is told that it is not there.
			if (frame.change === "deleted") void queries.resetQueries({ queryKey: ["messages", frame.conversation] });
			return;
		case "message": {
			const known = queries.getQueryData<ConversationPage>(["conversations"])?.conversations.find((one) => one.id === frame.conversation);
			// The first message gives a conversation its title; one from elsewhere is not in the list yet.
			if (!known?.preview) void queries.invalidateQueries({ queryKey: ["conversations"] });
			toList(queries, frame);
			return;
		}
		case "turn":
			toList(queries, frame);
			void queries.invalidateQueries({ queryKey: ["turns"] });
			if (frame.state === "done" || frame.state === "failed" || frame.state === "stopped") {
				for (const key of ["usage", "fuse", "calls"]) void queries.invalidateQueries({ queryKey: [key] });
				void queries.invalidateQueries({ queryKey: ["status"] });
				void queries.invalidateQueries({ queryKey: ["turn", frame.turnId] });
			}
			return;
		default:
	}
}

function toList(queries: QueryClient, frame: LiveFrame): void {
	queries.setQueryData<ConversationPage>(["conversations"], (list) => list && { conversations: changeList(list.conversations, frame) });
}
