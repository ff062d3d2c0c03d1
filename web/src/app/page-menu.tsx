import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { Check, EllipsisVertical } from "lucide-react";
import { useTranslation } from "react-i18next";
import { type Locale, pickLocale } from "../lib/i18n.ts";
import { useSignOut } from "./sign-out.ts";

const locales: [Locale, string][] = [
	["zh-CN", "简体中文"],
	["en", "English"],
];

/** Theme, language and, for who is in, the way out. */
export function PageMenu({ signedIn = true }: { signedIn?: boolean }) {
	const { t, i18n } = useTranslation();
	const { colorScheme, setColorScheme } = useMantineColorScheme();
	const signOut = useSignOut();
	const themes = [
		["auto", t("app.system")],
		["light", t("app.light")],
		["dark", t("app.dark")],
	] as const;
	return (
		<Menu position="bottom-end" width={190} withinPortal>
			<Menu.Target>
				<ActionIcon variant="subtle" color="gray" aria-label={t("app.menu")}>
					<EllipsisVertical size={18} aria-hidden="true" />
				</ActionIcon>
			</Menu.Target>
			<Menu.Dropdown>
				<Menu.Label>{t("app.theme")}</Menu.Label>
				{themes.map(([scheme, label]) => (
					<Menu.Item key={scheme} onClick={() => setColorScheme(scheme)} rightSection={<Mark on={colorScheme === scheme} />}>
						{label}
					</Menu.Item>
				))}
				<Menu.Label>{t("app.language")}</Menu.Label>
				{locales.map(([locale, label]) => (
					<Menu.Item key={locale} lang={locale} onClick={() => pickLocale(locale)} rightSection={<Mark on={i18n.language === locale} />}>
						{label}
					</Menu.Item>
				))}
				{signedIn && <Menu.Divider />}
				{signedIn && <Menu.Item onClick={signOut}>{t("app.signOut")}</Menu.Item>}
			</Menu.Dropdown>
		</Menu>
	);
}

function Mark({ on }: { on: boolean }) {
	return on ? <Check size={15} aria-label="✓" /> : null;
}
