import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import type { Config } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Chip } from "../../ui/parts.tsx";
import { ModelTest } from "../models/model-test.tsx";
import { useProblemWords } from "../models/use-problem-words.ts";
import { answerFirst, type ConfigModel, chatOrder, dropModel, givenModels, modelsOf } from "./config.ts";
import { ModelDialog } from "./model-dialog.tsx";
import css from "./settings.module.css";
import { useSaveConfig } from "./use-config.ts";

/** The configured models with their state; add, change, test, remove. */
export function ModelsSection({ config, status }: { config: Config; status: Status | undefined }) {
	const { t } = useTranslation();
	const reason = useReason();
	const saving = useSaveConfig();
	const [editing, setEditing] = useState<{ model: ConfigModel | null } | null>(null);
	const [removing, setRemoving] = useState<string | null>(null);
	const models = modelsOf(config);
	const given = givenModels(config, status);
	const order = [...given.map((model) => model.id), ...chatOrder(config)];
	return (
		<section className={css.section}>
			<div className={css.row}>
				<h2>{t("settings.models")}</h2>
				<Button variant="default" size="xs" onClick={() => setEditing({ model: null })}>
					{t("settings.add")}
				</Button>
			</div>
			<p className={css.soft}>{t(models.length + given.length === 0 ? "settings.modelsNone" : "settings.modelsHint")}</p>
			<ul className={css.models}>
				{given.map((model) => (
					<li key={model.id}>
						<ModelRow model={model} state={model} place={order.indexOf(model.id)} />
						<p className={css.soft}>{t("settings.fromEnvironment")}</p>
						<div className={css.modelActions}>
							<ModelTest entry={{ id: model.id }} compact />
						</div>
					</li>
				))}
				{models.map((model) => (
					<li key={model.id}>
						<ModelRow model={model} state={status?.models.find((one) => one.id === model.id)} place={order.indexOf(model.id)} />
						<div className={css.modelActions}>
							<ModelTest entry={{ id: model.id }} compact />
							<span className={css.buttons}>
								{order.indexOf(model.id) !== given.length && isChat(model) && (
									<Button
										variant="subtle"
										size="compact-sm"
										color="gray"
										onClick={() => void saving.save((before) => answerFirst(before, model.id)).catch(() => {})}
									>
										{t("settings.makeDefault")}
									</Button>
								)}
								<Button variant="subtle" size="compact-sm" color="gray" onClick={() => setEditing({ model })}>
									{t("settings.edit")}
								</Button>
								<Button variant="subtle" size="compact-sm" color="gray" onClick={() => setRemoving(model.id)}>
									{t("settings.remove")}
								</Button>
							</span>
						</div>
					</li>
				))}
			</ul>
			{saving.error && (
				<p className={css.bad} role="alert">
					{t("settings.saveFailed", { reason: reason(saving.error) })}
				</p>
			)}
			{editing && <ModelDialog config={config} model={editing.model} onClose={() => setEditing(null)} />}
			<Dialog
				danger
				opened={removing !== null}
				title={t("settings.removeTitle", { id: removing ?? "" })}
				action={t("settings.remove")}
				busy={saving.busy}
				onClose={() => setRemoving(null)}
				onConfirm={() => {
					if (removing === null) return;
					saving
						.save((before) => dropModel(before, removing))
						.catch(() => {})
						.finally(() => setRemoving(null));
				}}
			>
				<p>{t("settings.removeText")}</p>
			</Dialog>
		</section>
	);
}

function isChat(model: ConfigModel): boolean {
	return model.kind === undefined || model.kind === "text" || model.kind === "multimodal";
}

function ModelRow({
	model,
	state,
	place,
}: {
	model: Pick<ConfigModel, "id" | "provider" | "model" | "apiKeys">;
	state: Status["models"][number] | undefined;
	place: number;
}) {
	const { t } = useTranslation();
	const words = useProblemWords();
	const keys = model.apiKeys?.length ?? 0;
	return (
		<div className={css.model}>
			<div>
				<b>{model.id}</b>
				<span className={css.soft}>
					{model.provider}/{model.model}
					{keys > 0 && ` · ${t("settings.keys", { count: keys })}`}
				</span>
				{state &&
					[words.problem(state), ...words.keysAside(state)].filter(Boolean).map((text) => (
						<span key={text} className={css.bad}>
							{text}
						</span>
					))}
			</div>
			<span className={css.chips}>
				{place === 0 && <Chip tone="accent">{t("settings.default")}</Chip>}
				{place > 0 && <Chip>{t("settings.fallback", { place })}</Chip>}
				{state && <Chip tone={state.usable ? "ok" : "dawn"}>{t(state.usable ? "settings.usable" : "settings.unusable")}</Chip>}
			</span>
		</div>
	);
}
