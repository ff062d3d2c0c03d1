import { Button } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Navigate, useNavigate } from "react-router";
import type { ModelEntry } from "../../../../server/http/contract.ts";
import { PageMenu } from "../../app/page-menu.tsx";
import { Splash } from "../../app/splash.tsx";
import { ApiError, api } from "../../lib/api.ts";
import type { Locale } from "../../lib/i18n.ts";
import { browserTimezone } from "../../lib/timezones.ts";
import { useReason } from "../../lib/use-reason.ts";
import { useTitle } from "../../lib/use-title.ts";
import { Mark } from "../../ui/mark.tsx";
import { Notice } from "../../ui/parts.tsx";
import { AccountStep, accountProblem } from "./account-step.tsx";
import { CodeStep } from "./code-step.tsx";
import { LanguageStep } from "./language-step.tsx";
import { LimitsStep } from "./limits-step.tsx";
import { type ModelChoice, ModelStep } from "./model-step.tsx";
import css from "./setup.module.css";

const steps = ["language", "model", "account", "limits"] as const;

/** The first start, in four short steps; nothing is written before the last. */
export default function SetupPage({ code: givenCode }: { code: string | null }) {
	const { t, i18n } = useTranslation();
	useTitle(t("setup.title"));
	const reason = useReason();
	const navigate = useNavigate();
	const queries = useQueryClient();
	const info = useQuery({
		queryKey: ["setup"],
		queryFn: ({ signal }) => api.setupInfo(signal),
		staleTime: 60_000,
		refetchInterval: (query) => (query.state.error ? 3000 : false),
	});
	const [code, setCode] = useState(givenCode);
	const [step, setStep] = useState(0);
	const [picked, setChoice] = useState<ModelChoice | null>(null);
	// What answers already is gone on with, unless something else is picked.
	const choice: ModelChoice = picked ?? { kind: info.data?.answering ? "given" : "demo" };
	const picksNone = choice.kind === "demo" || choice.kind === "given";
	const [entry, setEntry] = useState<ModelEntry | null>(null);
	const [account, setAccount] = useState({ username: "", password: "", again: "" });
	/** How often "Next" was refused here; from the first time on it is said why. */
	const [refusals, setRefusals] = useState(0);
	const showProblems = refusals > 0;
	const [limits, setLimits] = useState<{ timezone: string; tokens: number }>({ timezone: browserTimezone(), tokens: 2_000_000 });
	const heading = useRef<HTMLHeadingElement>(null);

	// biome-ignore lint/correctness/useExhaustiveDependencies: each step takes the focus
	useEffect(() => heading.current?.focus(), [step, code]);
	const form = useRef<HTMLFormElement>(null);
	useEffect(() => {
		if (refusals > 0) form.current?.querySelector<HTMLElement>("input[aria-invalid=true]")?.focus();
	}, [refusals]);

	const finish = useMutation({
		mutationFn: () =>
			api.setup({
				code: code ?? "",
				username: account.username.trim(),
				password: account.password,
				locale: i18n.language as Locale,
				timezone: limits.timezone,
				dailyTokens: limits.tokens,
				model: picksNone ? null : entry,
			}),
		async onSuccess() {
			queries.clear();
			await navigate("/chat", { replace: true });
		},
		onError(error) {
			if (error instanceof ApiError && error.problem.code === "wrong-setup-code") setCode(null);
		},
	});

	if (info.error instanceof ApiError && info.error.problem.status === 401) return <Navigate to="/login" replace />;
	if (info.data && !info.data.needed) return <Navigate to="/chat" replace />;
	if (!info.data)
		return info.error ? (
			<Notice alone role="alert" icon={<Mark size={44} />} title={t("offline.title")} text={t("offline.hint")} />
		) : (
			<Splash />
		);

	const name = steps[step] ?? "language";
	const wrongCode = finish.error instanceof ApiError && finish.error.problem.code === "wrong-setup-code";
	const problem = account.username === "" && !showProblems ? null : accountProblem(account);
	const blocked = (name === "model" && !picksNone && entry === null) || finish.isPending;

	function next(): void {
		if (name === "account" && accountProblem(account)) setRefusals(refusals + 1);
		else if (step < steps.length - 1) setStep(step + 1);
		else finish.mutate();
	}

	return (
		<main className={css.page}>
			<div className={css.corner}>
				<PageMenu signedIn={false} />
			</div>
			<div className={css.card}>
				<header className={css.head}>
					<Mark size={40} />
					<span>{t("setup.title")}</span>
				</header>
				{code === null ? (
					<CodeStep wrong={wrongCode} heading={heading} onCode={setCode} />
				) : (
					<form
						ref={form}
						onSubmit={(event) => {
							event.preventDefault();
							if (!blocked) next();
						}}
					>
						<ol className={css.steps} aria-label={t("setup.stepOf", { step: step + 1, total: steps.length })}>
							{steps.map((key, index) => (
								<li
									key={key}
									data-state={index < step ? "done" : index === step ? "now" : "next"}
									aria-current={index === step ? "step" : undefined}
								>
									{t(`setup.steps.${key}`)}
								</li>
							))}
						</ol>
						<h1 ref={heading} tabIndex={-1}>
							{t(`setup.${name}Title`)}
						</h1>
						<p className={css.hint}>{t(`setup.${name}Hint`)}</p>
						<div className={css.body}>
							{name === "language" && <LanguageStep />}
							{/* Stays mounted: what was typed and tested is there again on the way back. */}
							<div className={css.body} hidden={name !== "model"}>
								<ModelStep info={info.data} code={code} choice={choice} onChoice={setChoice} onEntry={setEntry} />
							</div>
							{name === "account" && <AccountStep account={account} onChange={setAccount} problem={showProblems ? problem : null} />}
							{name === "limits" && <LimitsStep limits={limits} onChange={setLimits} />}
						</div>
						{finish.error && !wrongCode && (
							<p className={css.problem} role="alert">
								{t("setup.failed", { reason: reason(finish.error) })}
							</p>
						)}
						<div className={css.actions}>
							{step > 0 ? (
								<Button variant="subtle" color="gray" onClick={() => setStep(step - 1)}>
									{t("setup.back")}
								</Button>
							) : (
								<span />
							)}
							<Button type="submit" disabled={blocked} loading={finish.isPending}>
								{t(step === steps.length - 1 ? "setup.finish" : "setup.next")}
							</Button>
						</div>
					</form>
				)}
			</div>
		</main>
	);
}
