import { SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { type Locale, pickLocale } from "../../lib/i18n.ts";
import css from "./settings.module.css";
import { useSaveConfig } from "./use-config.ts";

export function LookSection() {
	const { t, i18n } = useTranslation();
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	const { save } = useSaveConfig();
	return (
		<section className={css.section}>
			<h2>{t("settings.look")}</h2>
			<div className={css.row}>
				<span id="settings-language">{t("settings.language")}</span>
				<SegmentedControl
					aria-labelledby="settings-language"
					data={[
						{ value: "zh-CN", label: "简体中文" },
						{ value: "en", label: "English" },
					]}
					value={i18n.language}
					onChange={(locale) => {
						pickLocale(locale as Locale);
						// Also the language of the sentences that the daemon says by itself; the page changes either way.
						save((config) => ({ ...config, locale })).catch(() => {});
					}}
				/>
			</div>
			<div className={css.row}>
				<span id="settings-theme">{t("settings.theme")}</span>
				<SegmentedControl
					aria-labelledby="settings-theme"
					data={[
						{ value: "auto", label: t("app.system") },
						{ value: "light", label: t("app.light") },
						{ value: "dark", label: t("app.dark") },
					]}
					value={colorScheme}
					onChange={(scheme) => setColorScheme(scheme as "auto" | "light" | "dark")}
				/>
			</div>
		</section>
	);
}
