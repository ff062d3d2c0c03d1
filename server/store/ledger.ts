/** The ledger's rows: calls with their reservations, the day's fuse, shares, daily totals, token ratios. */
import { type Kysely, sql, type Transaction } from "kysely";
import type { CallEnd, CallStart } from "../model/model.ts";
import { createAlerts } from "./alerts.ts";
import { createCalls } from "./calls.ts";
import { clean, fromJson } from "./json.ts";
import { decide, roomOf } from "./ledger-rules.ts";
import type { DayLimits, DayState, Ledger, LedgerCall, OpenOutcome, Reservation, Settlement, TokenRatio } from "./ledger-store.ts";
import { createUsage } from "./ledger-usage.ts";
import type { Database } from "./schema.ts";
import type { Write } from "./writer.ts";

type Db = Kysely<Database> | Transaction<Database>;

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
	reserved_tokens: number;
	reserved_cost: number;
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

async function one<T>(query: { execute(db: Db): Promise<{ rows: unknown[] }> }, db: Db): Promise<T | undefined> {
	return (await query.execute(db)).rows[0] as T | undefined;
}

async function readDay(db: Db, day: string): Promise<DayState> {
	const row = await one<DayRow>(
		sql`select d.*, (select coalesce(sum(tokens), 0) from reservations where day = ${day}) as reserved_tokens,
			(select coalesce(sum(cost), 0) from reservations where day = ${day}) as reserved_cost
			from (select 1) left join fuse_days d on d.day = ${day}`,
		db,
	);
	return {
		day,
		usedTokens: row?.used_tokens ?? 0,
		reservedTokens: row?.reserved_tokens ?? 0,
		usedCost: row?.used_cost ?? 0,
		reservedCost: row?.reserved_cost ?? 0,
		unpricedTokens: row?.unpriced_tokens ?? 0,
		raisedTokens: row?.raised_tokens ?? 0,
		raisedCost: row?.raised_cost ?? 0,
		blownAt: row?.blown_at ?? null,
		blownBy: (row?.blown_by ?? null) as DayState["blownBy"],
		blownLimit: row?.blown_limit ?? null,
		warned: fromJson<number[]>(row?.warned ?? null, []),
	};
}

async function readShare(db: Db, day: string, share: string): Promise<{ usedTokens: number; reservedTokens: number }> {
	const row = await one<{ used: number | null; reserved: number | null }>(
		sql`select (select tokens from fuse_shares where day = ${day} and share = ${share}) as used,
			(select sum(tokens) from reservations where day = ${day} and share = ${share}) as reserved`,
		db,
	);
	return { usedTokens: row?.used ?? 0, reservedTokens: row?.reserved ?? 0 };
}

async function insertCall(db: Db, id: string, start: CallStart): Promise<void> {
	const { context } = start;
	const request = clean(typeof start.request === "string" ? start.request : (JSON.stringify(start.request) ?? "null"));
	await sql`insert into calls (id, turn_id, conversation_id, person_id, source, model, model_name, at, input_tokens, output_tokens, estimated, attempt, key, state, request, bytes)
		values (${id}, ${context.turnId}, ${context.conversationId}, ${context.personId}, ${context.source}, ${start.model}, ${start.modelName}, ${start.startedAt},
			${start.estimatedInputTokens}, ${start.maxOutputTokens}, 1, ${start.attempt}, ${start.key}, 'open', ${request}, ${request.length})`.execute(
		db,
	);
}

async function add(db: Db, to: Added): Promise<void> {
	const tokens = to.inputTokens + to.outputTokens;
	const unpriced = to.cost === null ? tokens : 0;
	await sql`insert into fuse_days (day, used_tokens, used_cost, unpriced_tokens) values (${to.day}, ${tokens}, ${to.budgetCost ?? 0}, ${unpriced})
		on conflict (day) do update set used_tokens = used_tokens + excluded.used_tokens, used_cost = used_cost + excluded.used_cost,
			unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens`.execute(db);
	if (to.share !== null)
		await sql`insert into fuse_shares (day, share, tokens) values (${to.day}, ${to.share}, ${tokens})
			on conflict (day, share) do update set tokens = tokens + excluded.tokens`.execute(db);
	const sums = sql`calls, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost, priced_calls, unpriced_tokens, estimated_tokens`;
	const figures = sql`1, ${to.inputTokens}, ${to.cachedTokens}, ${to.outputTokens}, ${to.reasoningTokens}, ${to.cost ?? 0}, ${to.cost !== null && tokens > 0 ? 1 : 0}, ${unpriced}, ${to.estimated ? tokens : 0}`;
	const adding = sql`do update set calls = calls + 1, input_tokens = input_tokens + excluded.input_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
		output_tokens = output_tokens + excluded.output_tokens, reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens, cost = cost + excluded.cost,
		priced_calls = priced_calls + excluded.priced_calls, unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens,
		estimated_tokens = estimated_tokens + excluded.estimated_tokens`;
	await sql`insert into usage_days (day, source, model, currency, ${sums}) values (${to.day}, ${to.source}, ${to.model}, ${to.currency}, ${figures})
		on conflict (day, source, model, currency) ${adding}`.execute(db);
	await sql`insert into usage_conversations (day, conversation_id, currency, ${sums}) values (${to.day}, ${to.conversationId ?? ""}, ${to.currency}, ${figures})
		on conflict (day, conversation_id, currency) ${adding}`.execute(db);
}

async function keepRatio(db: Db, { model, ratio, high, samples }: TokenRatio): Promise<void> {
	await sql`insert into token_ratios (model, ratio, high, samples) values (${model}, ${ratio}, ${high}, ${samples})
		on conflict (model) do update set ratio = excluded.ratio, high = excluded.high, samples = excluded.samples`.execute(db);
}

const nothing = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };

interface Freed {
	day: string;
	share: string | null;
	tokens: number;
	input_tokens: number;
	cost: number | null;
}

/** `dayOf` names the day of a call that was stored without a reservation. */
/** `write` shares transactions with other rooms of the store; left out, each write has its own. */
export function createLedger(options: { db: Kysely<Database>; write?: Write; dayOf(at: number): string }): Ledger {
	const { db, dayOf } = options;
	const write: Write = options.write ?? ((work) => db.transaction().execute(work));
	const calls = createCalls(db);

	async function reserve(id: string, start: CallStart, reservation: Reservation, limits: DayLimits): Promise<OpenOutcome> {
		return write(async (trx) => {
			const day = await readDay(trx, reservation.day);
			const share = reservation.share === null ? null : await readShare(trx, reservation.day, reservation.share);
			const verdict = decide(day, share, reservation, limits);
			if (day.blownAt !== null && verdict.outcome !== "blown")
				await sql`update fuse_days set blown_at = null, blown_by = null, blown_limit = null where day = ${day.day}`.execute(trx);
			if (verdict.outcome === "refused" && !reservation.background && (verdict.limit === "tokens" || verdict.limit === "cost")) {
				const limit = roomOf(day, limits)[verdict.limit];
				await sql`insert into fuse_days (day, blown_at, blown_by, blown_limit) values (${day.day}, ${start.startedAt}, ${verdict.limit}, ${limit})
					on conflict (day) do update set blown_at = excluded.blown_at, blown_by = excluded.blown_by, blown_limit = excluded.blown_limit`.execute(
					trx,
				);
			}
			if (verdict.outcome !== "open") return verdict;
			await sql`insert into reservations (call_id, day, share, background, tokens, input_tokens, cost, at)
				values (${id}, ${reservation.day}, ${reservation.share}, ${reservation.background ? 1 : 0}, ${reservation.tokens}, ${start.estimatedInputTokens}, ${reservation.cost}, ${start.startedAt})`.execute(
				trx,
			);
			await insertCall(trx, id, start);
			return verdict;
		});
	}

	async function settle(
		id: string,
		end: CallEnd,
		settlement: Settlement & { price: string | null; ratio: TokenRatio | null },
	): Promise<DayState> {
		return write(async (trx) => {
			const usage = end.usage ?? nothing;
			const response =
				end.response === undefined
					? null
					: clean(typeof end.response === "string" ? end.response : (JSON.stringify(end.response) ?? "null"));
			const call = await one<{ source: string; model: string; conversation_id: string | null; at: number }>(
				sql`update calls set input_tokens = ${usage.inputTokens}, cached_tokens = ${usage.cachedTokens}, output_tokens = ${usage.outputTokens},
					reasoning_tokens = ${usage.reasoningTokens}, estimated = ${usage.estimated ? 1 : 0}, cost = ${usage.cost}, currency = ${usage.currency},
					ms = ${end.ms}, first_byte_ms = ${end.firstByteMs}, state = ${end.error ? "failed" : "done"},
					error = ${end.error ? `${end.error.kind}: ${clean(end.error.message)}` : null}, error_kind = ${end.error?.kind ?? null}, error_status = ${end.error?.status ?? null},
					response = ${response}, bytes = bytes + ${response?.length ?? 0}, price = ${settlement.price}
					where id = ${id} and state = 'open' returning source, model, conversation_id, at`,
				trx,
			);
			const freed = await one<Freed>(
				sql`delete from reservations where call_id = ${id} returning day, share, tokens, input_tokens, cost`,
				trx,
			);
			const day = freed?.day ?? dayOf(call?.at ?? Date.now());
			if (!call) return readDay(trx, day);
			await add(trx, {
				...usage,
				day,
				share: freed?.share ?? null,
				source: call.source,
				model: call.model,
				conversationId: call.conversation_id,
				budgetCost: settlement.budgetCost,
			});
			if (settlement.ratio) await keepRatio(trx, settlement.ratio);
			return readDay(trx, day);
		});
	}

	async function recover(_now: number): Promise<number> {
		return write(async (trx) => {
			const { rows } = await sql<Freed & { call_id: string; source: string; model: string; conversation_id: string | null }>`
				select r.*, c.source, c.model, c.conversation_id from reservations r join calls c on c.id = r.call_id`.execute(trx);
			for (const row of rows) {
				const outputTokens = Math.max(0, row.tokens - row.input_tokens);
				await sql`update calls set state = 'failed', error = 'interrupted: the process ended during the call; counted as fully spent', error_kind = 'aborted',
					input_tokens = ${row.input_tokens}, output_tokens = ${outputTokens}, estimated = 1, cost = ${row.cost} where id = ${row.call_id}`.execute(
					trx,
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
			await sql`delete from reservations`.execute(trx);
			return rows.length;
		});
	}

	async function call(id: string): Promise<LedgerCall | null> {
		const row = await calls.get(id);
		if (!row) return null;
		const more = await one<{ error_kind: string | null; error_status: number | null; price: string | null }>(
			sql`select error_kind, error_status, price from calls where id = ${id}`,
			db,
		);
		return { ...row, errorKind: more?.error_kind ?? null, errorStatus: more?.error_status ?? null, price: more?.price ?? null };
	}

	return {
		get: calls.get,
		list: calls.list,
		open: (id, start) => insertCall(db, id, start),
		async close(id, end) {
			await settle(id, end, { budgetCost: null, price: null, ratio: null });
		},
		reserve,
		settle,
		day: (day) => readDay(db, day),
		share: (day, share) => readShare(db, day, share),
		async raise(day, raise) {
			return write(async (trx) => {
				await sql`insert into fuse_days (day, raised_tokens, raised_cost) values (${day}, ${raise.tokens}, ${raise.cost})
					on conflict (day) do update set raised_tokens = raised_tokens + excluded.raised_tokens, raised_cost = raised_cost + excluded.raised_cost,
						blown_at = null, blown_by = null, blown_limit = null`.execute(trx);
				await sql`insert into fuse_raises (at, day, tokens, cost, made_by) values (${raise.at}, ${day}, ${raise.tokens}, ${raise.cost}, ${raise.by})`.execute(
					trx,
				);
				await sql`delete from fuse_told where day = ${day}`.execute(trx);
				return readDay(trx, day);
			});
		},
		async raises(day) {
			const { rows } = await sql<{
				at: number;
				tokens: number;
				cost: number;
				made_by: string;
			}>`select * from fuse_raises where day = ${day} order by at`.execute(db);
			return rows.map((row) => ({ at: row.at, tokens: row.tokens, cost: row.cost, by: row.made_by }));
		},
		async warn(day, thresholds) {
			return write(async (trx) => {
				const { warned } = await readDay(trx, day);
				const fresh = thresholds.filter((threshold) => !warned.includes(threshold));
				if (fresh.length === 0) return [];
				const all = JSON.stringify([...warned, ...fresh]);
				await sql`insert into fuse_days (day, warned) values (${day}, ${all}) on conflict (day) do update set warned = excluded.warned`.execute(
					trx,
				);
				return fresh;
			});
		},
		async tellOnce(day, who) {
			const told = await one(sql`insert into fuse_told (day, who) values (${day}, ${who}) on conflict do nothing returning day`, db);
			return told !== undefined;
		},
		recover,
		call,
		async callsOf(turnId) {
			const { rows } = await sql<{ id: string }>`select id from calls where turn_id = ${turnId} order by position`.execute(db);
			const found: LedgerCall[] = [];
			for (const { id } of rows) {
				const row = await call(id);
				if (row) found.push(row);
			}
			return found;
		},
		usage: createUsage(db),
		async ratios() {
			return (await sql<TokenRatio>`select model, ratio, high, samples from token_ratios`.execute(db)).rows;
		},
		keepRatio: (ratio) => keepRatio(db, ratio),
		async forgotten(before, now) {
			const { rows } = await sql<{
				conversation_id: string;
				since: number;
			}>`select i.conversation_id, min(i.created_at) as since from inbox i
				join conversations c on c.id = i.conversation_id
				where i.state = 'waiting' and i.created_at < ${before} and not (c.lease_owner is not null and c.lease_until > ${now})
				and not exists (select 1 from turns t where t.conversation_id = i.conversation_id and t.state = 'running')
				group by i.conversation_id limit 50`.execute(db);
			return rows.map((row) => ({ conversationId: row.conversation_id, since: row.since }));
		},
		async pruneCalls(now, keep) {
			const oldest = now - keep.days * dayMs;
			const { rows } = await sql<{ id: string }>`update calls set request = 'null', response = null, bytes = 0
				where id in (select id from calls where bytes > 0 and at < ${oldest} and state <> 'open' order by at limit ${pruneBatch}) returning id`.execute(
				db,
			);
			const sum = (await one<{ bytes: number | null }>(sql`select sum(bytes) as bytes from calls where bytes > 0`, db))?.bytes ?? 0;
			let touched = rows.length;
			if (sum > keep.bytes) {
				const largest = await sql<{
					id: string;
					bytes: number;
				}>`select id, bytes from calls where bytes > 0 and state <> 'open' order by at limit ${pruneBatch}`.execute(db);
				let over = sum - keep.bytes;
				for (const row of largest.rows) {
					if (over <= 0) break;
					await sql`update calls set request = 'null', response = null, bytes = 0 where id = ${row.id}`.execute(db);
					over -= row.bytes;
					touched += 1;
				}
			}
			// The row itself stays ten times as long as its body: it is small, and the table of calls reads it. The daily totals stay for ever.
			const gone = await sql<{
				id: string;
			}>`delete from calls where id in (select id from calls where at < ${now - keep.days * 10 * dayMs} and state <> 'open' order by at limit ${pruneBatch}) returning id`.execute(
				db,
			);
			return touched + gone.rows.length;
		},
		alerts: createAlerts(db),
	};
}
