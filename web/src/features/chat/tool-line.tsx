import { useQuery } from "@tanstack/react-query";
import { Check, ChevronRight, CircleDashed, Hourglass, LoaderCircle, Minus, X } from "lucide-react";
import { memo, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Approval, ToolLine as Line } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration } from "../../lib/format.ts";
import { decisionOn } from "./decisions.ts";
import css from "./message.module.css";
import { prettyJson, summarizeArguments } from "./trace.ts";

const icons = {
	open: CircleDashed,
	started: LoaderCircle,
	done: Check,
	failed: X,
	skipped: Minus,
	interrupted: Minus,
} as const;

/** One line of evidence: what was done, with what, how long; arguments and result on demand. */
export const ToolLine = memo(function ToolLine({ tool, turnId }: { tool: Line; turnId: string | null }) {
	const { t } = useTranslation();
	const [open, setOpen] = useState(false);
	const id = useId();
	const fate = useFate(tool, turnId);
	const Icon = fate === "pending" ? Hourglass : icons[tool.state];
	const word = fate ? t(`approval.fate.${fate}`) : t(`tool.${tool.state}`);
	return (
		<div className={css.tool}>
			<button
				type="button"
				className={css.toolLine}
				data-state={tool.state}
				aria-expanded={open}
				aria-controls={id}
				onClick={() => setOpen(!open)}
			>
				<Icon size={15} className={css.toolMark} aria-hidden="true" />
				<code>{tool.name}</code>
				<span className={css.toolWhat}>{summarizeArguments(tool.arguments)}</span>
				<span className={css.toolTime}>{tool.state === "done" ? tool.ms !== null && duration(tool.ms) : word}</span>
				{tool.state === "done" && <span className="hidden">{word}</span>}
				<ChevronRight size={15} className={css.chevron} data-open={open || undefined} aria-hidden="true" />
			</button>
			<div id={id} hidden={!open} className={css.toolBody}>
				{open && (
					<>
						<h4>{t("tool.arguments")}</h4>
						{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
						<pre tabIndex={0}>{prettyJson(tool.arguments)}</pre>
						<h4>{t("tool.result")}</h4>
						{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
						<pre tabIndex={0}>{tool.result === null ? t("tool.noResult") : prettyJson(tool.result)}</pre>
					</>
				)}
			</div>
		</div>
	);
});

/** What became of a call that was put aside for approval; null for any other call. Frames keep the list fresh. */
function useFate(tool: Line, turnId: string | null): Approval["state"] | null {
	const query = useQuery({
		queryKey: ["approvals", "all"],
		queryFn: ({ signal }) => api.allApprovals(signal),
		staleTime: 60_000,
		enabled: tool.asked === true,
	});
	if (!tool.asked) return null;
	return decisionOn(query.data?.approvals ?? [], turnId, tool.name, tool.arguments)?.state ?? "pending";
}
