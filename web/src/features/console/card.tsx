import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useReason } from "../../lib/use-reason.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import css from "./console.module.css";

interface CardProps {
	title: string;
	/** Beside the title, at the end of the line. */
	aside?: ReactNode;
	className?: string | undefined;
	children: ReactNode;
}

export function Card({ title, aside, className = "", children }: CardProps) {
	return (
		<section className={`${css.card} ${className}`} aria-label={title}>
			<div className={css.cardTop}>
				<h2>{title}</h2>
				{aside}
			</div>
			{children}
		</section>
	);
}

interface LoadedProps<T> {
	query: Pick<UseQueryResult<T>, "data" | "error" | "refetch">;
	/** Place taken until the data is there. */
	height: number;
	children(data: T): ReactNode;
}

/** What came; while it comes, its place; when it does not, why and what to do. */
export function Loaded<T>({ query, height, children }: LoadedProps<T>) {
	const { t } = useTranslation();
	const reason = useReason();
	if (query.data !== undefined) return children(query.data);
	if (query.error)
		return (
			<Notice role="alert" title={t("console.loadError")} text={reason(query.error)}>
				<Button variant="default" size="xs" onClick={() => void query.refetch()}>
					{t("app.retry")}
				</Button>
			</Notice>
		);
	return (
		<div role="status">
			<span className="hidden">{t("app.loading")}</span>
			<Skeleton height={height} />
		</div>
	);
}
