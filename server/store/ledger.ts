/** The ledger's rows: calls with their reservations, the day's fuse, shares, daily totals, token ratios. */
import type { Kysely } from "kysely";
import type { CallEnd, CallStart } from "../model/model.ts";
import { createAlerts } from "./alerts.ts";
import { createCallRows, dropHeads, toText } from "./call-rows.ts";
import { createCalls } from "./calls.ts";
import { clean, fromJson } from "./json.ts";
import { decide, roomOf } from "./ledger-rules.ts";
import type { DayLimits, DayState, DayUse, Ledger, LedgerCall, OpenOutcome, Reservation, Settlement, TokenRatio } from "./ledger-store.ts";
import { createUsage } from "./ledger-usage.ts";
import type { Database } from "./schema.ts";
import { all, type Executor, first, run } from "./sql.ts";
import type { Write } from "./writer.ts";

interface DayRow {
	used_tokens: number | null;
	used_cost: number | null;
	unpriced_tokens: number | null;
	raised_tokens: number | null;
	raised_cost: number | null;
	blown_at: number | null;
	blown_by: string | null;
	blown_limit: number | null;
	warned: string | null;
}

/** What one call adds to the sums. */
interface Added {
	day: string;
	share: string | null;
	source: string;
	model: string;
	conversationId: string | null;
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
	reasoningTokens: number;
	estimated: boolean;
	cost: number | null;
	currency: string;
	budgetCost: number | null;
}

/** Rows touched in one retention pass, so that it never holds up a call for long. */
const pruneBatch = 500;
const dayMs = 86_400_000;

const dayColumns = "used_tokens, used_cost, unpriced_tokens, raised_tokens, raised_cost, blown_at, blown_by, blown_limit, warned";
const readUseText = `select ${dayColumns} from fuse_days where day = ?`;
const readDayText = `select ${dayColumns}, reserved_tokens, reserved_cost
	from (select coalesce(sum(tokens), 0) as reserved_tokens, coalesce(sum(cost), 0) as reserved_cost from reservations where day = ?)
	left join fuse_days on day = ?`;
const addDayText = `insert into fuse_days (day, used_tokens, used_cost, unpriced_tokens) values (?, ?, ?, ?)
	on conflict (day) do update set used_tokens = used_tokens + excluded.used_tokens, used_cost = used_cost + excluded.used_cost,
		unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens returning ${dayColumns}`;
const addShareText = `insert into fuse_shares (day, share, tokens) values (?, ?, ?)
	on conflict (day, share) do update set tokens = tokens + excluded.tokens`;
const sums = [
	"calls",
	"input_tokens",
	"cached_tokens",
	"output_tokens",
	"reasoning_tokens",
	"cost",
	"priced_calls",
	"unpriced_tokens",
	"estimated_tokens",
];
const addUsageText = (table: string, keys: string) =>
	`insert into ${table} (${keys}, ${sums.join(", ")}) values (${keys.replaceAll(/\w+/g, "?")}, ${sums.map(() => "?").join(", ")})
	on conflict (${keys}) do update set ${sums.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`;
const addUsageDayText = addUsageText("usage_days", "day, source, model, currency");
const addUsageConversationText = addUsageText("usage_conversations", "day, conversation_id, currency");

function toUse(day: string, row: DayRow | undefined): DayUse {
	return {
		day,
		usedTokens: row?.used_tokens ?? 0,
		usedCost: row?.used_cost ?? 0,
		unpricedTokens: row?.unpriced_tokens ?? 0,
		raisedTokens: row?.raised_tokens ?? 0,
		raisedCost: row?.raised_cost ?? 0,
		blownAt: row?.blown_at ?? null,
		blownBy: (row?.blown_by ?? null) as DayUse["blownBy"],
		blownLimit: row?.blown_limit ?? null,
		warned: fromJson<number[]>(row?.warned ?? null, []),
	};
}

async function readUse(db: Executor, day: string): Promise<DayUse> {
	return toUse(day, await first<DayRow>(db, readUseText, day));
}

async function readDay(db: Executor, day: string): Promise<DayState> {
	const row = await first<DayRow & { reserved_tokens: number; reserved_cost: number }>(db, readDayText, day, day);
	const use = toUse(day, row);
	return Object.assign(use, { reservedTokens: row?.reserved_tokens ?? 0, reservedCost: row?.reserved_cost ?? 0 });
}

async function readShare(db: Executor, day: string, share: string): Promise<{ usedTokens: number; reservedTokens: number }> {
	const row = await first<{ used: number | null; reserved: number | null }>(
		db,
		`select (select tokens from fuse_shares where day = ? and share = ?) as used,
			(select sum(tokens) from reservations where day = ? and share = ?) as reserved`,
		day,
		share,
		day,
		share,
	);
	return { usedTokens: row?.used ?? 0, reservedTokens: row?.reserved ?? 0 };
}

/** Answers the day as it stands then. */
async function add(db: Executor, to: Added): Promise<DayUse> {
	const tokens = to.inputTokens + to.outputTokens;
	const unpriced = to.cost === null ? tokens : 0;
	const row = await first<DayRow>(db, addDayText, to.day, tokens, to.budgetCost ?? 0, unpriced);
	if (to.share !== null) await run(db, addShareText, to.day, to.share, tokens);
	const figures = [
		1,
		to.inputTokens,
		to.cachedTokens,
		to.outputTokens,
		to.reasoningTokens,
		to.cost ?? 0,
		to.cost !== null && tokens > 0 ? 1 : 0,
		unpriced,
		to.estimated ? tokens : 0,
	];
	await run(db, addUsageDayText, to.day, to.source, to.model, to.currency, ...figures);
	await run(db, addUsageConversationText, to.day, to.conversationId ?? "", to.currency, ...figures);
	return toUse(to.day, row);
}

async function keepRatio(db: Executor, { model, ratio, high, samples }: TokenRatio): Promise<void> {
	await run(
		db,
		`insert into token_ratios (model, ratio, high, samples) values (?, ?, ?, ?)
			on conflict (model) do update set ratio = excluded.ratio, high = excluded.high, samples = excluded.samples`,
		model,
		ratio,
		high,
		samples,
	);
}

const nothing = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };

interface Freed {
	day: string;
	share: string | null;
	tokens: number;
	input_tokens: number;
	cost: number | null;
}

/**
 * `dayOf` names the day of a call that was stored without a reservation. `write` shares transactions with other rooms of the store;
 * left out, each write has its own.
 */
export function createLedger(options: { db: Kysely<Database>; write?: Write; dayOf(at: number): string }): Ledger {
	const { db, dayOf } = options;
	const write: Write = options.write ?? ((work) => db.transaction().execute(work));
	const calls = createCalls(db);
	const insertCall = createCallRows();

	async function reserve(id: string, start: CallStart, reservation: Reservation, limits: DayLimits): Promise<OpenOutcome> {
		return write(async (trx) => {
			const day = await readDay(trx, reservation.day);
			const share = reservation.share === null ? null : await readShare(trx, reservation.day, reservation.share);
			const verdict = decide(day, share, reservation, limits);
			if (day.blownAt !== null && verdict.outcome !== "blown")
				await run(trx, "update fuse_days set blown_at = null, blown_by = null, blown_limit = null where day = ?", day.day);
			if (verdict.outcome === "refused" && !reservation.background && (verdict.limit === "tokens" || verdict.limit === "cost"))
				await run(
					trx,
					`insert into fuse_days (day, blown_at, blown_by, blown_limit) values (?, ?, ?, ?)
						on conflict (day) do update set blown_at = excluded.blown_at, blown_by = excluded.blown_by, blown_limit = excluded.blown_limit`,
					day.day,
					start.startedAt,
					verdict.limit,
					roomOf(day, limits)[verdict.limit],
				);
			if (verdict.outcome !== "open") return verdict;
			await run(
				trx,
				"insert into reservations (call_id, day, share, background, tokens, input_tokens, cost, at) values (?, ?, ?, ?, ?, ?, ?, ?)",
				id,
				reservation.day,
				reservation.share,
				reservation.background ? 1 : 0,
				reservation.tokens,
				start.estimatedInputTokens,
				reservation.cost,
				start.startedAt,
			);
			await insertCall(trx, id, start);
			return verdict;
		});
	}

	async function settle(
		id: string,
		end: CallEnd,
		settlement: Settlement & { price: string | null; ratio: TokenRatio | null },
	): Promise<DayUse> {
		const usage = end.usage ?? nothing;
		const response = end.response === undefined ? null : toText(end.response);
		return write(async (trx) => {
			const call = await first<{ source: string; model: string; conversation_id: string | null; at: number }>(
				trx,
				// No bytes: what it sent was dropped while it was open, and so is its answer.
				`update calls set input_tokens = ?, cached_tokens = ?, output_tokens = ?, reasoning_tokens = ?, estimated = ?, cost = ?, currency = ?,
					ms = ?, first_byte_ms = ?, state = ?, error = ?, error_kind = ?, error_status = ?, price = ?,
					response = case when bytes = 0 then null else ? end, bytes = case when bytes = 0 then 0 else bytes + ? end
					where id = ? and state = 'open' returning source, model, conversation_id, at`,
				usage.inputTokens,
				usage.cachedTokens,
				usage.outputTokens,
				usage.reasoningTokens,
				usage.estimated ? 1 : 0,
				usage.cost,
				usage.currency,
				end.ms,
				end.firstByteMs,
				end.error ? "failed" : "done",
				end.error ? `${end.error.kind}: ${clean(end.error.message)}` : null,
				end.error?.kind ?? null,
				end.error?.status ?? null,
				settlement.price,
				response,
				response?.length ?? 0,
				id,
			);
			const freed = await first<Freed>(
				trx,
				"delete from reservations where call_id = ? returning day, share, tokens, input_tokens, cost",
				id,
			);
			const day = freed?.day ?? dayOf(call?.at ?? Date.now());
			if (!call) return readUse(trx, day);
			if (settlement.ratio) await keepRatio(trx, settlement.ratio);
			return add(trx, {
				inputTokens: usage.inputTokens,
				cachedTokens: usage.cachedTokens,
				outputTokens: usage.outputTokens,
				reasoningTokens: usage.reasoningTokens,
				estimated: usage.estimated,
				cost: usage.cost,
				currency: usage.currency,
				day,
				share: freed?.share ?? null,
				source: call.source,
				model: call.model,
				conversationId: call.conversation_id,
				budgetCost: settlement.budgetCost,
			});
		});
	}

	/** Drops what calls sent and were answered; `which` selects their positions. */
	function dropBodies(which: string, ...values: (string | number)[]): Promise<number> {
		return write(async (trx) => {
			const rows = await all<{ position: number }>(
				trx,
				`update calls set response = null, bytes = 0, head = null where position in (${which}) returning position`,
				...values,
			);
			const positions = JSON.stringify(rows.map((row) => row.position));
			await run(trx, "delete from call_requests where position in (select value from json_each(?))", positions);
			return rows.length;
		});
	}

	async function recover(_now: number): Promise<number> {
		return write(async (trx) => {
			const rows = await all<Freed & { call_id: string; source: string; model: string; conversation_id: string | null }>(
				trx,
				"select r.*, c.source, c.model, c.conversation_id from reservations r join calls c on c.id = r.call_id",
			);
			for (const row of rows) {
				const outputTokens = Math.max(0, row.tokens - row.input_tokens);
				await run(
					trx,
					`update calls set state = 'failed', error = 'interrupted: the process ended during the call; counted as fully spent', error_kind = 'aborted',
						input_tokens = ?, output_tokens = ?, estimated = 1, cost = ? where id = ?`,
					row.input_tokens,
					outputTokens,
					row.cost,
					row.call_id,
				);
				await add(trx, {
					...nothing,
					day: row.day,
					share: row.share,
					source: row.source,
					model: row.model,
					conversationId: row.conversation_id,
					inputTokens: row.input_tokens,
					outputTokens,
					estimated: true,
					cost: row.cost,
					budgetCost: row.cost,
				});
			}
			await run(trx, "delete from reservations");
			return rows.length;
		});
	}

	async function call(id: string): Promise<LedgerCall | null> {
		const row = await calls.get(id);
		if (!row) return null;
		const more = await first<{ error_kind: string | null; error_status: number | null; price: string | null }>(
			db,
			"select error_kind, error_status, price from calls where id = ?",
			id,
		);
		return { ...row, errorKind: more?.error_kind ?? null, errorStatus: more?.error_status ?? null, price: more?.price ?? null };
	}

	return {
		get: calls.get,
		list: calls.list,
		open: (id, start) => write((trx) => insertCall(trx, id, start)),
		async close(id, end) {
			await settle(id, end, { budgetCost: null, price: null, ratio: null });
		},
		reserve,
		settle,
		day: (day) => readDay(db, day),
		use: (day) => readUse(db, day),
		share: (day, share) => readShare(db, day, share),
		async raise(day, { tokens, cost, by, at }) {
			return write(async (trx) => {
				await run(
					trx,
					`insert into fuse_days (day, raised_tokens, raised_cost) values (?, ?, ?)
						on conflict (day) do update set raised_tokens = raised_tokens + excluded.raised_tokens, raised_cost = raised_cost + excluded.raised_cost,
							blown_at = null, blown_by = null, blown_limit = null`,
					day,
					tokens,
					cost,
				);
				await run(trx, "insert into fuse_raises (at, day, tokens, cost, made_by) values (?, ?, ?, ?, ?)", at, day, tokens, cost, by);
				await run(trx, "delete from fuse_told where day = ?", day);
				return readDay(trx, day);
			});
		},
		raises: (day) => all(db, 'select at, tokens, cost, made_by as "by" from fuse_raises where day = ? order by at', day),
		async warn(day, thresholds) {
			return write(async (trx) => {
				const { warned } = await readUse(trx, day);
				const fresh = thresholds.filter((threshold) => !warned.includes(threshold));
				if (fresh.length === 0) return [];
				await run(
					trx,
					"insert into fuse_days (day, warned) values (?, ?) on conflict (day) do update set warned = excluded.warned",
					day,
					JSON.stringify([...warned, ...fresh]),
				);
				return fresh;
			});
		},
		async tellOnce(day, who) {
			return (await run(db, "insert into fuse_told (day, who) values (?, ?) on conflict do nothing", day, who)) > 0;
		},
		recover,
		call,
		async callsOf(turnId) {
			const found: LedgerCall[] = [];
			for (const { id } of await all<{ id: string }>(db, "select id from calls where turn_id = ? order by position", turnId)) {
				const row = await call(id);
				if (row) found.push(row);
			}
			return found;
		},
		usage: createUsage(db),
		ratios: () => all<TokenRatio>(db, "select model, ratio, high, samples from token_ratios"),
		keepRatio: (ratio) => keepRatio(db, ratio),
		forgotten: (before, now) =>
			all(
				db,
				`select i.conversation_id as conversationId, min(i.created_at) as since from inbox i
					join conversations c on c.id = i.conversation_id
					where i.state = 'waiting' and i.created_at < ? and not (c.lease_owner is not null and c.lease_until > ?)
					and not exists (select 1 from turns t where t.conversation_id = i.conversation_id and t.state = 'running')
					group by i.conversation_id limit 50`,
				before,
				now,
			),
		async pruneCalls(now, keep) {
			let touched = await dropBodies(
				"select position from calls where bytes > 0 and at < ? and state <> 'open' order by at limit ?",
				now - keep.days * dayMs,
				pruneBatch,
			);
			const sum = (await first<{ bytes: number | null }>(db, "select sum(bytes) as bytes from calls where bytes > 0"))?.bytes ?? 0;
			if (sum > keep.bytes) {
				const oldest = await all<{ position: number; bytes: number }>(
					db,
					"select position, bytes from calls where bytes > 0 and state <> 'open' order by at limit ?",
					pruneBatch,
				);
				let over = sum - keep.bytes;
				const going: number[] = [];
				for (const row of oldest) {
					if (over <= 0) break;
					going.push(row.position);
					over -= row.bytes;
				}
				touched += await dropBodies("select value from json_each(?)", JSON.stringify(going));
			}
			// The row itself stays ten times as long as its body: it is small, and the table of calls reads it. The daily totals stay for ever.
			const gone = await run(
				db,
				"delete from calls where bytes = 0 and id in (select id from calls where at < ? and state <> 'open' order by at limit ?)",
				now - keep.days * 10 * dayMs,
				pruneBatch,
			);
			return touched + gone + (await dropHeads(db));
		},
		alerts: createAlerts(db),
	};
}
