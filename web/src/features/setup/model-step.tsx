import { Autocomplete, Checkbox } from "@mantine/core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ModelEntry, ModelTestResult, SetupInfo } from "../../../../server/http/contract.ts";
import { emptyDraft, type ModelDraft, ModelFields, toEntry } from "../models/model-fields.tsx";
import { ModelTest } from "../models/model-test.tsx";
import { Choice } from "./choice.tsx";

export type ModelChoice = { kind: "demo" } | { kind: "given" } | { kind: "local"; at: number } | { kind: "service" };

interface ModelStepProps {
	info: SetupInfo;
	code: string;
	choice: ModelChoice;
	onChoice(choice: ModelChoice): void;
	/** The entry to be stored: only one that answered, or that the person wants in spite of it. */
	onEntry(entry: ModelEntry | null): void;
}

/** The first entry's name in the configuration. */
const firstId = "main";

export function ModelStep({ info, code, choice, onChoice, onEntry }: ModelStepProps) {
	const { t } = useTranslation();
	const [draft, setDraft] = useState<ModelDraft>(emptyDraft);
	const [localModel, setLocalModel] = useState("");
	const [result, setResult] = useState<ModelTestResult | null>(null);
	const [anyway, setAnyway] = useState(false);
	const detected = choice.kind === "local" ? info.detected[choice.at] : undefined;
	const provider = info.providers.find((one) => one.id === draft.provider);
	const candidate: ModelEntry | null =
		choice.kind === "service"
			? toEntry(draft, firstId, provider)
			: detected && (localModel || detected.models[0])
				? { id: firstId, provider: detected.provider, model: localModel || (detected.models[0] ?? ""), baseUrl: detected.baseUrl }
				: null;
	const accepted = candidate && (result?.ok || anyway) ? candidate : null;
	const key = JSON.stringify(accepted);
	// biome-ignore lint/correctness/useExhaustiveDependencies: by value, not by identity
	useEffect(() => onEntry(accepted), [key]);

	function pick(next: ModelChoice): void {
		setAnyway(false);
		setLocalModel("");
		onChoice(next);
	}

	const test = (
		<>
			<ModelTest entry={candidate} code={code} onResult={setResult} />
			{result && !result.ok && (
				<Checkbox size="sm" label={t("setup.skipTest")} checked={anyway} onChange={(event) => setAnyway(event.currentTarget.checked)} />
			)}
		</>
	);
	return (
		<>
			{info.answering && (
				<Choice
					name="model"
					checked={choice.kind === "given"}
					label={t("setup.given", { model: info.answering.model })}
					hint={t("setup.givenHint")}
					onPick={() => pick({ kind: "given" })}
				/>
			)}
			{info.detected.map((server, at) => (
				<Choice
					key={server.baseUrl}
					name="model"
					checked={choice.kind === "local" && choice.at === at}
					label={`${t("setup.local")}: ${info.providers.find((one) => one.id === server.provider)?.name ?? server.provider}`}
					hint={t("setup.localHint", { count: server.models.length, url: server.baseUrl })}
					onPick={() => pick({ kind: "local", at })}
				>
					<Autocomplete
						label={t("setup.model")}
						data={server.models}
						value={localModel || (server.models[0] ?? "")}
						onChange={setLocalModel}
					/>
					{test}
				</Choice>
			))}
			<Choice
				name="model"
				checked={choice.kind === "service"}
				label={t("setup.service")}
				hint={providerNames(info)}
				onPick={() => pick({ kind: "service" })}
			>
				<ModelFields providers={info.providers} draft={draft} onChange={setDraft} />
				{provider && test}
			</Choice>
			{!info.answering && (
				<Choice
					name="model"
					checked={choice.kind === "demo"}
					label={t("setup.demo")}
					hint={t("setup.demoHint")}
					onPick={() => pick({ kind: "demo" })}
				/>
			)}
		</>
	);
}

function providerNames(info: SetupInfo): string {
	const names = info.providers.filter((one) => !one.local && one.id !== "custom").map((one) => one.name);
	return names.length > 5 ? `${names.slice(0, 5).join(", ")} …` : names.join(", ");
}
