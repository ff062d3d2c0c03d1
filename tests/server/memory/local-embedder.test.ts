import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLocalEmbedder, type LocalEmbedder, LocalModelMissing } from "../../../server/memory/local-embedder.ts";
import { createLocalModel, type LocalModel } from "../../../server/memory/local-model.ts";
import { lexicalModel } from "../../../server/memory/text/lexical.ts";
import { openMemory, privately, start, type TestMemory } from "./setup.ts";
import { dimension, standIn, transformersDir, writeTinyModel } from "./tiny-model.ts";

const whose = { owner: "master", conversationId: null };
const never = new AbortController().signal;

let dir: string;
const closers: (() => Promise<void>)[] = [];
beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-local-"));
});
afterEach(async () => {
	for (const close of closers.splice(0).reverse()) await close();
	await rm(dir, { recursive: true, force: true });
});

async function embedder(change: Partial<Parameters<typeof createLocalEmbedder>[0]> = {}): Promise<LocalEmbedder> {
	const made = await createLocalEmbedder({ directory: join(dir, "tiny"), packageDirs: [dir], ...change });
	closers.push(made.stop);
	return made;
}

const numbers = (vectors: ArrayLike<number>[]): number[][] => vectors.map((vector) => Array.from(vector));
const alive = (pid: number): boolean => {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
};
async function until(what: () => boolean): Promise<void> {
	for (let tries = 0; tries < 1000 && !what(); tries++) await new Promise((resolve) => setTimeout(resolve, 20));
	expect(what()).toBe(true);
}

describe("a local embedding model", () => {
	it("says in a sentence what is missing: the directory, a file, the package", async () => {
		await expect(embedder()).rejects.toThrow(
			/^there is no directory .*tiny; put config\.json, tokenizer\.json and onnx\/model\.onnx there$/,
		);
		await mkdir(join(dir, "tiny"));
		await expect(embedder()).rejects.toThrow(/config\.json is missing/);
		await writeTinyModel(join(dir, "tiny"));
		await rm(join(dir, "tiny", "onnx", "model.onnx"));
		await expect(embedder()).rejects.toThrow(/onnx.model\.onnx is missing/);
		await writeTinyModel(join(dir, "tiny"));
		await expect(embedder({ installHint: "npm i it" })).rejects.toThrow(
			"the package @huggingface/transformers is not installed; local embeddings need it: npm i it",
		);
	});

	it("another model in the same directory has another name", async () => {
		await standIn(dir);
		await writeTinyModel(join(dir, "tiny"));
		const first = (await embedder()).model;
		expect(first).toMatch(/^local:tiny:[0-9a-f]{8}$/);
		expect((await embedder()).model).toBe(first);
		await writeFile(join(dir, "tiny", "config.json"), '{"model_type":"bert","another":1}');
		expect((await embedder()).model).not.toBe(first);
	});

	it("runs in a process that starts at the first text, ends when idle, begins anew when it died, and ends with us", async () => {
		await standIn(dir);
		await writeTinyModel(join(dir, "tiny"));
		const local = await embedder({ idleMs: 100 });
		expect(local.pid()).toBeNull();
		expect(numbers(await local.embed(["ab", "c"], whose, never))).toEqual([
			[2, 1],
			[1, 1],
		]);
		const first = local.pid() as number;
		await until(() => local.pid() === null && !alive(first));
		const slow = local.embed(["wait"], whose, never);
		await until(() => local.pid() !== null);
		const second = local.pid() as number;
		process.kill(second, "SIGKILL");
		await expect(slow).rejects.toThrow(/process ended \(SIGKILL\)/);
		expect(numbers(await local.embed(["abc"], whose, never))).toEqual([[3, 1]]);
		const third = local.pid() as number;
		await local.stop();
		await until(() => !alive(third));
		await expect(local.embed(["abc"], whose, never)).rejects.toThrow(/stopped/);
	}, 60_000);

	it("whoever asks may go away; a text that fails is that text's failure", async () => {
		await standIn(dir);
		await writeTinyModel(join(dir, "tiny"));
		const local = await embedder();
		const leaving = new AbortController();
		const left = local.embed(["wait"], whose, leaving.signal);
		leaving.abort(new Error("gone away"));
		await expect(left).rejects.toThrow("gone away");
		const other = await embedder();
		await expect(other.embed(["fail"], whose, never)).rejects.toThrow("a text it cannot take");
		expect(numbers(await other.embed(["ab"], whose, never))).toEqual([[2, 1]]);
	}, 60_000);

	it("is asked for the network's models never, and its tokens are put together as its makers say", async () => {
		await standIn(dir);
		await writeTinyModel(join(dir, "tiny"));
		const told = async () =>
			JSON.parse(String.fromCharCode(...numbers(await (await embedder()).embed(["tell"], whose, never))[0]!)) as unknown;
		const place = { remote: false, path: `${dir}/`, model: "tiny", dtype: "fp32", normalize: true };
		expect(await told()).toEqual({ ...place, pooling: "mean" });
		await mkdir(join(dir, "tiny", "1_Pooling"));
		await writeFile(join(dir, "tiny", "1_Pooling", "config.json"), '{"pooling_mode_cls_token":true}');
		expect(await told()).toEqual({ ...place, pooling: "cls" });
	}, 60_000);
});

describe("the local model of the settings", () => {
	function model(): { local: LocalModel; said: string[]; changes: () => number } {
		const said: string[] = [];
		let changes = 0;
		const log = { info: () => undefined, warn: (_event: string, data?: Record<string, unknown>) => void said.push(String(data?.message)) };
		const local = createLocalModel({
			packageDirs: [dir],
			installHint: "npm i it",
			log,
			onChange: () => {
				changes++;
			},
			lookMs: 20,
		});
		closers.push(local.stop);
		return { local, said, changes: () => changes };
	}

	it("is used as soon as its files and the package are there; what is missing is said once", async () => {
		const { local, said, changes } = model();
		await local.use(join(dir, "tiny"));
		expect(local.embedder()).toBeNull();
		expect(local.problem()).toMatch(/^there is no directory/);
		// It comes whole: a look at half of it would be told as well.
		await writeTinyModel(join(dir, "made", "tiny"));
		await rename(join(dir, "made", "tiny"), join(dir, "tiny"));
		await until(() => local.problem()?.startsWith("the package") ?? false);
		expect(said).toHaveLength(2);
		expect(said[1]).toBe(
			"the package @huggingface/transformers is not installed; local embeddings need it: npm i it; memories are found by words and lexical vectors meanwhile",
		);
		expect(changes()).toBe(0);
		await standIn(dir);
		await until(() => local.embedder() !== null);
		expect([local.problem(), changes()]).toEqual([null, 1]);
		await local.use(null);
		expect([local.embedder(), local.problem(), changes()]).toEqual([null, null, 2]);
	});

	it("a model that does not load is put aside until its files are others", async () => {
		await standIn(dir);
		await writeTinyModel(join(dir, "tiny"));
		await writeFile(join(dir, "tiny", "config.json"), '{"broken":true}');
		const { local, said, changes } = model();
		await local.use(join(dir, "tiny"));
		await expect(local.embedder()?.embed(["a"], whose, never)).rejects.toBeInstanceOf(LocalModelMissing);
		expect([local.embedder(), changes()]).toEqual([null, 2]);
		expect(local.problem()).toMatch(/^the local model in .*tiny cannot be loaded: these weights are of no use$/);
		// It is looked at many times in this while, and tried never.
		await new Promise((resolve) => setTimeout(resolve, 200));
		expect([local.embedder(), changes(), said.length]).toEqual([null, 2, 1]);
		await writeFile(join(dir, "tiny", "config.json"), '{"model_type":"bert"}');
		await until(() => local.embedder() !== null);
		expect(numbers((await local.embedder()?.embed(["ab"], whose, never)) ?? [])).toEqual([[2, 1]]);
		expect(local.problem()).toBeNull();
	}, 60_000);
});

describe("a model that answers late", () => {
	it("costs a turn its meaning, not its words", async () => {
		const embed = (_texts: string[], _whose: unknown, signal: AbortSignal) =>
			new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
		const test = await openMemory({ embedder: () => ({ model: "late", embed }), recallMs: 2300 });
		closers.push(test.remove, test.close);
		await test.memory.importEntries([{ text: "The boat is named Albatross", at: start }]);
		expect((await test.memory.recall(privately(), "boat Albatross")).map(({ by, text }) => `${by}: ${text}`)).toEqual([
			"keyword: The boat is named Albatross",
		]);
	});
});

const real = transformersDir();
describe.skipIf(real === null)("a real model through the real package", () => {
	const cosine = (one: number[], other: number[]) => one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
	let open: TestMemory | null = null;
	afterAll(async () => {
		await open?.close();
		await open?.remove();
	});

	it("gives unit vectors of meaning, the same alone and in a batch", async () => {
		await writeTinyModel(join(dir, "tiny"));
		const local = await embedder({ packageDirs: [real as string] });
		const [boat, 船, dog] = numbers(
			await local.embed(["The boat", "我们的船在哪里停着，谁知道呢", "a puppy in the drizzle"], whose, never),
		) as [number[], number[], number[]];
		expect(boat).toHaveLength(dimension);
		for (const vector of [boat, 船, dog]) expect(cosine(vector, vector)).toBeCloseTo(1, 5);
		expect(cosine(boat, 船)).toBeGreaterThan(0.8);
		expect(cosine(boat, dog)).toBeLessThan(0.3);
		const [alone] = numbers(await local.embed(["The boat"], whose, never)) as [number[]];
		for (const [index, value] of alone.entries()) expect(value).toBeCloseTo(boat[index] as number, 5);
	}, 60_000);

	it("a memory in one language is found by a question in the other, which no comparison of letters does", async () => {
		await writeTinyModel(join(dir, "tiny"));
		const local = await embedder({ packageDirs: [real as string] });
		let used: LocalEmbedder | null = null;
		open = await openMemory({ embedder: () => used });
		const memories = ["The ship leaves on Friday at nine", "The physician moved to another street", "Her salary comes late this month"];
		await open.memory.importEntries(memories.map((text, index) => ({ text, at: start + index })));
		await open.memory.settled();
		const found = async () => (await open?.memory.recall(privately(), "船在哪里？"))?.map(({ text, by }) => `${by}: ${text}`);
		expect((await open.memory.status()).model).toBe(lexicalModel);
		expect(await found()).toEqual([]);
		used = local;
		open.memory.embedderChanged();
		await open.memory.settled();
		expect(await open.memory.status()).toEqual({ model: `${local.model}/${dimension}`, state: "ready", indexed: 3, total: 3 });
		expect(await found()).toEqual(["semantic: The ship leaves on Friday at nine"]);
	}, 60_000);

	it("a damaged model is a sentence, and the process is gone", async () => {
		await writeTinyModel(join(dir, "tiny"));
		await writeFile(join(dir, "tiny", "onnx", "model.onnx"), "this is no model");
		const local = await embedder({ packageDirs: [real as string] });
		await expect(local.embed(["a"], whose, never)).rejects.toThrow(/^the local model in .*tiny cannot be loaded: /);
		await until(() => local.pid() === null);
	}, 60_000);
});
