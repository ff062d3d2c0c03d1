import { Check, LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { PlanItem } from "../../../../server/http/contract.ts";
import css from "./message.module.css";

/** The plan as a checklist; the first open item of a running turn is the one in progress. */
export function Plan({ items, running }: { items: PlanItem[]; running: boolean }) {
	const { t } = useTranslation();
	if (items.length === 0) return null;
	const current = running ? items.findIndex((item) => !item.done) : -1;
	const done = items.filter((item) => item.done).length;
	return (
		<section className={css.plan} aria-label={`${t("chat.plan")}: ${t("chat.planState", { done, total: items.length })}`}>
			<ol>
				{items.map((item, index) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: a plan is rewritten as a whole, its place is its identity
					<li key={index} data-state={item.done ? "done" : index === current ? "current" : "open"}>
						<span className={css.planMark} aria-hidden="true">
							{item.done ? <Check size={11} strokeWidth={3} /> : index === current ? <LoaderCircle size={16} /> : null}
						</span>
						<span>{item.text}</span>
						<span className="hidden">{t(item.done ? "chat.doneItem" : index === current ? "chat.currentItem" : "chat.openItem")}</span>
					</li>
				))}
			</ol>
		</section>
	);
}
