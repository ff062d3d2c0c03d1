import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import type { TurnState, TurnSummary } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration, usageTokens } from "../../lib/format.ts";
import { part } from "../../lib/part.ts";
import { Chip, Notice, type Tone } from "../../ui/parts.tsx";
import { useConversations } from "../chat/conversation-list.tsx";
import { plainLine } from "../chat/trace.ts";
import { Card, Loaded } from "./card.tsx";
import { Cost } from "./cost.tsx";
import css from "./records.module.css";
import { recordTime } from "./times.ts";
import { useChanged } from "./use-changed.ts";
import { useFailureWords } from "./use-failure-words.ts";
import { useOriginName } from "./use-origin-name.ts";

const TurnSheet = part(() => import("./turn-sheet.tsx"));
const pageSize = 50;

export const turnTone: Record<TurnState, Tone> = { queued: "plain", running: "accent", done: "ok", failed: "dawn", stopped: "plain" };

/** Every turn, newest first. */
export default function TurnsTab() {
	const { t } = useTranslation();
	const [params, change] = useChanged(useSearchParams());
	const opened = params.get("open");
	const conversations = useConversations().data?.conversations;
	const query = useInfiniteQuery({
		queryKey: ["turns"],
		initialPageParam: null as string | null,
		queryFn: ({ pageParam, signal }) => api.turns({ before: pageParam, limit: pageSize }, signal),
		getNextPageParam: (page) => (page.turns.length < pageSize ? undefined : page.turns.at(-1)?.id),
		staleTime: 10_000,
	});
	return (
		<Card title={t("console.turns")}>
			<Loaded query={query} height={240}>
				{({ pages }) => {
					const turns = pages.flatMap((page) => page.turns);
					if (turns.length === 0) return <Notice title={t("turns.none")} text={t("turns.noneHint")} />;
					return (
						<>
							<div className={`${css.row} ${css.turnRow} ${css.header}`} aria-hidden="true">
								<span>{t("console.time")}</span>
								<span>{t("console.state")}</span>
								<span>{t("console.conversation")}</span>
								<span>{t("turns.rounds")}</span>
								<span>{t("usage.tokens")}</span>
								<span>{t("usage.column.cost")}</span>
								<span>{t("console.took")}</span>
							</div>
							<ul className={css.rows}>
								{turns.map((turn) => (
									<li key={turn.id}>
										<TurnRow
											turn={turn}
											title={plainLine(conversations?.find((one) => one.id === turn.conversationId)?.title ?? "")}
											onOpen={() => change({ open: turn.id })}
										/>
									</li>
								))}
							</ul>
							{query.hasNextPage && (
								<Button variant="default" size="xs" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
									{t("console.older")}
								</Button>
							)}
						</>
					);
				}}
			</Loaded>
			{opened && (
				<Suspense fallback={null}>
					<TurnSheet id={opened} onClose={() => change({ open: null })} />
				</Suspense>
			)}
		</Card>
	);
}

function TurnRow({ turn, title, onOpen }: { turn: TurnSummary; title: string; onOpen(): void }) {
	const { t, i18n } = useTranslation();
	const nameOfOrigin = useOriginName();
	const wordsOf = useFailureWords();
	const ms = turn.startedAt && turn.endedAt ? Date.parse(turn.endedAt) - Date.parse(turn.startedAt) : null;
	return (
		<button type="button" className={`${css.row} ${css.turnRow}`} onClick={onOpen}>
			{turn.startedAt ? <time dateTime={turn.startedAt}>{recordTime(turn.startedAt, new Date(), i18n.language)}</time> : <span>–</span>}
			<span>
				<Chip tone={turnTone[turn.state]}>{t(`turns.state.${turn.state}`)}</Chip>
			</span>
			<span className={css.clip}>
				{title || t("usage.someConversation", { id: turn.conversationId.slice(-4) })}
				<em>{nameOfOrigin(turn.origin)}</em>
				{turn.error && <em className={css.bad}>{wordsOf(turn.error)}</em>}
			</span>
			<span className={css.number}>
				<span className="hidden">{t("turns.rounds")} </span>
				{turn.rounds}
			</span>
			<span className={css.number}>
				<span className="hidden">{t("usage.tokens")} </span>
				{usageTokens(turn.usage, i18n.language)}
			</span>
			<span className={css.number}>
				<Cost cost={turn.usage.cost} currency={turn.usage.currency} estimated={turn.usage.estimated} />
			</span>
			<span className={css.number}>{ms === null ? "–" : duration(ms)}</span>
		</button>
	);
}
