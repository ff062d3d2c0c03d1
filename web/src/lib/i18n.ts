/** Language of the page: what the person picked here, else the configuration's, else the browser's. */
import i18next, { type i18n } from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "./locales/en.ts";
import { zhCn } from "./locales/zh-cn.ts";

export type Locale = "zh-CN" | "en";

const storageKey = "openlani.locale";

/** Any Chinese tag is zh-CN, everything else English. */
export function toLocale(tag: string | null | undefined): Locale | null {
	if (!tag) return null;
	return tag.toLowerCase().startsWith("zh") ? "zh-CN" : "en";
}

export function pickedLocale(): Locale | null {
	return toLocale(localStorage.getItem(storageKey));
}

export async function startI18n(): Promise<i18n> {
	await i18next.use(initReactI18next).init({
		resources: { en: { translation: en }, "zh-CN": { translation: zhCn } },
		lng: pickedLocale() ?? toLocale(navigator.language) ?? "en",
		fallbackLng: "en",
		// React escapes by itself.
		interpolation: { escapeValue: false },
		returnNull: false,
	});
	showLocale(i18next.language);
	i18next.on("languageChanged", showLocale);
	return i18next;
}

function showLocale(language: string): void {
	document.documentElement.lang = language;
}

/** A person's choice: kept in this browser. */
export function pickLocale(locale: Locale): void {
	localStorage.setItem(storageKey, locale);
	void i18next.changeLanguage(locale);
}

/** What the configuration says, if nobody chose here. */
export function followConfiguredLocale(locale: string | null): void {
	const wanted = toLocale(locale);
	if (wanted && pickedLocale() === null && i18next.language !== wanted) void i18next.changeLanguage(wanted);
}
