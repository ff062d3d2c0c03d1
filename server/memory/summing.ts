/** Exchanges become a line of the summary, its oldest lines go to the diary, and a day gets its paragraph. Done twice, it changes nothing more. */
import type { Exchange } from "../agent/types.ts";
import type { CallContext } from "../model/model.ts";
import type { ExchangeRow, JobRow, MemoryKey, NewEntry } from "../store/memory-store.ts";
import { compressDay, compressExchanges } from "./compress.ts";
import { entryOf } from "./entry.ts";
import { addOnTop, addToDiary, changeLines, type MemoryLine, oneLine, parseLine, parseSummary, shortHash, withHead } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import { diaryPath, keyText, summaryPath } from "./scope.ts";
import type { ShortTerm } from "./short-term.ts";
import { dayOf } from "./text/dates.ts";
import { endOfDay, instantOf, minuteOf } from "./times.ts";

export interface SummingParts {
	shortTerm(): ShortTerm;
	addEntries(entries: NewEntry[]): Promise<void>;
	/** A job was added. */
	wake(): void;
	/**
	 * Has the model write about `material`, which `look` finds. Where something else is found when it has written, what it wrote tells of
	 * what is not there any more: then this throws, and the job is done anew.
	 */
	ask<T>(job: JobRow, material: string, look: () => Promise<string>, call: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

export interface Summing {
	compress(job: JobRow): Promise<void>;
	archive(job: JobRow): Promise<void>;
	day(job: JobRow): Promise<void>;
}

/** An exchange is found by its words later: the beginning of what was said and answered carries them. */
const saidChars = 1200;
const repliedChars = 800;

const lineText = (line: MemoryLine): string => line.text.replace(/^\[extract\]\s*/, "");

export function createSumming(options: MemoryOptions, parts: SummingParts): Summing {
	const { store, workspace, clock, log } = options;
	const { shortTerm, addEntries, wake, ask } = parts;

	const contextOf = (job: JobRow): CallContext => ({
		source: "memory",
		conversationId: job.conversationId,
		turnId: null,
		personId: job.owner,
	});

	/** What there is to compress now: edits by hand are taken over, and what was edited and sent again is no part of the conversation any more. */
	async function toCompress(job: JobRow, ids: string[]): Promise<ExchangeRow[]> {
		if (job.conversationId !== null) await shortTerm().see(job, job.conversationId);
		const known = await store.exchangesOf(ids);
		const isOpen = (row: ExchangeRow) => row.state === "new" || row.state === "filed";
		const takenBack = await store.supersededExchanges(known.filter(isOpen).map((row) => row.exchange.id));
		await store.setExchanges(takenBack, { state: "gone" });
		return known.filter((row) => !takenBack.includes(row.exchange.id) && (isOpen(row) || row.lineId !== null));
	}

	async function compress(job: JobRow): Promise<void> {
		const ids = (job.payload as { ids: string[] }).ids;
		const rows = await toCompress(job, ids);
		// Nothing left to do: removed by hand meanwhile, or a restart came between the last change and "done".
		if (rows.every((row) => row.state === "summed")) {
			await shortTerm().summed(job.conversationId ?? "", ids);
			return archiveIfLong(job);
		}
		const exchanges = rows.map((row) => row.exchange);
		const material = JSON.stringify(exchanges);
		const noted = job.result as { line: MemoryLine; of: string } | null;
		const isNoted = noted?.of === shortHash(material);
		const line = isNoted ? noted.line : await sumUp(job, ids, exchanges, material);
		await workspace.update(
			summaryPath(job.owner),
			(text) => (isNoted ? null : changeLines(text, (one) => (one.id === line.id ? line : undefined))) ?? addOnTop(text, line),
			{ by: "program", reason: "compression" },
		);
		await addEntries(
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
		await shortTerm().summed(job.conversationId ?? "", ids);
		await archiveIfLong(job);
	}

	/** The line that they become, noted before it is put anywhere. */
	async function sumUp(job: JobRow, ids: string[], exchanges: Exchange[], material: string): Promise<MemoryLine> {
		const look = async () => JSON.stringify((await toCompress(job, ids)).map((row) => row.exchange));
		const { text, extracted } = await ask(job, material, look, (signal) =>
			compressExchanges(exchanges, options.model(), contextOf(job), signal),
		);
		if (extracted !== null && extracted !== "no model") log.warn("memory.extracted", { conversation: job.conversationId, why: extracted });
		const at = exchanges.at(-1)?.at ?? clock.now();
		const line = { id: shortHash(job.key), when: minuteOf(at, options.timezone()), text };
		await store.setJobResult(job.position, { line, of: shortHash(material) });
		return line;
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
			payload: { ids: oldest.map((line) => line.id) },
			notBefore: now,
			createdAt: now,
		};
		// The same lines again (a person put them back) are archived again, which changes only the summary.
		await store.addJob(job, true);
		wake();
	}

	async function archive(job: JobRow): Promise<void> {
		// Once whole lines were noted: a home may hold such a job still.
		const { lines = [], ids = lines.map((line) => line.id) } = job.payload as { ids?: string[]; lines?: MemoryLine[] };
		const timezone = options.timezone();
		// The day is noted: a restart after midnight must not write the lines to a second page.
		const result = (job.result as { day: string } | null) ?? { day: dayOf(clock.now(), timezone) };
		if (!job.result) await store.setJobResult(job.position, result);
		// As they read now: a person may have changed them since. What is there no more has been archived, or was removed.
		const current = new Map(parseSummary((await workspace.read(summaryPath(job.owner))).text).map((line) => [line.id, line]));
		const diary = diaryPath(job.owner, result.day);
		const moved = ids.flatMap((id) => current.get(id) ?? []);
		await workspace.update(diary, (text) => addToDiary(text, result.day, [...moved].reverse()), { by: "program", reason: "archive" });
		await addEntries(
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
		await workspace.update(summaryPath(job.owner), (text) => changeLines(text, (line) => (ids.includes(line.id) ? null : undefined)), {
			by: "program",
			reason: "archive",
		});
		await archiveIfLong(job);
	}

	async function day(job: JobRow): Promise<void> {
		const { date } = job.payload as { date: string };
		const timezone = options.timezone();
		const from = instantOf(date, timezone) ?? job.createdAt;
		const path = diaryPath(job.owner, date);
		async function look(): Promise<{ exchanges: Exchange[]; lines: string[] }> {
			const rows = await store.exchangesBetween(job, from, endOfDay(from, timezone), 200);
			const page = (await workspace.read(path)).text;
			const lines = page.split("\n").flatMap((raw) => parseLine(raw)?.text ?? []);
			return { exchanges: rows.map((row) => row.exchange), lines };
		}
		const found = await look();
		const { exchanges, lines } = found;
		if (exchanges.length === 0 && lines.length === 0) return;
		const material = JSON.stringify(found);
		const noted = job.result as { summary: string; of: string } | null;
		let summary = noted?.of === shortHash(material) ? noted.summary : null;
		if (summary === null) {
			summary = await ask(
				job,
				material,
				async () => JSON.stringify(await look()),
				(signal) => compressDay(exchanges, lines, options.model(), contextOf(job), signal),
			);
			await store.setJobResult(job.position, { summary, of: shortHash(material) });
		}
		const people = [...new Set(exchanges.map((one) => one.from ?? job.owner))];
		const channels = [...new Set(exchanges.map((one) => one.channel).filter((channel) => channel !== ""))];
		await workspace.update(path, (text) => withHead(text, { date, summary: summary ?? "", people, channels }), {
			by: "program",
			reason: "end of the day",
		});
	}

	return { compress, archive, day };
}
