import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { useStatus } from "../../app/session.tsx";
import { useSignOut } from "../../app/sign-out.ts";
import { fullTime } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Notice, Skeleton } from "../../ui/parts.tsx";
import { ConfigErrors } from "./config-errors.tsx";
import { LimitsSection } from "./limits-section.tsx";
import { LookSection } from "./look-section.tsx";
import { ModelsSection } from "./models-section.tsx";
import css from "./settings.module.css";
import { useConfig } from "./use-config.ts";

export default function SettingsPage() {
	const { t, i18n } = useTranslation();
	const reason = useReason();
	const status = useStatus();
	const config = useConfig();
	const signOut = useSignOut();
	return (
		<div className={css.scroll}>
			<div className={css.page}>
				<h1>{t("settings.title")}</h1>
				{status && <ConfigErrors status={status} />}
				<LookSection />
				{config.data ? (
					<>
						<ModelsSection config={config.data} status={status} />
						<LimitsSection config={config.data} status={status} />
					</>
				) : config.error ? (
					<Notice role="alert" title={t("settings.loadError")} text={reason(config.error)}>
						<Button variant="default" onClick={() => void config.refetch()}>
							{t("app.retry")}
						</Button>
					</Notice>
				) : (
					<div className={css.section} role="status">
						<span className="hidden">{t("app.loading")}</span>
						<Skeleton height={120} />
						<Skeleton height={90} />
					</div>
				)}
				<section className={css.section}>
					<h2>{t("settings.account")}</h2>
					<div className={css.row}>
						<p className={css.soft}>{t("settings.signOutHint")}</p>
						<Button variant="default" onClick={signOut}>
							{t("app.signOut")}
						</Button>
					</div>
				</section>
				{status && (
					<p className={css.about}>
						{t("settings.version", { version: status.version, since: fullTime(status.startedAt, i18n.language) })}
					</p>
				)}
			</div>
		</div>
	);
}
