import type { Kysely, Transaction } from "kysely";
import type { Database } from "./schema.ts";
import { type Direct, run, runDirectly } from "./sql.ts";

/**
 * Runs `work` in a transaction and resolves when it is committed. `work` may only use the transaction it is given, and may be run more
 * than once: all it does it does to rows, and what it answers comes from its last run.
 */
export type Write = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>;

interface Job {
	work(trx: Transaction<Database>): Promise<unknown>;
	resolve(value: never): void;
	reject(error: unknown): void;
	outcome: { value: unknown } | { error: unknown } | null;
}

/** Most jobs of one transaction: nobody waits long for strangers. */
const most = 64;
/** Transactions in a row that begin without a round of the event loop: writes that follow each other must not keep everything else waiting. */
const mostHurried = 16;

/**
 * Group commit: what many turns want written in the same moment shares one transaction. A commit costs more than most of our
 * statements. A job that fails undoes the transaction, is told so, and the others are run again without it: failures are so rare
 * that a savepoint for each job would cost more. `prepare` runs statements of the open transaction at once.
 */
export function createWriter(db: Kysely<Database>, prepare: Direct["prepare"]): Write {
	const queue: Job[] = [];
	let working = false;
	/** Jobs of the last transaction. */
	let company = 1;
	let hurried = 0;
	// One for all transactions: made in each of them it would hold their jobs, and a collection of the young heap keeps whatever a weak map leads to.
	const inside: Direct = { prepare, busy: () => false };

	/** One transaction with all of them. Throws what undid it; a job whose own work did that has the error as its outcome. */
	async function attempt(trx: Transaction<Database>, jobs: Job[]): Promise<void> {
		await run(trx, "begin");
		try {
			for (const job of jobs) {
				try {
					job.outcome = { value: await job.work(trx) };
				} catch (error) {
					job.outcome = { error };
					throw error;
				}
			}
			await run(trx, "commit");
		} catch (error) {
			// When SQLite has ended the transaction by itself (disk full), the first error is the one to tell.
			await run(trx, "rollback").catch(() => undefined);
			throw error;
		}
	}

	async function together(trx: Transaction<Database>, jobs: Job[]): Promise<void> {
		let left = jobs;
		while (left.length > 0) {
			try {
				await attempt(trx, left);
				for (const job of left) job.resolve((job.outcome as { value: never }).value);
				return;
			} catch (error) {
				const failed = left.find((job) => job.outcome && "error" in job.outcome);
				// Not a job's fault (a lock, a commit that failed): nothing was committed, for nobody.
				const over = failed ? [failed] : left;
				left = failed ? left.filter((job) => job !== failed) : [];
				for (const job of over) job.reject(error);
				for (const job of left) job.outcome = null;
			}
		}
	}

	/** While the connection is held, nobody else's statement can slip into the open transaction. */
	async function work(): Promise<void> {
		const jobs = queue.splice(0, most);
		company = jobs.length;
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
		// Where many write, one round of the event loop lets everyone who is ready come along; a job that came alone is not held up for that.
		if (company === 1 && ++hurried <= mostHurried) {
			queueMicrotask(() => void work());
			return;
		}
		hurried = 0;
		setImmediate(() => void work());
	}

	return (job) =>
		new Promise((resolve, reject) => {
			queue.push({ work: job, resolve: resolve as (value: never) => void, reject, outcome: null });
			begin();
		});
}
