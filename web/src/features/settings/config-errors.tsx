import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import css from "./settings.module.css";

/** What is wrong in config.yaml, by key and line, what waits for a restart, and what changes nothing. */
export function ConfigErrors({ status }: { status: Status }) {
	const { t } = useTranslation();
	// A daemon of an earlier build says less.
	const { errors, withoutEffect = [], restartNeeded } = status.config;
	return (
		<>
			{errors.length > 0 && (
				<section className={css.errors} role="alert">
					<h2>{t("settings.errors")}</h2>
					<p>{t("settings.errorsHint")}</p>
					<ul>
						{errors.map((error) => (
							<li key={`${error.key}${error.line}`}>
								<code>{error.key}</code>
								{error.line !== null && <span className={css.line}>{t("settings.line", { line: error.line })}</span>}
								<span>{error.message}</span>
							</li>
						))}
					</ul>
				</section>
			)}
			{withoutEffect.length > 0 && (
				<p className={css.idle}>{t("settings.withoutEffect", { keys: withoutEffect.map(({ key }) => key).join(", ") })}</p>
			)}
			{restartNeeded.length > 0 && <p className={css.restart}>{t("settings.restart", { keys: restartNeeded.join(", ") })}</p>}
		</>
	);
}
