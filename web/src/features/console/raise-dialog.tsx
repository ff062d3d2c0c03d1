import { NumberInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { FuseDay } from "../../../../server/http/contract.ts";
import { api } from "../../lib/api.ts";
import { fullCount, money } from "../../lib/format.ts";
import { useReason } from "../../lib/use-reason.ts";
import { Dialog } from "../../ui/dialog.tsx";
import css from "./usage.module.css";
import { suggestedRaise } from "./usage.ts";

/** Raises today's limits by an amount; says before what they will be then. */
export function RaiseDialog({ fuse, resets, onClose }: { fuse: FuseDay; resets: string; onClose(): void }) {
	const { t, i18n } = useTranslation();
	const reason = useReason();
	const queries = useQueryClient();
	const [tokens, setTokens] = useState(fuse.limitTokens === null ? 0 : suggestedRaise(fuse.limitTokens));
	const [cost, setCost] = useState(0);
	const raising = useMutation({
		mutationFn: () => api.raiseFuse({ ...(tokens > 0 ? { tokens } : {}), ...(cost > 0 ? { cost } : {}) }),
		onSuccess() {
			for (const key of ["fuse", "status", "alerts"]) void queries.invalidateQueries({ queryKey: [key] });
			onClose();
		},
	});
	const limits = [
		fuse.limitTokens === null ? null : t("chat.tokens", { tokens: fullCount(fuse.limitTokens + tokens, i18n.language) }),
		fuse.limitCost === null ? null : money(fuse.limitCost + cost, fuse.currency, i18n.language),
	].filter(Boolean);
	return (
		<Dialog
			opened
			title={t("usage.raiseTitle")}
			action={t("usage.raiseDo")}
			busy={raising.isPending}
			disabled={tokens <= 0 && cost <= 0}
			onClose={onClose}
			onConfirm={() => raising.mutate()}
		>
			<p>{t("usage.raiseText", { time: resets })}</p>
			{fuse.limitTokens !== null && (
				<NumberInput
					label={t("usage.raiseTokens")}
					value={tokens}
					onChange={(value) => setTokens(Math.max(0, Math.round(Number(value) || 0)))}
					min={0}
					max={1e12}
					step={suggestedRaise(fuse.limitTokens)}
					thousandSeparator=","
					allowDecimal={false}
					allowNegative={false}
					data-autofocus
				/>
			)}
			{fuse.limitCost !== null && (
				<NumberInput
					label={t("usage.raiseCost", { currency: fuse.currency })}
					value={cost}
					onChange={(value) => setCost(Math.max(0, Number(value) || 0))}
					min={0}
					max={1e9}
					step={1}
					decimalScale={2}
					allowNegative={false}
				/>
			)}
			<p role="status" className={css.then}>
				{t("usage.raiseThen", { limits: limits.join(" · ") })}
			</p>
			{raising.error && (
				<p role="alert" className={css.bad}>
					{t("usage.raiseFailed", { reason: reason(raising.error) })}
				</p>
			)}
		</Dialog>
	);
}
