import { Button, Select } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import type { Call } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration, fullCount } from "../../lib/format.ts";
import { part } from "../../lib/part.ts";
import { Notice } from "../../ui/parts.tsx";
import { Card, Loaded } from "./card.tsx";
import { Cost } from "./cost.tsx";
import css from "./records.module.css";
import { recordTime } from "./times.ts";
import { knownSources } from "./usage.ts";
import { useChanged } from "./use-changed.ts";
import { useFailureWords } from "./use-failure-words.ts";
import { useSourceName } from "./use-source-name.ts";

const CallSheet = part(() => import("./call-sheet.tsx"));
const pageSize = 50;

/** Every model call, newest first; filter and opened call stand in the address. */
export default function CallsTab() {
	const { t } = useTranslation();
	const nameOfSource = useSourceName();
	const [params, change] = useChanged(useSearchParams());
	const turn = params.get("turn");
	const source = params.get("source");
	const opened = params.get("call");
	const query = useInfiniteQuery({
		queryKey: ["calls", turn, source],
		initialPageParam: null as string | null,
		queryFn: ({ pageParam, signal }) => api.calls({ turn, source, before: pageParam, limit: pageSize }, signal),
		getNextPageParam: (page) => (page.calls.length < pageSize ? undefined : page.calls.at(-1)?.id),
		staleTime: 10_000,
	});
	return (
		<Card
			title={t("console.calls")}
			aside={
				<span className={css.filters}>
					{turn && (
						<Button variant="light" size="compact-sm" radius="xl" onClick={() => change({ turn: null })}>
							{t("calls.ofTurn", { turn: turn.slice(-4) })}
						</Button>
					)}
					<Select
						size="xs"
						aria-label={t("calls.source")}
						placeholder={t("calls.allSources")}
						data={knownSources.map((one) => ({ value: one, label: nameOfSource(one) }))}
						value={source}
						onChange={(value) => change({ source: value })}
						clearable
						clearButtonProps={{ "aria-label": t("calls.allSources") }}
						w={150}
					/>
				</span>
			}
		>
			<Loaded query={query} height={240}>
				{({ pages }) => {
					const calls = pages.flatMap((page) => page.calls);
					if (calls.length === 0)
						return <Notice title={t("calls.none")} text={t(turn || source ? "calls.noneFiltered" : "calls.noneHint")} />;
					return (
						<>
							<div className={`${css.row} ${css.callRow} ${css.header}`} aria-hidden="true">
								<span>{t("console.time")}</span>
								<span>{t("usage.column.source")}</span>
								<span>{t("usage.column.model")}</span>
								<span>{t("usage.column.in")}</span>
								<span>{t("usage.column.out")}</span>
								<span>{t("usage.column.cost")}</span>
								<span>{t("console.took")}</span>
							</div>
							<ul className={css.rows}>
								{calls.map((call) => (
									<li key={call.id}>
										<CallRow call={call} onOpen={() => change({ call: call.id })} />
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
					<CallSheet id={opened} onClose={() => change({ call: null })} />
				</Suspense>
			)}
		</Card>
	);
}

function CallRow({ call, onOpen }: { call: Call; onOpen(): void }) {
	const { t, i18n } = useTranslation();
	const nameOfSource = useSourceName();
	const wordsOf = useFailureWords();
	const count = (value: number) => `${call.estimated ? "≈ " : ""}${fullCount(value, i18n.language)}`;
	return (
		<button type="button" className={`${css.row} ${css.callRow}`} onClick={onOpen}>
			<time dateTime={call.at}>{recordTime(call.at, new Date(), i18n.language)}</time>
			<span>{nameOfSource(call.source)}</span>
			<span className={css.clip}>
				{call.model}
				{call.state !== "done" && <em className={css.bad}>{call.error ? wordsOf(call.error) : t(`calls.state.${call.state}`)}</em>}
			</span>
			<span className={css.number}>
				<span className="hidden">{t("usage.column.in")} </span>
				{count(call.inputTokens)}
			</span>
			<span className={css.number}>
				<span className="hidden">{t("usage.column.out")} </span>
				{count(call.outputTokens)}
			</span>
			<span className={css.number}>
				<Cost cost={call.cost} currency={call.currency} estimated={call.estimated} />
			</span>
			<span className={css.number}>{call.ms === null ? t("calls.state.open") : duration(call.ms)}</span>
		</button>
	);
}
