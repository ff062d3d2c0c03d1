import { useTranslation } from "react-i18next";
import { type Locale, pickLocale } from "../../lib/i18n.ts";
import { Choice } from "./choice.tsx";

const locales: [Locale, string, string][] = [
	["zh-CN", "简体中文", "页面和提醒都用中文"],
	["en", "English", "Pages and reminders in English"],
];

export function LanguageStep() {
	const { i18n } = useTranslation();
	return (
		<>
			{locales.map(([locale, label, hint]) => (
				<Choice
					key={locale}
					name="language"
					checked={i18n.language === locale}
					label={label}
					hint={hint}
					lang={locale}
					onPick={() => pickLocale(locale)}
				/>
			))}
		</>
	);
}
