/** Sums of usage. Whole days come from the daily totals, the beginning and end of a span that cuts a day from the calls. */
import { type Kysely, sql } from "kysely";
import type { Ledger, UsageBy, UsageRow } from "./ledger-store.ts";
import type { Database } from "./schema.ts";

interface Sum {
	key: string;
	currency: string;
	calls: number;
	input_tokens: number;
	cached_tokens: number;
	output_tokens: number;
	reasoning_tokens: number;
	cost: number;
	priced_calls: number;
	unpriced_tokens: number;
	estimated_tokens: number;
}

const columns: Record<UsageBy, string> = { day: "day", source: "source", model: "model", conversation: "conversation_id" };

function merge(sums: Sum[]): UsageRow[] {
	const rows = new Map<string, UsageRow & { calls_by: Map<string, number>; priced: number }>();
	for (const sum of sums) {
		const key = sum.key === "" ? "none" : sum.key;
		let row = rows.get(key);
		if (!row) {
			row = {
				key,
				calls: 0,
				inputTokens: 0,
				cachedTokens: 0,
				outputTokens: 0,
				reasoningTokens: 0,
				cost: null,
				currency: "USD",
				costs: {},
				unpricedTokens: 0,
				estimatedTokens: 0,
				calls_by: new Map(),
				priced: 0,
			};
			rows.set(key, row);
		}
		row.calls += sum.calls;
		row.inputTokens += sum.input_tokens;
		row.cachedTokens += sum.cached_tokens;
		row.outputTokens += sum.output_tokens;
		row.reasoningTokens += sum.reasoning_tokens;
		row.unpricedTokens += sum.unpriced_tokens;
		row.estimatedTokens += sum.estimated_tokens;
		if (sum.priced_calls > 0) {
			row.priced += sum.priced_calls;
			row.costs[sum.currency] = (row.costs[sum.currency] ?? 0) + sum.cost;
			row.calls_by.set(sum.currency, (row.calls_by.get(sum.currency) ?? 0) + sum.priced_calls);
		}
	}
	return [...rows.values()].map(({ calls_by, priced, ...row }) => {
		if (priced === 0) return row.unpricedTokens > 0 ? row : { ...row, cost: 0 };
		const currency = [...calls_by].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "USD";
		return { ...row, currency, cost: row.costs[currency] ?? 0 };
	});
}

export function createUsage(db: Kysely<Database>): Ledger["usage"] {
	async function whole(by: UsageBy, fromDay: string, toDay: string): Promise<Sum[]> {
		if (fromDay >= toDay) return [];
		const key = sql.ref(columns[by]);
		return (
			await sql<Sum>`select ${key} as key, currency, sum(calls) as calls, sum(input_tokens) as input_tokens, sum(cached_tokens) as cached_tokens,
				sum(output_tokens) as output_tokens, sum(reasoning_tokens) as reasoning_tokens, sum(cost) as cost, sum(priced_calls) as priced_calls,
				sum(unpriced_tokens) as unpriced_tokens, sum(estimated_tokens) as estimated_tokens
				from ${sql.table(by === "conversation" ? "usage_conversations" : "usage_days")} where day >= ${fromDay} and day < ${toDay} group by 1, 2`.execute(
				db,
			)
		).rows;
	}

	async function part(by: UsageBy, day: string, from: number, to: number): Promise<Sum[]> {
		if (from >= to) return [];
		const key = by === "day" ? sql`${day}` : sql`coalesce(${sql.ref(columns[by])}, '')`;
		return (
			await sql<Sum>`select ${key} as key, currency, count(*) as calls, sum(input_tokens) as input_tokens, sum(cached_tokens) as cached_tokens,
				sum(output_tokens) as output_tokens, sum(reasoning_tokens) as reasoning_tokens, coalesce(sum(cost), 0) as cost, sum(cost is not null and input_tokens + output_tokens > 0) as priced_calls,
				sum(case when cost is null then input_tokens + output_tokens else 0 end) as unpriced_tokens,
				sum(case when estimated then input_tokens + output_tokens else 0 end) as estimated_tokens
				from calls where at >= ${from} and at < ${to} and state <> 'open' group by 1, 2`.execute(db)
		).rows;
	}

	return async ({ from, to, by, dayOf, startOfDay }) => {
		if (from >= to) return [];
		const firstDay = dayOf(from);
		const lastDay = dayOf(to);
		const afterFirst = dayOf(startOfDay(firstDay) + 36 * 3_600_000);
		const firstWhole = startOfDay(firstDay) >= from ? firstDay : afterFirst;
		const sums: Sum[] = [];
		if (firstDay === lastDay) {
			sums.push(...(await part(by, firstDay, from, to)));
		} else {
			if (firstWhole !== firstDay) sums.push(...(await part(by, firstDay, from, startOfDay(afterFirst))));
			sums.push(...(await whole(by, firstWhole, lastDay)));
			sums.push(...(await part(by, lastDay, startOfDay(lastDay), to)));
		}
		const rows = merge(sums);
		return by === "day"
			? rows.sort((a, b) => (a.key < b.key ? -1 : 1))
			: rows.sort((a, b) => b.inputTokens + b.outputTokens - (a.inputTokens + a.outputTokens));
	};
}
