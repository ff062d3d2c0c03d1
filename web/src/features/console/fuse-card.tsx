import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import type { FuseDay } from "../../../../server/http/contract.ts";
import { fullCount, money } from "../../lib/format.ts";
import { Chip } from "../../ui/parts.tsx";
import { useConfig } from "../settings/use-config.ts";
import { Card } from "./card.tsx";
import { RaiseDialog } from "./raise-dialog.tsx";
import { zoneClock } from "./times.ts";
import css from "./usage.module.css";
import { part } from "./usage.ts";

/** Today's fuse: how far it is, what is held back and for whom, when it starts anew, and the way to raise it. */
export function FuseCard({ fuse, zone }: { fuse: FuseDay; zone: string }) {
	const { t, i18n } = useTranslation();
	const [params, setParams] = useSearchParams();
	const [raising, setRaising] = useState(params.get("raise") !== null);
	const kept = useKept();
	const limited = fuse.limitTokens !== null || fuse.limitCost !== null;
	const count = (value: number) => fullCount(value, i18n.language);
	const cash = (value: number) => money(value, fuse.currency, i18n.language);
	const resets = zoneClock(fuse.resetsAt, i18n.language, zone);
	function close(): void {
		setRaising(false);
		setParams(
			(before) => {
				before.delete("raise");
				return before;
			},
			{ replace: true },
		);
	}
	return (
		<Card
			title={t("usage.fuse")}
			aside={<Chip tone={fuse.state === "ok" ? "ok" : "dawn"}>{t(`usage.state.${fuse.state}`)}</Chip>}
			className={css.fuse}
		>
			<p className={css.big} data-testid="fuse-used">
				{count(fuse.usedTokens)}
			</p>
			<p className={css.soft}>
				{fuse.limitTokens === null ? t("usage.noTokenLimit") : t("usage.ofTokens", { limit: count(fuse.limitTokens) })}
				{fuse.limitCost === null && fuse.usedCost > 0 && ` · ${cash(fuse.usedCost)}`}
			</p>
			{fuse.limitTokens !== null && (
				<Bar
					used={part(fuse.usedTokens, fuse.limitTokens)}
					reserved={part(fuse.reservedTokens, fuse.limitTokens)}
					kept={kept}
					warm={fuse.state !== "ok"}
					label={t("usage.barTokens", { percent: Math.round(part(fuse.usedTokens, fuse.limitTokens) * 100) })}
				/>
			)}
			{fuse.limitCost !== null && (
				<>
					<p className={css.soft}>{t("usage.ofCost", { used: cash(fuse.usedCost), limit: cash(fuse.limitCost) })}</p>
					<Bar
						used={part(fuse.usedCost, fuse.limitCost)}
						reserved={0}
						kept={kept}
						warm={fuse.state !== "ok"}
						label={t("usage.barCost", { percent: Math.round(part(fuse.usedCost, fuse.limitCost) * 100) })}
					/>
				</>
			)}
			<p className={css.soft}>
				{limited && kept > 0 && `${t("usage.kept", { percent: Math.round(kept * 100) })} · `}
				{t("usage.resets", { time: resets, zone })}
				{fuse.reservedTokens > 0 && ` · ${t("usage.reserved", { tokens: count(fuse.reservedTokens) })}`}
			</p>
			{fuse.state === "blown" && <p className={css.loud}>{t("usage.blownHint", { time: resets })}</p>}
			{fuse.unpricedTokens > 0 && (
				<p className={css.loud}>
					<b>{t("usage.unpricedTokens", { tokens: count(fuse.unpricedTokens) })}</b>{" "}
					{t(fuse.limitCost === null ? "usage.unpricedHint" : "usage.unpricedLimit")}
				</p>
			)}
			{fuse.raises.length > 0 && (
				<ul className={css.raises}>
					{fuse.raises.map((raise) => (
						<li key={`${raise.at}${raise.tokens}${raise.cost}`}>
							{t("usage.raised", {
								amount: [
									raise.tokens > 0 ? t("chat.tokens", { tokens: count(raise.tokens) }) : null,
									raise.cost > 0 ? cash(raise.cost) : null,
								]
									.filter(Boolean)
									.join(" · "),
								by: raise.by,
								time: zoneClock(raise.at, i18n.language, zone),
							})}
						</li>
					))}
				</ul>
			)}
			{limited && (
				<Button className={css.raise} variant="light" size="compact-sm" radius="xl" onClick={() => setRaising(true)}>
					{t("usage.raise")}
				</Button>
			)}
			{raising && limited && <RaiseDialog fuse={fuse} resets={resets} onClose={close} />}
		</Card>
	);
}

/** Part of the limits that background work leaves alone, 0 to 1. */
function useKept(): number {
	const budget = useConfig().data?.budget as { reserveForPeople?: unknown } | undefined;
	return typeof budget?.reserveForPeople === "number" ? budget.reserveForPeople : 0;
}

function Bar({ used, reserved, kept, warm, label }: { used: number; reserved: number; kept: number; warm: boolean; label: string }) {
	const held = Math.min(reserved, 1 - used);
	return (
		<div className={css.bar} role="img" aria-label={label} data-warm={warm || undefined}>
			<span className={css.keptPart} style={{ width: `${kept * 100}%` }} />
			<span className={css.usedPart} style={{ width: `${used * 100}%` }} />
			<span className={css.heldPart} style={{ left: `${used * 100}%`, width: `${held * 100}%` }} />
		</div>
	);
}
