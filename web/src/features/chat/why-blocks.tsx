import { useTranslation } from "react-i18next";
import type { Turn } from "../../../../server/http/contract.ts";
import { fullCount } from "../../lib/format.ts";
import css from "./why.module.css";

/** Shades of the accent, then of its second; greys for what is left. */
const shades = ["#2b76e5", "#5b9bf5", "#93bdf8", "#f4b48c", "#e8743b", "#c3cad6", "#9aa5b8"];

/** The prompt's blocks as one thin bar and a list of numbers. */
export function WhyBlocks({ blocks: all, cachedPercent }: { blocks: Turn["why"]["blocks"]; cachedPercent: number | null }) {
	const { t, i18n } = useTranslation();
	const blocks = all.filter((block) => block.chars > 0);
	const total = blocks.reduce((sum, block) => sum + block.tokens, 0);
	const chars = blocks.reduce((sum, block) => sum + block.chars, 0);
	if (blocks.length === 0) return <p className={css.soft}>{t("why.noBlocks")}</p>;
	return (
		<section aria-label={t("why.blocks")}>
			<div className={css.bar} aria-hidden="true">
				{blocks.map((block, index) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: names may repeat, the order never changes
					<span key={index} style={{ flexGrow: block.tokens, background: shades[index % shades.length] }} />
				))}
			</div>
			<dl className={css.blocks}>
				{blocks.map((block, index) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: names may repeat, the order never changes
					<div key={index}>
						<dt>
							<i style={{ background: shades[index % shades.length] }} aria-hidden="true" />
							{t(`why.block.${block.name}`, { defaultValue: block.name })}
						</dt>
						<dd title={`${fullCount(block.chars, i18n.language)}`}>{fullCount(block.tokens, i18n.language)}</dd>
					</div>
				))}
			</dl>
			<p className={css.total}>
				{t("why.total", { tokens: fullCount(total, i18n.language), chars: fullCount(chars, i18n.language) })}
				{cachedPercent !== null && <span className={css.soft}>{t("why.cached", { percent: cachedPercent })}</span>}
			</p>
		</section>
	);
}
