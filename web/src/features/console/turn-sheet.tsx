import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Turn } from "../../../../server/http/contract.ts";
import { fullTime, usageTokens } from "../../lib/format.ts";
import { Chip } from "../../ui/parts.tsx";
import { WhyBody } from "../chat/why-body.tsx";
import { Cost } from "./cost.tsx";
import css from "./records.module.css";
import { Facts, Sheet } from "./sheet.tsx";
import { turnTone } from "./turns-tab.tsx";
import { useFailureWords } from "./use-failure-words.ts";
import { useOriginName } from "./use-origin-name.ts";

/** One turn: what it was, what it took, and what it rested on. */
export default function TurnSheet({ id, onClose }: { id: string; onClose(): void }) {
	const { t } = useTranslation();
	return (
		<Sheet title={t("turns.one")} size={440} onClose={onClose}>
			<WhyBody turnId={id} top={(turn) => <TurnFacts turn={turn} />} />
		</Sheet>
	);
}

function TurnFacts({ turn }: { turn: Turn }) {
	const { t, i18n } = useTranslation();
	const nameOfOrigin = useOriginName();
	const wordsOf = useFailureWords();
	return (
		<div className={css.above}>
			<Facts
				facts={[
					[
						t("console.state"),
						<Chip key="state" tone={turnTone[turn.state]}>
							{t(`turns.state.${turn.state}`)}
						</Chip>,
					],
					[t("console.error"), turn.error && <span className={css.bad}>{wordsOf(turn.error)}</span>],
					[t("turns.begun"), turn.startedAt && fullTime(turn.startedAt, i18n.language)],
					[t("turns.by"), nameOfOrigin(turn.origin)],
					[t("turns.rounds"), String(turn.rounds)],
					[t("why.steps"), String(turn.steps.length)],
					[t("usage.tokens"), usageTokens(turn.usage, i18n.language)],
					[
						t("usage.column.cost"),
						<Cost key="cost" cost={turn.usage.cost} currency={turn.usage.currency} estimated={turn.usage.estimated} />,
					],
					[
						t("console.calls"),
						<Link key="calls" to={`/console/calls?turn=${encodeURIComponent(turn.id)}`}>
							{t("turns.toCalls")}
						</Link>,
					],
					[
						t("console.conversation"),
						<Link key="conversation" to={`/chat/${encodeURIComponent(turn.conversationId)}`}>
							{t("console.toConversation")}
						</Link>,
					],
				]}
			/>
		</div>
	);
}
