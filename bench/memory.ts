/**
 * The memory alone: what recall finds in the recall set (hit@4, for each embedder at hand), and what 100,000 memories cost.
 * The event loop that is watched is this process's own, which is where the daemon's would be: the search engine runs beside it.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { MemoryAdmin } from "../server/memory/admin.ts";
import { createMemory } from "../server/memory/create.ts";
import { createEngineHost } from "../server/memory/engine-host.ts";
import type { Memory, Scope } from "../server/memory/memory.ts";
import { defaultSettings, type Embedder, type MemorySettings } from "../server/memory/options.ts";
import { keyOf } from "../server/memory/scope.ts";
import { lexicalVector } from "../server/memory/text/lexical.ts";
import { createMemoryStore } from "../server/store/memory.ts";
import { createCutter } from "../server/store/memory-engine.ts";
import { openSqlite } from "../server/store/sqlite.ts";
import { createWorkspace } from "../server/workspace/workspace.ts";
import { englishEmbedder, installEnglish } from "./lib/english-embedder.ts";
import { type Figure, figure } from "./lib/figures.ts";
import type { BenchGroup } from "./lib/group.ts";
import { createExplainer } from "./lib/misses.ts";
import { recallSet } from "./memory-set.ts";

const cutter = createCutter();
const scope: Scope = { owner: "master", conversationId: "bench", audience: "private" };
const many = 100_000;
const fewer = 10_000;
const clock = { now: () => Date.now() };
const log = { info: () => undefined, warn: () => undefined };

interface Opened {
	memory: Memory & MemoryAdmin;
	enginePid(): number | null;
	close(): Promise<void>;
}

async function open(home: string, settings: MemorySettings, embedder: Embedder | null = null): Promise<Opened> {
	const workspace = createWorkspace({ home, clock, log });
	await workspace.ensure("en");
	const { db } = await openSqlite(workspace.paths.database, clock.now());
	let host: ReturnType<typeof createEngineHost> | null = null;
	const memory = createMemory({
		store: createMemoryStore(db, workspace.paths.database, (work) => db.transaction().execute(work)),
		workspace,
		settings: () => settings,
		timezone: () => "UTC",
		clock,
		newId: () => crypto.randomUUID(),
		log,
		model: () => null,
		embedder: () => embedder,
		engine: (options) => {
			host = createEngineHost({ ...options, log, answerMs: 60_000 });
			return host;
		},
		recallMs: 60_000,
	});
	await memory.start();
	return {
		memory,
		enginePid: () => host?.pid() ?? null,
		async close() {
			await memory.stop();
			await db.destroy();
		},
	};
}

interface Hits {
	share: number;
	/** Of the questions in which no Chinese stands. */
	english: number;
	missed: string[];
	/** The same with the reason behind each. */
	explained: string[];
}

const isEnglish = (question: string): boolean => !/\p{Script=Han}/u.test(question);

async function hits(settings: MemorySettings, embedder: Embedder | null = null): Promise<Hits> {
	const home = await mkdtemp(join(tmpdir(), "openlani-bench-memory-"));
	const opened = await open(home, settings, embedder);
	try {
		const { memories, questions } = recallSet();
		await opened.memory.importEntries(memories);
		await opened.memory.settled();
		const misses: { question: string; answer: string }[] = [];
		for (const { question, answer } of questions) {
			const found = await opened.memory.recall(scope, question);
			if (!found.some((one) => one.text === answer)) misses.push({ question, answer });
		}
		const missed = misses.map(({ question }) => question);
		const explain = await createExplainer({
			memories: memories.map(({ text }) => text),
			cutter,
			vectors: embedder ? "meaning" : "lexical vectors",
			embed: async (texts) =>
				embedder
					? embedder.embed(texts, { owner: scope.owner, conversationId: null }, new AbortController().signal)
					: texts.map(lexicalVector),
			semantic: settings.recallSemantic,
			keyword: settings.recallKeyword,
			brought: (question) => opened.memory.recall(scope, question),
			byWords: async (question) => (await opened.memory.search(keyOf(scope), question, 50)).keyword.map(({ text }) => text),
		});
		const explained: string[] = [];
		for (const { question, answer } of misses) explained.push(`${question} (${await explain(question, answer)})`);
		const share = (all: string[], not: string[]) => (100 * (all.length - not.length)) / all.length;
		const asked = questions.map(({ question }) => question);
		return { share: share(asked, missed), english: share(asked.filter(isEnglish), missed.filter(isEnglish)), missed, explained };
	} finally {
		await opened.close();
		await rm(home, { recursive: true, force: true });
	}
}

const places =
	"river stone market engine window garden signal cotton bridge silver planet museum harbor forest candle mirror 上海 会议 客户 天气 晚饭 电影 车站 合同 周末 孩子 医生 报告 价格 北京 地铁 邮件".split(
		" ",
	);

/** Texts in which some words are common and most are rare, as in real ones. */
function* filler(count: number): Generator<{ text: string; at: number }> {
	let seed = 7;
	const next = () => {
		seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
		return seed / 0x7fffffff;
	};
	for (let number = 0; number < count; number++) {
		const words: string[] = [];
		for (let place = 0; place < 12; place++)
			words.push(`${places[Math.floor(next() * next() * places.length)]}${next() < 0.3 ? ` ${Math.floor(next() * 5000)}` : ""}`);
		yield { text: words.join(" "), at: 1_700_000_000_000 + number * 60_000 };
	}
}

const residentMb = async (pid: number | "self"): Promise<number> =>
	Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8").catch(() => ""))?.[1] ?? Number.NaN) / 1024;

async function large(count: number): Promise<Figure[]> {
	const home = await mkdtemp(join(tmpdir(), "openlani-bench-memory-"));
	try {
		const { memories, questions } = recallSet();
		const filling = await open(home, defaultSettings);
		const began = performance.now();
		let batch: { text: string; at: number }[] = [];
		for (const entry of filler(count)) {
			batch.push(entry);
			if (batch.length < 1000) continue;
			await filling.memory.importEntries(batch);
			batch = [];
		}
		await filling.memory.importEntries(memories);
		await filling.memory.settled();
		await filling.memory.recall(scope, questions[0]?.question ?? "");
		await filling.memory.settled();
		const filledS = (performance.now() - began) / 1000;
		await filling.close();

		const before = await residentMb("self");
		const startedAt = performance.now();
		const opened = await open(home, defaultSettings);
		await opened.memory.history(scope);
		await opened.memory.blocks(scope);
		const startMs = performance.now() - startedAt;
		await new Promise((resolve) => setTimeout(resolve, 1000));
		const idle = (await residentMb("self")) - before;
		await opened.memory.recall(scope, "医生 first question");
		const delay = monitorEventLoopDelay({ resolution: 1 });
		delay.enable();
		const took: number[] = [];
		let found = 0;
		for (const { question, answer } of questions) {
			const at = performance.now();
			const recalled = await opened.memory.recall(scope, question);
			took.push(performance.now() - at);
			if (recalled.some((one) => one.text === answer)) found++;
		}
		delay.disable();
		const pid = opened.enginePid();
		const engineMb = pid === null ? Number.NaN : await residentMb(pid);
		await opened.close();
		const name = `${count.toLocaleString("en-US")} memories`;
		return [
			figure(`${name}: recall in a turn`, "ms", took, { aim: { atMost: 15 } }),
			figure("  percentiles", "ms", took, { show: "percentiles" }),
			figure("  longest hold of the event loop", "ms", [delay.max / 1e6], {
				aim: { atMost: 10 },
				note: "this process's own work and the machine's other load included",
			}),
			figure("  hit@4 among them", "%", [(100 * found) / questions.length]),
			figure("  open, history and blocks", "ms", [startMs], { aim: { atMost: 1000 } }),
			figure("  idle memory grows by", "MB", [idle], { aim: { atMost: 60 } }),
			figure("  search engine's own process, while in use", "MB", [engineMb], { note: "ends after a minute without questions" }),
			figure("  import, vectors and index", "", [filledS], { note: "seconds" }),
		];
	} finally {
		await rm(home, { recursive: true, force: true });
	}
}

/** The same questions with an embedding model, where one is installed: nothing otherwise. */
async function withModel(without: Hits): Promise<Figure[]> {
	const embedder = await englishEmbedder();
	if (!embedder) {
		process.stderr.write(`hit@4 with an English embedding model is left out; to have it: ${installEnglish}\n`);
		return [];
	}
	const alone = await hits({ ...defaultSettings, recallSemantic: 4, recallKeyword: 0 }, embedder);
	const both = await hits(defaultSettings, embedder);
	const note = "questions without Chinese, which this model does not know";
	return [
		figure("hit@4, English model alone, English questions", "%", [alone.english], { note }),
		figure("hit@4, both halves, English model, English questions", "%", [both.english], {
			note: `${without.english.toFixed(1)} % without a model; missed: ${both.explained.filter((_, at) => isEnglish(both.missed[at] as string)).join(" | ")}`,
		}),
		figure("hit@4, both halves, English model, all questions", "%", [both.share]),
	];
}

export const memory: BenchGroup = {
	name: "memory",
	title: "Memory",
	async run({ quick }) {
		const { memories, questions } = recallSet();
		const keyword = await hits({ ...defaultSettings, recallSemantic: 0, recallKeyword: 4 });
		const lexicalOnly = await hits({ ...defaultSettings, recallSemantic: 4, recallKeyword: 0 });
		const both = await hits(defaultSettings);
		const set = `${questions.length} questions over ${memories.length} memories`;
		return [
			figure("hit@4, keyword half alone", "%", [keyword.share], { note: set }),
			figure("hit@4, built-in lexical vectors alone", "%", [lexicalOnly.share]),
			figure("hit@4, both halves, no model", "%", [both.share], { aim: { atLeast: 67 }, note: `missed: ${both.explained.join(" | ")}` }),
			...(await withModel(both)),
			...(await large(quick ? fewer : many)),
		];
	},
};
