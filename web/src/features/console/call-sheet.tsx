import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { CallDetail } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { duration, fullCount, fullTime } from "../../lib/format.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Loaded } from "./card.tsx";
import { Cost } from "./cost.tsx";
import { prettyBody } from "./pretty.ts";
import css from "./records.module.css";
import { Facts, Sheet } from "./sheet.tsx";
import { useFailureWords } from "./use-failure-words.ts";
import { useSourceName } from "./use-source-name.ts";

/** One model call as it went out and came back; bodies are shown as text, whatever stands in them. */
export default function CallSheet({ id, onClose }: { id: string; onClose(): void }) {
	const { t } = useTranslation();
	const query = useQuery({ queryKey: ["call", id], queryFn: ({ signal }) => api.call(id, signal), staleTime: 10_000 });
	return (
		<Sheet title={t("calls.one")} size={620} onClose={onClose}>
			<Loaded query={query} height={320}>
				{(call) => (
					<>
						<CallFacts call={call} />
						<Body title={t("calls.request")} body={call.request} />
						<Body title={t("calls.response")} body={call.response} />
					</>
				)}
			</Loaded>
		</Sheet>
	);
}

function CallFacts({ call }: { call: CallDetail }) {
	const { t, i18n } = useTranslation();
	const nameOfSource = useSourceName();
	const wordsOf = useFailureWords();
	const count = (value: number) => `${call.estimated ? "≈ " : ""}${fullCount(value, i18n.language)}`;
	return (
		<Facts
			facts={[
				[t("console.time"), fullTime(call.at, i18n.language)],
				[t("console.state"), t(`calls.state.${call.state}`)],
				[t("console.error"), call.error && <span className={css.bad}>{wordsOf(call.error)}</span>],
				[t("usage.column.source"), nameOfSource(call.source)],
				[t("usage.column.model"), call.model === call.modelName ? call.model : `${call.model} · ${call.modelName}`],
				[t("calls.key"), call.key],
				[t("calls.attempt"), call.attempts > 1 ? String(call.attempts) : null],
				[t("usage.column.in"), count(call.inputTokens)],
				[t("usage.column.cached"), call.cachedTokens > 0 ? count(call.cachedTokens) : null],
				[t("usage.column.out"), count(call.outputTokens)],
				[t("calls.reasoning"), call.reasoningTokens > 0 ? count(call.reasoningTokens) : null],
				[t("calls.counted"), call.estimated ? t("chat.estimated") : null],
				[t("usage.column.cost"), <Cost key="cost" cost={call.cost} currency={call.currency} estimated={call.estimated} />],
				[t("calls.firstByte"), call.firstByteMs === null ? null : duration(call.firstByteMs)],
				[t("console.took"), call.ms === null ? null : duration(call.ms)],
				[
					t("console.turn"),
					call.turnId && <Link to={`/console/turns?open=${encodeURIComponent(call.turnId)}`}>{t("console.toTurn")}</Link>,
				],
				[
					t("console.conversation"),
					call.conversationId && <Link to={`/chat/${encodeURIComponent(call.conversationId)}`}>{t("console.toConversation")}</Link>,
				],
			]}
		/>
	);
}

function Body({ title, body }: { title: string; body: unknown }) {
	const { t } = useTranslation();
	const missing = body === null || body === undefined;
	return (
		<section className={css.body} aria-label={title}>
			<div className={css.bodyTop}>
				<h3>{title}</h3>
				{!missing && <CopyButton text={() => JSON.stringify(body, null, 2)} label={t("calls.copy", { what: title })} className={css.act} />}
			</div>
			{missing ? (
				<p className={css.soft}>{t("calls.noBody")}</p>
			) : (
				// biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
				<pre tabIndex={0}>{prettyBody(body)}</pre>
			)}
		</section>
	);
}
