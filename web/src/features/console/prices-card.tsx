import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ApiError, api } from "../../lib/api.ts";
import { money } from "../../lib/format.ts";
import { Chip } from "../../ui/parts.tsx";
import { Card } from "./card.tsx";
import css from "./usage.module.css";

/** What each configured model costs, from where that is known and of which day. */
export function PricesCard() {
	const { t, i18n } = useTranslation();
	const query = useQuery({
		queryKey: ["prices"],
		queryFn: async ({ signal }) => {
			try {
				return (await api.prices(signal)).prices;
			} catch (error) {
				// A daemon without a price list is not a fault of the page.
				if (error instanceof ApiError && error.problem.status === 404) return [];
				throw error;
			}
		},
		staleTime: 60_000,
	});
	if (!query.data || query.data.length === 0) return null;
	const figure = (value: number, currency: string) => money(value, currency, i18n.language);
	return (
		<Card title={t("usage.prices")} aside={<span className={css.soft}>{t("usage.perMillion")}</span>}>
			<table className={css.table}>
				<thead>
					<tr>
						<th scope="col">{t("usage.column.model")}</th>
						<th scope="col">{t("usage.column.in")}</th>
						<th scope="col">{t("usage.column.cached")}</th>
						<th scope="col">{t("usage.column.out")}</th>
						<th scope="col" className={css.wide}>
							{t("usage.column.from")}
						</th>
					</tr>
				</thead>
				<tbody>
					{query.data.map(({ model, price }) => (
						<tr key={model}>
							<th scope="row">{model}</th>
							{price ? (
								<>
									<td>{figure(price.input, price.currency)}</td>
									<td>{figure(price.cachedInput, price.currency)}</td>
									<td>{figure(price.output, price.currency)}</td>
								</>
							) : (
								<td colSpan={3}>
									<Chip tone="dawn" title={t("usage.unpricedHint")}>
										{t("chat.unpriced")}
									</Chip>
								</td>
							)}
							<td className={css.wide}>
								{price && (
									<>
										{t(`usage.priceSource.${price.source}`)}
										{price.asOf && ` · ${price.asOf}`}
										{price.varies && ` · ${t("usage.varies")}`}
									</>
								)}
							</td>
						</tr>
					))}
				</tbody>
			</table>
		</Card>
	);
}
