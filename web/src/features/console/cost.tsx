import { useTranslation } from "react-i18next";
import { money } from "../../lib/format.ts";
import { Chip } from "../../ui/parts.tsx";

/** Money of one call or turn: known, guessed, free, or loudly unknown. */
export function Cost({ cost, currency, estimated }: { cost: number | null; currency: string; estimated: boolean }) {
	const { t, i18n } = useTranslation();
	if (cost === null) return <Chip tone="dawn">{t("chat.unpriced")}</Chip>;
	if (cost === 0) return t("chat.free");
	return `${estimated ? "≈ " : ""}${money(cost, currency, i18n.language)}`;
}
