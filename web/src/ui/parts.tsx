import type { ReactNode } from "react";
import css from "./parts.module.css";

export type Tone = "plain" | "ok" | "dawn" | "accent";

/** A word about a state, small and round. */
export function Chip({ tone = "plain", title, children }: { tone?: Tone; title?: string | undefined; children: ReactNode }) {
	return (
		<span className={css.chip} data-tone={tone} title={title}>
			{children}
		</span>
	);
}

/** Colour beside a state word; never the only sign. */
export function Dot({ tone }: { tone: Tone }) {
	return <span className={css.dot} data-tone={tone} aria-hidden="true" />;
}

interface NoticeProps {
	icon?: ReactNode;
	title: string;
	text?: string | undefined;
	role?: "alert";
	/** Stands alone, in the middle of the window. */
	alone?: boolean;
	children?: ReactNode;
}

/** A designed empty or error state: what is, and what to do. */
export function Notice({ icon, title, text, role, alone = false, children }: NoticeProps) {
	return (
		<div className={css.notice} role={role} data-alone={alone || undefined}>
			{icon}
			<h2>{title}</h2>
			{text && <p>{text}</p>}
			{children}
		</div>
	);
}

/** A place-holder of the final size. */
export function Skeleton({ width = "100%", height }: { width?: string | number; height: number }) {
	return <div className={css.skeleton} style={{ width, height }} aria-hidden="true" />;
}
