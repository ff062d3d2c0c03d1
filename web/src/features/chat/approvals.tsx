import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Approval } from "../../../../server/http/contract.ts";
import { useStatus } from "../../app/session.tsx";
import { ApiError, api } from "../../lib/api.ts";
import { clockTime } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import css from "./approvals.module.css";
import { waitingIn } from "./decisions.ts";
import { summarizeArguments } from "./trace.ts";

/** What the agent may not do here before the master has said so. Frames keep the list fresh. */
export function Approvals({ conversation }: { conversation: string }) {
	const query = useQuery({ queryKey: ["approvals"], queryFn: ({ signal }) => api.approvals(signal), staleTime: 60_000 });
	return (
		<div aria-live="polite">
			{waitingIn(query.data?.approvals ?? [], conversation).map((approval) => (
				<ApprovalCard key={approval.id} approval={approval} />
			))}
		</div>
	);
}

function ApprovalCard({ approval }: { approval: Approval }) {
	const { t, i18n } = useTranslation();
	const reason = useReason();
	const queries = useQueryClient();
	const name = useStatus()?.agentName ?? "OpenLani";
	const titleId = useId();
	const [sent, setSent] = useState<"allow" | "deny" | null>(null);
	const [problem, setProblem] = useState<string | null>(null);

	async function decide(decision: "allow" | "deny"): Promise<void> {
		setSent(decision);
		setProblem(null);
		try {
			// What is forgotten is told by nobody afterwards: as long as this page is open it can still say what it was.
			queries.setQueryData(["about", approval.id], approval.about);
			await api.decideApproval(approval.id, decision);
		} catch (error) {
			// Somebody else was faster, or its time is over: the list says what is.
			if (!(error instanceof ApiError && (error.problem.status === 409 || error.problem.status === 404))) {
				setSent(null);
				setProblem(t("approval.failed", { reason: reason(error) }));
			}
		}
		await queries.invalidateQueries({ queryKey: ["approvals"] });
	}

	const forgets = approval.tool === "forget";
	return (
		<section className={css.card} aria-labelledby={titleId} data-approval={approval.id}>
			<p id={titleId} className={css.title}>
				{forgets ? t("approval.forget", { name }) : t("approval.use", { name, tool: approval.tool })}
			</p>
			{approval.about !== null ? (
				<blockquote className={css.about}>{approval.about}</blockquote>
			) : (
				<code className={css.arguments}>{summarizeArguments(JSON.stringify(approval.arguments))}</code>
			)}
			{approval.person !== "master" && <p className={css.note}>{t("approval.person", { person: approval.person })}</p>}
			{approval.origin !== "human" && <p className={css.note}>{t("approval.itself")}</p>}
			{approval.tainted && <p className={css.warning}>{t("approval.tainted")}</p>}
			<div className={css.row}>
				<Button size="compact-md" loading={sent === "allow"} disabled={sent !== null} onClick={() => void decide("allow")}>
					{t("approval.allow")}
				</Button>
				<Button size="compact-md" variant="default" loading={sent === "deny"} disabled={sent !== null} onClick={() => void decide("deny")}>
					{t("approval.deny")}
				</Button>
				<span className={css.note}>{t("approval.until", { time: clockTime(approval.expiresAt, i18n.language) })}</span>
			</div>
			{problem && (
				<p className={css.warning} role="alert">
					{problem}
				</p>
			)}
		</section>
	);
}
