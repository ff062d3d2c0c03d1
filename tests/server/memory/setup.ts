/** A memory over a real database and real files, with a scripted small model. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { untilAborted } from "../../../server/agent/abort.ts";
import type { Exchange } from "../../../server/agent/types.ts";
import type { MemoryAdmin } from "../../../server/memory/admin.ts";
import { createMemory } from "../../../server/memory/create.ts";
import type { Memory, Scope } from "../../../server/memory/memory.ts";
import { defaultSettings, type Embedder, type MemoryOptions } from "../../../server/memory/options.ts";
import type { Model, ModelRequest } from "../../../server/model/model.ts";
import { createMemoryStore } from "../../../server/store/memory.ts";
import { createCutter, createEngine } from "../../../server/store/memory-engine.ts";
import type { MemoryStore } from "../../../server/store/memory-store.ts";
import { openSqlite } from "../../../server/store/sqlite.ts";
import { createWorkspace, type Workspace } from "../../../server/workspace/workspace.ts";

/** One dictionary for all tests of a file: loading it takes most of a second. */
const cutter = createCutter();

export const start = Date.UTC(2026, 10, 30, 2, 0);

export interface SmallModel {
	model: Pick<Model, "stream">;
	requests: ModelRequest[];
	/** How many of them were ended before they were answered. */
	ended: number;
	/** Answers a request; throwing is a failure of the model. */
	answer: (request: ModelRequest) => string | Promise<string>;
}

export const userText = (request: ModelRequest): string => {
	const last = request.messages.at(-1);
	return last?.role === "user" ? last.content.map((part) => (part.type === "text" ? part.text : "")).join("") : "";
};

/** Keeps every word that begins with "mark", so that a test can follow what was said. */
export function smallModel(): SmallModel {
	const small: SmallModel = {
		requests: [],
		ended: 0,
		answer: (request) =>
			`They spoke of ${
				userText(request)
					.match(/mark\w+/g)
					?.join(", ") ?? "nothing"
			}.`,
		model: {
			async *stream(request, signal) {
				small.requests.push(request);
				signal.addEventListener("abort", () => small.ended++, { once: true });
				const text = await untilAborted((async () => small.answer(request))(), signal);
				yield {
					type: "end",
					reply: {
						text,
						reasoning: "",
						calls: [],
						finish: "stop",
						usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" },
						model: "small",
						modelName: "small",
						callIds: [],
						ms: 1,
						firstByteMs: 1,
					},
				};
			},
		},
	};
	return small;
}

export interface TestMemory {
	dir: string;
	memory: Memory & MemoryAdmin;
	store: MemoryStore;
	workspace: Workspace;
	small: SmallModel;
	now: { value: number };
	problems: { kind: string; message: string }[];
	db: Awaited<ReturnType<typeof openSqlite>>;
	/** Stops and opens again on the same files. */
	restart(change?: Partial<MemoryOptions>): Promise<TestMemory>;
	close(): Promise<void>;
	remove(): Promise<void>;
}

export async function openMemory(
	change: Partial<MemoryOptions> & { dir?: string; now?: { value: number }; small?: SmallModel } = {},
): Promise<TestMemory> {
	const dir = change.dir ?? (await mkdtemp(join(tmpdir(), "openlani-memory-")));
	const now = change.now ?? { value: start };
	const clock = { now: () => now.value };
	const small = change.small ?? smallModel();
	const problems: { kind: string; message: string }[] = [];
	const log = { info: () => undefined, warn: () => undefined };
	const workspace = createWorkspace({ home: dir, clock, log });
	await workspace.ensure("en");
	const db = await openSqlite(workspace.paths.database, now.value);
	const store = createMemoryStore(db.db, workspace.paths.database, (work) => db.db.transaction().execute(work));
	let id = 0;
	const options: MemoryOptions = {
		store,
		workspace,
		settings: () => defaultSettings,
		timezone: () => "Asia/Shanghai",
		clock,
		newId: () => `id-${++id}`,
		log,
		model: () => small.model,
		embedder: () => null,
		engine: (how) => createEngine(how, cutter),
		quietMs: 1,
		patienceMs: 20,
		flushMs: 1,
		recallMs: 60_000,
		onProblem: (kind, message) => problems.push({ kind, message }),
		...change,
	};
	const memory = createMemory(options);
	await memory.start();
	let open = true;
	const made: TestMemory = {
		dir,
		memory,
		store,
		workspace,
		small,
		now,
		problems,
		db,
		async restart(next = {}) {
			await made.close();
			return openMemory({ ...change, ...next, dir, now, small });
		},
		async close() {
			if (!open) return;
			open = false;
			await memory.stop();
			await db.db.destroy();
		},
		async remove() {
			await made.close();
			await rm(dir, { recursive: true, force: true });
		},
	};
	return made;
}

export const privately = (owner = "master", conversationId = "c1"): Scope => ({ owner, conversationId, audience: "private" });
export const inGroup = (group: string, conversationId = group): Scope => ({ owner: `group:${group}`, conversationId, audience: "group" });

export function exchange(number: number, said: string, change: Partial<Exchange> = {}): Exchange {
	return { id: `e${number}`, at: start + number * 60_000, channel: "web", from: null, said, replied: `Noted ${number}.`, ...change };
}

/** Vectors of a given size from a table of meanings: texts that share a word of one row are near. */
export function fakeEmbedder(model: string, dimension: number, rows: string[][] = []): Embedder & { calls: string[][] } {
	const calls: string[][] = [];
	const hash = (text: string): number => {
		let value = 7;
		for (const character of text) value = (Math.imul(value, 31) + (character.codePointAt(0) ?? 0)) | 0;
		return value >>> 0;
	};
	const noise = (seed: number, place: number): number => {
		const value = Math.sin(seed * 12.9898 + place * 78.233) * 43758.5453;
		return value - Math.floor(value) - 0.5;
	};
	return {
		model,
		calls,
		async embed(texts) {
			calls.push(texts);
			return texts.map((text) => {
				const lower = text.toLowerCase();
				const vector = new Array<number>(dimension).fill(0).map((_, place) => noise(hash(lower), place) * 0.3);
				for (const [row, words] of rows.entries()) {
					if (words.some((word) => lower.includes(word)))
						for (let place = 0; place < dimension; place++)
							vector[place] = (vector[place] as number) + noise(hash(`${model} ${row}`), place);
				}
				return vector;
			});
		},
	};
}
