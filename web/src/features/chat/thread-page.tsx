import { Button } from "@mantine/core";
import { ArrowDown } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Message } from "../../../../server/http/contract.ts";
import { useLiveState, useSession, useStatus } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import { Announcer } from "./announcer.tsx";
import { Approvals } from "./approvals.tsx";
import css from "./chat-page.module.css";
import { Composer, type Outgoing } from "./composer.tsx";
import { useConversations } from "./conversation-list.tsx";
import { isDecision } from "./decisions.ts";
import { Answer, type MessageActions, PendingMessage, UserMessage } from "./message.tsx";
import { expectedModel } from "./model-picker.tsx";
import { PhoneTop } from "./phone-top.tsx";
import { activeTurn, type Entry, entriesOf } from "./state.ts";
import { isForgotten, plainLine } from "./trace.ts";
import { useStickyScroll } from "./use-sticky-scroll.ts";
import { useThread } from "./use-thread.ts";

export function ThreadPage({ id, phone, onWhy }: { id: string; phone: boolean; onWhy(turnId: string): void }) {
	const { t } = useTranslation();
	const reason = useReason();
	const session = useSession();
	const live = useLiveState();
	const status = useStatus();
	const view = useThread(id);
	const { thread } = view;
	const conversation = useConversations().data?.conversations.find((one) => one.id === id);
	const title = plainLine(conversation?.title ?? "") || t("list.untitled");
	const [picked, setPicked] = useState<string | null | undefined>(undefined);
	const [editing, setEditing] = useState<Message | null>(null);
	const [problem, setProblem] = useState<string | null>(null);
	const entries = useMemo(() => entriesOf(thread), [thread]);
	const active = activeTurn(thread);
	const scroll = useStickyScroll(entries, thread.messages[0]?.id ?? null);
	const model = picked === undefined ? (conversation?.model ?? null) : picked;

	const regenerate = useCallback(
		(answer: Message) => {
			const messages = session.chat.get().threads[id]?.messages ?? [];
			const at = messages.findIndex((message) => message.id === answer.id);
			const question = messages.slice(0, at).findLast((message) => message.role === "user");
			if (!question) return;
			session.send({ conversation: id, text: question.text, attachments: question.attachments, model, replaces: question.id });
		},
		[session, id, model],
	);
	const actions = useMemo<MessageActions>(() => ({ edit: setEditing, regenerate, why: onWhy }), [regenerate, onWhy]);

	function send(message: Outgoing): Promise<boolean> {
		setProblem(null);
		session.send({ ...message, conversation: id, replaces: editing?.id ?? null });
		setEditing(null);
		scroll.toEnd();
		return Promise.resolve(true);
	}

	function pickModel(next: string | null): void {
		setPicked(next);
		// Kept with the conversation; if that fails, the pick still goes along with each message.
		api.patchConversation(id, { model: next }).catch(() => {});
	}

	function stop(): void {
		setProblem(null);
		api.stopTurn(id).catch((error: unknown) => setProblem(t("chat.stopFailed", { reason: reason(error) })));
	}

	if (view.state === "missing")
		return (
			<section className={css.thread}>
				{phone && <PhoneTop title={t("list.title")} />}
				<Notice title={t("chat.missing")}>
					<Button component={Link} to="/chat/new" variant="default">
						{t("list.new")}
					</Button>
				</Notice>
			</section>
		);

	return (
		<section className={css.thread} aria-label={title}>
			{phone && <PhoneTop title={title} />}
			<div
				ref={scroll.box}
				className={css.scroll}
				onScroll={scroll.onScroll}
				role="log"
				aria-live="off"
				aria-label={t("chat.thread")}
				// biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
				tabIndex={0}
			>
				<div className={css.measure}>
					{view.state === "loading" && thread.pending.length === 0 && <ThreadPlaceholder />}
					{view.state === "failed" && (
						<Notice role="alert" title={t("chat.loadError")}>
							<Button variant="default" onClick={view.retry}>
								{t("app.retry")}
							</Button>
						</Notice>
					)}
					{view.state === "ready" && thread.hasMore && (
						<div className={css.older}>
							<Button variant="subtle" size="compact-sm" color="gray" loading={view.loadingOlder} onClick={view.loadOlder}>
								{t("chat.older")}
							</Button>
						</div>
					)}
					{entries.map((entry, index) => (
						<EntryView
							key={entry.key}
							entry={entry}
							last={isLastAnswer(entries, index) && !active}
							actions={actions}
							offline={live.kind !== "open"}
							expected={entry.kind === "turn" ? expectedModel(status, entry.turn.model ?? model) : null}
						/>
					))}
					<Approvals conversation={id} />
				</div>
			</div>
			<div className={css.dock}>
				<div className={css.dockInner}>
					{!scroll.atEnd && (
						<button type="button" className={css.toDown} onClick={scroll.toEnd} aria-label={t("chat.toDown")} title={t("chat.toDown")}>
							<ArrowDown size={17} aria-hidden="true" />
						</button>
					)}
					<Composer
						place={id}
						model={model}
						onModel={pickModel}
						running={active !== null}
						editing={editing}
						onCancelEdit={() => setEditing(null)}
						onEditLast={() =>
							setEditing(
								thread.messages.findLast(
									(message) => message.role === "user" && message.from === null && !isDecision(message) && !isForgotten(message.text),
								) ?? null,
							)
						}
						onSend={send}
						onStop={stop}
						problem={problem}
					/>
				</div>
			</div>
			<Announcer thread={thread} />
		</section>
	);
}

interface EntryViewProps {
	entry: Entry;
	last: boolean;
	actions: MessageActions;
	offline: boolean;
	expected: string | null;
}

function EntryView({ entry, last, actions, offline, expected }: EntryViewProps) {
	const session = useSession();
	switch (entry.kind) {
		case "pending": {
			const { pending } = entry;
			return (
				<PendingMessage
					pending={pending}
					offline={offline}
					onResend={() => session.resend(pending)}
					onDiscard={() => session.chat.dispatch({ type: "discard", conversation: pending.conversation, clientId: pending.clientId })}
				/>
			);
		}
		case "turn":
			return <Answer message={null} turn={entry.turn} last={false} actions={actions} expected={expected} />;
		case "message":
			return entry.message.role === "user" ? (
				<UserMessage message={entry.message} actions={actions} />
			) : (
				<Answer message={entry.message} turn={entry.turn} last={last} actions={actions} />
			);
	}
}

function isLastAnswer(entries: Entry[], index: number): boolean {
	if (index !== entries.length - 1 || entries[index]?.kind !== "message") return false;
	const question = entries.slice(0, index).findLast((entry) => entry.kind === "message" && entry.message.role === "user");
	// A decision is made once: what it set off is not asked for again; and of a forgotten question nothing is left to ask.
	return question?.kind === "message" && !isDecision(question.message) && !isForgotten(question.message.text);
}

function ThreadPlaceholder() {
	const { t } = useTranslation();
	return (
		<div role="status" style={{ display: "grid", gap: 12 }}>
			<span className="hidden">{t("app.loading")}</span>
			<div style={{ justifySelf: "end", width: "52%" }}>
				<Skeleton height={42} />
			</div>
			<Skeleton width={140} height={14} />
			<Skeleton width="94%" height={14} />
			<Skeleton width="86%" height={14} />
			<Skeleton width="60%" height={14} />
		</div>
	);
}
