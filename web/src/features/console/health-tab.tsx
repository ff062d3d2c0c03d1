import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Status } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { clockTime, fullCount, fullTime } from "../../lib/format.ts";
import { Chip, Dot, type Tone } from "../../ui/parts.tsx";
import { isWithoutModel } from "../models/problems.ts";
import { useProblemWords } from "../models/use-problem-words.ts";
import { ConfigErrors } from "../settings/config-errors.tsx";
import { Card, Loaded } from "./card.tsx";
import css from "./health.module.css";
import { spanOfTime } from "./times.ts";

/** How the daemon and what it depends on are. */
export default function HealthTab() {
	const query = useQuery({ queryKey: ["status"], queryFn: ({ signal }) => api.status(signal), staleTime: 10_000, refetchInterval: 30_000 });
	return (
		<Loaded query={query} height={300}>
			{(status) => <Health status={status} />}
		</Loaded>
	);
}

const stateWord: Record<Status["state"], string> = { ok: "ok", degraded: "degraded", "safe-mode": "safeMode" };
const channelTone: Record<Status["channels"][number]["state"], Tone> = { up: "ok", connecting: "accent", down: "dawn", off: "plain" };

function Health({ status }: { status: Status }) {
	const { t, i18n } = useTranslation();
	const count = (value: number) => fullCount(value, i18n.language);
	const words = useProblemWords();
	const state = isWithoutModel(status) ? "noModel" : stateWord[status.state];
	const upSince = spanOfTime(Date.now() - Date.parse(status.startedAt));
	return (
		<div className={css.health}>
			{status.config.errors.length + (status.config.withoutEffect?.length ?? 0) + status.config.restartNeeded.length > 0 && (
				<div className={css.whole}>
					<ConfigErrors status={status} />
				</div>
			)}
			<Card title={t("health.daemon")} aside={<Chip tone={status.state === "ok" ? "ok" : "dawn"}>{t(`health.state.${state}`)}</Chip>}>
				<p className={css.sentence}>{t(`health.means.${state}`)}</p>
				<List>
					<Item name={t("health.version")} value={status.version} />
					<Item
						name={t("health.uptime")}
						value={t(`health.span.${upSince.unit}`, { count: upSince.count })}
						title={fullTime(status.startedAt, i18n.language)}
					/>
					<Item name={t("health.zone")} value={status.timezone} />
					<Item name={t("usage.fuse")} value={t(`usage.state.${status.fuse.state}`)} tone={status.fuse.state === "ok" ? "ok" : "dawn"} />
					<Item name={t("health.turns")} value={t("health.turnsValue", { running: status.turns.running, queued: status.turns.queued })} />
					<Item
						name={t("health.config")}
						value={
							status.config.errors.length === 0 ? t("health.configFine") : t("health.configErrors", { count: status.config.errors.length })
						}
						tone={status.config.errors.length === 0 ? "ok" : "dawn"}
					/>
					<Item name={t("health.sandbox")} value={status.sandbox.backend === "none" ? t("health.sandboxNone") : status.sandbox.backend} />
				</List>
			</Card>
			<Card title={t("health.channels")}>
				<List>
					{status.channels.map((channel) => (
						<Item
							key={channel.id}
							name={channel.id === channel.type ? channel.id : `${channel.id} · ${channel.type}`}
							value={t(`health.channel.${channel.state}`)}
							note={channel.error}
							tone={channelTone[channel.state]}
						/>
					))}
				</List>
			</Card>
			<Card title={t("health.models")} aside={<Link to="/settings">{t("app.settings")}</Link>}>
				{status.demo && <p className={css.sentence}>{t("settings.modelsNone")}</p>}
				<List>
					{status.models.map((model) => (
						<Item
							key={model.id}
							name={`${model.id} · ${model.provider}/${model.model}`}
							value={t(model.usable ? "settings.usable" : "settings.unusable")}
							note={[words.problem(model), ...words.keysAside(model)].filter(Boolean).join(" · ")}
							tone={model.usable ? "ok" : "dawn"}
						/>
					))}
				</List>
			</Card>
			<Card title={t("health.breakers")}>
				{status.breakers.every((breaker) => breaker.state === "closed") ? (
					<p className={css.sentence}>{t("health.breakersFine")}</p>
				) : (
					<List>
						{status.breakers
							.filter((breaker) => breaker.state !== "closed")
							.map((breaker) => (
								<Item
									key={breaker.key}
									name={breaker.key}
									value={t(`health.breaker.${breaker.state === "open" ? "open" : "halfOpen"}`)}
									note={[
										t("health.failures", { count: breaker.failures }),
										breaker.retryAt && t("health.retryAt", { time: clockTime(breaker.retryAt, i18n.language) }),
									]
										.filter(Boolean)
										.join(" · ")}
									tone="dawn"
								/>
							))}
					</List>
				)}
			</Card>
			<Card title={t("health.memory")}>
				<List>
					<Item name={t("health.embeddingModel")} value={status.embeddings.model} />
					<Item
						name={t("health.index")}
						value={t("health.indexValue", { indexed: count(status.embeddings.indexed), total: count(status.embeddings.total) })}
						note={status.embeddings.state === "ready" ? null : status.embeddings.state}
						tone={status.embeddings.state === "ready" ? "ok" : "accent"}
					/>
				</List>
			</Card>
		</div>
	);
}

function List({ children }: { children: ReactNode }) {
	return <ul className={css.list}>{children}</ul>;
}

interface ItemProps {
	name: string;
	value: string;
	note?: string | null;
	title?: string;
	tone?: Tone;
}

function Item({ name, value, note = null, title, tone }: ItemProps) {
	return (
		<li>
			<span className={css.name}>
				{tone && <Dot tone={tone} />}
				{name}
			</span>
			<span className={css.value} title={title}>
				{value}
			</span>
			{note && <span className={css.note}>{note}</span>}
		</li>
	);
}
