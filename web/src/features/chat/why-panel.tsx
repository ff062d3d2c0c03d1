import { ActionIcon, Button, Drawer } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Turn } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration, fullCount } from "../../lib/format.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import css from "./why.module.css";
import { WhyBlocks } from "./why-blocks.tsx";

/** Why an answer came out as it did: beside the text on a wide screen, a sheet from below on a phone. */
export default function WhyPanel({ turnId, onClose }: { turnId: string; onClose(): void }) {
	const { t } = useTranslation();
	const wide = useMediaQuery("(min-width: 1200px)", undefined, { getInitialValueInEffect: false });
	const phone = useMediaQuery("(max-width: 720px)", undefined, { getInitialValueInEffect: false });
	const title = useRef<HTMLHeadingElement>(null);
	// biome-ignore lint/correctness/useExhaustiveDependencies: each opened turn takes the focus
	useEffect(() => title.current?.focus(), [turnId]);
	if (!wide)
		return (
			<Drawer
				opened
				onClose={onClose}
				position={phone ? "bottom" : "right"}
				size={phone ? "78dvh" : 340}
				title={t("why.title")}
				closeButtonProps={{ "aria-label": t("app.close") }}
				classNames={{ content: css.sheet, title: css.sheetTitle }}
			>
				<WhyBody turnId={turnId} />
			</Drawer>
		);
	return (
		<aside className={css.panel} aria-label={t("why.title")} onKeyDown={(event) => event.key === "Escape" && onClose()}>
			<div className={css.top}>
				<h2 ref={title} tabIndex={-1}>
					{t("why.title")}
				</h2>
				<ActionIcon variant="subtle" color="gray" onClick={onClose} aria-label={t("app.close")}>
					<X size={17} aria-hidden="true" />
				</ActionIcon>
			</div>
			<WhyBody turnId={turnId} />
		</aside>
	);
}

function WhyBody({ turnId }: { turnId: string }) {
	const { t } = useTranslation();
	const query = useQuery({ queryKey: ["turn", turnId], queryFn: ({ signal }) => api.turn(turnId, signal), staleTime: 30_000 });
	if (query.data) return <WhyTurn turn={query.data} />;
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
							</li>
						))}
					</ol>
				</section>
			)}
		</>
	);
}
