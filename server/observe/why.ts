/** Why a turn was as it was: the prompt's blocks in tokens, what recall brought, which model answered and why, what it cost. */
import type { LedgerCall } from "../store/ledger-store.ts";
import type { CallRow, TurnRow } from "../store/store.ts";

export interface Why {
	blocks: { name: string; chars: number; tokens: number }[];
	recalled: { text: string; score: number; at: string; source: string; by: string }[];
	lessons: { name: string }[];
	model: { picked: string | null; answered: string | null; reason: string | null };
	folded: number;
	/** By source: what the turn's calls used, failed attempts included. */
	cost: { source: string; calls: number; inputTokens: number; outputTokens: number; cost: number | null; unpricedTokens: number }[];
}

const list = <T>(value: unknown): T[] => (Array.isArray(value) ? (value as T[]) : []);

/** The reason for a change of model or key, from the attempts that failed before the one that answered. */
function reasonOf(calls: CallRow[]): string | null {
	const failed = calls.filter((call) => call.state === "failed");
	if (failed.length === 0) return null;
	const parts = failed.map((call) => {
		const kind = (call as Partial<LedgerCall>).errorKind ?? call.error?.split(":")[0] ?? "failed";
		return `${call.model}${call.key ? ` ${call.key}` : ""}: ${kind}`;
	});
	return [...new Set(parts)].join("; ");
}

/**
 * `turn.why` is what the gateway stored; `tokensOf` estimates the tokens of blocks that were stored without.
 */
export function explainTurn(turn: Pick<TurnRow, "why" | "model">, calls: CallRow[], tokensOf: (chars: number) => number): Why {
	const stored = turn.why as { [key: string]: unknown };
	const model = (stored.model ?? {}) as { picked?: string | null; reason?: string | null };
	const blocks = list<{ name: string; chars: number; tokens?: number }>(stored.blocks);
	const main = calls.filter((call) => ["chat", "heartbeat", "alarm", "job"].includes(call.source));
	const rows = new Map<string, Why["cost"][number]>();
	for (const call of calls) {
		const row = rows.get(call.source) ?? { source: call.source, calls: 0, inputTokens: 0, outputTokens: 0, cost: null, unpricedTokens: 0 };
		const { inputTokens, outputTokens, cost } = call.usage;
		row.calls += 1;
		row.inputTokens += inputTokens;
		row.outputTokens += outputTokens;
		if (cost !== null) row.cost = (row.cost ?? 0) + cost;
		else row.unpricedTokens += inputTokens + outputTokens;
		rows.set(call.source, row);
	}
	return {
		blocks: blocks.map((block) => ({ name: block.name, chars: block.chars, tokens: block.tokens ?? tokensOf(block.chars) })),
		recalled: list(stored.recalled),
		lessons: list(stored.lessons),
		model: {
			picked: model.picked ?? (typeof stored.picked === "string" ? stored.picked : null),
			answered: main.findLast((call) => call.state === "done")?.modelName ?? turn.model,
			reason: model.reason ?? reasonOf(main),
		},
		folded: typeof stored.folded === "number" ? stored.folded : 0,
		cost: [...rows.values()],
	};
}
