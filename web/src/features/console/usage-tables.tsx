import { SegmentedControl } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { UsageRow } from "../../../../server/http/contract.ts";
import type { UsageBy } from "../../lib/api.ts";
import { fullCount, money } from "../../lib/format.ts";
import { Chip } from "../../ui/parts.tsx";
import { useConversations } from "../chat/conversation-list.tsx";
import { plainLine } from "../chat/trace.ts";
import { Card, Loaded } from "./card.tsx";
import css from "./usage.module.css";
import { cachedPercent, type Span, sortRows, spanDays, sumRows } from "./usage.ts";
import { useSourceName } from "./use-source-name.ts";
import { useUsage } from "./use-usage.ts";

const longest = 30;

/** Who used what, in three ways of looking at it. */
export function UsageTables({ today }: { today: string | null }) {
	const { t } = useTranslation();
	const [span, setSpan] = useState<Span>("today");
	const days = today ? spanDays(span, today) : null;
	const nameOfSource = useSourceName();
	const conversations = useConversations().data?.conversations;
	return (
		<>
			<Card
				title={t("usage.table.source")}
				aside={
					<SegmentedControl
						size="xs"
						withItemsBorders={false}
						aria-label={t("usage.span")}
						data={(["today", "week", "month"] as const).map((one) => ({ value: one, label: t(`usage.spans.${one}`) }))}
						value={span}
						onChange={(value) => setSpan(value as Span)}
					/>
				}
			>
				<Table by="source" days={days} name={nameOfSource} total />
			</Card>
			<div className={css.pair}>
				<Card title={t("usage.table.model")}>
					<Table by="model" days={days} name={(key) => key} />
				</Card>
				<Card title={t("usage.table.conversation")}>
					<Table
						by="conversation"
						days={days}
						name={(key) => {
							if (key === "none") return t("usage.noConversation");
							const title = plainLine(conversations?.find((one) => one.id === key)?.title ?? "");
							return <Link to={`/chat/${key}`}>{title || t("usage.someConversation", { id: key.slice(-4) })}</Link>;
						}}
					/>
				</Card>
			</div>
		</>
	);
}

interface TableProps {
	by: UsageBy;
	days: { from: string; to: string } | null;
	name(key: string): ReactNode;
	total?: boolean;
}

function Table({ by, days, name, total = false }: TableProps) {
	const { t } = useTranslation();
	const query = useUsage(by, days);
	return (
		<Loaded query={query} height={120}>
			{({ rows: all }) => {
				const rows = sortRows(all);
				if (rows.length === 0) return <p className={css.soft}>{t("usage.noRows")}</p>;
				return (
					<>
						<table className={css.table}>
							<thead>
								<tr>
									<th scope="col">{t(`usage.column.${by}`)}</th>
									<th scope="col">{t("usage.column.calls")}</th>
									<th scope="col">{t("usage.column.in")}</th>
									<th scope="col" className={css.wide}>
										{t("usage.column.cached")}
									</th>
									<th scope="col">{t("usage.column.out")}</th>
									<th scope="col">{t("usage.column.cost")}</th>
								</tr>
							</thead>
							<tbody>
								{rows.slice(0, longest).map((row) => (
									<Row key={row.key} row={row} name={name(row.key)} />
								))}
							</tbody>
							{total && rows.length > 1 && (
								<tfoot>
									<Row row={sumRows(rows, "all")} name={t("usage.all")} />
								</tfoot>
							)}
						</table>
						{rows.length > longest && <p className={css.soft}>{t("usage.more", { count: rows.length - longest })}</p>}
					</>
				);
			}}
		</Loaded>
	);
}

function Row({ row, name }: { row: UsageRow; name: ReactNode }) {
	const { t, i18n } = useTranslation();
	const count = (value: number) => fullCount(value, i18n.language);
	const cached = cachedPercent(row);
	const about = row.estimatedTokens > 0 ? "≈ " : "";
	return (
		<tr title={about ? t("usage.estimatedPart", { tokens: count(row.estimatedTokens) }) : undefined}>
			<th scope="row">{name}</th>
			<td>{count(row.calls)}</td>
			<td>
				{about}
				{count(row.inputTokens)}
				{cached !== null && cached > 0 && <small className={css.narrow}>{t("usage.cachedShort", { percent: cached })}</small>}
			</td>
			<td className={css.wide}>{cached === null ? "–" : `${cached} %`}</td>
			<td>
				{about}
				{count(row.outputTokens)}
			</td>
			<td>
				<Costs row={row} />
			</td>
		</tr>
	);
}

/** Money by currency; tokens without a price are said beside it, never added as nothing. */
function Costs({ row }: { row: UsageRow }) {
	const { t, i18n } = useTranslation();
	const spent = Object.entries(row.costs).filter(([, cost]) => cost > 0);
	const about = row.estimatedTokens > 0 && spent.length > 0 ? "≈ " : "";
	const text = spent.map(([currency, cost]) => money(cost, currency, i18n.language)).join(" + ");
	return (
		<span className={css.costs}>
			{text !== "" ? about + text : row.unpricedTokens === 0 && t("chat.free")}
			{row.unpricedTokens > 0 && (
				<Chip tone="dawn" title={t("usage.unpricedTokens", { tokens: fullCount(row.unpricedTokens, i18n.language) })}>
					{t("chat.unpriced")}
				</Chip>
			)}
		</span>
	);
}
