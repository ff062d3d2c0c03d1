import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { topicOf } from "../../../server/memory/fact-rules.ts";
import { keyOfOwner } from "../../../server/memory/scope.ts";
import { writeFactEffect } from "../../../server/store/memory-jobs.ts";
import { openMemory, privately, start, type TestMemory } from "./setup.ts";

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

const master = keyOfOwner("master");
const factFile = (test: TestMemory) => join(test.workspace.paths.workspace, "Fact.md");
const texts = async (test: TestMemory, key = master) => (await test.memory.facts(key)).map((fact) => fact.text);

describe("facts", () => {
	it("the same five times, in other dress, is one fact, refreshed", async () => {
		const test = await make();
		for (const text of [
			"My cat is called Miso.",
			"my cat is called miso",
			"My cat is  called Miso!",
			"MY CAT IS CALLED MISO",
			"My cat is called Miso",
		]) {
			test.now.value += 86_400_000;
			await test.memory.addFact(master, { text });
		}
		const facts = await test.memory.facts(master);
		expect(facts).toHaveLength(1);
		expect(facts[0]?.at).toBe(start + 5 * 86_400_000);
		expect((await readFile(factFile(test), "utf8")).match(/Miso/g)).toHaveLength(1);
	});

	it.each([
		["My birthday is 3 May", "My birthday is 8 May"],
		["我的生日是5月3日", "我的生日是5月8日"],
		["Anna's phone number is 555-1", "Anna's phone number is 555-2"],
		["I live in Berlin", "I moved to Munich"],
		["我住在北京", "我搬到了上海"],
		["I am a vegetarian", "I am not a vegetarian any more"],
		["The user likes coffee", "I no longer like coffee"],
		["I don't have a dog", "The user has a dog"],
		["The user isn't married", "I am married"],
		["I have never been to Rome", "I have been to Rome"],
		["我喜欢咖啡", "用户不再喜欢咖啡"],
		["我是素食者", "我已经不是素食者了"],
		["我没有狗", "我有狗"],
		["My birthday is 5 May", "The user's birthday is 6 May"],
		["用户的生日是5月5日", "我的生日是5月6日"],
		["My blood type is A+", "My blood type is A-"],
		["The user lives in Rome", "I live in Paris"],
	])("%s, then %s: the newer stands, the older is history", async (before, after) => {
		const test = await make();
		await test.memory.addFact(master, { text: before });
		test.now.value += 1000;
		expect((await test.memory.addFact(master, { text: after })).outcome).toBe("superseded");
		expect(await texts(test)).toEqual([after]);
		const history = await test.memory.factHistory(master);
		expect(history.find((fact) => fact.text === before)?.state).toBe("superseded");
		expect(await readFile(factFile(test), "utf8")).not.toContain(before);
		expect((await test.memory.search(master, before)).keyword.map((one) => one.text)).not.toContain(before);
	});

	it.each([
		["Anna is tall", "Anna is kind"],
		["I like coffee", "I like tea"],
		["Anna's phone number is 555-1", "Ben's phone number is 555-2"],
		["我喜欢爬山", "我喜欢游泳"],
		["I write C++", "I write C#"],
		["It was 5 degrees", "It was -5 degrees"],
		["🎉🎉", "😀"],
		["I lived in Berlin as a child", "I live with a cat"],
		["I do not like tea", "I like coffee"],
		["不锈钢锅是我的", "锈钢锅是我的吗"],
	])("%s and %s stand side by side", async (first, second) => {
		expect(topicOf(first) === null || topicOf(first) !== topicOf(second)).toBe(true);
		const test = await make();
		await test.memory.addFact(master, { text: first });
		await test.memory.addFact(master, { text: second });
		expect(new Set(await texts(test))).toEqual(new Set([first, second]));
	});

	it.each([
		["I like green tea", "The user likes green tea"],
		["My cat is called Miso", "the user's cat is called Miso"],
		["I am allergic to nuts", "The user is allergic to nuts."],
		["我喜欢绿茶", "用户喜欢绿茶"],
	])("%s and %s are one fact", async (first, second) => {
		const test = await make();
		await test.memory.addFact(master, { text: first });
		expect((await test.memory.addFact(master, { text: second })).outcome).toBe("refreshed");
		expect(await texts(test)).toEqual([first]);
	});

	it("a line written by hand right before or right after our own write is known at once", async () => {
		const test = await make();
		await test.memory.addFact(master, { text: "The boat is blue" });
		const { update } = test.workspace;
		let edits = 0;
		const byHand = async (line: string) => writeFile(factFile(test), `${(await readFile(factFile(test), "utf8")).trimEnd()}\n- ${line}\n`);
		test.workspace.update = async (path, change, how) => {
			if (path !== "Fact.md" || edits++ > 0) return update(path, change, how);
			await byHand("The car is red");
			const written = await update(path, change, how);
			await byHand("The bike is green");
			return written;
		};
		await test.memory.addFact(master, { text: "The train is late" });
		expect((await texts(test)).sort()).toEqual(["The bike is green", "The boat is blue", "The car is red", "The train is late"]);
		expect((await readFile(factFile(test), "utf8")).match(/<!--f:/g)).toHaveLength(4);
	});

	it("a day that no calendar has, or of a year with five digits, ends nothing and changes nothing", async () => {
		const test = await make();
		await test.memory.addFact(master, { text: "The boat is blue", expiresAt: Date.UTC(12000, 1, 1) });
		await writeFile(factFile(test), `${await readFile(factFile(test), "utf8")}- The car is red (2026-11-30, file; until 2026-13-45)\n`);
		expect((await texts(test)).sort()).toEqual(["The boat is blue", "The car is red"]);
		test.now.value += 400 * 86_400_000;
		expect((await texts(test)).sort()).toEqual(["The boat is blue", "The car is red"]);
	});

	it("end when their time is over", async () => {
		const test = await make();
		await test.memory.addFact(master, { text: "The gate code is 4711 this week", expiresAt: start + 1000 });
		expect(await texts(test)).toHaveLength(1);
		test.now.value += 2000;
		expect(await texts(test)).toEqual([]);
		expect(await test.memory.recall(privately(), "gate code")).toEqual([]);
	});

	it("a line changed, added and removed by hand in Fact.md is what is known, also while facts are added", async () => {
		const test = await make();
		await test.memory.addFact(master, { text: "The boat is blue" });
		await test.memory.addFact(master, { text: "The shed is locked" });
		let text = await readFile(factFile(test), "utf8");
		text = text
			.replace("The boat is blue", "The boat is green")
			.split("\n")
			.filter((row) => !row.includes("shed"))
			.join("\n");
		await writeFile(factFile(test), `\uFEFF${text}\n- The bike has a flat tyre\n\n## ana\n\n- Ana plays chess\n`.replaceAll("\n", "\r\n"));
		await test.memory.addFact(master, { text: "The car is new" });
		expect(new Set(await texts(test))).toEqual(new Set(["The boat is green", "The bike has a flat tyre", "The car is new"]));
		expect(await texts(test, keyOfOwner("ana"))).toEqual(["Ana plays chess"]);
		const after = await readFile(factFile(test), "utf8");
		expect(after.startsWith("\uFEFF")).toBe(true);
		expect(after).toContain("\r\n");
		await test.memory.settled();
		expect((await test.memory.recall(privately(), "what colour is the boat")).map((one) => one.text)).toContain("The boat is green");
		expect((await test.memory.recall(privately(), "is the shed locked")).map((one) => one.text)).not.toContain("The shed is locked");
	});

	it("an emptied file is kept aside and written anew; a read-only one is said", async () => {
		const test = await make();
		await test.memory.addFact(master, { text: "The boat is blue" });
		await writeFile(factFile(test), "");
		expect(await texts(test)).toEqual(["The boat is blue"]);
		expect(await readFile(factFile(test), "utf8")).toContain("The boat is blue");
		expect(test.problems.map((one) => one.kind)).toContain("file-damaged");
		await chmod(factFile(test), 0o444);
		expect(await texts(test)).toEqual(["The boat is blue"]);
	});

	it("a fact effect becomes a fact once, also when it is applied twice around a crash", async () => {
		const test = await make();
		const effect = {
			type: "fact",
			action: "remember",
			row: { ...master, text: "The alarm code is 9931", conversationId: "c1", messageId: "t1", expiresAt: null },
		} as const;
		await test.db.db.transaction().execute(async (trx) => {
			await writeFactEffect(trx, effect, { turnId: "t1", recordId: "r1", at: start });
			await writeFactEffect(trx, effect, { turnId: "t1", recordId: "r1", at: start });
		});
		expect((await test.memory.facts(master)).map((fact) => [fact.text, fact.messageId, fact.source])).toEqual([
			["The alarm code is 9931", "t1", "said"],
		]);
		await test.db.db.transaction().execute((trx) => writeFactEffect(trx, effect, { turnId: "t1", recordId: "r1", at: start }));
		expect(await test.memory.facts(master)).toHaveLength(1);
		await expect(
			test.db.db
				.transaction()
				.execute((trx) => writeFactEffect(trx, { ...effect, row: { text: "no owner" } }, { turnId: "t", recordId: "r2", at: 0 })),
		).rejects.toThrow(/owner/);
	});
});
