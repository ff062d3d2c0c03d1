import { Button, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Navigate, useLocation, useNavigate } from "react-router";
import { PageMenu } from "../../app/page-menu.tsx";
import { ApiError, api } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { useTitle } from "../../lib/use-title.ts";
import { Mark } from "../../ui/mark.tsx";
import { PasswordField } from "../../ui/password-field.tsx";
import css from "./login.module.css";

export default function LoginPage() {
	const { t } = useTranslation();
	const reason = useReason();
	const queries = useQueryClient();
	const navigate = useNavigate();
	const location = useLocation();
	useTitle(`${t("login.submit")} · OpenLani`);
	const [username, setUsername] = useState("");
	const [password, setPassword] = useState("");
	const login = useMutation({
		mutationFn: () => api.login(username.trim(), password),
		async onSuccess() {
			const from: unknown = (location.state as { from?: unknown } | null)?.from;
			queries.clear();
			await navigate(typeof from === "string" && from.startsWith("/") ? from : "/chat", { replace: true });
		},
	});
	const setup = useQuery({ queryKey: ["setup"], queryFn: ({ signal }) => api.setupInfo(signal), retry: false, staleTime: 60_000 });
	if (setup.data?.needed) return <Navigate to="/setup" replace />;
	const status = login.error instanceof ApiError ? login.error.problem.status : null;
	const problem = login.error ? (status === 401 ? t("login.wrong") : status === 429 ? t("login.slow") : reason(login.error)) : null;
	return (
		<main className={css.page}>
			<div className={css.corner}>
				<PageMenu signedIn={false} />
			</div>
			<form
				className={css.card}
				onSubmit={(event) => {
					event.preventDefault();
					login.mutate();
				}}
			>
				<Mark size={48} />
				<h1>OpenLani</h1>
				<TextInput
					label={t("login.username")}
					autoComplete="username"
					autoCapitalize="none"
					spellCheck={false}
					required
					withAsterisk={false}
					autoFocus
					value={username}
					onChange={(event) => setUsername(event.currentTarget.value)}
				/>
				<PasswordField
					label={t("login.password")}
					autoComplete="current-password"
					required
					withAsterisk={false}
					value={password}
					onChange={(event) => setPassword(event.currentTarget.value)}
				/>
				<p className={css.problem} role="alert">
					{problem}
				</p>
				<Button type="submit" fullWidth size="md" loading={login.isPending}>
					{t("login.submit")}
				</Button>
			</form>
		</main>
	);
}
