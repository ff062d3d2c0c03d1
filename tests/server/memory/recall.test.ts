import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Embedder } from "../../../server/memory/options.ts";
import { keyOfOwner } from "../../../server/memory/scope.ts";
import { ModelError } from "../../../server/model/model.ts";
import { exchange, fakeEmbedder, inGroup, openMemory, privately, start, type TestMemory } from "./setup.ts";

const open: TestMemory[] = [];
async function make(...args: Parameters<typeof openMemory>): Promise<TestMemory> {
	const made = await openMemory(...args);
	open.push(made);
	return made;
}
afterEach(async () => {
	for (const one of open) await one.close();
	for (const one of open.splice(0)) await one.remove();
});

const noise = [
	"The printer on the second floor is out of paper",
	"周三下午三点开产品评审会",
	"Lena returned the library books",
	"冰箱里的牛奶明天到期",
	"The cat next door sleeps on our roof",
	"快递放在门卫室",
	"Sam prefers window seats",
	"地下车库的灯坏了两盏",
];
const entries = (texts: string[], change: { person?: string; at?: number } = {}) =>
	texts.map((text, index) => ({ text, at: (change.at ?? start) + index * 1000, ...(change.person ? { person: change.person } : {}) }));

describe("recall by wording", () => {
	it.each([
		["咖啡", "她每天早上喝一杯咖啡"],
		["北京", "下个月要去北京出差"],
		["wifi 密码是什么?", "家里 WiFi 的密码是 moon-4711"],
		["Where did Müller park the car?", "Muller parked the car in garage B7"],
		["ＡＢＣ公司", "ABC公司的合同在周五签"],
		["what did we decide on May 12", "2026-05-12: 决定把发布推迟两周"],
		["我的狗叫什么名字", "My puppy is called Rex"],
		["did we go hiking", "We went on a hike near the lake"],
	])("%s", async (question, wanted) => {
		const test = await make();
		await test.memory.importEntries(entries([...noise, wanted]));
		await test.memory.settled();
		const found = await test.memory.recall(privately(), question);
		expect(found.map((one) => one.text)).toContain(wanted);
		expect(found.length).toBeLessThanOrEqual(4);
		expect(found[0]?.score).toBeGreaterThan(0);
	});

	it("brings nothing when nothing is close, and asks nothing of an empty memory or for a greeting", async () => {
		let searches = 0;
		const test = await make({
			engine: () => {
				searches++;
				throw new Error("must not be started");
			},
		});
		expect(await test.memory.recall(privately(), "what is my blood type?")).toEqual([]);
		await test.memory.importEntries(entries(noise));
		expect(await test.memory.recall(privately(), "hi")).toEqual([]);
		expect(await test.memory.recall(privately(), "你好")).toEqual([]);
		expect(searches).toBe(0);
		const other = await make();
		await other.memory.importEntries(entries(noise));
		expect(await other.memory.recall(privately(), "Mongolian throat singing lessons")).toEqual([]);
		expect(await other.memory.recall(privately(), "量子力学的历史")).toEqual([]);
	});

	it("the two halves never bring the same memory, nor two that say the same", async () => {
		const test = await make();
		await test.memory.importEntries([
			...entries(noise),
			...entries(
				["Anna's flight lands at 18:40", "Anna's flight lands at 18:40!", "Anna's flight lands at 19:40", "Anna packed for the flight"],
				{ at: start + 100_000 },
			),
		]);
		const found = await test.memory.recall(privately(), "when does Anna's flight land?");
		expect(new Set(found.map((one) => one.id)).size).toBe(found.length);
		const texts = found.map((one) => one.text);
		expect(texts.filter((text) => text.includes("18:40"))).toHaveLength(1);
		expect(texts.some((text) => text.includes("19:40"))).toBe(true);
	});

	it("stays within its budget of characters", async () => {
		const test = await make();
		await test.memory.importEntries(
			entries([
				"zebra ".repeat(300),
				`zebra stripes ${"x ".repeat(900)}`,
				`zebra crossing ${"y ".repeat(900)}`,
				`zebra foal ${"z ".repeat(900)}`,
			]),
		);
		const found = await test.memory.recall(privately(), "zebra");
		expect(found.reduce((sum, one) => sum + one.text.length, 0)).toBeLessThanOrEqual(1600);
	});
});

describe("scope", () => {
	it("three people and a group: what one told is found by that one only", async () => {
		const test = await make();
		const places = [privately("master", "m"), privately("ana", "a"), privately("bo", "b"), inGroup("g1", "g")];
		for (const [index, scope] of places.entries()) {
			for (let number = 1; number <= 60; number++)
				await test.memory.remember(
					scope,
					exchange(number, `the secret vault word is hush${index}n${number}`, { id: `${index}-${number}`, from: scope.owner }),
				);
			await test.memory.updatePerson(scope.owner, { text: `profile of hush${index}` }, "test");
			await test.memory.addFact(keyOfOwner(scope.owner), { text: `The vault number of number ${index} is hush${index}fact` });
		}
		await test.memory.settled();
		for (const [index, scope] of places.entries()) {
			const seen = JSON.stringify([
				await test.memory.history(scope),
				await test.memory.blocks(scope),
				await test.memory.recall(scope, "what is the secret vault word and the vault number?"),
				await test.memory.search(keyOfOwner(scope.owner), "secret vault word"),
				await test.memory.facts(keyOfOwner(scope.owner)),
				await test.memory.exportPerson(keyOfOwner(scope.owner)),
			]);
			expect(seen).toContain(`hush${index}`);
			for (const other of places.keys()) if (other !== index) expect(seen, `${index} sees ${other}`).not.toContain(`hush${other}`);
		}
		for (const request of test.small.requests) expect(new Set(JSON.stringify(request).match(/hush\d/g)).size).toBe(1);
		// The master in the group: the group's memory, not the master's.
		const mixed = { owner: "master", conversationId: "g", audience: "group" as const };
		const seen = JSON.stringify([
			await test.memory.history(mixed),
			await test.memory.blocks(mixed),
			await test.memory.recall(mixed, "secret vault word"),
		]);
		expect(seen).not.toContain("hush0");
	}, 60_000);

	it("a query without owner and audience is a type error", async () => {
		const test = await make();
		// @ts-expect-error: a key names owner and audience
		const broken: Parameters<typeof test.memory.search>[0] = { owner: "master" };
		// @ts-expect-error: so does the store
		const rows: Parameters<typeof test.store.entries>[0] = {};
		expect([broken, rows]).toHaveLength(2);
	});
});

describe("vectors", () => {
	const meanings = [
		["physician", "doctor", "医生"],
		["canine", "dog", "狗"],
	];

	it("finds by meaning what no word shares", async () => {
		const test = await make({ embedder: () => meaning });
		const meaning = fakeEmbedder("m1", 64, meanings);
		await test.memory.importEntries(entries([...noise, "She saw a physician on Tuesday", "their canine barks at night"]));
		await test.memory.settled();
		const found = await test.memory.recall(privately(), "医生");
		expect(found.find((one) => one.by === "semantic")?.text).toBe("She saw a physician on Tuesday");
		expect(await test.memory.recall(privately(), "submarine propulsion")).toEqual([]);
	});

	it("another model, of another size and of the same size, while in use: words serve meanwhile, then meaning again", async () => {
		let current = fakeEmbedder("big", 1536, meanings);
		const test = await make({ embedder: () => current });
		await test.memory.importEntries(entries([...noise, "She saw a physician on Tuesday"]));
		await test.memory.settled();
		expect(await test.memory.status()).toEqual({ model: "big/1536", state: "ready", indexed: 9, total: 9 });
		for (const next of [fakeEmbedder("small", 768, meanings), fakeEmbedder("other", 768, meanings)]) {
			current = next;
			const before = await test.memory.recall(privately(), "physician on Tuesday");
			expect(before.map((one) => one.text)).toContain("She saw a physician on Tuesday");
			await test.memory.settled();
			expect((await test.memory.status()).model).toBe(`${next.model}/768`);
			expect((await test.memory.status()).state).toBe("ready");
			const found = await test.memory.recall(privately(), "医生");
			expect(found.find((one) => one.by === "semantic")?.text).toBe("She saw a physician on Tuesday");
			expect(test.problems.filter((one) => one.kind === "embedding-model").length).toBeGreaterThan(0);
		}
	});

	it("words that every memory has do not hide the one that has the rare word too", async () => {
		const test = await make();
		const lockers = Array.from({ length: 300 }, (_, n) => `The locker number ${n} belongs to the rowing club`);
		await test.memory.importEntries(entries(lockers));
		await test.memory.settled();
		expect((await test.memory.search(keyOfOwner("master"), "locker number 217")).keyword[0]?.text).toBe(lockers[217]);
	});

	it("the same name with another dimension is another model", async () => {
		let dimension = 32;
		const test = await make({
			embedder: () => ({
				model: "m",
				embed: (texts, context, signal) => fakeEmbedder("m", dimension, meanings).embed(texts, context, signal),
			}),
		});
		await test.memory.importEntries(entries([...noise, "She saw a physician on Tuesday"]));
		await test.memory.settled();
		dimension = 16;
		await test.memory.recall(privately(), "anything about the doctor");
		await test.memory.recall(privately(), "and something else about the doctor");
		await test.memory.settled();
		expect(await test.memory.status()).toEqual({ model: "m/16", state: "ready", indexed: 9, total: 9 });
	});

	it("a model that fails leaves the words, and the status says so", async () => {
		const test = await make({
			embedder: () => ({
				model: "down",
				embed: async () => {
					throw new Error("503");
				},
			}),
		});
		await test.memory.importEntries(entries([...noise, "The boat is named Albatross"]));
		await test.memory.settled();
		const found = await test.memory.recall(privately(), "what is the boat's name, Albatross?");
		expect(found.map((one) => one.text)).toContain("The boat is named Albatross");
		expect((await test.memory.status()).state).toMatch(/^error: 503/);
	});

	it("a text that the model refuses keeps no other from being found, and is found by its words", async () => {
		const inner = fakeEmbedder("m", 24, [["garage", "car"]]);
		const refusing: Embedder = {
			...inner,
			async embed(texts, context, signal) {
				if (texts.some((text) => text.length > 500)) throw new ModelError("context-length", "too long", { status: 400 });
				if (texts.some((text) => text.includes("odd"))) throw new ModelError("bad-request", "no", { status: 400 });
				return inner.embed(texts, context, signal);
			},
		};
		const test = await make({ embedder: () => refusing });
		await test.memory.importEntries(
			entries([...noise, `garage ${"long ".repeat(400)}`, "an odd walrus", ...noise.map((text) => `${text} again`)]),
		);
		await test.memory.settled();
		expect(await test.memory.status()).toMatchObject({ state: "ready", indexed: 18, total: 18 });
		expect((await test.memory.search(keyOfOwner("master"), "walrus")).keyword.map((one) => one.text)).toContain("an odd walrus");
		expect((await test.memory.search(keyOfOwner("master"), "the car")).semantic[0]?.text).toContain("garage long");
	});

	it("a size that changes between two calls mixes no vectors, and one that never settles is a failure, not a loop", async () => {
		let size = 24;
		let calls = 0;
		const changing: Embedder = {
			model: "m",
			batch: 8,
			embed(texts, context, signal) {
				calls++;
				return fakeEmbedder("m", size, []).embed(texts, context, signal);
			},
		};
		const test = await make({ embedder: () => changing });
		await test.memory.importEntries([...entries(noise), ...entries(noise, { person: "ana" })]);
		await test.memory.settled();
		size = 16;
		await test.memory.importEntries([...entries(["one more"]), ...entries(["one more of hers"], { person: "ana" })]);
		await test.memory.settled();
		expect(
			test.db.raw.prepare("select model, dimension, length(vector) as bytes, count(*) as n from memory_vectors group by 1, 2, 3").all(),
		).toEqual([{ model: "m/16", dimension: 16, bytes: 64, n: 18 }]);
		const swinging: Embedder = {
			...changing,
			embed: (texts, context, signal) => fakeEmbedder("m", calls++ % 2 ? 16 : 24, []).embed(texts, context, signal),
		};
		const again = await test.restart({ embedder: () => swinging });
		open.push(again);
		calls = 0;
		await again.memory.importEntries(entries(["and another"]));
		await again.memory.settled();
		expect(calls).toBeLessThan(20);
		expect((await again.memory.status()).state).toContain("keeps changing");
	});

	it("the same text is embedded once, per owner", async () => {
		const model = fakeEmbedder("m", 16);
		const test = await make({ embedder: () => model });
		await test.memory.importEntries([
			{ text: "same text", at: 1 },
			{ text: "same text", at: 2, person: "ana" },
		]);
		await test.memory.settled();
		await test.memory.importEntries([{ text: "same text", at: 3 }]);
		await test.memory.settled();
		expect(model.calls.flat().filter((text) => text === "same text")).toHaveLength(2);
	});
});

describe("the index", () => {
	it.each([
		["cut off", (file: string) => writeFileSync(file, readFileSync(file).subarray(0, 5000))],
		["of zeros", (file: string) => writeFileSync(file, new Uint8Array(20_000))],
		["empty", (file: string) => writeFileSync(file, "")],
	])("damaged (%s): made anew, said, and nothing lost", async (_name, damage) => {
		const test = await make();
		await test.memory.importEntries(entries([...noise, "The boat is named Albatross"]));
		expect(await test.memory.recall(privately(), "boat Albatross")).toHaveLength(1);
		await test.close();
		damage(join(test.workspace.paths.data, "memory-index.db"));
		const again = await test.restart();
		open.push(again);
		expect((await again.memory.recall(privately(), "boat Albatross")).map((one) => one.text)).toEqual(["The boat is named Albatross"]);
	});

	it("of another database is not believed", async () => {
		const first = await make();
		await first.memory.importEntries(entries(["The boat is named Albatross"]));
		await first.memory.recall(privately(), "boat Albatross");
		const second = await make({ indexFile: join(first.workspace.paths.data, "memory-index.db") });
		await first.close();
		await second.memory.importEntries(entries(["The plane is named Condor"]));
		expect((await second.memory.recall(privately(), "plane Condor")).map((one) => one.text)).toEqual(["The plane is named Condor"]);
		expect(await second.memory.recall(privately(), "boat Albatross")).toEqual([]);
	});
});
