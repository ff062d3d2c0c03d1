import { useQuery } from "@tanstack/react-query";
import { memo, Suspense } from "react";
import { useTranslation } from "react-i18next";
import type { Attachment, Message, Usage } from "../../../../server/http/contract.ts";
import { assetUrl } from "../../lib/api.ts";
import { clockTime, fileSize, fullTime, money, usageTokens } from "../../lib/format.ts";
import { part } from "../../lib/part.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Mark } from "../../ui/mark.tsx";
import { isDecision } from "./decisions.ts";
import css from "./message.module.css";
import { Plan } from "./plan.tsx";
import { isOver, type LiveTurn, type Pending } from "./state.ts";
import { ToolLine } from "./tool-line.tsx";
import { isForgotten, summarizeArguments, traceOf } from "./trace.ts";

const Markdown = part(() => import("../../ui/markdown.tsx").then((module) => ({ default: module.Markdown })));

export interface MessageActions {
	edit(message: Message): void;
	regenerate(message: Message): void;
	why(turnId: string): void;
}

export const UserMessage = memo(function UserMessage({ message, actions }: { message: Message; actions: MessageActions }) {
	const { t, i18n } = useTranslation();
	if (isDecision(message)) return <DecisionMessage message={message} />;
	return (
		<article className={css.user} aria-label={message.from ?? t("chat.you")}>
			{message.from && <div className={css.from}>{message.from}</div>}
			<Bubble text={message.text} attachments={message.attachments} />
			<footer className={css.foot}>
				{!isForgotten(message.text) && (
					<span className={css.quiet}>
						<CopyButton text={() => message.text} label={t("chat.copy")} className={css.act} />
						{message.from === null && (
							<button type="button" className={css.act} onClick={() => actions.edit(message)}>
								{t("chat.edit")}
							</button>
						)}
					</span>
				)}
				<Time at={message.at} locale={i18n.language} />
			</footer>
		</article>
	);
});

/** What the master decided, in words; what was told to the agent stays out of sight. */
function DecisionMessage({ message }: { message: Message }) {
	const { t, i18n } = useTranslation();
	const { decision } = message;
	const { data: about } = useQuery<string | null>({
		queryKey: ["about", message.clientId?.slice("approval:".length)],
		queryFn: () => null,
		staleTime: Number.POSITIVE_INFINITY,
		gcTime: Number.POSITIVE_INFINITY,
		enabled: false,
	});
	const word = decision && (decision.allowed ? "allowed" : "denied");
	const what = decision && decision.tool !== "forget" ? summarizeArguments(decision.arguments) : "";
	return (
		<article className={css.user} aria-label={t("approval.decision")} data-decision>
			<div className={css.from}>{t("approval.decision")}</div>
			<p className={css.system}>
				{decision && word ? t(`approval.${word}${decision.tool === "forget" ? "Forget" : "Use"}`, { tool: decision.tool }) : message.text}
				{(about || what) && <q className={css.about}>{about || what}</q>}
			</p>
			<footer className={css.foot}>
				<Time at={message.at} locale={i18n.language} />
			</footer>
		</article>
	);
}

export function PendingMessage({
	pending,
	offline,
	onResend,
	onDiscard,
}: {
	pending: Pending;
	offline: boolean;
	onResend(): void;
	onDiscard(): void;
}) {
	const { t } = useTranslation();
	return (
		<article className={css.user} aria-label={t("chat.you")} data-pending>
			<Bubble text={pending.text} attachments={pending.attachments} />
			<footer className={css.foot} role="status">
				{pending.refused ? (
					<>
						<span className={css.refused}>{t("chat.refused", { reason: pending.refused.detail ?? pending.refused.title })}</span>
						<button type="button" className={css.act} onClick={onResend}>
							{t("chat.sendAgain")}
						</button>
						<button type="button" className={css.act} onClick={onDiscard}>
							{t("chat.discard")}
						</button>
					</>
				) : (
					<span>{t(offline ? "chat.waitingLine" : "chat.sending")}</span>
				)}
			</footer>
		</article>
	);
}

function Bubble({ text, attachments }: { text: string; attachments: Attachment[] }) {
	const { t } = useTranslation();
	return (
		<>
			{attachments.length > 0 && <Attachments items={attachments} />}
			{text.trim() !== "" && (
				<div className={css.bubble}>{isForgotten(text) ? <span className={css.gone}>{t("chat.forgotten")}</span> : text}</div>
			)}
		</>
	);
}

interface AnswerProps {
	message: Message | null;
	turn: LiveTurn | null;
	/** The newest answer of the conversation, which may be asked for again. */
	last: boolean;
	actions: MessageActions;
	/** Who is going to answer, until the stored answer says who did. */
	expected?: string | null;
}

/** An answer, streaming or stored: the same element from the first word to the last, so nothing jumps. */
export const Answer = memo(function Answer({ message, turn, last, actions, expected = null }: AnswerProps) {
	const { t } = useTranslation();
	const { parts, body } = traceOf(turn, message);
	const running = message === null && turn !== null && !isOver(turn.state);
	const plan = message && message.plan.length > 0 ? message.plan : (turn?.plan ?? []);
	const name = message ? (message.modelName ?? message.model) : (expected ?? turn?.model);
	if (message?.role === "system" && parts.length === 0 && plan.length === 0)
		return <SystemLine message={message} last={last} actions={actions} />;
	return (
		<article className={css.answer} aria-label={name ?? t("chat.system")} aria-busy={running}>
			<header className={css.head}>
				<Mark size={18} />
				<span>{name ?? t("chat.system")}</span>
			</header>
			<Plan items={plan} running={running} />
			{parts.map((part) => (
				<div key={part.step} className={css.part}>
					{part.text !== "" && <Prose text={part.text} />}
					{part.tools.map((tool) => (
						<ToolLine key={tool.recordId} tool={tool} turnId={message?.turnId ?? turn?.turnId ?? null} />
					))}
				</div>
			))}
			{message?.role === "system" ? (
				<p className={css.system}>{body}</p>
			) : isForgotten(body) ? (
				<p className={css.gone}>{t("chat.forgotten")}</p>
			) : (
				body !== "" && <Prose text={body} streaming={running} />
			)}
			{message && message.attachments.length > 0 && <Attachments items={message.attachments} />}
			{message ? <AnswerFoot message={message} last={last} actions={actions} /> : turn && <LiveFoot turn={turn} />}
		</article>
	);
});

function Prose({ text, streaming = false }: { text: string; streaming?: boolean }) {
	return (
		<Suspense fallback={<div className={css.plain}>{text}</div>}>
			<Markdown text={text} streaming={streaming} />
		</Suspense>
	);
}

function SystemLine({ message, last, actions }: { message: Message; last: boolean; actions: MessageActions }) {
	const { t, i18n } = useTranslation();
	return (
		<article className={css.answer} aria-label={t("chat.system")}>
			<p className={css.system}>{message.text}</p>
			<footer className={css.foot}>
				<Time at={message.at} locale={i18n.language} />
				{message.turnId && <WhyButton turnId={message.turnId} actions={actions} />}
				{last && message.turnId && <AgainButton message={message} actions={actions} />}
			</footer>
		</article>
	);
}

function AnswerFoot({ message, last, actions }: { message: Message; last: boolean; actions: MessageActions }) {
	const { t, i18n } = useTranslation();
	const undelivered =
		message.delivery !== null && message.delivery !== "sent" && message.delivery !== "pending" && message.delivery !== "sending";
	return (
		<footer className={css.foot}>
			<Time at={message.at} locale={i18n.language} />
			{message.stopped && message.role !== "system" && <span>{t("chat.stopped")}</span>}
			{message.usage && <Cost usage={message.usage} />}
			{undelivered && message.delivery && <span className={css.refused}>{t(`chat.delivery.${message.delivery}`)}</span>}
			{!isForgotten(message.text) && <CopyButton text={() => message.text} label={t("chat.copy")} className={css.act} />}
			{message.turnId && <WhyButton turnId={message.turnId} actions={actions} />}
			{last && <AgainButton message={message} actions={actions} />}
		</footer>
	);
}

function AgainButton({ message, actions }: { message: Message; actions: MessageActions }) {
	const { t } = useTranslation();
	return (
		<button type="button" className={css.act} onClick={() => actions.regenerate(message)}>
			{t("chat.regenerate")}
		</button>
	);
}

function WhyButton({ turnId, actions }: { turnId: string; actions: MessageActions }) {
	const { t } = useTranslation();
	return (
		<button type="button" className={css.act} data-why={turnId} onClick={() => actions.why(turnId)}>
			{t("chat.why")}
		</button>
	);
}

/** Tokens and money; what is not known is said, never shown as nothing. */
function Cost({ usage }: { usage: Usage }) {
	const { t, i18n } = useTranslation();
	return (
		<span title={usage.estimated ? t("chat.estimated") : undefined}>
			{t("chat.tokens", { tokens: usageTokens(usage, i18n.language) })}
			{" · "}
			{usage.cost === null ? (
				<span className={css.unpriced}>{t("chat.unpriced")}</span>
			) : usage.cost === 0 ? (
				t("chat.free")
			) : (
				`${usage.estimated ? "≈ " : ""}${money(usage.cost, usage.currency, i18n.language)}`
			)}
		</span>
	);
}

function LiveFoot({ turn }: { turn: LiveTurn }) {
	const { t } = useTranslation();
	const word =
		turn.state === "queued"
			? t("chat.queuedTurn")
			: turn.state === "stopped"
				? t("chat.stopped")
				: turn.state === "failed"
					? t("chat.failed")
					: turn.restarted
						? t("chat.restarted", { reason: turn.restarted })
						: turn.text === ""
							? t("chat.thinking")
							: "";
	const waiting = turn.text === "" && !isOver(turn.state);
	return (
		<footer className={css.foot}>
			{waiting && <span className={css.pulse} aria-hidden="true" />}
			<span>{word}</span>
		</footer>
	);
}

function Time({ at, locale }: { at: string; locale: string }) {
	return (
		<time dateTime={at} title={fullTime(at, locale)}>
			{clockTime(at, locale)}
		</time>
	);
}

function Attachments({ items }: { items: Attachment[] }) {
	const { t } = useTranslation();
	return (
		<ul className={css.attachments} aria-label={t("chat.attachments")}>
			{items.map((item) => (
				<li key={`${item.sha256}${item.name}`}>
					<a href={assetUrl(item.sha256)} target="_blank" rel="noopener" className={item.kind === "image" ? css.image : css.file}>
						{item.kind === "image" ? (
							<img src={assetUrl(item.sha256)} alt={item.name} loading="lazy" />
						) : (
							<>
								<span>{item.name}</span>
								<small>{fileSize(item.bytes)}</small>
							</>
						)}
					</a>
				</li>
			))}
		</ul>
	);
}
