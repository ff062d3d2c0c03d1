import { Menu } from "@mantine/core";
import { Check, ChevronDown } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import { useStatus } from "../../app/session.tsx";
import { useProblemWords } from "../models/use-problem-words.ts";
import css from "./composer.module.css";

type Entry = Status["models"][number];

function modelName(entry: Entry): string {
	return `${entry.provider}/${entry.model}`;
}

/** The name an answer will carry, as far as it can be told before: the wanted model's, or the first usable one's. */
export function expectedModel(status: Status | undefined, wanted: string | null): string | null {
	const models = status?.models.filter(isChatModel) ?? [];
	const entry = models.find((one) => one.id === wanted) ?? models.find((one) => one.usable);
	return entry?.model ?? null;
}

function isChatModel(entry: Entry): boolean {
	return entry.kind === "text" || entry.kind === "multimodal";
}

/** Which model answers the next message. Models that cannot are shown with the reason. */
export function ModelPicker({ value, onChange }: { value: string | null; onChange(model: string | null): void }) {
	const { t } = useTranslation();
	const words = useProblemWords();
	const models = (useStatus()?.models ?? []).filter(isChatModel);
	const picked = models.find((entry) => entry.id === value);
	const label = picked ? modelName(picked) : models[0] && models.length === 1 ? modelName(models[0]) : t("chat.modelDefault");
	return (
		<Menu position="top-start" width={280} disabled={models.length === 0}>
			<Menu.Target>
				<button type="button" className={css.pill} aria-label={`${t("chat.model")}: ${label}`}>
					<span>{label}</span>
					<ChevronDown size={14} aria-hidden="true" />
				</button>
			</Menu.Target>
			<Menu.Dropdown>
				<Menu.Label>{t("chat.model")}</Menu.Label>
				<Menu.Item onClick={() => onChange(null)} rightSection={picked ? null : <Check size={15} aria-hidden="true" />}>
					{t("chat.modelDefault")}
				</Menu.Item>
				{models.map((entry) => (
					<Menu.Item
						key={entry.id}
						disabled={!entry.usable}
						onClick={() => onChange(entry.id)}
						rightSection={entry === picked ? <Check size={15} aria-hidden="true" /> : null}
					>
						<span className={css.modelName}>{modelName(entry)}</span>
						{entry.problem && <small className={css.modelProblem}>{t("chat.unusable", { reason: words.problem(entry) })}</small>}
					</Menu.Item>
				))}
			</Menu.Dropdown>
		</Menu>
	);
}
