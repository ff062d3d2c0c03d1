import { Anchor, Autocomplete, Select, TextInput } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { ModelEntry, SetupInfo } from "../../../../server/http/contract.ts";
import { PasswordField } from "../../ui/password-field.tsx";

export type Provider = SetupInfo["providers"][number];

/** What a person fills in to name one model; becomes a `ModelEntry`. */
export interface ModelDraft {
	provider: string | null;
	baseUrl: string;
	key: string;
	model: string;
}

export const emptyDraft: ModelDraft = { provider: null, baseUrl: "", key: "", model: "" };

/** Null while something needed is missing. `keepKeys` are masked keys that stay when no new one is given. */
export function toEntry(draft: ModelDraft, id: string, provider: Provider | undefined, keepKeys: string[] = []): ModelEntry | null {
	if (!draft.provider || draft.model.trim() === "") return null;
	const baseUrl = draft.baseUrl.trim();
	if (draft.provider === "custom" && baseUrl === "") return null;
	const keys = draft.key.trim() === "" ? keepKeys : [draft.key.trim()];
	if (provider?.keyVariable && !provider.local && keys.length === 0) return null;
	return {
		id,
		provider: draft.provider,
		model: draft.model.trim(),
		baseUrl: baseUrl === "" || baseUrl === provider?.baseUrl ? null : baseUrl,
		...(keys.length > 0 ? { apiKeys: keys } : {}),
	};
}

interface ModelFieldsProps {
	providers: Provider[];
	draft: ModelDraft;
	onChange(draft: ModelDraft): void;
	/** An entry that has a key already: an empty field keeps it. */
	hasKey?: boolean;
	/** Models a local server told us about, beside the preset's. */
	knownModels?: string[];
}

export function ModelFields({ providers, draft, onChange, hasKey = false, knownModels = [] }: ModelFieldsProps) {
	const { t } = useTranslation();
	const provider = providers.find((one) => one.id === draft.provider);
	const set = (change: Partial<ModelDraft>) => onChange({ ...draft, ...change });
	const needsKey = provider ? provider.keyVariable !== null && !provider.local : true;
	const models = [...new Set([...knownModels, ...(provider?.models ?? [])])];
	return (
		<>
			<Select
				label={t("setup.provider")}
				placeholder={t("setup.providerPick")}
				data={providers.map((one) => ({ value: one.id, label: one.name }))}
				value={draft.provider}
				onChange={(value) => {
					const next = providers.find((one) => one.id === value);
					set({ provider: value, baseUrl: "", model: next?.models[0] ?? "", key: "" });
				}}
				searchable
				allowDeselect={false}
				comboboxProps={{ transitionProps: { duration: 80 } }}
			/>
			{provider && (
				<>
					<TextInput
						label={t("setup.baseUrl")}
						placeholder={provider.baseUrl}
						value={draft.baseUrl}
						onChange={(event) => set({ baseUrl: event.currentTarget.value })}
						inputMode="url"
						spellCheck={false}
						autoCapitalize="none"
						description={provider.id === "custom" ? undefined : t("settings.baseUrlHint")}
					/>
					{needsKey || provider.id === "custom" ? (
						<PasswordField
							label={t("setup.key")}
							description={`${hasKey ? t("settings.keyKeep") : t("setup.keyHint")} ${t("settings.keyVariable")}`}
							value={draft.key}
							onChange={(event) => set({ key: event.currentTarget.value })}
							autoComplete="off"
							spellCheck={false}
						/>
					) : null}
					{provider.keyUrl && needsKey && !hasKey && (
						<Anchor href={provider.keyUrl} target="_blank" rel="noopener noreferrer" size="sm">
							{t("setup.keyFrom", { host: hostOf(provider.keyUrl) })}
						</Anchor>
					)}
					<Autocomplete
						label={t("setup.model")}
						placeholder={t("setup.modelPick")}
						data={models}
						value={draft.model}
						onChange={(model) => set({ model })}
						spellCheck={false}
						autoCapitalize="none"
						comboboxProps={{ transitionProps: { duration: 80 } }}
					/>
				</>
			)}
		</>
	);
}

function hostOf(url: string): string {
	try {
		return new URL(url).host;
	} catch {
		return url;
	}
}
