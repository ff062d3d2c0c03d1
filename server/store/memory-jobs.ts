/** The memory's background work as rows: claimed with a lease, done once, found again after a crash. Plain SQL, so that its partial indexes are used. */
import type { Kysely, Transaction } from "kysely";
import type { ToolEffect } from "../tools/tool.ts";
import { clean, fromJson } from "./json.ts";
import type { Audience, JobKind, JobRow, MemoryStore } from "./memory-store.ts";
import type { Database } from "./schema.ts";
import { all, first, run } from "./sql.ts";

export interface JobTable {
	position: number;
	key: string;
	kind: JobKind;
	owner: string;
	audience: string;
	conversation_id: string | null;
	payload: string;
	result: string | null;
	state: "waiting" | "done";
	attempts: number;
	not_before: number;
	lease_until: number;
	error: string | null;
	created_at: number;
}

function toJob(row: JobTable): JobRow {
	return {
		position: row.position,
		key: row.key,
		kind: row.kind,
		owner: row.owner,
		audience: row.audience as Audience,
		conversationId: row.conversation_id,
		payload: fromJson<unknown>(row.payload, null),
		result: fromJson<unknown>(row.result, null),
		attempts: row.attempts,
		createdAt: row.created_at,
	};
}

const insertJob =
	"insert into memory_jobs (key, kind, owner, audience, conversation_id, payload, state, not_before, created_at) values (?, ?, ?, ?, ?, ?, 'waiting', ?, ?)";

/**
 * Writes a `fact` effect inside the transaction that stores the tool's result: a job of the memory, keyed by the call. For `createTurns(db, { fact: writeFactEffect })`.
 * The row names owner and audience; the memory applies it to the facts and to Fact.md.
 */
export async function writeFactEffect(
	trx: Transaction<Database>,
	effect: ToolEffect,
	source: { turnId: string; recordId: string; at: number },
): Promise<void> {
	if (effect.type !== "fact") return;
	const row = effect.row as { owner?: unknown; audience?: unknown; conversationId?: unknown };
	if (typeof row.owner !== "string" || (row.audience !== "private" && row.audience !== "group"))
		throw new Error("a fact names owner and audience");
	await run(
		trx,
		`${insertJob} on conflict (key) do nothing`,
		`fact:${source.recordId}`,
		"fact",
		row.owner,
		row.audience,
		typeof row.conversationId === "string" ? row.conversationId : null,
		JSON.stringify({ action: effect.action, row: effect.row }),
		0,
		source.at,
	);
}

export function memoryJobs(
	db: Kysely<Database>,
): Pick<
	MemoryStore,
	| "addJob"
	| "compressionsOf"
	| "forgetJobs"
	| "setJobPayload"
	| "jobPosition"
	| "claimJob"
	| "claimFactJob"
	| "claimForgetJob"
	| "extendJobs"
	| "clearJobResult"
	| "setJobResult"
	| "finishJob"
	| "retryJob"
	| "returnJob"
	| "freeJobs"
	| "waitingJobs"
	| "pruneJobs"
> {
	return {
		async addJob(job, again = false) {
			const conflict = again
				? `update set state = 'waiting', payload = excluded.payload, result = null, not_before = excluded.not_before, attempts = 0
					where memory_jobs.state = 'done'`
				: "nothing";
			const made = await run(
				db,
				`${insertJob} on conflict (key) do ${conflict}`,
				job.key,
				job.kind,
				job.owner,
				job.audience,
				job.conversationId,
				clean(JSON.stringify(job.payload)),
				job.notBefore,
				job.createdAt,
			);
			return made > 0;
		},
		async compressionsOf(conversationId) {
			const rows = await all<JobTable>(
				db,
				"select * from memory_jobs where conversation_id = ? and kind = 'compress' and state = 'waiting' order by position",
				conversationId,
			);
			return rows.map(toJob);
		},
		async forgetJobs() {
			return (await all<JobTable>(db, "select * from memory_jobs where kind = 'forget' and state = 'waiting' order by position")).map(
				toJob,
			);
		},
		async setJobPayload(position, payload) {
			await run(db, "update memory_jobs set payload = ? where position = ?", clean(JSON.stringify(payload)), position);
		},
		async jobPosition(key) {
			return (
				(await first<{ position: number }>(db, "select position from memory_jobs where key = ? and state = 'waiting'", key))?.position ??
				null
			);
		},
		async claimJob(now, leaseMs) {
			// One at a time per person: what is leased holds back the owner's others. In the order of the index, so that the first one
			// that fits ends the search, however many wait.
			const row = await first<JobTable>(
				db,
				`update memory_jobs set lease_until = ?, attempts = attempts + 1 where position = (
					select position from memory_jobs where state = 'waiting' and kind <> 'forget' and not_before <= ? and lease_until <= ?
					and owner not in (select owner from memory_jobs where state = 'waiting' and lease_until > ?)
					order by not_before, position limit 1) returning *`,
				now + leaseMs,
				now,
				now,
				now,
			);
			return row ? toJob(row) : null;
		},
		async claimFactJob(key, now, leaseMs) {
			const row = await first<JobTable>(
				db,
				`update memory_jobs set lease_until = ?, attempts = attempts + 1 where position = (
					select position from memory_jobs where kind = 'fact' and state = 'waiting' and owner = ? and audience = ?
					and not_before <= ? and lease_until <= ? order by position limit 1) returning *`,
				now + leaseMs,
				key.owner,
				key.audience,
				now,
				now,
			);
			return row ? toJob(row) : null;
		},
		async claimForgetJob(now, leaseMs) {
			const row = await first<JobTable>(
				db,
				`update memory_jobs set lease_until = ?, attempts = attempts + 1 where position = (
					select position from memory_jobs where kind = 'forget' and state = 'waiting' and not_before <= ? and lease_until <= ?
					order by not_before, position limit 1) returning *`,
				now + leaseMs,
				now,
				now,
			);
			return row ? toJob(row) : null;
		},
		async extendJobs(positions, leaseUntil) {
			await run(
				db,
				"update memory_jobs set lease_until = ? where state = 'waiting' and position in (select value from json_each(?))",
				leaseUntil,
				JSON.stringify(positions),
			);
		},
		async clearJobResult(position) {
			await run(db, "update memory_jobs set result = null where position = ?", position);
		},
		async setJobResult(position, result) {
			await run(db, "update memory_jobs set result = ? where position = ?", clean(JSON.stringify(result)), position);
		},
		async finishJob(position) {
			// Only the key stays: what the work was about lives in files and rows that `forget` knows.
			await run(
				db,
				"update memory_jobs set state = 'done', lease_until = 0, error = null, payload = '{}', result = null where position = ?",
				position,
			);
		},
		async retryJob(position, error, notBefore) {
			await run(
				db,
				"update memory_jobs set lease_until = 0, error = ?, not_before = ? where position = ?",
				clean(error.slice(0, 500)),
				notBefore,
				position,
			);
		},
		async returnJob(position) {
			await run(db, "update memory_jobs set lease_until = 0, attempts = max(0, attempts - 1) where position = ?", position);
		},
		async freeJobs() {
			// What is to be forgotten waits for nothing: a start may be what it needed.
			await run(db, "update memory_jobs set not_before = 0 where state = 'waiting' and kind = 'forget'");
			return run(db, "update memory_jobs set lease_until = 0 where state = 'waiting' and lease_until > 0");
		},
		async waitingJobs(key) {
			const mine = key ? " and owner = ? and audience = ?" : "";
			const row = await first<{ count: number; due: number | null }>(
				db,
				`select count(*) as count, min(not_before) as due from memory_jobs where state = 'waiting'${mine}`,
				...(key ? [key.owner, key.audience] : []),
			);
			return { count: row?.count ?? 0, dueAt: row?.due ?? null };
		},
		async pruneJobs(before) {
			// The key of a done job keeps its work from being done twice: it stays as long as a late repeat is thinkable.
			await run(db, "delete from memory_jobs where state = 'done' and created_at < ?", before);
		},
	};
}
