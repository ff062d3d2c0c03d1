import { ActionIcon } from "@mantine/core";
import { ChevronLeft } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import css from "./chat-page.module.css";

/** On a phone: where one is, and the way back to the list. Hidden on wide screens, where the list says it. */
export function PhoneTop({ title }: { title: string }) {
	const { t } = useTranslation();
	return (
		<div className={css.top}>
			<ActionIcon component={Link} to="/chat" variant="subtle" color="gray" size={36} aria-label={t("list.back")}>
				<ChevronLeft size={20} aria-hidden="true" />
			</ActionIcon>
			<h1>{title}</h1>
		</div>
	);
}
