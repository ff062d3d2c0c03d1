import { Button } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { AlertItem } from "../../../../server/http/contract.ts";
import { useOpenAlerts, useStatus } from "../../app/session.tsx";
import { api } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Chip, Notice } from "../../ui/parts.tsx";
import css from "./alerts.module.css";
import { Card, Loaded } from "./card.tsx";
import { recordTime, withZoneTimes } from "./times.ts";

const pageSize = 50;

/** What is wrong now, then what was. */
export default function AlertsTab() {
	const { t } = useTranslation();
	const open = useOpenAlerts();
	const past = useInfiniteQuery({
		queryKey: ["alerts", "resolved"],
		initialPageParam: null as string | null,
		queryFn: ({ pageParam, signal }) => api.alerts({ state: "resolved", before: pageParam, limit: pageSize }, signal),
		getNextPageParam: (page) => (page.alerts.length < pageSize ? undefined : page.alerts.at(-1)?.id),
		staleTime: 30_000,
	});
	const over = past.data?.pages.flatMap((page) => page.alerts) ?? [];
	return (
		<div className={css.alerts}>
			<Card title={t("alerts.open")}>
				<Loaded query={open} height={90}>
					{({ alerts }) =>
						alerts.length === 0 ? <Notice title={t("alerts.none")} text={t("alerts.noneHint")} /> : <List alerts={alerts} />
					}
				</Loaded>
			</Card>
			{over.length > 0 && (
				<Card title={t("alerts.over")}>
					<List alerts={over} />
					{past.hasNextPage && (
						<Button variant="default" size="xs" loading={past.isFetchingNextPage} onClick={() => void past.fetchNextPage()}>
							{t("console.older")}
						</Button>
					)}
				</Card>
			)}
		</div>
	);
}

function List({ alerts }: { alerts: AlertItem[] }) {
	return (
		<ul className={css.list}>
			{alerts.map((alert) => (
				<li key={alert.id} data-severity={alert.state === "open" ? alert.severity : undefined}>
					<Alert alert={alert} />
				</li>
			))}
		</ul>
	);
}

function Alert({ alert }: { alert: AlertItem }) {
	const { t, i18n } = useTranslation();
	const reason = useReason();
	const queries = useQueryClient();
	const zone = useStatus()?.timezone ?? "UTC";
	const now = new Date();
	const time = (iso: string) => recordTime(iso, now, i18n.language);
	const ack = useMutation({
		mutationFn: () => api.ackAlert(alert.id),
		onSettled: () => queries.invalidateQueries({ queryKey: ["alerts"] }),
	});
	const isOpen = alert.state === "open";
	const isFuse = alert.kind === "fuse-blown" || alert.kind === "fuse-warning";
	return (
		<article>
			<p className={css.head}>
				<Chip tone={!isOpen ? "ok" : alert.severity === "info" ? "plain" : "dawn"}>
					{isOpen ? t(`alerts.severity.${alert.severity}`) : t("alerts.resolved")}
				</Chip>
				<time dateTime={alert.openedAt}>{time(alert.openedAt)}</time>
				{alert.resolvedAt && <span>{t("alerts.until", { time: time(alert.resolvedAt) })}</span>}
				{alert.count > 1 && <span>{t("alerts.times", { count: alert.count, last: time(alert.lastAt) })}</span>}
			</p>
			<p className={css.text}>{withZoneTimes(i18n.language.startsWith("zh") ? alert.message.zh : alert.message.en, i18n.language, zone)}</p>
			<p className={css.acts}>
				{isOpen && isFuse && <Link to="/console/usage?raise=1">{t("usage.raise")}</Link>}
				{alert.turnId && <Link to={`/console/turns?open=${encodeURIComponent(alert.turnId)}`}>{t("console.toTurn")}</Link>}
				{alert.conversation && <Link to={`/chat/${encodeURIComponent(alert.conversation)}`}>{t("console.toConversation")}</Link>}
				{isOpen && alert.ackedAt === null && (
					<button type="button" onClick={() => ack.mutate()} disabled={ack.isPending}>
						{t("alerts.ack")}
					</button>
				)}
				{alert.ackedAt !== null && <span>{t("alerts.acked", { time: time(alert.ackedAt) })}</span>}
				{ack.error && <span role="alert">{reason(ack.error)}</span>}
			</p>
		</article>
	);
}
