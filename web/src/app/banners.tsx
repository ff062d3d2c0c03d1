import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { usedPercent } from "../features/console/usage.ts";
import { isWithoutModel } from "../features/models/problems.ts";
import { clockTime } from "../lib/format.ts";
import { useLiveState, useSession, useStatus } from "./session.tsx";
import css from "./shell.module.css";

/** From here on a limit is worth a line above every page; before that the chip in the header says it. */
const nearlyPercent = 80;

/** Sentences about the whole daemon, one line each, most urgent first. */
export function Banners() {
	const { t, i18n } = useTranslation();
	const status = useStatus();
	const { pathname } = useLocation();
	const fuse = status?.fuse;
	// The console shows the fuse itself.
	const toldThere = pathname.startsWith("/console");
	const percent = fuse ? usedPercent(fuse) : 0;
	return (
		<>
			<Reconnecting />
			{status?.state === "safe-mode" && (
				<p className={css.banner} data-tone="dawn" role="status">
					{isWithoutModel(status) ? (
						t("safeMode.noModel")
					) : (
						<>
							<b>{t("safeMode.title")}</b> {t("safeMode.text")}
						</>
					)}{" "}
					<Link to="/settings">{t("safeMode.link")}</Link>
				</p>
			)}
			{fuse?.state === "blown" && !toldThere && (
				<p className={css.banner} data-tone="dawn" role="status">
					{t("fuse.blown", { time: clockTime(fuse.resetsAt, i18n.language) })} <Link to="/console/usage?raise=1">{t("fuse.raise")}</Link>
				</p>
			)}
			{fuse?.state === "warn" && percent >= nearlyPercent && !toldThere && (
				<p className={css.banner} data-tone="dawn" role="status">
					{t("fuse.warn", { percent, time: clockTime(fuse.resetsAt, i18n.language) })}{" "}
					<Link to="/console/usage?raise=1">{t("fuse.raise")}</Link>
				</p>
			)}
		</>
	);
}

/** Short breaks pass unseen; after a moment the page says what it does and when. */
function Reconnecting() {
	const { t } = useTranslation();
	const { live } = useSession();
	const state = useLiveState();
	const [now, setNow] = useState(Date.now);
	const waiting = state.kind === "waiting";
	const [since, setSince] = useState<number | null>(null);
	const away = state.kind !== "open";
	useEffect(() => {
		if (!away) return setSince(null);
		setSince((before) => before ?? Date.now());
		const timer = setInterval(() => setNow(Date.now()), 250);
		return () => clearInterval(timer);
	}, [away]);
	if (!away || since === null || now - since < 1200) return null;
	const seconds = waiting ? Math.max(0, Math.ceil((state.retryAt - now) / 1000)) : 0;
	return (
		<p className={css.banner} data-tone="dawn" role="alert">
			{/* A second that passes is for the eye alone: each would be read out. */}
			<span className="hidden">{t("offline.title")}</span>
			<span className="tabular" aria-hidden="true">
				{seconds > 0 ? t("offline.reconnecting", { seconds }) : t("offline.now")}
			</span>{" "}
			{t("offline.kept")}{" "}
			<button type="button" onClick={() => live.retryNow()}>
				{t("offline.retry")}
			</button>
		</p>
	);
}
