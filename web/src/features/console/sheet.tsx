import { Drawer } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import css from "./records.module.css";

/** Details of one record: from the side, on a phone from below. */
export function Sheet({ title, size, onClose, children }: { title: string; size: number; onClose(): void; children: ReactNode }) {
	const { t } = useTranslation();
	const phone = useMediaQuery("(max-width: 720px)", undefined, { getInitialValueInEffect: false });
	return (
		<Drawer
			opened
			onClose={onClose}
			position={phone ? "bottom" : "right"}
			size={phone ? "86dvh" : size}
			title={title}
			closeButtonProps={{ "aria-label": t("app.close") }}
			classNames={{ content: css.sheet, title: css.sheetTitle }}
		>
			{children}
		</Drawer>
	);
}

/** Names and values, one a line; what is null is left out. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
	return (
		<dl className={css.facts}>
			{facts
				.filter(([, value]) => value !== null && value !== "" && value !== undefined)
				.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
		</dl>
	);
}
