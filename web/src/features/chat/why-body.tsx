import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { Turn } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration, fullCount } from "../../lib/format.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import css from "./why.module.css";
import { WhyBlocks } from "./why-blocks.tsx";

/** Everything a turn rested on; `top` is shown above it once the turn is there. */
export function WhyBody({ turnId, top }: { turnId: string; top?(turn: Turn): ReactNode }) {
	const { t } = useTranslation();
	const query = useQuery({ queryKey: ["turn", turnId], queryFn: ({ signal }) => api.turn(turnId, signal), staleTime: 30_000 });
	if (query.data)
		return (
			<>
				{top?.(query.data)}
				<WhyTurn turn={query.data} />
			</>
		);
	if (query.isError)
		return (
			<Notice role="alert" title={t("why.error")}>
				<Button variant="default" size="xs" onClick={() => void query.refetch()}>
					{t("app.retry")}
				</Button>
			</Notice>
		);
	return (
		<div role="status" className={css.waiting}>
			<span className="hidden">{t("why.loading")}</span>
			<Skeleton height={9} />
			{["a", "b", "c", "d", "e"].map((key) => (
				<Skeleton key={key} height={16} />
			))}
		</div>
	);
}

function WhyTurn({ turn }: { turn: Turn }) {
	const { t, i18n } = useTranslation();
	const { why, usage } = turn;
	const models = [...new Set(turn.steps.map((step) => step.modelName))];
	const total = turn.startedAt && turn.endedAt ? Date.parse(turn.endedAt) - Date.parse(turn.startedAt) : null;
	const cached = usage.inputTokens > 0 && usage.cachedTokens > 0 ? Math.round((usage.cachedTokens / usage.inputTokens) * 100) : null;
	return (
		<>
			<WhyBlocks blocks={why.blocks} cachedPercent={cached} />
			<section className={css.section}>
				<h3>{t("why.recalled")}</h3>
				{why.recalled.length === 0 && <p className={css.soft}>{t("why.recalledNone")}</p>}
				{why.recalled.map((memory) => (
					<blockquote key={`${memory.at}${memory.text}`} className={css.card}>
						{memory.text}
						<footer>
							{new Intl.DateTimeFormat(i18n.language, { month: "2-digit", day: "2-digit" }).format(new Date(memory.at))}
							{" · "}
							{memory.by === "semantic" ? t("why.semantic", { score: memory.score.toFixed(2) }) : t("why.keyword")}
						</footer>
					</blockquote>
				))}
			</section>
			{why.lessons.length > 0 && (
				<section className={css.section}>
					<h3>{t("why.lessons")}</h3>
					{why.lessons.map((lesson) => (
						<div key={lesson.name} className={css.card}>
							{lesson.name}
						</div>
					))}
				</section>
			)}
			<section className={css.section}>
				<h3>{t("why.model")}</h3>
				<p>{models.join(", ") || turn.model}</p>
				{why.model.picked && <p className={css.soft}>{t("why.picked", { model: why.model.picked })}</p>}
				{why.model.reason && <p className={css.soft}>{why.model.reason}</p>}
				<p className={css.row}>
					<span>{total !== null && t("why.timing", { total: duration(total) })}</span>
					<span className={css.soft}>{t("why.calls", { count: usage.calls })}</span>
				</p>
				{why.folded > 0 && <p className={css.soft}>{t("why.folded", { count: why.folded })}</p>}
				{turn.guard && <p className={css.warn}>{t("why.guard", { guard: turn.guard })}</p>}
				{turn.taint.length > 0 && (
					<p className={css.warn}>{t("why.taint", { sources: [...new Set(turn.taint.map((one) => one.source))].join(", ") })}</p>
				)}
				{turn.error && <p className={css.warn}>{turn.error}</p>}
			</section>
			{turn.steps.length > 0 && (
				<section className={css.section}>
					<h3>{t("why.steps")}</h3>
					<ol className={css.steps}>
						{turn.steps.map((step) => (
							<li key={step.step}>
								<span>{t("why.step", { step: step.step })}</span>
								<span className={css.what}>{step.calls.map((call) => call.name).join(", ") || step.modelName}</span>
								<span className={css.number}>{fullCount(step.usage.inputTokens + step.usage.outputTokens, i18n.language)}</span>
								<span className={css.number}>{duration(Date.parse(step.endedAt) - Date.parse(step.startedAt))}</span>
								{step.text !== "" && step.calls.length > 0 && <q className={css.said}>{step.text}</q>}
							</li>
						))}
					</ol>
				</section>
			)}
		</>
	);
}
