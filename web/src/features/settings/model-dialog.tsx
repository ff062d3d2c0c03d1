import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Config } from "../../lib/api.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Skeleton } from "../../ui/parts.tsx";
import { emptyDraft, type ModelDraft, ModelFields, toEntry } from "../models/model-fields.tsx";
import { ModelTest } from "../models/model-test.tsx";
import { type ConfigModel, modelsOf, putModel } from "./config.ts";
import css from "./settings.module.css";
import { useSaveConfig } from "./use-config.ts";

/** Adds an entry of `models`, or changes one; a masked key that is left alone stays. */
export function ModelDialog({ config, model, onClose }: { config: Config; model: ConfigModel | null; onClose(): void }) {
	const { t } = useTranslation();
	const reason = useReason();
	const saving = useSaveConfig();
	const setup = useQuery({ queryKey: ["setup"], queryFn: ({ signal }) => api.setupInfo(signal), staleTime: 60_000 });
	const others = modelsOf(config)
		.map((one) => one.id)
		.filter((id) => id !== model?.id);
	const [id, setId] = useState(model?.id ?? (others.includes("main") ? "" : "main"));
	const [draft, setDraft] = useState<ModelDraft>(
		model ? { provider: model.provider, baseUrl: model.baseUrl ?? "", key: "", model: model.model } : emptyDraft,
	);
	const providers = setup.data?.providers ?? [];
	const taken = others.includes(id.trim());
	// A kept key goes to no other server than the one it was entered for.
	const keptKeys = model && sameServer(draft, model) ? (model.apiKeys ?? []) : [];
	const entry =
		id.trim() === "" || taken
			? null
			: toEntry(
					draft,
					id.trim(),
					providers.find((one) => one.id === draft.provider),
					keptKeys,
				);
	const testable = draft.key.trim() === "" && model ? (sameAs(draft, model) ? { id: model.id } : null) : entry;
	return (
		<Dialog
			opened
			size="500px"
			title={model ? t("settings.editTitle", { id: model.id }) : t("settings.addTitle")}
			action={t("app.save")}
			busy={saving.busy}
			disabled={entry === null}
			onClose={onClose}
			onConfirm={() => {
				if (entry) saving.save((before) => putModel(before, entry, model?.id ?? null)).then(onClose, () => {});
			}}
		>
			<TextInput
				label={t("settings.id")}
				description={t("settings.idHint")}
				value={id}
				onChange={(event) => setId(event.currentTarget.value)}
				error={taken ? t("settings.idTaken") : null}
				maxLength={64}
				spellCheck={false}
				data-autofocus
			/>
			{setup.data ? (
				<ModelFields
					providers={providers}
					draft={draft}
					onChange={setDraft}
					hasKey={keptKeys.length > 0}
					knownModels={setup.data.detected.filter((one) => one.provider === draft.provider).flatMap((one) => one.models)}
				/>
			) : setup.error ? (
				<p role="alert">{reason(setup.error)}</p>
			) : (
				<Skeleton height={120} />
			)}
			<ModelTest entry={testable ?? entry} />
			{saving.error && (
				<p className={css.bad} role="alert">
					{t("settings.saveFailed", { reason: reason(saving.error) })}
				</p>
			)}
		</Dialog>
	);
}

function sameServer(draft: ModelDraft, model: ConfigModel): boolean {
	const [now, before] = [draft.baseUrl.trim(), model.baseUrl ?? ""].map((url) => (URL.canParse(url) ? new URL(url).origin : url));
	return draft.provider === model.provider && now === before;
}

/** Nothing that decides where a request goes was changed: then the stored entry, with its key, can be tested. */
function sameAs(draft: ModelDraft, model: ConfigModel): boolean {
	return draft.provider === model.provider && draft.model === model.model && draft.baseUrl === (model.baseUrl ?? "");
}
