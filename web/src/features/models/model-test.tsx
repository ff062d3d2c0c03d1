import { Button } from "@mantine/core";
import { CircleAlert, CircleCheck } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ModelEntry, ModelTestResult } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import css from "./models.module.css";

interface ModelTestProps {
	/** What to test; null while the form is not complete. */
	entry: ModelEntry | { id: string } | null;
	/** The set-up's code, before anybody can be signed in. */
	code?: string | undefined;
	onResult?(result: ModelTestResult | null): void;
	compact?: boolean;
}

/** Asks the model a small real question and shows what came back, word for word. */
export function ModelTest({ entry, code, onResult, compact = false }: ModelTestProps) {
	const { t } = useTranslation();
	const reason = useReason();
	const [result, setResult] = useState<ModelTestResult | null>(null);
	const [busy, setBusy] = useState(false);
	const abort = useRef<AbortController | null>(null);
	const subject = JSON.stringify(entry);
	const report = useRef(onResult);
	report.current = onResult;

	// biome-ignore lint/correctness/useExhaustiveDependencies: another entry makes the old result void
	useEffect(() => {
		setResult(null);
		report.current?.(null);
		return () => abort.current?.abort();
	}, [subject]);

	async function run(): Promise<void> {
		if (!entry) return;
		const mine = new AbortController();
		abort.current = mine;
		setBusy(true);
		setResult(null);
		let answer: ModelTestResult;
		try {
			answer = await api.testModel(entry, mine.signal, code);
		} catch (error) {
			answer = { ok: false, message: reason(error), kind: null, ms: null, reply: null };
		}
		setBusy(false);
		if (mine.signal.aborted) return;
		setResult(answer);
		onResult?.(answer);
	}

	return (
		<div className={css.test}>
			<Button variant="default" size={compact ? "xs" : "sm"} disabled={!entry} loading={busy} onClick={() => void run()}>
				{t(compact ? "settings.test" : "setup.test")}
			</Button>
			<div role="status" className={css.result}>
				{busy && <span className={css.soft}>{t("setup.testing")}</span>}
				{result && (
					<span className={result.ok ? css.good : css.bad}>
						{result.ok ? <CircleCheck size={16} aria-hidden="true" /> : <CircleAlert size={16} aria-hidden="true" />}
						<span>
							<b>{result.ok ? t("setup.testOk", { time: result.ms === null ? "" : duration(result.ms) }) : t("setup.testFailed")}</b>
							<span className={css.words}>{result.ok ? (result.reply ?? result.message) : result.message}</span>
						</span>
					</span>
				)}
			</div>
		</div>
	);
}
