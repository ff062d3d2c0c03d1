import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { Notice } from "../ui/parts.tsx";

export function NotFound() {
	const { t } = useTranslation();
	return (
		<Notice title={t("app.notFound")} text={t("app.notFoundHint")}>
			<Button component={Link} to="/chat" variant="default">
				{t("app.toChat")}
			</Button>
		</Notice>
	);
}
