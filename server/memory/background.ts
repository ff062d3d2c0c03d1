/**
 * What follows from a message, in the background: compressing, archiving, the diary's day, facts. Each is a row that is claimed, worked out,
 * noted, applied to files and rows so that doing it twice changes nothing, and only then done.
 */
import type { CallContext } from "../model/model.ts";
import type { ExchangeRow, JobRow, MemoryKey, NewEntry } from "../store/memory-store.ts";
import { WorkspaceRefused } from "../workspace/workspace.ts";
import { compressDay, compressExchanges } from "./compress.ts";
import { addOnTop, addToDiary, changeLines, type MemoryLine, oneLine, parseLine, parseSummary, shortHash, withHead } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import { diaryPath, keyText, summaryPath } from "./scope.ts";
import type { ShortTerm } from "./short-term.ts";
import { dayOf } from "./text/dates.ts";
import { endOfDay, instantOf, minuteOf } from "./times.ts";

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
	/** Runs `work` while no job runs. */
	alone<T>(work: () => Promise<T>): Promise<T>;
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
/** An exchange is found by its words later: the beginning of what was said and answered carries them. */
const saidChars = 1200;
const repliedChars = 800;

export const entryOf = (
	key: MemoryKey,
	row: { id: string; at: number; source: string; ref: string | null; conversationId: string | null; text: string },
): NewEntry => ({ ...key, ...row, hash: shortHash(row.text) + shortHash(`${row.text}.`) });

const lineText = (line: MemoryLine): string => line.text.replace(/^\[extract\]\s*/, "");

export function createBackground(options: MemoryOptions, parts: BackgroundParts): Background {
	const { store, workspace, clock, log } = options;
	const quietMs = options.quietMs ?? 300;
	const patienceMs = options.patienceMs ?? 5000;
	const stopping = new AbortController();
	const days = new Set<string>();
	let timer: NodeJS.Timeout | null = null;
	let ticker: NodeJS.Timeout | null = null;
	let running: Promise<void> | null = null;
	let busyUntil = 0;
	let busySince = 0;
	let wakeAgain = false;
	/** Callers that wait for a moment in which no job runs. */
	let wantedAlone = 0;
	/** Fact jobs that are being done: who asks for the facts waits for them too. */
	const applying = new Set<{ name: string; done: Promise<void> }>();

	const contextOf = (job: JobRow): CallContext => ({
		source: "memory",
		conversationId: job.conversationId,
		turnId: null,
		personId: job.owner,
	});

	/** What there is to compress now: edits by hand are taken over, and what was edited and sent again is no part of the conversation any more. */
	async function toCompress(job: JobRow, ids: string[]): Promise<{ rows: ExchangeRow[]; takenBack: string[] }> {
		if (job.conversationId !== null) await parts.shortTerm().see(job, job.conversationId);
		const known = await store.exchangesOf(ids);
		const isOpen = (row: ExchangeRow) => row.state === "new" || row.state === "filed";
		const takenBack = await store.supersededExchanges(known.filter(isOpen).map((row) => row.exchange.id));
		await store.setExchanges(takenBack, { state: "gone" });
		return { rows: known.filter((row) => !takenBack.includes(row.exchange.id) && (isOpen(row) || row.lineId !== null)), takenBack };
	}

	async function compress(job: JobRow): Promise<void> {
		const ids = (job.payload as { ids: string[] }).ids;
		const { rows, takenBack } = await toCompress(job, ids);
		// Nothing left to do: removed by hand meanwhile, or a restart came between the last change and "done".
		if (rows.every((row) => row.state === "summed")) {
			await parts.shortTerm().summed(job.conversationId ?? "", ids);
			return archiveIfLong(job);
		}
		let result = takenBack.length > 0 ? null : (job.result as { line: MemoryLine } | null);
		if (!result) {
			const exchanges = rows.map((row) => row.exchange);
			const { text, extracted } = await compressExchanges(exchanges, options.model(), contextOf(job), stopping.signal);
			if (extracted !== null && extracted !== "no model")
				log.warn("memory.extracted", { conversation: job.conversationId, why: extracted });
			// A person may have changed or removed something while the model wrote: then what it wrote tells of what is not there any more.
			const now = await toCompress(job, ids);
			if (JSON.stringify(now.rows) !== JSON.stringify(rows)) return compress(job);
			const at = exchanges.at(-1)?.at ?? clock.now();
			result = { line: { id: shortHash(job.key), when: minuteOf(at, options.timezone()), text } };
			await store.setJobResult(job.position, result);
		}
		const line = result.line;
		await workspace.update(summaryPath(job.owner), (text) => addOnTop(text, line), { by: "program", reason: "compression" });
		await parts.addEntries(
			rows.map(({ exchange, conversationId }) =>
				entryOf(job, {
					id: `x-${exchange.id}`,
					at: exchange.at,
					source: "conversation",
					ref: exchange.id,
					conversationId,
					text: `${exchange.from ? `${exchange.from}: ` : ""}${oneLine(exchange.said).slice(0, saidChars)}${exchange.replied ? ` → ${oneLine(exchange.replied).slice(0, repliedChars)}` : ""}`,
				}),
			),
		);
		await store.setExchanges(
			rows.map((row) => row.exchange.id),
			{ state: "summed", lineId: line.id },
		);
		await parts.shortTerm().summed(job.conversationId ?? "", ids);
		await archiveIfLong(job);
	}

	/** Four lines too many leave the summary; hand-written ones take part like all others. */
	async function archiveIfLong(key: MemoryKey): Promise<void> {
		const { summaryLines, archive: count } = options.settings();
		const lines = parseSummary((await workspace.read(summaryPath(key.owner))).text);
		if (lines.length <= summaryLines) return;
		const oldest = lines.slice(-Math.max(1, count, lines.length - summaryLines));
		const now = clock.now();
		const job = {
			owner: key.owner,
			audience: key.audience,
			key: `archive:${keyText(key)}:${oldest.map((line) => line.id).join(",")}`,
			kind: "archive" as const,
			conversationId: null,
			payload: { lines: oldest },
			notBefore: now,
			createdAt: now,
		};
		// The same lines again (a person put them back) are archived again, which changes only the summary.
		await store.addJob(job, true);
		wakeAgain = true;
	}

	async function archive(job: JobRow): Promise<void> {
		const lines = (job.payload as { lines: MemoryLine[] }).lines;
		const timezone = options.timezone();
		// The day is noted: a restart after midnight must not write the lines to a second page.
		const result = (job.result as { day: string } | null) ?? { day: dayOf(clock.now(), timezone) };
		if (!job.result) await store.setJobResult(job.position, result);
		// As they read now: a person may have changed them since.
		const current = new Map(parseSummary((await workspace.read(summaryPath(job.owner))).text).map((line) => [line.id, line]));
		const diary = diaryPath(job.owner, result.day);
		const written = new Set((await workspace.read(diary)).text.split("\n").flatMap((raw) => parseLine(raw)?.id ?? []));
		const moved = lines.map((line) => current.get(line.id) ?? line).filter((line) => current.has(line.id) || written.has(line.id));
		await workspace.update(diary, (text) => addToDiary(text, result.day, [...moved].reverse()), { by: "program", reason: "archive" });
		await parts.addEntries(
			moved.map((line) =>
				entryOf(job, {
					id: `s-${keyText(job)}-${line.id}`,
					at: instantOf(line.when, timezone) ?? clock.now(),
					source: "summary",
					ref: line.id,
					conversationId: null,
					text: lineText(line),
				}),
			),
		);
		const ids = new Set(moved.map((line) => line.id));
		await workspace.update(summaryPath(job.owner), (text) => changeLines(text, (line) => (ids.has(line.id) ? null : undefined)), {
			by: "program",
			reason: "archive",
		});
		await archiveIfLong(job);
	}

	async function day(job: JobRow): Promise<void> {
		const { date } = job.payload as { date: string };
		const timezone = options.timezone();
		const from = instantOf(date, timezone) ?? job.createdAt;
		const rows = await store.exchangesBetween(job, from, endOfDay(from, timezone), 200);
		const path = diaryPath(job.owner, date);
		const page = (await workspace.read(path)).text;
		const lines = page.split("\n").flatMap((raw) => {
			const line = parseLine(raw);
			return line ? [line.text] : [];
		});
		if (rows.length === 0 && lines.length === 0) return;
		const exchanges = rows.map((row) => row.exchange);
		let summary = (job.result as { summary: string } | null)?.summary;
		if (summary === undefined) {
			summary = await compressDay(exchanges, lines, options.model(), contextOf(job), stopping.signal);
			await store.setJobResult(job.position, { summary });
		}
		const people = [...new Set(exchanges.map((one) => one.from ?? job.owner))];
		const channels = [...new Set(exchanges.map((one) => one.channel).filter((channel) => channel !== ""))];
		await workspace.update(path, (text) => withHead(text, { date, summary: summary ?? "", people, channels }), {
			by: "program",
			reason: "end of the day",
		});
	}

	function run(job: JobRow): Promise<void> {
		const done = attempt(job);
		if (job.kind !== "fact") return done;
		const mine = { name: keyText(job), done };
		applying.add(mine);
		return done.finally(() => applying.delete(mine));
	}

	async function attempt(job: JobRow): Promise<void> {
		try {
			if (job.kind === "compress") await compress(job);
			else if (job.kind === "archive") await archive(job);
			else if (job.kind === "day") await day(job);
			else if (job.kind === "fact") await parts.applyFact(job);
			else if (!(await parts.forget(job))) {
				await again(job, "a turn has not ended", job.attempts < 20 ? 300 : 5000);
				return;
			}
			await store.finishJob(job.position);
			if (job.kind === "forget") await parts.forgotten();
		} catch (error) {
			if (stopping.signal.aborted) {
				await store.retryJob(job.position, "stopped", 0);
				return;
			}
			// A file that a person protected is theirs to free again: soon after, the work is done.
			const isProtected = error instanceof WorkspaceRefused;
			const wait = Math.min(isProtected ? 10_000 : 3_600_000, 2000 * 2 ** Math.min(job.attempts, 10));
			log.warn("memory.job-failed", { kind: job.kind, owner: job.owner, attempts: job.attempts, error: (error as Error).message });
			if (job.attempts === (isProtected ? 1 : 3))
				options.onProblem?.("memory-job", `the memory could not finish a piece of work (${job.kind}): ${(error as Error).message}`);
			await again(job, (error as Error).message, wait);
		}
	}

	/** Later; what waits for longer than a tick is found by one. */
	async function again(job: JobRow, why: string, waitMs: number): Promise<void> {
		await store.retryJob(job.position, why, clock.now() + waitMs);
		if (waitMs < tickMs) setTimeout(wake, waitMs + 50).unref();
	}

	/** Two at once, of different owners: a slow model must not hold up everybody. */
	async function drain(patient: boolean): Promise<void> {
		const lane = async (): Promise<void> => {
			while (!stopping.signal.aborted && wantedAlone === 0) {
				if (patient) await quiet();
				const job = await store.claimJob(clock.now(), leaseMs);
				if (!job) return;
				await run(job);
			}
		};
		await Promise.all([lane(), lane()]);
	}

	async function quiet(): Promise<void> {
		while (!stopping.signal.aborted) {
			const now = Date.now();
			const until = Math.min(busyUntil, busySince + patienceMs);
			if (now >= until) {
				busySince = now;
				return;
			}
			await new Promise<void>((resolve) => {
				const handle = setTimeout(done, until - now);
				handle.unref();
				stopping.signal.addEventListener("abort", done, { once: true });
				function done(): void {
					clearTimeout(handle);
					stopping.signal.removeEventListener("abort", done);
					resolve();
				}
			});
		}
	}

	function loop(patient: boolean): Promise<void> {
		if (running) {
			wakeAgain = true;
			return running;
		}
		const work = async (): Promise<void> => {
			do {
				wakeAgain = false;
				await drain(patient);
			} while (wakeAgain && !stopping.signal.aborted && wantedAlone === 0);
		};
		running = work()
			.catch((error) => log.warn("memory.background", { error: (error as Error).message }))
			.finally(() => {
				running = null;
				if (wakeAgain) wake();
			});
		return running;
	}

	function wake(): void {
		wakeAgain = true;
		if (timer !== null || running || stopping.signal.aborted) return;
		timer = setTimeout(() => {
			timer = null;
			void loop(true);
		}, quietMs);
		timer.unref();
	}

	return {
		async start() {
			await store.freeJobs();
			await store.pruneJobs(clock.now() - 90 * 86_400_000);
			if ((await store.waitingJobs()).count > 0) wake();
			ticker = setInterval(() => {
				void parts.tick().catch((error) => log.warn("memory.tick", { error: (error as Error).message }));
				wake();
			}, tickMs);
			ticker.unref();
		},
		wake,
		busy() {
			const now = Date.now();
			if (busyUntil < now) busySince = now;
			busyUntil = now + quietMs;
		},
		async dayOf(key, conversationId, at) {
			const timezone = options.timezone();
			const date = dayOf(at, timezone);
			const name = `day:${keyText(key)}:${date}`;
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
		async settled() {
			for (;;) {
				const { dueAt } = await store.waitingJobs();
				if (!running && (dueAt === null || dueAt > clock.now())) return;
				await loop(false);
				const after = await store.waitingJobs();
				if (after.dueAt !== null && after.dueAt <= clock.now()) await new Promise((resolve) => setTimeout(resolve, 5));
			}
		},
		async facts(key) {
			for (;;) {
				const job = await store.claimFactJob(key, clock.now(), leaseMs);
				if (!job) break;
				await run(job);
			}
			await Promise.allSettled([...applying].filter(({ name }) => name === keyText(key)).map(({ done }) => done));
		},
		async alone(work) {
			// After the job that runs, not after all that wait: with a slow model those never end.
			wantedAlone++;
			while (running) await running;
			wantedAlone--;
			let end = (): void => undefined;
			running = new Promise<void>((resolve) => {
				end = resolve;
			});
			try {
				return await work();
			} finally {
				running = null;
				end();
				wake();
			}
		},
		async stop() {
			stopping.abort();
			if (timer) clearTimeout(timer);
			if (ticker) clearInterval(ticker);
			timer = null;
			await running;
		},
	};
}
