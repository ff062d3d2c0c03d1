/** The whole memory of the agent, put together. */
import { join } from "node:path";
import type { Engine, SearchAnswer, SearchHit } from "../store/memory-search.ts";
import type { FactRow, MemoryKey, NewEntry } from "../store/memory-store.ts";
import type { Fact, MemoryAdmin } from "./admin.ts";
import { createBackground } from "./background.ts";
import { removeConversationFiles } from "./conversation-files.ts";
import { createEngineHost } from "./engine-host.ts";
import { entryOf } from "./entry.ts";
import { createFacts } from "./facts.ts";
import { createForget } from "./forget.ts";
import { oneLine, parseSummary, shortHash } from "./lines.ts";
import type { Memory, Recalled } from "./memory.ts";
import type { MemoryOptions } from "./options.ts";
import { createPeopleFiles } from "./people-files.ts";
import { keyOf, keyOfOwner, keyText, summaryPath } from "./scope.ts";
import { createShortTerm } from "./short-term.ts";
import { createStamps } from "./stamp.ts";
import { saysNothing } from "./text/terms.ts";
import { createTransfer } from "./transfer.ts";
import { createVectors } from "./vectors.ts";

/** Characters of one recalled memory and of all of them in a prompt. */
const recallChars = 500;
const recallBudget = 1600;
/** A turn waits this long for its memories; the search engine may be starting. */
const recallMs = 1500;
/** Rows the index takes in at once in the background, and how far behind it may be before that is begun. */
const syncRows = 100;
const syncBehind = 300;

export function createMemory(options: MemoryOptions): Memory & MemoryAdmin {
	const { store, workspace, clock, log } = options;
	const waitMs = options.recallMs ?? recallMs;
	const stampOf = createStamps(workspace.paths.workspace);
	const indexFile = options.indexFile ?? join(workspace.paths.data, "memory-index.db");
	let engine: { engine: Engine; timezone: string } | null = null;
	const summaries = new Map<string, { stamp: string; text: string }>();
	/** Whether a key has memories: an empty memory is asked nothing. */
	const filled = new Map<string, boolean>();
	let model: string | null = null;
	let syncing: Promise<void> | null = null;
	let stopped = false;

	function search(): Engine {
		const timezone = options.timezone();
		if (engine && engine.timezone !== timezone) {
			void engine.engine.close();
			engine = null;
		}
		engine ??= {
			engine: (options.engine ?? ((how) => createEngineHost({ ...how, log })))({ mainFile: store.file, indexFile, timezone }),
			timezone,
		};
		return engine.engine;
	}

	/** Brings the index up to date in the background, in pieces, so that questions come in between. */
	function sync(): Promise<void> {
		if (stopped) return Promise.resolve();
		syncing ??= (async () => {
			for (;;) {
				const state = await search().sync(vectors.model(), syncRows);
				if (state.rebuilt !== null) {
					log.warn("memory.index-rebuilt", { why: state.rebuilt });
					options.onProblem?.(
						"memory-index",
						`the memory's index was made anew (${state.rebuilt}); nothing is lost, words and meaning are found again as it goes on`,
					);
				}
				if (state.behind <= 0 || stopped) return;
			}
		})()
			.catch((error) => {
				if (!stopped) log.warn("memory.index", { error: (error as Error).message });
			})
			.finally(() => {
				syncing = null;
			});
		return syncing;
	}

	let unsynced = 0;
	const vectors = createVectors(options, () => {
		if (unsynced >= syncBehind) {
			unsynced = 0;
			void sync();
		}
	});

	async function addEntries(entries: NewEntry[]): Promise<void> {
		if (entries.length === 0) return;
		await store.addEntries(entries);
		for (const entry of entries) filled.delete(keyText(entry));
		unsynced += entries.length;
		vectors.wake();
	}
	async function removeEntries(key: MemoryKey, which: { ids?: string[]; refs?: string[] }): Promise<number> {
		filled.delete(keyText(key));
		return store.removeEntries(key, which);
	}

	const background = createBackground(options, {
		shortTerm: () => shortTerm,
		addEntries,
		applyFact: (job) => facts.apply(job),
		forget: (job) => forgetting.resume(job),
		forgotten: () => forgetting.tidy(),
		async tick() {
			await facts.expire();
			await forgetting.tidy();
			vectors.wake();
		},
	});
	const shortTerm = createShortTerm(
		{
			...options,
			recent: async (conversationId, limit) =>
				((await options.recent?.(conversationId, limit)) ?? []).filter((exchange) => !forgetting.refuses(exchange)),
		},
		background.wake,
	);
	const facts = createFacts(options, { addEntries, removeEntries: async (key, refs) => void (await removeEntries(key, { refs })) });
	const people = createPeopleFiles(options);
	const forgetting = createForget({
		options,
		shortTerm,
		background,
		facts,
		people,
		vectors,
		removeEntries,
		async indexed() {
			// One that runs may have read past what is gone.
			await syncing;
			await sync();
		},
	});
	const transfer = createTransfer({ options, facts, people, addEntries });

	async function isEmpty(key: MemoryKey): Promise<boolean> {
		const name = keyText(key);
		let known = filled.get(name);
		if (known === undefined) {
			known = await store.hasEntries(key);
			if (filled.size > 10_000) filled.clear();
			filled.set(name, known);
		}
		return !known;
	}

	/** The newest lines, as the prompt carries them. */
	async function summaryText(owner: string): Promise<string> {
		const path = summaryPath(owner);
		const stamp = stampOf(path);
		const { summaryLines } = options.settings();
		const name = `${path} ${summaryLines}`;
		const known = summaries.get(name);
		if (known?.stamp === stamp) return known.text;
		const file = stamp === "none" ? null : await workspace.read(path);
		if (file?.problem) {
			log.warn("memory.file-problem", { file: path, problem: file.problem });
			options.onProblem?.("file-problem", file.problem);
		}
		const text = parseSummary(file?.text ?? "")
			.slice(0, summaryLines)
			.map((line) => `- ${line.when ? `${line.when} ` : ""}${line.text}`)
			.join("\n");
		if (summaries.size > 500) summaries.clear();
		summaries.set(name, { stamp, text });
		return text;
	}

	async function find(
		key: MemoryKey,
		conversationId: string | null,
		text: string,
		semantic: number,
		keyword: number,
		total: number,
	): Promise<SearchAnswer> {
		const current = vectors.model();
		if (model !== current) {
			model = current;
			vectors.wake();
		}
		const vector = await vectors.ofQuestion(key, conversationId, text);
		const answer = await search().search({
			key,
			text: text.slice(0, 4000),
			vector,
			model: vectors.model(),
			now: clock.now(),
			semantic,
			keyword,
			total,
			loose: false,
		});
		if (answer.behind > 0) void sync();
		return answer;
	}

	const toRecalled = (hit: SearchHit, by: "semantic" | "keyword", most: number): Recalled => {
		const characters = [...hit.text];
		return {
			id: hit.id,
			text: characters.length <= most ? hit.text : `${characters.slice(0, most - 1).join("")}…`,
			at: hit.at,
			source: hit.source,
			score: hit.score,
			by,
		};
	};
	const toFact = (row: FactRow): Fact => ({
		id: row.id,
		text: row.text,
		source: row.source,
		at: row.refreshedAt,
		scope: row.owner,
		messageId: row.messageId,
		expiresAt: row.expiresAt,
	});

	return {
		async start() {
			await forgetting.load();
			await background.start();
			vectors.wake();
		},

		history: (scope) => shortTerm.history(keyOf(scope), scope.conversationId),
		takenBack: shortTerm.takenBack,

		async blocks(scope) {
			const key = keyOf(scope);
			const blocks = await people.blocks(key);
			const summary = await summaryText(key.owner);
			if (summary !== "") blocks.push({ name: "summary", text: summary });
			return blocks;
		},

		async recall(scope, text) {
			const key = keyOf(scope);
			if (saysNothing(text) || (await isEmpty(key))) return [];
			const { recallSemantic, recallKeyword } = options.settings();
			if (recallSemantic + recallKeyword === 0) return [];
			try {
				const answer = await within(waitMs, find(key, scope.conversationId, text, recallSemantic, recallKeyword, 0));
				if (answer === null) {
					log.warn("memory.recall-late", { conversation: scope.conversationId });
					return [];
				}
				const found: Recalled[] = [];
				let room = recallBudget;
				for (const [hits, by] of [
					[answer.semantic, "semantic"],
					[answer.keyword, "keyword"],
				] as const) {
					for (const hit of hits) {
						if (room < 60) break;
						const recalled = toRecalled(hit, by, Math.min(recallChars, room));
						room -= recalled.text.length;
						found.push(recalled);
					}
				}
				if (found.length > 0)
					void store
						.entriesUsed(
							key,
							found.map((one) => one.id),
							clock.now(),
						)
						.catch((error) => log.warn("memory.used", { error: (error as Error).message }));
				return found;
			} catch (error) {
				// A turn goes on without its memories rather than not at all.
				log.warn("memory.recall", { error: (error as Error).message });
				return [];
			}
		},

		async remember(scope, exchange) {
			const key = keyOf(scope);
			background.busy();
			// It says what was forgotten while its turn ran: the job that waits for its end takes it away.
			if (forgetting.refuses(exchange)) return background.wake();
			// Told once more after a write that failed in the middle, it is there already and the rest is not.
			await shortTerm.remember(key, scope.conversationId, exchange);
			await background.dayOf(key, scope.conversationId, exchange.at);
			// Facts said in the turn wait as jobs; the shared queue takes them.
			background.wake();
		},

		async stop() {
			stopped = true;
			await background.stop();
			await shortTerm.stop();
			await vectors.stop();
			await engine?.engine.close();
			await syncing;
		},

		async search(key, query, limit = 10) {
			if (query.trim() === "") return { semantic: [], keyword: [] };
			// What was told a moment ago belongs to what is known, also when it is the first thing.
			await background.facts(key);
			if (await isEmpty(key)) return { semantic: [], keyword: [] };
			const { recallSemantic, recallKeyword } = options.settings();
			const answer = await find(key, null, query, recallSemantic, recallKeyword, limit);
			return {
				semantic: answer.semantic.map((hit) => toRecalled(hit, "semantic", 20_000)),
				keyword: answer.keyword.map((hit) => toRecalled(hit, "keyword", 20_000)),
			};
		},

		async importEntries(entries) {
			const rows = entries.flatMap((entry): NewEntry[] => {
				const text = entry.text.trim();
				if (text === "") return [];
				const key = keyOfOwner(entry.person ?? "master");
				const source = entry.source ?? "import";
				return [
					entryOf(key, {
						id: `i-${shortHash(`${keyText(key)}|${entry.at}|${source}|${text}`)}`,
						at: entry.at,
						source,
						ref: null,
						conversationId: null,
						text: entry.text,
					}),
				];
			});
			await addEntries(rows);
			return { stored: rows.length };
		},

		async facts(key) {
			await background.facts(key);
			return (await facts.list(key)).map(toFact);
		},
		async factHistory(key) {
			await background.facts(key);
			return (await facts.history(key)).map((row) => ({ ...toFact(row), state: row.state, supersededBy: row.supersededBy }));
		},
		async addFact(key, fact) {
			const added = await facts.add(key, {
				text: oneLine(fact.text),
				source: "api",
				messageId: fact.messageId ?? null,
				conversationId: null,
				expiresAt: fact.expiresAt ?? null,
				at: clock.now(),
			});
			return { fact: toFact(added.fact), outcome: added.outcome };
		},
		async removeFact(id) {
			const key = await store.factOwner(id);
			return key ? facts.remove(key, id) : false;
		},
		async forget(what, within) {
			return forgetting.forget(what, within);
		},
		async conversationRemoved(conversationId) {
			await shortTerm.close(conversationId);
			const rows = await store.openExchanges(conversationId);
			await store.setExchanges(
				rows.map((row) => row.exchange.id),
				{ state: "gone" },
			);
			// Nothing was made of them yet: what they say goes with the conversation.
			for (const { exchange } of rows) await store.setExchangeBody(exchange.id, { ...exchange, from: null, said: "", replied: "" });
			shortTerm.evict(conversationId);
			await removeConversationFiles(workspace, conversationId);
		},
		updatePerson: people.updatePerson,
		updateIdentity: people.updateIdentity,
		updateAgentNotes: people.updateAgentNotes,
		profile: people.profile,
		exportPerson: transfer.exportPerson,
		importWorkspace: transfer.importWorkspace,
		embedderChanged: vectors.wake,
		status: vectors.status,
		async settled() {
			await background.settled();
			await shortTerm.flush();
			await vectors.settled();
			while (syncing) await syncing;
		},
	};
}

/** Null when `work` takes longer; what it brings or breaks later is nobody's concern then. */
async function within<T>(limitMs: number, work: Promise<T>): Promise<T | null> {
	let timer: NodeJS.Timeout | undefined;
	work.catch(() => undefined);
	try {
		return await Promise.race([work, new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), limitMs)))]);
	} finally {
		clearTimeout(timer);
	}
}

export type { MemoryOptions } from "./options.ts";
