/**
 * What follows from a message, in the background: compressing, archiving, the diary's day, facts. Each is a row that is claimed, worked out,
 * noted, applied to files and rows so that doing it twice changes nothing, and only then done.
 */
import { anyOf } from "../agent/abort.ts";
import type { JobRow, MemoryKey, NewEntry } from "../store/memory-store.ts";
import { WorkspaceRefused } from "../workspace/workspace.ts";
import { dayJob } from "./entry.ts";
import { createLanes } from "./lanes.ts";
import type { MemoryOptions } from "./options.ts";
import { keyText } from "./scope.ts";
import { createSharedLock } from "./shared-lock.ts";
import type { ShortTerm } from "./short-term.ts";
import { createSumming } from "./summing.ts";
import { dayOf } from "./text/dates.ts";
import { endOfDay } from "./times.ts";

export interface Background {
	start(): Promise<void>;
	/** Something may be to do. */
	wake(): void;
	/** A message came: background work waits a moment, but not for ever. */
	busy(): void;
	/** Notes that this owner's day will have to be written up. */
	dayOf(key: MemoryKey, conversationId: string, at: number): Promise<void>;
	/** Resolves when nothing due is left. */
	settled(): Promise<void>;
	/** Does the owner's waiting fact jobs now, so that a list shows what was just said. */
	facts(key: MemoryKey): Promise<void>;
	/** Runs `work` while no job touches files or rows. A model that still writes for a job is not waited for. */
	alone<T>(work: () => Promise<T>): Promise<T>;
	/**
	 * Called within `alone` when something of this owner's was removed: model calls about what is not there any more (or, with `all`, every
	 * one of the owner's) are ended, and have been booked when this resolves. Their jobs are done anew.
	 */
	removed(key: MemoryKey, all?: boolean): Promise<void>;
	stop(): Promise<void>;
}

export interface BackgroundParts {
	shortTerm(): ShortTerm;
	/** Adds memories and starts what makes their vectors. */
	addEntries(entries: NewEntry[]): Promise<void>;
	applyFact(job: JobRow): Promise<void>;
	/** False while it waits for a turn to end. */
	forget(job: JobRow): Promise<boolean>;
	/** Called when what was to be forgotten is gone. */
	forgotten(): Promise<void>;
	/** Called on every tick: expiry and the like. */
	tick(): Promise<void>;
}

const leaseMs = 5 * 60_000;
const tickMs = 60_000;
/** How soon what could not be written is tried again. */
const troubleMs = 2000;

/** What a job works with changed under it: it is done anew, and has not failed. */
class SetAside extends Error {}

export function createBackground(options: MemoryOptions, parts: BackgroundParts): Background {
	const { store, clock, log } = options;
	const quietMs = options.quietMs ?? 300;
	const stopping = new AbortController();
	/** Work that could not even be taken or ended is looked for soon: a database that somebody holds is free again in a moment. */
	function failed(error: unknown): void {
		if (stopping.signal.aborted) return;
		log.warn("memory.background", { error: (error as Error).message });
		setTimeout(wakeAll, troubleMs).unref();
	}
	/** Positions of the jobs that are being done here: they stay taken, however long they take and whatever the clock does. */
	const held = new Set<number>();
	/** Jobs hold it while they touch files and rows, and not while they wait for a model. */
	const lock = createSharedLock();
	/** Two at once, of different owners: a slow model must not hold up everybody. */
	const jobs = createLanes({
		count: 2,
		quietMs,
		patienceMs: options.patienceMs ?? 5000,
		answering: options.answering ?? (() => false),
		signal: stopping.signal,
		failed,
		async next() {
			await lock.enter();
			try {
				const job = await claim((now) => store.claimJob(now, leaseMs));
				if (job) await run(job);
				return job !== null;
			} finally {
				lock.leave();
			}
		},
	});
	/** What is to be forgotten stands behind no other job and no model. */
	const forgets = createLanes({
		count: 1,
		quietMs,
		patienceMs: 0,
		answering: () => false,
		signal: stopping.signal,
		failed,
		async next() {
			// Not while somebody notes and does it in one go.
			await lock.enter();
			const job = await claim((now) => store.claimForgetJob(now, leaseMs)).finally(lock.leave);
			if (!job) return false;
			await run(job);
			// Other jobs of the owner were held back.
			jobs.wake();
			return true;
		},
	});
	/** Model calls on their way. */
	const asking = new Set<{ key: MemoryKey; stands(): Promise<boolean>; end(): void; over: Promise<unknown> }>();
	const days = new Set<string>();
	let ticker: NodeJS.Timeout | null = null;
	/** Fact jobs that are being done: who asks for the facts waits for them too. */
	const applying = new Set<{ name: string; done: Promise<void> }>();

	async function claim(take: (now: number) => Promise<JobRow | null>): Promise<JobRow | null> {
		const now = clock.now();
		if (held.size > 0) await store.extendJobs([...held], now + leaseMs);
		const job = await take(now);
		if (job) held.add(job.position);
		return job;
	}

	/** Nobody is kept out while the model writes. */
	async function ask<T>(job: JobRow, material: string, look: () => Promise<string>, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
		const ending = new AbortController();
		const both = anyOf([stopping.signal, ending.signal]);
		const stands = async (): Promise<boolean> => (await look()) === material;
		lock.leave();
		const answer = call(both.signal);
		const mine = { key: job, stands, end: () => ending.abort(), over: answer.catch(() => undefined) };
		asking.add(mine);
		try {
			const written = await answer.finally(async () => {
				asking.delete(mine);
				both.end();
				await lock.enter();
			});
			if (await stands()) return written;
		} catch (error) {
			if (!ending.signal.aborted) throw error;
		}
		throw new SetAside("it works with something else now");
	}

	const summing = createSumming(options, { shortTerm: parts.shortTerm, addEntries: parts.addEntries, wake: jobs.wake, ask });

	function run(job: JobRow): Promise<void> {
		const done = attempt(job);
		if (job.kind !== "fact") return done;
		const mine = { name: keyText(job), done };
		applying.add(mine);
		return done.finally(() => applying.delete(mine));
	}

	async function attempt(job: JobRow): Promise<void> {
		const end = await work(job);
		await conclude(job, end, troubleMs);
	}

	/** Does it; answers how its row is to be left. */
	async function work(job: JobRow): Promise<() => Promise<void>> {
		try {
			if (job.kind === "compress") await summing.compress(job);
			else if (job.kind === "archive") await summing.archive(job);
			else if (job.kind === "day") await summing.day(job);
			else if (job.kind === "fact") await parts.applyFact(job);
			else if (!(await parts.forget(job))) return () => again(job, "a turn has not ended", job.attempts < 20 ? 300 : 5000);
			return async () => {
				await store.finishJob(job.position);
				if (job.kind === "forget") await parts.forgotten();
			};
		} catch (error) {
			if (stopping.signal.aborted || error instanceof SetAside) return () => store.returnJob(job.position);
			// A file that a person protected is theirs to free again: soon after, the work is done.
			const isProtected = error instanceof WorkspaceRefused;
			const wait = Math.min(isProtected ? 10_000 : 3_600_000, 2000 * 2 ** Math.min(job.attempts, 10));
			log.warn("memory.job-failed", { kind: job.kind, owner: job.owner, attempts: job.attempts, error: (error as Error).message });
			if (job.attempts === (isProtected ? 1 : 3))
				options.onProblem?.("memory-job", `the memory could not finish a piece of work (${job.kind}): ${(error as Error).message}`);
			return () => again(job, (error as Error).message, wait);
		}
	}

	/** The job stays taken until its end is written: what was done must not be done once more for that, nor wait for its lease to run out. */
	async function conclude(job: JobRow, end: () => Promise<void>, nextMs: number): Promise<void> {
		try {
			await end();
			held.delete(job.position);
		} catch (error) {
			if (stopping.signal.aborted) return;
			log.warn("memory.job-not-ended", { kind: job.kind, owner: job.owner, error: (error as Error).message });
			setTimeout(() => {
				if (!stopping.signal.aborted) void conclude(job, end, Math.min(2 * nextMs, tickMs)).then(wakeAll);
			}, nextMs).unref();
		}
	}

	/** Later; what waits for longer than a tick is found by one. */
	async function again(job: JobRow, why: string, waitMs: number): Promise<void> {
		await store.retryJob(job.position, why, clock.now() + waitMs);
		if (waitMs < tickMs) setTimeout(job.kind === "forget" ? forgets.wake : jobs.wake, waitMs + 50).unref();
	}

	async function settled(): Promise<void> {
		for (;;) {
			const { dueAt } = await store.waitingJobs();
			const isDue = dueAt !== null && dueAt <= clock.now();
			if (!isDue && !jobs.active() && !forgets.active()) break;
			await Promise.all([forgets.work(), jobs.work()]);
			const after = await store.waitingJobs();
			if (after.dueAt !== null && after.dueAt <= clock.now()) await new Promise((resolve) => setTimeout(resolve, 5));
		}
		// Somebody may be at it alone.
		await lock.alone(async () => undefined);
	}

	function wakeAll(): void {
		forgets.wake();
		jobs.wake();
	}

	return {
		async start() {
			await store.freeJobs();
			await store.pruneJobs(clock.now() - 90 * 86_400_000);
			if ((await store.waitingJobs()).count > 0) wakeAll();
			ticker = setInterval(() => {
				void parts.tick().catch((error) => log.warn("memory.tick", { error: (error as Error).message }));
				if (held.size > 0) void store.extendJobs([...held], clock.now() + leaseMs).catch(failed);
				wakeAll();
			}, tickMs);
			ticker.unref();
		},
		wake: jobs.wake,
		busy: jobs.busy,
		async dayOf(key, conversationId, at) {
			const timezone = options.timezone();
			const date = dayOf(at, timezone);
			const name = dayJob(key, date);
			if (days.has(name)) return;
			if (days.size > 1000) days.clear();
			days.add(name);
			// A little after midnight: what was said at the last minute is remembered by then.
			await store.addJob({
				...key,
				key: name,
				kind: "day",
				conversationId,
				payload: { date },
				notBefore: endOfDay(at, timezone) + 120_000,
				createdAt: clock.now(),
			});
		},
		settled,
		async facts(key) {
			let some = false;
			for (;;) {
				const job = await claim((now) => store.claimFactJob(key, now, leaseMs));
				if (!job) break;
				some = true;
				await run(job);
			}
			// Other jobs of the owner were held back.
			if (some) jobs.wake();
			await Promise.allSettled([...applying].filter(({ name }) => name === keyText(key)).map(({ done }) => done));
		},
		async alone(work) {
			try {
				return await lock.alone(work);
			} finally {
				// Who removes one thing often removes another: what is made anew of what is left waits for it.
				jobs.busy();
				forgets.wake();
			}
		},
		async removed(key, all = false) {
			const isTheirs = (one: { key: MemoryKey }) => one.key.owner === key.owner && one.key.audience === key.audience;
			await Promise.all(
				[...asking].filter(isTheirs).map(async (one) => {
					if (!all && (await one.stands())) return;
					one.end();
					await one.over;
				}),
			);
		},
		async stop() {
			stopping.abort();
			if (ticker) clearInterval(ticker);
			await Promise.all([jobs.ended(), forgets.ended()]);
			await lock.alone(async () => undefined);
		},
	};
}
