/**
 * What is known for certain: rows with their history, and Fact.md, which people may edit. The file leads: a line changed, added or taken
 * out by hand changes the rows before anything else is read or written.
 */
import type { FactRow, JobRow, MemoryKey, NewEntry } from "../store/memory-store.ts";
import { versionOf } from "../workspace/text.ts";
import type { WriteOptions } from "../workspace/workspace.ts";
import { entryOf } from "./entry.ts";
import { normOf, sayingOf, topicOf } from "./fact-rules.ts";
import { type FactLine, formatFact, markFact, parseFacts, withFact } from "./facts-file.ts";
import { shortHash } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import { keyOfOwner, keyText } from "./scope.ts";
import { createStamps } from "./stamp.ts";
import { endOfDay, instantOf } from "./times.ts";

export interface NewFact {
	text: string;
	source: "said" | "api" | "import" | "file";
	messageId: string | null;
	conversationId: string | null;
	expiresAt: number | null;
	at: number;
}

export interface Facts {
	/** The same again refreshes; what contradicts takes the older one's place, which stays as history. */
	add(key: MemoryKey, fact: NewFact): Promise<{ fact: FactRow; outcome: "new" | "refreshed" | "superseded" }>;
	list(key: MemoryKey): Promise<FactRow[]>;
	/** What was believed before, oldest first. */
	history(key: MemoryKey): Promise<FactRow[]>;
	/** Removes the row, the line and the memory made of it. */
	remove(key: MemoryKey, id: string): Promise<boolean>;
	/** Drops an owner's lines from the file. */
	removeOwner(owner: string): Promise<void>;
	apply(job: JobRow): Promise<void>;
	/** Ends facts whose time is over. */
	expire(): Promise<void>;
	/** Takes over what a person changed in Fact.md. */
	sync(): Promise<void>;
}

const path = "Fact.md";
export const factId = (key: MemoryKey, norm: string): string => `f${shortHash(`${keyText(key)}|${norm}`)}`;

export function createFacts(
	options: MemoryOptions,
	parts: { addEntries(entries: NewEntry[]): Promise<void>; removeEntries(key: MemoryKey, refs: string[]): Promise<void> },
): Facts {
	const { store, workspace, clock, log } = options;
	const stampOf = createStamps(workspace.paths.workspace);
	let stamp = "";
	/** Version of the text that has been taken over. */
	let seen: string | null = null;
	/** A damaged file could not be moved aside, and that has been said. */
	let stuck = false;
	let last: Promise<unknown> = Promise.resolve();

	function inTurn<T>(work: () => Promise<T>): Promise<T> {
		const result = last.then(work, work);
		last = result.catch(() => undefined);
		return result;
	}

	/** A day that no calendar has ends nothing. */
	function endOf(day: string): number | null {
		const at = instantOf(day, options.timezone());
		return at === null ? null : endOfDay(at, options.timezone());
	}

	const entry = (fact: FactRow): NewEntry =>
		entryOf(fact, {
			id: `${fact.id}-${shortHash(fact.text)}`,
			at: fact.refreshedAt,
			source: "fact",
			ref: fact.id,
			conversationId: null,
			text: fact.text,
		});

	/**
	 * Our own change of what has been taken over is known; where a person has written meanwhile, before it or right behind it, the next
	 * look reads the file anew.
	 */
	async function change(work: (text: string) => string | null, how: Omit<WriteOptions, "base">): Promise<void> {
		let before = "";
		let after: string | null = null;
		await workspace.update(
			path,
			(text) => {
				before = text;
				after = work(text);
				return after;
			},
			how,
		);
		if (after !== null && versionOf(before) === seen) seen = versionOf(after);
	}

	const writeLine = (owner: string, id: string, line: string | null): Promise<void> =>
		change((text) => withFact(text, owner, id, line), { by: "agent", reason: line === null ? "fact removed" : "fact" });

	async function replaceEntry(fact: FactRow): Promise<void> {
		await parts.removeEntries(fact, [fact.id]);
		// A removed memory leaves its id behind: the new one must have another.
		await parts.addEntries([{ ...entry(fact), id: `${fact.id}-${shortHash(fact.text)}-${clock.now().toString(36)}` }]);
	}

	async function addNow(key: MemoryKey, given: NewFact): Promise<{ fact: FactRow; outcome: "new" | "refreshed" | "superseded" }> {
		const norm = normOf(given.text);
		const active = await store.facts(key, "active");
		const topic = topicOf(given.text);
		const { saying, isNo } = sayingOf(given.text);
		const alike = active.filter((fact) => sayingOf(fact.text).saying === saying);
		const same = alike.find((fact) => sayingOf(fact.text).isNo === isNo);
		const isOther = (fact: FactRow): boolean =>
			alike.includes(fact) ? sayingOf(fact.text).isNo !== isNo : topic !== null && topicOf(fact.text) === topic;
		// A fact of the same topic that was said again later stands.
		const older = active.filter((fact) => fact.refreshedAt <= given.at && isOther(fact));
		const id = same?.id ?? factId(key, norm);
		const expiresAt = given.expiresAt ?? same?.expiresAt ?? null;
		const fact: FactRow = same
			? { ...same, refreshedAt: Math.max(same.refreshedAt, given.at), expiresAt }
			: {
					...key,
					id,
					text: given.text,
					norm,
					source: given.source,
					messageId: given.messageId,
					conversationId: given.conversationId,
					at: given.at,
					refreshedAt: given.at,
					expiresAt,
					state: "active",
					supersededBy: null,
				};
		// The file first: a row whose line is missing reads as removed by hand, a line whose row is missing is taken in.
		await writeLine(key.owner, id, formatFact(fact, options.timezone()));
		if (same) await store.setFact(key, id, { refreshedAt: fact.refreshedAt, expiresAt });
		else if (await store.fact(key, id))
			await store.setFact(key, id, {
				text: fact.text,
				refreshedAt: fact.refreshedAt,
				expiresAt,
				state: "active",
				supersededBy: null,
				messageId: given.messageId,
			});
		else await store.addFact(fact);
		for (const old of older) {
			await store.setFact(key, old.id, { state: "superseded", supersededBy: id });
			await parts.removeEntries(key, [old.id]);
			await writeLine(key.owner, old.id, null);
		}
		if (!same) await replaceEntry(fact);
		return { fact, outcome: older.length > 0 ? "superseded" : same ? "refreshed" : "new" };
	}

	async function syncNow(): Promise<void> {
		const now = stampOf(path);
		if (now === stamp) return;
		const file = await workspace.read(path);
		if (file.problem && file.version === null) {
			log.warn("memory.file-problem", { file: path, problem: file.problem });
			options.onProblem?.("file-problem", file.problem);
			stamp = now;
			return;
		}
		const keys = await store.factKeys();
		const damaged = file.problem !== null || (file.exists && file.text.trim() === "");
		if ((damaged || !file.exists) && keys.length > 0) {
			// An emptied or broken file is not the wish to forget everything: it is kept aside and written anew.
			if (file.exists) {
				const kept = await workspace.quarantine(path, file.problem ?? "it is empty").catch(() => null);
				if (kept === null) {
					if (!stuck) options.onProblem?.("file-damaged", `${path} is damaged and cannot be moved aside; the database goes on without it`);
					stuck = true;
					return;
				}
				options.onProblem?.("file-damaged", `${path} was damaged; it was kept as ${kept} and written anew from the database`);
			}
			for (const key of keys)
				for (const fact of await store.facts(key, "active")) await writeLine(key.owner, fact.id, formatFact(fact, options.timezone()));
			stuck = false;
			return;
		}
		if (file.version !== null && file.version === seen) {
			stamp = now;
			return;
		}
		const lines = parseFacts(file.text);
		const byId = new Map(lines.flatMap((line) => (line.id ? [[line.id, line] as const] : [])));
		for (const key of keys) {
			for (const fact of await store.facts(key, "active")) {
				const line = byId.get(fact.id);
				if (!line) {
					await store.setFact(key, fact.id, { state: "gone" });
					await parts.removeEntries(key, [fact.id]);
				} else if (line.text !== "" && normOf(line.text) !== fact.norm) {
					await store.setFact(key, fact.id, { text: line.text, norm: normOf(line.text) });
					await replaceEntry({ ...fact, text: line.text });
				}
				if (line?.until) {
					const expiresAt = endOf(line.until);
					if (expiresAt === null) continue;
					if (fact.expiresAt === null || Math.abs(expiresAt - fact.expiresAt) > 86_400_000)
						await store.setFact(key, fact.id, { expiresAt });
				}
			}
		}
		stamp = now;
		seen = file.version;
		const known = new Set<string>();
		for (const key of await store.factKeys()) for (const fact of await store.facts(key, "active")) known.add(fact.id);
		for (const line of lines) if (line.text !== "" && (line.id === null || !known.has(line.id))) await adopt(line);
	}

	async function adopt(line: FactLine): Promise<void> {
		const key = keyOfOwner(line.owner);
		const id = line.id ?? factId(key, normOf(line.text));
		const at = clock.now();
		const expiresAt = line.until ? endOf(line.until) : null;
		const fact: FactRow = {
			...key,
			id,
			text: line.text,
			norm: normOf(line.text),
			source: "file",
			messageId: null,
			conversationId: null,
			at,
			refreshedAt: at,
			expiresAt,
			state: "active",
			supersededBy: null,
		};
		if (await store.fact(key, id)) await store.setFact(key, id, { text: fact.text, norm: fact.norm, state: "active", supersededBy: null });
		else await store.addFact(fact);
		if (line.id) return replaceEntry(fact);
		await change((text) => markFact(text, line, formatFact(fact, options.timezone())), {
			by: "program",
			reason: "a fact written by hand got its id",
		});
		await replaceEntry(fact);
	}

	async function removeNow(key: MemoryKey, id: string): Promise<boolean> {
		const fact = await store.fact(key, id);
		if (!fact) return false;
		await parts.removeEntries(key, [id]);
		await writeLine(key.owner, id, null);
		await store.removeFact(key, id);
		return true;
	}

	async function expireNow(key: MemoryKey): Promise<void> {
		for (const fact of await store.facts(key, "active")) {
			if (fact.expiresAt === null || fact.expiresAt > clock.now()) continue;
			await store.setFact(key, fact.id, { state: "expired" });
			await parts.removeEntries(key, [fact.id]);
			await writeLine(key.owner, fact.id, null);
		}
	}

	return {
		add: (key, fact) =>
			inTurn(async () => {
				await syncNow();
				return addNow(key, fact);
			}),
		list: (key) =>
			inTurn(async () => {
				await syncNow();
				await expireNow(key);
				return store.facts(key, "active");
			}),
		history: (key) => inTurn(() => store.facts(key)),
		remove: (key, id) =>
			inTurn(async () => {
				await syncNow();
				return removeNow(key, id);
			}),
		removeOwner: (owner) =>
			inTurn(async () => {
				await change(
					(text) => {
						let mine = owner === "master";
						const rows = text.split("\n").filter((raw) => {
							const heading = /^##\s+(.+?)\s*$/.exec(raw);
							if (heading) mine = heading[1] === owner;
							return !(mine && (heading || /^\s*[-*+]\s/.test(raw)));
						});
						const changed = rows.join("\n");
						return changed === text ? null : changed;
					},
					{ by: "person", reason: "forgotten" },
				);
			}),
		apply: (job) =>
			inTurn(async () => {
				await syncNow();
				const { action, row } = job.payload as { action: string; row: Record<string, unknown> };
				const key = { owner: job.owner, audience: job.audience };
				if (action === "forget") {
					await removeNow(key, String(row.id ?? ""));
					return;
				}
				const expiresAt = typeof row.expiresAt === "number" ? row.expiresAt : null;
				await addNow(key, {
					text: String(row.text ?? ""),
					source: "said",
					messageId: typeof row.messageId === "string" ? row.messageId : null,
					conversationId: job.conversationId,
					expiresAt,
					at: job.createdAt,
				});
			}),
		expire: () =>
			inTurn(async () => {
				for (const key of await store.factKeys()) await expireNow(key);
			}),
		sync: () => inTurn(syncNow),
	};
}
