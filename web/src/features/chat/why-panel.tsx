import { ActionIcon, Drawer } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { X } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import css from "./why.module.css";
import { WhyBody } from "./why-body.tsx";

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
