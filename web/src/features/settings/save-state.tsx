import { useTranslation } from "react-i18next";
import { useReason } from "../../lib/use-reason.ts";
import css from "./settings.module.css";
import type { SaveConfig } from "./use-config.ts";

/** Saved, refused (and why), or waiting for a restart: in words, beside the button. */
export function SaveState({ saving }: { saving: SaveConfig }) {
	const { t } = useTranslation();
	const reason = useReason();
	return (
		<span role="status" className={css.state}>
			{saving.error ? (
				<span className={css.bad}>{t("settings.saveFailed", { reason: reason(saving.error) })}</span>
			) : saving.saved ? (
				<span className={css.good}>{t("settings.saved")}</span>
			) : saving.restart.length > 0 ? (
				t("settings.restart", { keys: saving.restart.join(", ") })
			) : null}
		</span>
	);
}
