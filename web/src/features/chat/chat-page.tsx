import { useMediaQuery } from "@mantine/hooks";
import { Suspense, useCallback, useEffect, useState } from "react";
import { useParams } from "react-router";
import { part } from "../../lib/part.ts";
import css from "./chat-page.module.css";
import { ConversationList, useConversations } from "./conversation-list.tsx";
import { NewChat } from "./new-chat.tsx";
import { ThreadPage } from "./thread-page.tsx";

const WhyPanel = part(() => import("./why-panel.tsx"));

/** The list beside the conversation; on a phone each is a page of its own. */
export default function ChatPage() {
	const { id } = useParams();
	const phone = useMediaQuery("(max-width: 720px)", window.matchMedia("(max-width: 720px)").matches, { getInitialValueInEffect: false });
	const [why, setWhy] = useState<string | null>(null);
	// biome-ignore lint/correctness/useExhaustiveDependencies: another conversation has other reasons
	useEffect(() => setWhy(null), [id]);
	const closeWhy = useCallback(() => {
		setWhy((turnId) => {
			// Back to the button that opened it.
			if (turnId) document.querySelector<HTMLElement>(`[data-why="${CSS.escape(turnId)}"]`)?.focus();
			return null;
		});
	}, []);
	const first = useConversations().data?.conversations.length === 0;
	// An empty list is no place to begin: on a phone the first message is written here.
	const showList = !phone || (id === undefined && !first);
	const showThread = !phone || id !== undefined || first;
	return (
		<div className={css.chat} data-why={why ? "" : undefined}>
			{showList && <ConversationList />}
			{showThread &&
				(id === undefined || id === "new" ? (
					<NewChat phone={phone && id !== undefined} />
				) : (
					<ThreadPage key={id} id={id} phone={phone} onWhy={setWhy} />
				))}
			{why && (
				<Suspense fallback={null}>
					<WhyPanel turnId={why} onClose={closeWhy} />
				</Suspense>
			)}
		</div>
	);
}
