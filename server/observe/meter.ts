/** The one meter: every attempt of every model call is reserved and stored before it is made, settled and stored before its result is used. */
import { type CallContext, type CallEnd, type CallStart, type Meter, ModelError, type Usage } from "../model/model.ts";
import type { PriceBook, PricedModel } from "../model/prices.ts";
import { type Fuse, FuseRefusal, type Payer } from "../safety/fuse.ts";
import type { Redactor } from "../safety/redact.ts";
import type { Ledger, TokenRatio } from "../store/ledger-store.ts";

/** A settled call, for metrics, traces, the watchdog and the live socket. */
export interface MeteredCall {
	id: string;
	context: CallContext;
	model: string;
	modelName: string;
	provider: string | null;
	key: string | null;
	attempt: number;
	startedAt: number;
	ms: number;
	firstByteMs: number | null;
	usage: Usage;
	error: CallEnd["error"];
	/** How long storing took, open and close together, ms. */
	ledgerMs: number;
}

export interface MeterOptions {
	ledger: Pick<Ledger, "settle" | "ratios">;
	fuse: Pick<Fuse, "reserve" | "settled" | "inBudgetCurrency">;
	prices: Pick<PriceBook, "cost" | "price" | "load">;
	/** A configured model by id, as the price book needs it; null = unknown to the configuration. */
	modelOf(id: string): PricedModel | null;
	/** Tier and group behind a call. Asked once a minute for the same person and conversation. Default: everybody is the master. */
	payerOf?(context: CallContext): Promise<{ tier: Payer["tier"]; groupId: string | null; background?: boolean }>;
	redact: Pick<Redactor, "text" | "alike">;
	clock: { now(): number };
	newId(): string;
	/** Told of every settled call. A throwing listener harms nobody. */
	onCall?(call: MeteredCall): void;
	/** Told of a call that the fuse refused. */
	onRefused?(call: CallStart, refusal: FuseRefusal): void;
}

/** Part added to an estimate for a reservation before a model has shown how far estimates are off. */
const firstMargin = 1.1;
const mostMargin = 3;
const payerTtlMs = 60_000;
const mostPayers = 500;
const mostCleaners = 20;

/** Errors before which the server can have used nothing: it said no, or was never reached. */
const nothingUsed = new Set(["bad-request", "context-length", "auth", "payment", "rate-limited", "server", "fuse", "no-model"]);

/**
 * What a call used when the client could not say. A refusal used nothing; a call that broke off after it was sent used its
 * input and what had come, which nobody reported: the input estimate stands for it.
 */
export function usageOf(start: CallStart, end: CallEnd): Usage {
	const none: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };
	if (end.usage) return sane(end.usage);
	if (!end.error) return { ...none, inputTokens: start.estimatedInputTokens, outputTokens: 0, estimated: true, cost: null };
	if (nothingUsed.has(end.error.kind)) return none;
	const reached = end.firstByteMs !== null || end.error.kind === "timeout" || end.error.kind === "protocol";
	return reached ? { ...none, inputTokens: start.estimatedInputTokens, estimated: true, cost: null } : none;
}

/** Counts from a server may be anything: they become whole numbers of zero or more, and parts never exceed their whole. */
function sane(usage: Usage): Usage {
	const count = (value: number): number => (Number.isFinite(value) && value > 0 ? Math.ceil(value) : 0);
	const inputTokens = count(usage.inputTokens);
	const outputTokens = count(usage.outputTokens);
	return {
		...usage,
		inputTokens,
		outputTokens,
		cachedTokens: Math.min(inputTokens, count(usage.cachedTokens)),
		reasoningTokens: Math.min(outputTokens, count(usage.reasoningTokens)),
	};
}

/** `ready` loads what was learned of each model; calls made before it use the first margin. */
export function createMeter(options: MeterOptions): Meter & { ready(): Promise<void> } {
	const { ledger, fuse, prices, redact, clock } = options;
	const ratios = new Map<string, TokenRatio>();
	const open = new Map<string, { start: CallStart; ledgerMs: number }>();
	const cleaners = new Map<string, (text: string) => string>();
	const payers = new Map<string, { until: number; payer: Awaited<ReturnType<NonNullable<MeterOptions["payerOf"]>>> }>();

	async function payerOf(context: CallContext): Promise<Payer> {
		const key = `${context.personId}\n${context.conversationId}\n${context.turnId}`;
		const now = clock.now();
		let known = payers.get(key);
		if (!known || known.until < now) {
			const payer = options.payerOf ? await options.payerOf(context) : { tier: "master" as const, groupId: null };
			if (payers.size >= mostPayers) payers.clear();
			known = { until: now + payerTtlMs, payer };
			payers.set(key, known);
		}
		// Nobody waits for an embedding outside a turn: that is re-indexing.
		const background = known.payer.background || (context.source === "embedding" && context.turnId === null) ? true : undefined;
		return { personId: context.personId, source: context.source, tier: known.payer.tier, groupId: known.payer.groupId, background };
	}

	/** Requests of one kind to one model begin alike. */
	function cleanerOf({ model, context }: CallStart): (text: string) => string {
		const kind = `${model} ${context.source}`;
		let cleaner = cleaners.get(kind);
		if (!cleaner) {
			if (cleaners.size >= mostCleaners) cleaners.clear();
			cleaner = redact.alike();
			cleaners.set(kind, cleaner);
		}
		return cleaner;
	}

	function learn(start: CallStart, usage: Usage): TokenRatio | null {
		if (usage.estimated || usage.inputTokens < 50 || start.estimatedInputTokens < 50) return null;
		const seen = Math.min(mostMargin, usage.inputTokens / start.estimatedInputTokens);
		const known = ratios.get(start.model);
		const next: TokenRatio = known
			? {
					...known,
					ratio: known.ratio + (seen - known.ratio) * 0.2,
					high: Math.max(seen, known.high * 0.98 + seen * 0.02),
					samples: known.samples + 1,
				}
			: { model: start.model, ratio: seen, high: Math.max(seen, 1), samples: 1 };
		ratios.set(start.model, next);
		// The row is for the next start: it need not be rewritten at every call.
		return next.samples < 10 || next.samples % 20 === 0 ? next : null;
	}

	return {
		async ready() {
			for (const ratio of await ledger.ratios()) if (!ratios.has(ratio.model)) ratios.set(ratio.model, ratio);
		},

		async open(call, signal) {
			const id = options.newId();
			const began = performance.now();
			const payer = await payerOf(call.context);
			const margin = Math.min(mostMargin, Math.max(1, ratios.get(call.model)?.high ?? firstMargin));
			const inputTokens = Math.ceil(call.estimatedInputTokens * margin);
			const outputTokens = Math.max(0, Math.ceil(call.maxOutputTokens));
			const priced = options.modelOf(call.model);
			const cost = priced ? prices.cost(priced, { inputTokens, cachedTokens: 0, outputTokens }, call.startedAt) : null;
			const shown = typeof call.request === "string" ? call.request : (JSON.stringify(call.request) ?? "null");
			const request = cleanerOf(call)(shown);
			// A head with something taken out of it is no head that other calls have.
			const head = call.requestHead ?? 0;
			const requestHead = request === shown || request.startsWith(shown.slice(0, head)) ? head : 0;
			try {
				await fuse.reserve(id, { ...call, request, requestHead }, { payer, tokens: inputTokens + outputTokens, cost }, signal);
			} catch (error) {
				if (!(error instanceof FuseRefusal))
					throw signal?.aborted
						? new ModelError("aborted", "stopped while waiting for room under the daily limit", { cause: error })
						: error;
				options.onRefused?.(call, error);
				throw new ModelError("fuse", error.message, { retryAfterMs: Math.max(0, error.resetsAt - clock.now()), cause: error });
			}
			open.set(id, { start: call, ledgerMs: performance.now() - began });
			return id;
		},

		async close(id, end) {
			const known = open.get(id);
			if (!known) return;
			const began = performance.now();
			const { start } = known;
			const usage = usageOf(start, end);
			const priced = options.modelOf(start.model);
			let source: string | null = null;
			if (usage.inputTokens + usage.outputTokens > 0) {
				if (usage.cost === null) await prices.load();
				const own = usage.cost === null && priced ? prices.cost(priced, usage, start.startedAt) : null;
				if (own) {
					usage.cost = own.cost;
					usage.currency = own.currency;
				}
				const price = priced && usage.cost !== null ? prices.price(priced, start.startedAt) : null;
				source = price ? `${price.source}${price.asOf ? ` ${price.asOf}` : ""}` : null;
			}
			const day = await ledger.settle(
				id,
				{
					...end,
					usage,
					response: end.response === undefined ? undefined : redact.text(JSON.stringify(end.response) ?? "null"),
					error: end.error && { ...end.error, message: redact.text(end.error.message) },
				},
				{
					budgetCost: fuse.inBudgetCurrency(usage.cost === null ? null : { cost: usage.cost, currency: usage.currency }),
					price: source,
					ratio: learn(start, usage),
				},
			);
			// Forgotten only now: a settlement that could not be stored may be tried again.
			open.delete(id);
			const ledgerMs = known.ledgerMs + performance.now() - began;
			await fuse.settled(day);
			try {
				options.onCall?.({
					id,
					context: start.context,
					model: start.model,
					modelName: start.modelName,
					provider: priced?.provider ?? null,
					key: start.key,
					attempt: start.attempt,
					startedAt: start.startedAt,
					ms: end.ms,
					firstByteMs: end.firstByteMs,
					usage,
					error: end.error,
					ledgerMs,
				});
			} catch {
				// The call is settled; who listens to it is no reason to fail it.
			}
		},
	};
}
