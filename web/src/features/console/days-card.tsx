import { Button, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { fullCount, money, shortCount } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import { Card } from "./card.tsx";
import css from "./days.module.css";
import { dayLabel } from "./times.ts";
import { causes, type DayBar, forecastMonth, type Measure, mainCurrency, spanDays, stackDays } from "./usage.ts";
import { useDays, useUsage } from "./use-usage.ts";

const shownDays = 14;

/** Tokens or money of the last two weeks, a bar a day, by who caused it. */
export function DaysCard({ today, currency: budgetCurrency }: { today: string | null; currency: string }) {
	const { t, i18n } = useTranslation();
	const reason = useReason();
	const use = useDays(today, shownDays);
	const month = useUsage("day", today ? spanDays("month", today) : null);
	const [picked, setPicked] = useState<Measure | null>(null);
	const all = [...use.sources.values()].flat();
	const currency = mainCurrency(all, budgetCurrency);
	const costs = stackDays(use.days, use.sources, "cost", currency);
	const measure = picked ?? (costs.some((bar) => bar.total > 0) ? "cost" : "tokens");
	const bars = measure === "cost" ? costs : stackDays(use.days, use.sources, "tokens", currency);
	const figure = (value: number) => (measure === "cost" ? money(value, currency, i18n.language) : shortCount(value));
	const toDate = month.data?.rows.reduce(
		(sum, row) => sum + (measure === "cost" ? (row.costs[currency] ?? 0) : row.inputTokens + row.outputTokens),
		0,
	);
	const forecast = toDate === undefined ? null : forecastMonth(bars, toDate);
	const unpriced = measure === "cost" ? bars.reduce((sum, bar) => sum + bar.unpricedTokens, 0) : 0;
	return (
		<Card
			className={css.days}
			title={t(`usage.by.${measure}`)}
			aside={
				<SegmentedControl
					size="xs"
					withItemsBorders={false}
					aria-label={t("usage.measure")}
					data={[
						{ value: "cost", label: t("usage.cost") },
						{ value: "tokens", label: t("usage.tokens") },
					]}
					value={measure}
					onChange={(value) => setPicked(value as Measure)}
				/>
			}
		>
			<p className={css.hint}>
				{t("usage.lastDays", { count: shownDays })}
				{forecast !== null && forecast > 0 && ` · ${t("usage.forecast", { amount: figure(forecast) })}`}
			</p>
			{use.state === "failed" ? (
				<Notice role="alert" title={t("console.loadError")} text={reason(use.error)}>
					<Button variant="default" size="xs" onClick={use.retry}>
						{t("app.retry")}
					</Button>
				</Notice>
			) : use.state === "loading" ? (
				<div role="status" className={css.waiting}>
					<span className="hidden">{t("app.loading")}</span>
					<Skeleton height={150} />
				</div>
			) : (
				<Chart bars={bars} figure={figure} exact={(value) => (measure === "cost" ? figure(value) : fullCount(value, i18n.language))} />
			)}
			{unpriced > 0 && <p className={css.loud}>{t("usage.unpricedBars", { tokens: fullCount(unpriced, i18n.language) })}</p>}
		</Card>
	);
}

interface ChartProps {
	bars: DayBar[];
	figure(value: number): string;
	exact(value: number): string;
}

function Chart({ bars, figure, exact }: ChartProps) {
	const { t, i18n } = useTranslation();
	const [pointed, setPointed] = useState<string | null>(null);
	const most = Math.max(...bars.map((bar) => bar.total), 0);
	const shown = bars.find((bar) => bar.day === pointed) ?? bars.at(-1);
	if (most === 0 || !shown) return <p className={css.empty}>{t("usage.noDays")}</p>;
	return (
		<>
			<div className={css.chart} data-pointed={pointed ?? undefined} aria-hidden="true" onPointerLeave={() => setPointed(null)}>
				<span className={css.most}>{figure(most)}</span>
				{bars.map((bar) => (
					<div
						key={bar.day}
						className={css.day}
						data-on={bar.day === shown.day || undefined}
						onPointerEnter={() => setPointed(bar.day)}
						onPointerDown={() => setPointed(bar.day)}
					>
						{[...causes]
							.reverse()
							.map(
								(cause) =>
									bar.parts[cause] > 0 && <i key={cause} data-cause={cause} style={{ height: `${(bar.parts[cause] / most) * 100}%` }} />,
							)}
						{bar.total === 0 && <i data-cause="none" />}
					</div>
				))}
			</div>
			<div className={css.axis} aria-hidden="true">
				<span>{dayLabel(bars[0]?.day ?? "", i18n.language)}</span>
				<span>{t("app.today")}</span>
			</div>
			<dl className={css.legend}>
				<div className={css.shownDay}>
					<dt>{shown === bars.at(-1) ? t("app.today") : dayLabel(shown.day, i18n.language)}</dt>
					<dd>{exact(shown.total)}</dd>
				</div>
				{causes.map((cause) => (
					<div key={cause} data-cause={cause}>
						<dt>{t(`usage.cause.${cause}`)}</dt>
						<dd>{exact(shown.parts[cause])}</dd>
					</div>
				))}
			</dl>
			{/* A table grows with its words whatever its width says: only a box around it can be clipped. */}
			<div className="hidden">
				<table>
					<caption>{t("usage.lastDays", { count: bars.length })}</caption>
					<thead>
						<tr>
							<th scope="col">{t("usage.day")}</th>
							{causes.map((cause) => (
								<th key={cause} scope="col">
									{t(`usage.cause.${cause}`)}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{bars.map((bar) => (
							<tr key={bar.day}>
								<th scope="row">{dayLabel(bar.day, i18n.language)}</th>
								{causes.map((cause) => (
									<td key={cause}>{exact(bar.parts[cause])}</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</div>
		</>
	);
}
