import { useTranslation } from "react-i18next";
import { isKnownSource } from "./usage.ts";

/** What people call a source of calls; a name we have no word for stays as it is. */
export function useSourceName(): (source: string) => string {
	const { t } = useTranslation();
	return (source) => (isKnownSource(source) ? t(`source.${source}`) : source);
}
