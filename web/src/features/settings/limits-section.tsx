import { Button, NumberInput, Select } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import type { Config } from "../../lib/api.ts";
import { fullCount } from "../../lib/format.ts";
import { browserTimezone, timezones } from "../../lib/timezones.ts";
import { dailyTokens, withDailyTokens } from "./config.ts";
import { SaveState } from "./save-state.tsx";
import css from "./settings.module.css";
import { useSaveConfig } from "./use-config.ts";

/** Daily limit and time zone, saved together. */
export function LimitsSection({ config, status }: { config: Config; status: Status | undefined }) {
	const { t, i18n } = useTranslation();
	const saving = useSaveConfig();
	const configured = {
		tokens: dailyTokens(config),
		zone: typeof config.timezone === "string" ? config.timezone : (status?.timezone ?? browserTimezone()),
	};
	const [tokens, setTokens] = useState(configured.tokens);
	const [zone, setZone] = useState(configured.zone);
	useEffect(() => setTokens(configured.tokens), [configured.tokens]);
	useEffect(() => setZone(configured.zone), [configured.zone]);
	const zones = useMemo(() => timezones(zone), [zone]);
	const changed = tokens !== configured.tokens || zone !== configured.zone;
	return (
		<section className={css.section}>
			<h2>{t("settings.budget")}</h2>
			<p className={css.soft}>
				{t("settings.budgetHint", { zone: configured.zone, used: fullCount(status?.fuse.usedTokens ?? 0, i18n.language) })}
			</p>
			<form
				className={css.fields}
				onSubmit={(event) => {
					event.preventDefault();
					saving.save((before) => withDailyTokens({ ...before, timezone: zone }, tokens)).catch(() => {});
				}}
			>
				<NumberInput
					label={t("settings.tokens")}
					description={t("settings.tokensNone")}
					value={tokens}
					onChange={(value) => setTokens(Math.max(0, Math.round(Number(value) || 0)))}
					min={0}
					step={100_000}
					thousandSeparator=","
					allowDecimal={false}
					allowNegative={false}
				/>
				<Select
					label={t("settings.timezone")}
					description={t("settings.timezoneHint")}
					data={zones}
					value={zone}
					onChange={(value) => value && setZone(value)}
					searchable
					allowDeselect={false}
					limit={80}
					comboboxProps={{ transitionProps: { duration: 80 } }}
				/>
				<div className={css.saveRow}>
					<Button type="submit" disabled={!changed} loading={saving.busy}>
						{t("app.save")}
					</Button>
					<SaveState saving={saving} />
				</div>
			</form>
		</section>
	);
}
