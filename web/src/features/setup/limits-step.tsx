import { NumberInput, Select } from "@mantine/core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { fullCount } from "../../lib/format.ts";
import { timezones } from "../../lib/timezones.ts";

/** A short question with its answer, everything counted. */
const tokensPerMessage = 3000;

interface Limits {
	timezone: string;
	tokens: number;
}

export function LimitsStep({ limits, onChange }: { limits: Limits; onChange(limits: Limits): void }) {
	const { t, i18n } = useTranslation();
	const zones = useMemo(() => timezones(limits.timezone), [limits.timezone]);
	return (
		<>
			<Select
				label={t("setup.timezone")}
				data={zones}
				value={limits.timezone}
				onChange={(timezone) => timezone && onChange({ ...limits, timezone })}
				searchable
				allowDeselect={false}
				limit={80}
				comboboxProps={{ transitionProps: { duration: 80 } }}
			/>
			<NumberInput
				label={t("setup.tokens")}
				description={t("setup.tokensHint", {
					tokens: fullCount(limits.tokens, i18n.language),
					messages: fullCount(limits.tokens / tokensPerMessage, i18n.language),
				})}
				value={limits.tokens}
				onChange={(tokens) => onChange({ ...limits, tokens: Math.max(0, Math.round(Number(tokens) || 0)) })}
				min={0}
				step={100_000}
				thousandSeparator=","
				allowDecimal={false}
				allowNegative={false}
			/>
		</>
	);
}
