import type { Kysely, Transaction } from "kysely";
import type { Database } from "./schema.ts";
import { type Direct, run, runDirectly } from "./sql.ts";

/** Runs `work` in a transaction and resolves when it is committed. `work` may only use the transaction it is given. */
export type Write = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>;

interface Job {
	work(trx: Transaction<Database>): Promise<unknown>;
	resolve(value: never): void;
	reject(error: unknown): void;
	outcome: { value: unknown } | { error: unknown } | null;
}

/** Most jobs of one transaction: nobody waits long for strangers. */
const most = 64;

/**
 * Group commit: what many turns want written in the same moment shares one transaction, each job behind a savepoint of its own, so
 * that one that fails takes nobody along. A commit costs more than most of our statements. `prepare` runs statements of the open
 * transaction at once.
 */
export function createWriter(db: Kysely<Database>, prepare: Direct["prepare"]): Write {
	const queue: Job[] = [];
	let working = false;
	// One for all transactions: made in each of them it would hold their jobs, and a collection of the young heap keeps whatever a weak map leads to.
	const inside: Direct = { prepare, busy: () => false };

	async function attempt(trx: Transaction<Database>, job: Job, alone: boolean): Promise<void> {
		if (alone) {
			job.outcome = { value: await job.work(trx) };
			return;
		}
		await run(trx, "savepoint job");
		try {
			job.outcome = { value: await job.work(trx) };
		} catch (error) {
			job.outcome = { error };
			// When SQLite has ended the whole transaction (disk full), the first error is the one to tell.
			await run(trx, "rollback to job").catch(() => {
				throw error;
			});
		}
		await run(trx, "release job");
	}

	async function together(trx: Transaction<Database>, jobs: Job[]): Promise<void> {
		try {
			await run(trx, "begin");
			try {
				for (const job of jobs) await attempt(trx, job, jobs.length === 1);
				await run(trx, "commit");
			} catch (error) {
				await run(trx, "rollback").catch(() => undefined);
				throw error;
			}
		} catch (error) {
			// Nothing was committed: neither those that ran well nor those that did not.
			for (const job of jobs) job.outcome = { error };
		}
		for (const job of jobs) {
			if (job.outcome && "value" in job.outcome) job.resolve(job.outcome.value as never);
			else job.reject(job.outcome?.error);
		}
	}

	/** While the connection is held, nobody else's statement can slip into the open transaction. */
	async function work(): Promise<void> {
		const jobs = queue.splice(0, most);
		try {
			await db.connection().execute(async (connection) => {
				const trx = connection as Transaction<Database>;
				runDirectly(trx, inside);
				await together(trx, jobs);
			});
		} catch (error) {
			// There is no connection any more: the store was closed.
			for (const job of jobs) job.reject(error);
		}
		working = false;
		if (queue.length > 0) begin();
	}

	function begin(): void {
		if (working) return;
		working = true;
		// One round of the event loop lets everyone who is ready come along.
		setImmediate(() => void work());
	}

	return (job) =>
		new Promise((resolve, reject) => {
			queue.push({ work: job, resolve: resolve as (value: never) => void, reject, outcome: null });
			begin();
		});
}
