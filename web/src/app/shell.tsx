import { ActionIcon } from "@mantine/core";
import { ChartNoAxesColumn, Menu as MenuIcon, MessageCircle, Settings } from "lucide-react";
import { type ReactNode, Suspense, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { NavLink, Outlet, useLocation, useMatch } from "react-router";
import { isWithoutModel } from "../features/models/problems.ts";
import { clockTime, fullCount, shortCount } from "../lib/format.ts";
import { useTitle } from "../lib/use-title.ts";
import { Mark } from "../ui/mark.tsx";
import { Chip, Dot, type Tone } from "../ui/parts.tsx";
import { Banners } from "./banners.tsx";
import { PageMenu } from "./page-menu.tsx";
import { useBusy, useLiveState, useOpenAlerts, useStatus } from "./session.tsx";
import css from "./shell.module.css";

/** A change of the state that is over sooner is not spoken. */
const settledMs = 2_000;
const collapsedKey = "openlani.nav";

/** Header, side bar (bottom bar on a phone) and the page. */
export function Shell() {
	const { t } = useTranslation();
	const [collapsed, setCollapsed] = useState(() => localStorage.getItem(collapsedKey) === "1");
	const inThread = useMatch("/chat/:id") !== null;
	const place = useLocation().pathname.split("/")[1];
	useTitle(place === "chat" || place === "console" || place === "settings" ? `${t(`app.${place}`)} · OpenLani` : "OpenLani");
	const toggle = () => {
		localStorage.setItem(collapsedKey, collapsed ? "0" : "1");
		setCollapsed(!collapsed);
	};
	return (
		<div className={css.shell} data-collapsed={collapsed || undefined} data-thread={inThread || undefined}>
			<a href="#content" className={css.skip}>
				{t("app.skip")}
			</a>
			<header className={css.header}>
				<ActionIcon
					variant="subtle"
					color="gray"
					onClick={toggle}
					aria-label={t("app.collapse")}
					aria-expanded={!collapsed}
					className={css.burger}
				>
					<MenuIcon size={18} aria-hidden="true" />
				</ActionIcon>
				<NavLink to="/chat" className={css.brand} aria-label="OpenLani">
					<Mark />
					<span>OpenLani</span>
				</NavLink>
				<AgentState />
				<span className={css.space} />
				<TodayChip />
				<PageMenu />
			</header>
			<nav className={css.nav} aria-label={t("app.navigation")}>
				<NavItem to="/chat" icon={<MessageCircle size={18} aria-hidden="true" />} label={t("app.chat")} />
				<ConsoleItem />
				<NavItem to="/settings" icon={<Settings size={18} aria-hidden="true" />} label={t("app.settings")} last />
			</nav>
			<main className={css.main} id="content" tabIndex={-1}>
				<Banners />
				<div className={css.page}>
					<Suspense fallback={null}>
						<Outlet />
					</Suspense>
				</div>
			</main>
		</div>
	);
}

interface NavItemProps {
	to: string;
	icon: ReactNode;
	label: string;
	last?: boolean;
	/** A small sign beside the label. */
	children?: ReactNode;
}

function NavItem({ to, icon, label, last = false, children }: NavItemProps) {
	return (
		<NavLink to={to} className={css.navItem} data-last={last || undefined} title={label}>
			{icon}
			<span>{label}</span>
			{children}
		</NavLink>
	);
}

/** Says how many alerts are open that nobody has acknowledged. */
function ConsoleItem() {
	const { t } = useTranslation();
	const open = useOpenAlerts().data?.alerts.filter((alert) => alert.ackedAt === null).length ?? 0;
	return (
		<NavItem to="/console" icon={<ChartNoAxesColumn size={18} aria-hidden="true" />} label={t("app.console")}>
			{open > 0 && (
				<b className={css.badge}>
					<span aria-hidden="true">{open > 99 ? "99+" : open}</span>
					<span className="hidden">{t("alerts.badge", { count: open })}</span>
				</b>
			)}
		</NavItem>
	);
}

function AgentState() {
	const { t } = useTranslation();
	const status = useStatus();
	const live = useLiveState();
	const busy = useBusy();
	const [word, tone]: [string, Tone] =
		live.kind === "waiting"
			? [t("state.offline"), "dawn"]
			: live.kind !== "open"
				? [t("state.connecting"), "plain"]
				: status?.state === "safe-mode"
					? [t(isWithoutModel(status) ? "state.noModel" : "state.safeMode"), "dawn"]
					: status?.fuse.state === "blown"
						? [t("state.blown"), "dawn"]
						: busy
							? [t("state.working"), "accent"]
							: status?.state === "degraded"
								? [t("state.degraded"), "dawn"]
								: [t("state.idle"), "ok"];
	// Work comes and goes with every message, and its answer is told by itself.
	const spoken = useSettled(
		live.kind === "connecting" || live.kind === "closed" ? null : busy && tone === "accent" ? t("state.idle") : word,
	);
	return (
		<>
			<span className={css.agent} aria-hidden="true">
				{status?.agentName && <span className={css.agentName}>{status.agentName}</span>}
				{status?.agentName && <span>·</span>}
				<Dot tone={tone} />
				<span>{word}</span>
			</span>
			{/* What it begins with is there to be found, and told as no change. */}
			<span key={spoken === null ? "none" : "some"} className="hidden" role="status" data-testid="agent-state">
				{[status?.agentName, spoken].filter(Boolean).join(" · ")}
			</span>
		</>
	);
}

/** The last word that stayed for a moment; null is none. */
function useSettled(word: string | null): string | null {
	const [settled, setSettled] = useState(word);
	useEffect(() => {
		if (word === null || word === settled) return;
		const timer = setTimeout(() => setSettled(word), settled === null ? 0 : settledMs);
		return () => clearTimeout(timer);
	}, [word, settled]);
	return settled;
}

function TodayChip() {
	const { t, i18n } = useTranslation();
	const status = useStatus();
	if (!status) return null;
	const { usedTokens, limitTokens, state } = status.fuse;
	const beat = status.heartbeat.enabled ? status.heartbeat.nextAt : null;
	const title =
		limitTokens === null
			? t("app.tokensTodayOpen", { used: fullCount(usedTokens, i18n.language) })
			: t("app.tokensToday", { used: fullCount(usedTokens, i18n.language), limit: fullCount(limitTokens, i18n.language) });
	return (
		<>
			<Chip tone={state === "ok" ? "ok" : "dawn"} title={title}>
				<span className={css.chipWord}>{t("app.today")}</span>
				{limitTokens === null ? shortCount(usedTokens) : `${shortCount(usedTokens)} / ${shortCount(limitTokens)}`}
			</Chip>
			{beat && (
				<span className={css.beat}>
					<Chip tone="dawn">{t("app.nextBeat", { time: clockTime(beat, i18n.language) })}</Chip>
				</span>
			)}
		</>
	);
}
