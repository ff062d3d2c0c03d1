import { type ReactNode, Suspense, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Navigate, NavLink, useParams } from "react-router";
import { useOpenAlerts } from "../../app/session.tsx";
import { part } from "../../lib/part.ts";
import { Skeleton } from "../../ui/parts.tsx";
import css from "./console.module.css";

const AlertsTab = part(() => import("./alerts-tab.tsx"));
const CallsTab = part(() => import("./calls-tab.tsx"));
const HealthTab = part(() => import("./health-tab.tsx"));
const LogTab = part(() => import("./log-tab.tsx"));
const TurnsTab = part(() => import("./turns-tab.tsx"));
const UsageTab = part(() => import("./usage-tab.tsx"));

const tabs = ["usage", "alerts", "calls", "turns", "log", "health"] as const;
const bodies: Record<(typeof tabs)[number], ReactNode> = {
	usage: <UsageTab />,
	alerts: <AlertsTab />,
	calls: <CallsTab />,
	turns: <TurnsTab />,
	log: <LogTab />,
	health: <HealthTab />,
};

/** What the agent did and does: each view has an address of its own. */
export default function ConsolePage() {
	const { t } = useTranslation();
	const wanted = useParams().tab;
	const tab = tabs.find((one) => one === wanted);
	const alerts = useOpenAlerts().data?.alerts.length ?? 0;
	const bar = useRef<HTMLElement>(null);
	// On a phone the bar is wider than the screen: the present view's name is always to be seen.
	// biome-ignore lint/correctness/useExhaustiveDependencies: each view has its own place in the bar
	useEffect(() => {
		// In braces: newer browsers answer with a promise, and an effect must not hand one back.
		bar.current?.querySelector('[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
	}, [tab]);
	if (!tab) return <Navigate to="/console/usage" replace />;
	return (
		<div className={css.scroll}>
			<div className={css.page}>
				<div className={css.top}>
					<h1>{t("console.title")}</h1>
					<nav ref={bar} className={css.tabs} aria-label={t("console.views")}>
						{tabs.map((one) => (
							<NavLink key={one} to={`/console/${one}`} className={css.tab}>
								{t(`console.${one}`)}
								{one === "alerts" && alerts > 0 && <span className={css.count}>{alerts}</span>}
							</NavLink>
						))}
					</nav>
				</div>
				<Suspense fallback={<Skeleton height={220} />}>{bodies[tab]}</Suspense>
			</div>
		</div>
	);
}
