/** Takes what is to be forgotten out of everything that was made of it. Done twice it changes nothing more: a crash in between is made good. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { MemoryKey } from "../store/memory-store.ts";
import { writeFileAtomic } from "../workspace/atomic.ts";
import { PathRefused, safeName } from "../workspace/names.ts";
import { WorkspaceConflict, WorkspaceRefused } from "../workspace/workspace.ts";
import type { Forgotten } from "./admin.ts";
import type { Background } from "./background.ts";
import { extract } from "./compress.ts";
import { dayJob, entryOf } from "./entry.ts";
import type { Facts } from "./facts.ts";
import { maskLogs } from "./forget-logs.ts";
import { createTeller, type Teller } from "./forget-words.ts";
import { changeLines, type DiaryHead, withHead } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import type { PeopleFiles } from "./people-files.ts";
import { diaryFolder, diaryPath, keyText, planPath, summaryPath } from "./scope.ts";
import type { ShortTerm } from "./short-term.ts";
import { dayOf } from "./text/dates.ts";
import { endOfDay, instantOf } from "./times.ts";
import type { Vectors } from "./vectors.ts";

/** What the diary shows where something was. */
export const removedMark = "(removed on request)";

/** All that one act of forgetting takes away, worked out before anything is changed. It is noted as a job while it is done. */
export interface Removal {
	/** Texts of facts: whatever says them again goes too. */
	facts: string[];
	factIds: string[];
	/** Turns that go whole: messages, exchange, records. */
	turns: string[];
	/** Messages and exchanges that belong to no turn. */
	messages: string[];
	exchanges: string[];
	/** Turns in which it was asked to forget: their records go, their messages only where they hold what is forgotten. */
	asking: string[];
	/** Texts whose copies are looked for. */
	copies: string[];
	/** Turns that have not ended: looked at when they have. `everything`: they go whole. */
	open: string[];
	everything: boolean;
	/** What was said to them: a message that waits to join a turn may begin another one. */
	heard: string[];
	/** Memories of their own: imported ones, of which nobody knows what they were made of. */
	entries: string[];
	/** All that is kept of the owner goes. */
	person: boolean;
}

export interface RemovalParts {
	options: MemoryOptions;
	shortTerm: ShortTerm;
	facts: Facts;
	people: PeopleFiles;
	vectors: Vectors;
	background: Pick<Background, "removed">;
	removeEntries(key: MemoryKey, which: { ids?: string[]; refs?: string[] }): Promise<number>;
}

const page = 500;
/** Whole messages shorter than this stand in too much that has nothing to do with them. */
export const leastCopy = 8;
const promptFiles = ["Fact.md", "MASTER.md", "USER.md", "IDENTITY.md", "Agent.md"];
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
export const nothing = (): Forgotten => ({ messages: 0, exchanges: 0, summaryLines: 0, diaryLines: 0, memories: 0, facts: 0 });

export function addTo(sum: Forgotten, more: Forgotten | null): void {
	for (const name of Object.keys(sum) as (keyof Forgotten)[]) sum[name] += more?.[name] ?? 0;
}

/** Files that cannot be written, while everything else goes on. A folder, a pipe or a link out of the home holds nothing of ours. */
export function createObstacles(): { passing<T>(work: () => Promise<T>): Promise<T | null>; raise(): void } {
	const met: Error[] = [];
	return {
		async passing(work) {
			try {
				return await work();
			} catch (error) {
				if (error instanceof PathRefused || (error instanceof WorkspaceRefused && error.noFile)) return null;
				if (!(error instanceof WorkspaceRefused || error instanceof WorkspaceConflict)) throw error;
				met.push(error);
				return null;
			}
		},
		raise() {
			const [first] = met;
			if (first)
				throw new WorkspaceRefused(
					`${first.message}; what it holds is removed as soon as it can be written, everything else is gone already`,
				);
		},
	};
}
type Obstacles = ReturnType<typeof createObstacles>;

export interface Remover {
	diaryPages(owner: string): Promise<string[]>;
	/** Older versions of the prompt files lose the lines for which `tells` is true. */
	scrubVersions(tells: (line: string) => boolean): Promise<void>;
	/** Rewrites (or, with nothing left, removes) the line that four exchanges had become, wherever it stands now. */
	rewriteLine(key: MemoryKey, lineId: string, rest: string, report: Forgotten): Promise<string[]>;
	/** Covers texts in the log's files. */
	unlog(texts: string[]): Promise<void>;
	/** A file that cannot be written stops nothing else; when all else is done, it is thrown. */
	apply(key: MemoryKey, what: Removal, report: Forgotten): Promise<void>;
}

export function createRemover(parts: RemovalParts): Remover {
	const { options, shortTerm, facts, people, vectors, background, removeEntries } = parts;
	const { store, workspace, clock } = options;
	const by = { by: "person", reason: "forgotten" } as const;

	const diaryPages = async (owner: string): Promise<string[]> =>
		(await workspace.list(diaryFolder(owner), 20_000)).map((entry) => entry.path).filter((path) => /\/\d{4}-\d{2}-\d{2}\.md$/.test(path));

	async function scrubVersions(tells: (line: string) => boolean): Promise<void> {
		for (const file of promptFiles) {
			const folder = join(workspace.paths.data, "versions", safeName(file));
			for (const name of await readdir(folder).catch(() => [])) {
				const path = join(folder, name);
				try {
					const record = JSON.parse(await readFile(path, "utf8")) as { text?: unknown };
					if (typeof record.text !== "string") continue;
					const kept = record.text
						.split("\n")
						.filter((row) => !tells(row))
						.join("\n");
					if (kept !== record.text) await writeFileAtomic(path, `${JSON.stringify({ ...record, text: kept })}\n`);
				} catch {
					// A damaged record shows nothing to anybody.
				}
			}
		}
	}

	async function rewriteLine(key: MemoryKey, lineId: string, rest: string, report: Forgotten): Promise<string[]> {
		const before: string[] = [];
		await workspace.update(
			summaryPath(key.owner),
			(text) =>
				changeLines(text, (line) => {
					if (line.id !== lineId) return undefined;
					report.summaryLines++;
					before.push(line.text);
					return rest === "" ? null : { ...line, text: `[extract] ${rest}` };
				}),
			by,
		);
		for (const path of await diaryPages(key.owner)) {
			if (!(await workspace.read(path)).text.includes(`m:${lineId}`)) continue;
			await workspace.update(
				path,
				(text) =>
					changeLines(text, (line) => {
						if (line.id !== lineId) return undefined;
						report.diaryLines++;
						before.push(line.text);
						return { ...line, text: rest === "" ? removedMark : `${rest} ${removedMark}` };
					}),
				by,
			);
		}
		const archived = await removeEntries(key, { refs: [lineId] });
		report.memories += archived;
		if (archived > 0 && rest !== "") {
			await store.addEntries([
				entryOf(key, {
					id: `s-${keyText(key)}-${lineId}-${clock.now().toString(36)}`,
					at: clock.now(),
					source: "summary",
					ref: lineId,
					conversationId: null,
					text: rest,
				}),
			]);
			vectors.wake();
		}
		return before;
	}

	/** The paragraph on a day may tell of what was removed: it is made anew from what is left. */
	async function rewriteDay(key: MemoryKey, at: number): Promise<void> {
		const timezone = options.timezone();
		const date = dayOf(at, timezone);
		const toCome = await store.jobPosition(dayJob(key, date));
		if (toCome !== null) await store.clearJobResult(toCome);
		const path = diaryPath(key.owner, date);
		const found = await workspace.read(path);
		if (!found.exists || /\nsummary: ""\n/.test(found.text)) return;
		const from = instantOf(date, timezone) ?? at;
		const left = (await store.exchangesBetween(key, from, endOfDay(from, timezone), 200)).map((row) => row.exchange);
		const head: DiaryHead = {
			date,
			summary: left.length === 0 ? removedMark : `${extract(left, 400)} ${removedMark}`,
			people: [...new Set(left.map((one) => one.from ?? key.owner))],
			channels: [...new Set(left.map((one) => one.channel).filter((channel) => channel !== ""))],
		};
		await workspace.update(path, (text) => withHead(text, head), by);
	}

	/** Answers the summary and diary lines that were made of them. */
	async function exchangesGone(key: MemoryKey, ids: string[], report: Forgotten, { passing }: Obstacles): Promise<string[]> {
		const rows = (await store.exchangesOf(ids)).filter((row) => row.owner === key.owner && row.audience === key.audience);
		const lines = new Set<string>();
		const before: string[] = [];
		for (const row of rows) {
			const { id, at, channel } = row.exchange;
			for (const job of await store.compressionsOf(row.conversationId)) {
				if ((job.payload as { ids?: string[] } | null)?.ids?.includes(id)) await store.clearJobResult(job.position);
			}
			await store.setExchangeBody(id, { id, at, channel, from: null, said: "", replied: "" });
			await store.setExchanges([id], { state: "gone" });
			await passing(() => shortTerm.drop(row.conversationId, [id]));
			report.exchanges++;
			report.memories += await removeEntries(key, { refs: [id] });
			if (row.lineId) lines.add(row.lineId);
		}
		for (const lineId of lines) {
			const left = (await store.exchangesOfLine(lineId)).filter((row) => row.state !== "gone").map((row) => row.exchange);
			before.push(...((await passing(() => rewriteLine(key, lineId, left.length === 0 ? "" : extract(left), report))) ?? []));
		}
		for (const at of new Set(rows.map((row) => row.exchange.at))) await passing(() => rewriteDay(key, at));
		return before;
	}

	/** An exchange of this id is known as removed from now on, also when memory had not heard of it yet. */
	async function neverRemember(key: MemoryKey, turnId: string): Promise<void> {
		const place = await store.turnOfMessage(turnId);
		if (!place || (await store.knownExchanges([turnId])).has(turnId)) return;
		const exchange = { id: turnId, at: clock.now(), channel: "", from: null, said: "", replied: "" };
		await store.addExchange({ ...key, conversationId: place.conversationId, exchange });
		await store.setExchanges([turnId], { state: "gone" });
	}

	/** Lines that nobody knows the source of (written by hand, imported, worded by a model) go when they say it again. */
	async function linesGone(key: MemoryKey, teller: Teller, report: Forgotten, { passing }: Obstacles): Promise<string[]> {
		const before: string[] = [];
		await passing(() =>
			workspace.update(
				summaryPath(key.owner),
				(text) =>
					changeLines(text, (line) => {
						if (!teller.repeats(line.text)) return undefined;
						report.summaryLines++;
						before.push(line.text);
						return null;
					}),
				by,
			),
		);
		for (const path of await diaryPages(key.owner)) {
			const { text: whole } = await workspace.read(path);
			if (!teller.repeats(whole)) continue;
			await passing(() =>
				workspace.update(
					path,
					(text) =>
						changeLines(text, (line) => {
							if (!teller.repeats(line.text)) return undefined;
							report.diaryLines++;
							before.push(line.text);
							return { ...line, text: removedMark };
						}),
					by,
				),
			);
			const head = /^---\n[\s\S]*?\n---/.exec(whole)?.[0] ?? "";
			const at = instantOf(path.slice(-13, -3), options.timezone());
			if (at !== null && teller.repeats(head)) await passing(() => rewriteDay(key, at));
		}
		return before;
	}

	async function entriesGone(key: MemoryKey, teller: Teller, report: Forgotten): Promise<void> {
		for (let after = 0; ; ) {
			const rows = await store.entriesOf(key, after, page);
			if (rows.length === 0) return;
			after = rows.at(-1)?.position ?? after;
			const told = rows.filter((row) => teller.repeats(row.text)).map((row) => row.id);
			if (told.length > 0) report.memories += await removeEntries(key, { ids: told });
			await breathe();
		}
	}

	const itemOf = (row: string): string => row.replace(/^\s*[-*+]\s+\[[ xX]\]/, "").trim();

	/** Items of plans: those that tell of it, and those of turns that go whole. */
	async function plansGone(key: MemoryKey, what: Removal, teller: Teller, { passing }: Obstacles): Promise<void> {
		const items = new Map<string, string[]>();
		for (const { conversationId, item } of await store.plansOf(what.turns))
			items.set(conversationId, [...(items.get(conversationId) ?? []), item]);
		const told = what.facts.length > 0 ? await store.conversationsOf(key) : [];
		for (const conversationId of new Set([...told, ...items.keys()])) {
			const path = planPath(conversationId);
			if (!(await workspace.read(path)).exists) continue;
			const theirs = items.get(conversationId) ?? [];
			await passing(() =>
				workspace.update(
					path,
					(text) => {
						const kept = text.split("\n").filter((row) => !teller.repeats(row) && !theirs.includes(itemOf(row)));
						return kept.length === text.split("\n").length ? null : kept.join("\n");
					},
					by,
				),
			);
		}
	}

	async function unlog(texts: string[]): Promise<void> {
		const failed = await maskLogs(workspace.paths.logs, texts);
		if (failed.length > 0)
			options.onProblem?.("log-not-changed", `what was forgotten may still stand in logs/${failed.join(", logs/")}: it cannot be written`);
	}

	return {
		diaryPages,
		unlog,
		scrubVersions,
		rewriteLine,

		async apply(key, what, report) {
			const teller = createTeller(what.facts);
			const mates = (await Promise.all(what.turns.map((id) => store.turnOfMessage(id)))).flatMap((turn) => turn?.messageIds ?? []);
			const asking = (await Promise.all(what.asking.map((id) => store.turnOfMessage(id)))).flatMap((turn) => turn?.messageIds ?? []);
			const touched = (await store.messageTexts(asking)).filter((row) => teller.touches(row.text)).map((row) => row.id);
			const messages = [...new Set([...what.messages, ...mates, ...touched])];
			const said = (await store.messageTexts(messages)).map((row) => row.text);
			const obstacles = createObstacles();
			const { passing } = obstacles;
			const lines = await exchangesGone(key, [...new Set([...what.turns, ...what.exchanges, ...messages])], report, obstacles);
			for (const id of what.turns) await neverRemember(key, id);
			if (what.facts.length > 0) {
				lines.push(...(await linesGone(key, teller, report, obstacles)));
				await entriesGone(key, teller, report);
			}
			await plansGone(key, what, teller, obstacles);
			// Their answers are recorded by now: what was recorded is looked through below.
			await background.removed(key);
			if (what.entries.length > 0) report.memories += await removeEntries(key, { ids: what.entries });
			await removeEntries(key, { refs: what.factIds });
			await vectors.removed(key);
			const whole = said.filter((text) => text.length >= leastCopy && (what.everything || teller.touches(text)));
			const copies = [...new Set([...what.copies, ...what.facts, ...said.flatMap((text) => teller.sentences(text)), ...whole, ...lines])];
			await passing(() => people.forgetTexts(key.owner, copies));
			if (what.facts.length > 0) await passing(() => people.forgetLines(key.owner, teller.repeats));
			const exact = copies.filter((text) => text.length >= 6);
			await scrubVersions((row) => exact.some((text) => row.includes(text)) || (what.facts.length > 0 && teller.repeats(row)));
			for (const record of await store.redactTraces(key, copies, [...what.turns, ...what.asking]))
				await workspace.remove(`files/results/${record}.txt`);
			await unlog(copies);
			report.messages += (await store.messageTexts(messages)).length;
			await store.redactMessages(messages);
			// Last: a fact that is still there can be forgotten once more.
			for (const id of what.factIds) if (await passing(() => facts.remove(key, id))) report.facts++;
			if (messages.length > 0) options.onRemoved?.(messages);
			obstacles.raise();
		},
	};
}
