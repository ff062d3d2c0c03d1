import { TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { PasswordField } from "../../ui/password-field.tsx";

export interface Account {
	username: string;
	password: string;
	again: string;
}

export type AccountProblem = "needName" | "tooShort" | "mismatch";

export function accountProblem(account: Account): AccountProblem | null {
	if (account.username.trim() === "") return "needName";
	if ([...account.password].length < 8) return "tooShort";
	return account.password === account.again ? null : "mismatch";
}

export function AccountStep({
	account,
	onChange,
	problem,
}: {
	account: Account;
	onChange(account: Account): void;
	problem: AccountProblem | null;
}) {
	const { t } = useTranslation();
	const error = (kind: AccountProblem) => (problem === kind ? t(`setup.${kind}`) : null);
	return (
		<>
			<TextInput
				label={t("login.username")}
				autoComplete="username"
				autoCapitalize="none"
				spellCheck={false}
				maxLength={64}
				value={account.username}
				onChange={(event) => onChange({ ...account, username: event.currentTarget.value })}
				error={error("needName")}
			/>
			<PasswordField
				label={t("login.password")}
				description={t("setup.passwordHint")}
				autoComplete="new-password"
				maxLength={256}
				value={account.password}
				onChange={(event) => onChange({ ...account, password: event.currentTarget.value })}
				error={error("tooShort")}
			/>
			<PasswordField
				label={t("setup.passwordAgain")}
				autoComplete="new-password"
				maxLength={256}
				value={account.again}
				onChange={(event) => onChange({ ...account, again: event.currentTarget.value })}
				error={error("mismatch")}
			/>
		</>
	);
}
