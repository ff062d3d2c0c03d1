import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStatus } from "../../app/session.tsx";
import type { Thread } from "./state.ts";
import { speakable } from "./trace.ts";

/** Tells a screen reader each finished answer once; words that stream are not spoken. */
export function Announcer({ thread }: { thread: Thread }) {
	const { t } = useTranslation();
	const name = useStatus()?.agentName ?? "OpenLani";
	const [words, setWords] = useState("");
	const said = useRef<string | null>(null);
	const openedAt = useRef(new Date(Date.now() - 2000).toISOString());
	const last = thread.messages.at(-1);
	useEffect(() => {
		if (!last || last.role === "user" || said.current === last.id || !thread.fresh[last.id] || last.at < openedAt.current) return;
		said.current = last.id;
		setWords(t("chat.answered", { name, text: speakable(last.text) }));
	}, [last, thread.fresh, t, name]);
	return (
		<div className="hidden" role="status" aria-live="polite" data-testid="announcer">
			{words}
		</div>
	);
}
