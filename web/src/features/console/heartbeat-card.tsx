import { useTranslation } from "react-i18next";
import type { Status } from "../../../../server/http/contract.ts";
import { clockTime, fullCount } from "../../lib/format.ts";
import { Card } from "./card.tsx";
import css from "./usage.module.css";

export function HeartbeatCard({ heartbeat }: { heartbeat: Status["heartbeat"] }) {
	const { t, i18n } = useTranslation();
	const count = (value: number) => fullCount(value, i18n.language);
	return (
		<Card title={t("usage.heartbeat")}>
			<p className={css.big}>{t("usage.beats", { count: heartbeat.beats, beats: count(heartbeat.beats) })}</p>
			<p className={css.soft}>{t("usage.settled", { calls: count(heartbeat.savedCalls) })}</p>
			{heartbeat.savedTokens > 0 && <p className={css.saved}>{t("usage.saved", { tokens: count(heartbeat.savedTokens) })}</p>}
			{heartbeat.lastAt && <p className={css.soft}>{t("usage.lastBeat", { time: clockTime(heartbeat.lastAt, i18n.language) })}</p>}
		</Card>
	);
}
