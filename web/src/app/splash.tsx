import { useTranslation } from "react-i18next";
import { Mark } from "../ui/mark.tsx";
import css from "./shell.module.css";

/** The first half second. */
export function Splash() {
	const { t } = useTranslation();
	return (
		<div className={css.splash} role="status">
			<Mark size={44} />
			<span className="hidden">{t("app.loading")}</span>
		</div>
	);
}
