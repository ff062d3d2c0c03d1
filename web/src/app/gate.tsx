import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Navigate, useLocation, useNavigate } from "react-router";
import { ApiError, api } from "../lib/api.ts";
import { followConfiguredLocale } from "../lib/i18n.ts";
import { Mark } from "../ui/mark.tsx";
import { Notice } from "../ui/parts.tsx";
import { SessionProvider } from "./session.tsx";
import { Shell } from "./shell.tsx";
import { Splash } from "./splash.tsx";

/** Lets in who is signed in; sends others to the login; waits for a daemon that is not there. */
export function Gate() {
	const location = useLocation();
	const navigate = useNavigate();
	const queries = useQueryClient();
	const status = useQuery({
		queryKey: ["status"],
		queryFn: ({ signal }) => api.status(signal),
		staleTime: 30_000,
		refetchInterval: (query) => (query.state.data ? 60_000 : query.state.error ? 3000 : false),
	});
	const locale = status.data?.locale ?? null;
	useEffect(() => followConfiguredLocale(locale), [locale]);
	const signedOut = useCallback(() => {
		queries.clear();
		void navigate("/login", { replace: true });
	}, [queries, navigate]);

	const signedIn = !(status.error instanceof ApiError && status.error.problem.status === 401);
	if (!signedIn) return <Navigate to="/login" replace state={{ from: location.pathname }} />;
	if (status.data)
		return (
			<SessionProvider onSignedOut={signedOut}>
				<Shell />
			</SessionProvider>
		);
	return status.error ? <Away onRetry={() => void status.refetch()} /> : <Splash />;
}

function Away({ onRetry }: { onRetry(): void }) {
	const { t } = useTranslation();
	return (
		<main>
			<Notice alone role="alert" icon={<Mark size={44} />} title={t("offline.title")} text={t("offline.hint")}>
				<Button variant="default" onClick={onRetry}>
					{t("offline.retry")}
				</Button>
			</Notice>
		</main>
	);
}
