import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStatus } from "../../app/session.tsx";
import type { Thread } from "./state.ts";
import { isForgotten, speakable } from "./trace.ts";

/** Tells a screen reader each finished answer once; words that stream are not spoken. */
export function Announcer({ thread }: { thread: Thread }) {
	const { t } = useTranslation();
	const name = useStatus()?.agentName ?? "OpenLani";
	const [said, setSaid] = useState<string | null>(null);
	const openedAt = useRef(new Date(Date.now() - 2000).toISOString());
	const last = thread.messages.at(-1);
	useEffect(() => {
		if (!last || last.role === "user" || !thread.fresh[last.id] || last.at < openedAt.current) return;
		setSaid(last.id);
	}, [last, thread.fresh]);
	// As it reads now: what was forgotten, or taken back, since is not kept here either.
	const answer = thread.messages.find((message) => message.id === said);
	const words = answer && !isForgotten(answer.text) ? t("chat.answered", { name, text: speakable(answer.text) }) : "";
	return (
		<div className="hidden" role="status" aria-live="polite" data-testid="announcer">
			{words}
		</div>
	);
}
