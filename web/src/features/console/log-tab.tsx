import { Button, SegmentedControl } from "@mantine/core";
import { memo, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import { Card } from "./card.tsx";
import css from "./log.module.css";
import { atLeast, type Level, type LogLine } from "./log.ts";
import { recordTime } from "./times.ts";
import { useLog } from "./use-log.ts";

const choices = ["info", "warn", "error"] as const;

/** What the daemon says, as it says it. Scrolling up stops the following, the button too. */
export default function LogTab() {
	const { t } = useTranslation();
	const [level, setLevel] = useState<Level>("info");
	const log = useLog(level);
	const box = useRef<HTMLDivElement>(null);
	const lines = log.lines.filter((line) => atLeast(line.level, level));
	const newest = lines.at(-1)?.seq;
	// biome-ignore lint/correctness/useExhaustiveDependencies: each new line is followed
	useLayoutEffect(() => {
		if (!log.paused && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [newest, log.paused]);
	return (
		<Card
			title={t("console.log")}
			aside={
				<span className={css.controls}>
					<SegmentedControl
						size="xs"
						withItemsBorders={false}
						aria-label={t("log.level")}
						data={choices.map((one) => ({ value: one, label: t(`log.from.${one}`) }))}
						value={level}
						onChange={(value) => setLevel(value as Level)}
					/>
					<Button variant="default" size="compact-sm" onClick={() => log.setPaused(!log.paused)} aria-pressed={log.paused}>
						{t(log.paused ? "log.follow" : "log.pause")}
					</Button>
				</span>
			}
		>
			<p className={css.state} role="status">
				{log.paused ? t("log.paused", { count: log.waiting }) : t("log.following")}
			</p>
			<div
				ref={box}
				className={css.box}
				role="log"
				aria-live="off"
				aria-label={t("console.log")}
				// biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
				tabIndex={0}
				onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
					const atEnd = scrollHeight - clientHeight - scrollTop < 24;
					if (!atEnd && !log.paused) log.setPaused(true);
				}}
			>
				{lines.map((line) => (
					<Line key={line.seq} line={line} />
				))}
				{lines.length === 0 && log.history === "ready" && <Notice title={t("log.none")} text={t("log.noneHint")} />}
				{lines.length === 0 && log.history === "loading" && <Skeleton height={160} />}
				{log.history === "failed" && (
					<Notice role="alert" title={t("console.loadError")}>
						<Button variant="default" size="xs" onClick={log.retry}>
							{t("app.retry")}
						</Button>
					</Notice>
				)}
			</div>
		</Card>
	);
}

const Line = memo(function Line({ line }: { line: LogLine }) {
	const { t, i18n } = useTranslation();
	return (
		<p className={css.line} data-level={line.level}>
			<time dateTime={line.at}>{recordTime(line.at, new Date(), i18n.language)}</time>
			{line.level !== "info" && <span className={css.level}>{t(`log.word.${line.level}`)}</span>}
			{line.turnId && (
				<Link to={`/console/turns?open=${encodeURIComponent(line.turnId)}`}>{t("log.turn", { id: line.turnId.slice(-4) })}</Link>
			)}
			<b>{line.event}</b>
			{line.message !== "" && <span>{line.message}</span>}
			{line.details !== "" && <span className={css.details}>{line.details}</span>}
		</p>
	);
});
