/** Forgetting: a message, a fact, a memory or a person, with everything that was made of it. */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { MemoryKey } from "../store/memory-store.ts";
import { writeFileAtomic } from "../workspace/atomic.ts";
import { safeName } from "../workspace/names.ts";
import type { Forgotten, MemoryAdmin } from "./admin.ts";
import { type Background, entryOf } from "./background.ts";
import { extract } from "./compress.ts";
import type { Facts } from "./facts.ts";
import { addToDiary, changeLines, type DiaryHead, parseLine, shortHash, withHead } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import type { PeopleFiles } from "./people-files.ts";
import { diaryFolder, diaryPath, exchangesPath, keyOfOwner, keyText, personFolder, summaryPath } from "./scope.ts";
import type { ShortTerm } from "./short-term.ts";
import { dayOf } from "./text/dates.ts";
import { endOfDay, instantOf, minuteOf } from "./times.ts";
import type { Vectors } from "./vectors.ts";

/** What the diary shows where something was. */
export const removedMark = "(removed on request)";

export interface ForgetParts {
	options: MemoryOptions;
	shortTerm: ShortTerm;
	background: Background;
	facts: Facts;
	people: PeopleFiles;
	vectors: Vectors;
	removeEntries(key: MemoryKey, which: { ids?: string[]; refs?: string[] }): Promise<number>;
}

export function createForget(parts: ForgetParts): Pick<MemoryAdmin, "forget"> {
	const { options, shortTerm, background, facts, people, vectors, removeEntries } = parts;
	const { store, workspace, clock } = options;
	const by = { by: "person", reason: "forgotten" } as const;
	const nothing = (): Forgotten => ({ messages: 0, exchanges: 0, summaryLines: 0, diaryLines: 0, memories: 0, facts: 0 });

	const diaryPages = async (owner: string): Promise<string[]> =>
		(await workspace.list(diaryFolder(owner), 20_000)).map((entry) => entry.path).filter((path) => /\/\d{4}-\d{2}-\d{2}\.md$/.test(path));

	/** Older versions of the prompt files hold what was removed from them: it goes there too. */
	async function scrubVersions(texts: string[]): Promise<void> {
		const wanted = texts.map((text) => text.trim()).filter((text) => text.length >= 6);
		if (wanted.length === 0) return;
		for (const file of ["Fact.md", "MASTER.md", "USER.md"]) {
			const folder = join(workspace.paths.data, "versions", safeName(file));
			for (const name of await readdir(folder).catch(() => [])) {
				const path = join(folder, name);
				try {
					const record = JSON.parse(await readFile(path, "utf8")) as { text?: unknown };
					if (typeof record.text !== "string") continue;
					const kept = record.text
						.split("\n")
						.filter((row) => !wanted.some((text) => row.includes(text)))
						.join("\n");
					if (kept !== record.text) await writeFileAtomic(path, `${JSON.stringify({ ...record, text: kept })}\n`);
				} catch {
					// A damaged record shows nothing to anybody.
				}
			}
		}
	}

	/** Rewrites (or removes) the line that four exchanges had become, wherever it stands now. */
	async function rewriteLine(key: MemoryKey, lineId: string, rest: string, report: Forgotten): Promise<void> {
		await workspace.update(
			summaryPath(key.owner),
			(text) =>
				changeLines(text, (line) => {
					if (line.id !== lineId) return undefined;
					report.summaryLines++;
					return rest === "" ? null : { ...line, text: `[extract] ${rest}` };
				}),
			by,
		);
		for (const page of await diaryPages(key.owner)) {
			if (!(await workspace.read(page)).text.includes(`m:${lineId}`)) continue;
			await workspace.update(
				page,
				(text) =>
					changeLines(text, (line) => {
						if (line.id !== lineId) return undefined;
						report.diaryLines++;
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
	}

	/** The paragraph on a day may tell of what was removed: it is made anew from what is left. */
	async function rewriteDay(key: MemoryKey, at: number): Promise<void> {
		const timezone = options.timezone();
		const date = dayOf(at, timezone);
		const path = diaryPath(key.owner, date);
		const page = await workspace.read(path);
		if (!page.exists || /\nsummary: ""\n/.test(page.text)) return;
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

	async function exchangesGone(ids: string[], within: MemoryKey | undefined, report: Forgotten): Promise<MemoryKey[]> {
		const rows = (await store.exchangesOf(ids)).filter(
			(row) => !within || (row.owner === within.owner && row.audience === within.audience),
		);
		const keys = new Map<string, MemoryKey>();
		const lines = new Map<string, MemoryKey>();
		for (const row of rows) {
			const key = { owner: row.owner, audience: row.audience };
			keys.set(keyText(key), key);
			for (const job of await store.compressionsOf(row.conversationId)) {
				if ((job.payload as { ids?: string[] } | null)?.ids?.includes(row.exchange.id)) await store.clearJobResult(job.position);
			}
			await store.setExchangeBody(row.exchange.id, {
				id: row.exchange.id,
				at: row.exchange.at,
				channel: row.exchange.channel,
				from: null,
				said: "",
				replied: "",
			});
			await store.setExchanges([row.exchange.id], { state: "gone" });
			await shortTerm.drop(row.conversationId, [row.exchange.id]);
			report.exchanges++;
			report.memories += await removeEntries(key, { refs: [row.exchange.id] });
			if (row.lineId) lines.set(row.lineId, key);
		}
		for (const [lineId, key] of lines) {
			const left = (await store.exchangesOfLine(lineId)).filter((row) => row.state !== "gone").map((row) => row.exchange);
			await rewriteLine(key, lineId, left.length === 0 ? "" : extract(left), report);
		}
		for (const row of rows) await rewriteDay({ owner: row.owner, audience: row.audience }, row.exchange.at);
		return [...keys.values()];
	}

	async function forgetMessage(messageId: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		const report = nothing();
		const turn = await store.turnOfMessage(messageId);
		const ids = [...new Set([messageId, ...(turn?.messageIds ?? []), ...(turn?.turnId ? [turn.turnId] : [])])];
		const rows = await store.exchangesOf(ids);
		if (within && !rows.some((row) => row.owner === within.owner && row.audience === within.audience)) return null;
		if (!turn && rows.length === 0) return null;
		const said = rows.flatMap((row) => [row.exchange.said, row.exchange.replied]);
		const keys = await exchangesGone(ids, within, report);
		const texts = [...(turn ? await store.redactMessages(turn.messageIds) : []), ...said].filter((text) => text !== "");
		report.messages = turn?.messageIds.length ?? 0;
		for (const key of keys.length > 0 ? keys : within ? [within] : []) {
			for (const fact of await facts.history(key)) {
				if (!fact.messageId || !ids.includes(fact.messageId)) continue;
				texts.push(fact.text);
				if (await facts.remove(key, fact.id)) report.facts++;
			}
			await people.forgetTexts(key.owner, texts);
		}
		await scrubVersions(texts);
		vectors.forgetQuestions();
		return report;
	}

	async function forgetFact(id: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		const key = await store.factOwner(id);
		if (!key || (within && (key.owner !== within.owner || key.audience !== within.audience))) return null;
		const fact = await store.fact(key, id);
		if (!fact || !(await facts.remove(key, id))) return null;
		await scrubVersions([fact.text]);
		vectors.forgetQuestions();
		return { ...nothing(), facts: 1, memories: 1 };
	}

	async function forgetEntry(id: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		for (const key of within ? [within] : await store.owners()) {
			const [entry] = await store.entries(key, [id]);
			if (!entry) continue;
			if (entry.source === "fact" && entry.ref) return forgetFact(entry.ref, key);
			const report = nothing();
			if (entry.source === "conversation" && entry.ref) await exchangesGone([entry.ref], key, report);
			else if (entry.source === "summary" && entry.ref) await rewriteLine(key, entry.ref, "", report);
			report.memories += await removeEntries(key, { ids: [id] });
			vectors.forgetQuestions();
			return report;
		}
		return null;
	}

	async function forgetPerson(owner: string): Promise<Forgotten> {
		const report = nothing();
		const key = keyOfOwner(owner);
		const conversations = await store.conversationsOf(key);
		report.facts = (await facts.history(key)).length;
		report.memories = await store.countEntries(key);
		for (;;) {
			const ids = await store.messagesOf(owner, 200);
			if (ids.length === 0) break;
			await store.redactMessages(ids);
			report.messages += ids.length;
		}
		const texts = [
			...(await facts.history(key)).map((fact) => fact.text),
			...(await people.profile(owner)).split("\n").map((row) => row.replace(/^\s*[-*+]\s+/, "")),
		];
		report.exchanges = (await store.removeOwner(owner)) - report.facts - report.memories;
		await removeEntries(key, { refs: [] });
		for (const conversationId of conversations) {
			shortTerm.evict(conversationId);
			await workspace.remove(exchangesPath(conversationId));
		}
		for (const page of await diaryPages(owner)) {
			report.diaryLines += (await workspace.read(page)).text.split("\n").filter((row) => parseLine(row)).length;
			await workspace.remove(page);
		}
		report.summaryLines = (await workspace.read(summaryPath(owner))).text.split("\n").filter((row) => parseLine(row)).length;
		if (owner === "master") await workspace.remove(summaryPath(owner));
		else await rm(await workspace.resolve(personFolder(owner)), { recursive: true, force: true });
		await facts.removeOwner(owner);
		await people.forgetPerson(owner);
		await scrubVersions(texts);
		const timezone = options.timezone();
		const now = clock.now();
		const today = dayOf(now, timezone);
		await workspace.update(
			diaryPath(owner, today),
			(text) => addToDiary(text, today, [{ id: `r${shortHash(`${owner} ${now}`)}`, when: minuteOf(now, timezone), text: removedMark }]),
			by,
		);
		vectors.forgetQuestions();
		return report;
	}

	return {
		forget: (what, within) =>
			background.alone(async () => {
				if ("messageId" in what) return forgetMessage(what.messageId, within);
				if ("factId" in what) return forgetFact(what.factId, within);
				if ("entryId" in what) return forgetEntry(what.entryId, within);
				if (within && within.owner !== what.person) return null;
				return forgetPerson(what.person);
			}),
	};
}
