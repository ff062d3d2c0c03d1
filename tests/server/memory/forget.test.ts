import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Embedder } from "../../../server/memory/options.ts";
import { keyOfOwner } from "../../../server/memory/scope.ts";
import { createCalls } from "../../../server/store/calls.ts";
import { exchange, fakeEmbedder, openMemory, privately, start, type TestMemory } from "./setup.ts";

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

/** Every byte of the home that is text or a row, in one string. */
async function everything(test: TestMemory): Promise<string> {
	const parts: string[] = [];
	for (const entry of await readdir(test.dir, { recursive: true, withFileTypes: true })) {
		if (!entry.isFile() || /\.db(-wal|-shm)?$/.test(entry.name)) continue;
		parts.push(await readFile(join(entry.parentPath, entry.name), "utf8"));
	}
	for (const table of [
		"memory_exchanges",
		"memory_entries",
		"memory_facts",
		"memory_jobs",
		"messages",
		"steps",
		"tool_calls",
		"calls",
		"call_requests",
		"call_heads",
		"events",
	]) {
		parts.push(JSON.stringify(test.db.raw.prepare(`select * from ${table}`).all()));
	}
	return parts.join("\n");
}

async function talk(test: TestMemory, secretAt: number, count: number): Promise<void> {
	test.db.raw
		.prepare(
			"insert into conversations (id, title, titled, channel, account, place, address, person_id, created_at, updated_at) values ('c1', '', 0, 'web', 'default', 'c1', '{}', 'master', 1, 1)",
		)
		.run();
	for (let number = 1; number <= count; number++) {
		test.db.raw
			.prepare(
				"insert into turns (id, conversation_id, person_id, tier, origin, state, usage, created_at) values (?, 'c1', 'master', 'master', 'human', 'done', '{}', 1)",
			)
			.run(`e${number}`);
		await test.memory.remember(privately(), exchange(number, number === secretAt ? "my secret word is markplatypus" : `mark${number}`));
		test.db.raw
			.prepare(
				"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes) values (?, 'c1', 'user', ?, ?, 'human', ?, '[]', '[]')",
			)
			.run(`m${number}`, number === secretAt ? "my secret word is markplatypus" : `mark${number}`, start, `e${number}`);
	}
	test.db.raw
		.prepare(
			"insert into calls (id, conversation_id, source, model, model_name, at, attempt, state) values ('k', 'c1', 'chat', 'm', 'm', 1, 1, 'done')",
		)
		.run();
	const request = JSON.stringify({ messages: [{ content: "my secret word is markplatypus" }] });
	test.db.raw.prepare("insert into call_requests (position, request) select position, ? from calls where id = 'k'").run(request.slice(12));
	test.db.raw.prepare("insert into call_heads (hash, text) values ('h', ?)").run(request.slice(0, 12));
	test.db.raw.prepare("update calls set head = (select id from call_heads) where id = 'k'").run();
	expect((await createCalls(test.db.db).get("k"))?.request).toEqual(JSON.parse(request));
	await test.memory.settled();
}

describe("forget", () => {
	it.each([
		["still in the window", 12, 12],
		["in the summary", 2, 20],
		["in the diary and the vector store", 2, 80],
	])("a message %s goes with everything made of it; the rest of its line stays", async (_name, at, count) => {
		const test = await make({ embedder: () => embedder });
		const embedder = fakeEmbedder("m", 16);
		await talk(test, at, count);
		await test.memory.addFact(master, { text: "The secret word is markplatypus", messageId: `m${at}` });
		await test.memory.updatePerson("master", { text: "my secret word is markplatypus" }, "test");
		await test.memory.search(master, "secret word");
		expect(await everything(test)).toContain("markplatypus");
		const report = await test.memory.forget({ messageId: `m${at}` });
		await test.memory.settled();
		expect(report?.messages).toBe(1);
		expect(report?.facts).toBe(1);
		expect(await everything(test)).not.toContain("markplatypus");
		expect((await createCalls(test.db.db).get("k"))?.request).toBe("[removed]");
		expect(JSON.stringify(await test.memory.search(master, "secret word markplatypus"))).not.toContain("platypus");
		if (count > 12) {
			expect(await everything(test)).toContain("mark1");
			expect(await everything(test)).toContain("mark3");
		}
		if (count === 80) expect((await test.workspace.read("diary/2026-11-30.md")).text).toContain("removed on request");
		const again = await test.restart();
		open.push(again);
		// A late repeat of what was forgotten is not taken in again.
		await again.memory.remember(privately(), exchange(at, "my secret word is markplatypus"));
		expect(JSON.stringify(await again.memory.history(privately()))).not.toContain("platypus");
	});

	it("a person, also when the process dies on the way: it is noted first and finished at the next start", async () => {
		let dies = true;
		const test = await make({
			settle: async () => {
				if (dies) throw new Error("the process dies here");
			},
		});
		await talk(test, 2, 80);
		await test.memory.addFact(master, { text: "The secret word is markplatypus" });
		await test.memory.importEntries([{ text: "imported of a markplatypus", at: start }]);
		test.db.raw
			.prepare(
				"insert into calls (id, person_id, source, model, model_name, at, attempt, state) values ('e', 'master', 'embedding', 'm', 'm', 1, 1, 'done')",
			)
			.run();
		test.db.raw
			.prepare("insert into call_requests (position, request) select position, ? from calls where id = 'e'")
			.run(JSON.stringify({ input: ["imported of a markplatypus"] }));
		await expect(test.memory.forget({ person: "master" })).rejects.toThrow("dies here");
		expect(await everything(test)).toContain("markplatypus");
		dies = false;
		test.now.value += 60_000;
		const again = await test.restart();
		open.push(again);
		await again.memory.settled();
		expect(await everything(again)).not.toContain("platypus");
		expect(await again.memory.facts(master)).toEqual([]);
		expect((await again.workspace.read("diary/2026-11-30.md")).text).toContain("removed on request");
		// Once more, and somebody whom nobody knows: nothing to remove, nothing made.
		expect(Object.values((await again.memory.forget({ person: "nobody" })) ?? {})).toEqual([0, 0, 0, 0, 0, 0]);
		expect(await again.workspace.list("people/nobody")).toEqual([]);
	});

	it.each(["MASTER.md", "people/master/SUMMARY.md", "diary/2026-11-30.md", "conversations/c1/Memory.json", "Fact.md"])(
		"a folder in place of a file (%s) stops nothing",
		async (path) => {
			const test = await make();
			await talk(test, 12, 12);
			if (path !== "Fact.md") await test.memory.addFact(master, { text: "The secret word is markplatypus", messageId: "m12" });
			const place = join(test.workspace.paths.workspace, path);
			await rm(place, { force: true });
			await mkdir(place, { recursive: true });
			expect(await test.memory.forget({ messageId: "m12" })).toMatchObject({ messages: 1, facts: path === "Fact.md" ? 0 : 1 });
			expect(await everything(test)).not.toContain("markplatypus");
			await test.memory.settled();
			expect(await test.store.forgetJobs()).toEqual([]);
		},
	);

	it("a file that is read-only stops nothing else, is said, and loses its lines when it may be written", async () => {
		const test = await make();
		await talk(test, 12, 12);
		await test.memory.updatePerson("master", { text: "my secret word is markplatypus" }, "test");
		const place = join(test.workspace.paths.workspace, "MASTER.md");
		await chmod(place, 0o400);
		await expect(test.memory.forget({ messageId: "m12" })).rejects.toThrow("MASTER.md is read-only");
		expect((await test.store.messageTexts(["m12"])).length).toBe(0);
		expect(JSON.stringify(test.db.raw.prepare("select request from call_requests").all())).not.toContain("platypus");
		// It is tried again, in vain, before the file is freed.
		await test.memory.settled();
		await chmod(place, 0o600);
		test.now.value += 60_000;
		await test.memory.settled();
		expect(await everything(test)).not.toContain("markplatypus");
	});

	it("an imported memory, with what was recorded when its vector was made", async () => {
		const test = await make();
		await talk(test, 1, 1);
		await test.memory.importEntries([{ text: "imported of a markpangolin", at: start }]);
		test.db.raw
			.prepare(
				"insert into calls (id, person_id, source, model, model_name, at, attempt, state) values ('e', 'master', 'embedding', 'm', 'm', 1, 1, 'done')",
			)
			.run();
		test.db.raw
			.prepare("insert into call_requests (position, request) select position, ? from calls where id = 'e'")
			.run(JSON.stringify({ input: ["imported of a markpangolin"] }));
		const [entry] = (await test.memory.search(master, "markpangolin")).keyword;
		expect(await test.memory.forget({ entryId: entry?.id ?? "" })).toMatchObject({ memories: 1 });
		expect(await everything(test)).not.toContain("markpangolin");
	});

	it("takes along the copy of the database from before a new schema", async () => {
		const test = await make();
		await talk(test, 2, 3);
		const copy = `${test.workspace.paths.database}.before-6`;
		await test.db.raw.backup(copy);
		expect(await readFile(copy, "latin1")).toContain("platypus");
		await test.memory.forget({ messageId: "m2" });
		await expect.poll(() => readdir(dirname(copy))).not.toContain(basename(copy));
	});

	it("leaves no byte behind in the database, its log or the index", async () => {
		const test = await make();
		await talk(test, 2, 40);
		await test.memory.addFact(master, { text: "The secret word is markplatypus", messageId: "m2" });
		await test.memory.settled();
		expect(JSON.stringify(await test.memory.search(master, "markplatypus"))).toContain("platypus");
		const bytes = async () => {
			const files = ["openlani.db", "openlani.db-wal", "memory-index.db", "memory-index.db-wal"];
			const held = await Promise.all(files.map((name) => readFile(join(test.workspace.paths.data, name)).catch(() => Buffer.alloc(0))));
			return files.filter((_, at) => held[at]?.includes("platypus"));
		};
		expect(await bytes()).toEqual(expect.arrayContaining(["openlani.db-wal", "memory-index.db-wal"]));
		await test.memory.forget({ messageId: "m2" });
		// As after a crash at this very moment: the next start sees to the rest, also when nobody searches.
		const [job] = await test.store.forgetJobs();
		expect(JSON.stringify(job)).not.toContain("platypus");
		await test.memory.settled();
		expect(await test.store.forgetJobs()).toEqual([]);
		expect(await bytes()).toEqual([]);
		expect((await test.memory.search(master, "mark30")).keyword.map((one) => one.text).join()).toContain("mark30");
	});

	it("a fact, by its id, and never another person's", async () => {
		const test = await make();
		const { fact } = await test.memory.addFact(master, { text: "The safe code is 8812" });
		expect(await test.memory.forget({ factId: fact.id }, keyOfOwner("ana"))).toBeNull();
		expect(await test.memory.facts(master)).toHaveLength(1);
		expect(await test.memory.forget({ factId: fact.id }, master)).not.toBeNull();
		expect(await everything(test)).not.toContain("8812");
		expect(await test.memory.forget({ factId: fact.id })).toBeNull();
	});

	it.each([
		["still in the window", 3, 8],
		["in the summary", 2, 20],
		["in the diary", 2, 80],
	])(
		"a fact with the exchange it was told in (%s), its earlier versions and what says it again; other facts of it stay",
		async (_name, at, count) => {
			const test = await make({ embedder: () => embedder });
			const embedder = fakeEmbedder("m", 16);
			await talk(test, at, count);
			await test.memory.remember(
				privately("master", "c2"),
				exchange(200, "is the password still the secret word markplatypus?", { id: "later" }),
			);
			await test.memory.remember(privately("ana", "c3"), exchange(201, "markplatypus is the secret word", { id: "anas" }));
			await test.memory.addFact(master, { text: "My password is markold", messageId: `m${at}` });
			await test.memory.remember(privately("master", "c2"), exchange(202, "markold was my password", { id: "old" }));
			const { fact, outcome } = await test.memory.addFact(master, { text: "My password is secret word markplatypus", messageId: `m${at}` });
			expect(outcome).toBe("superseded");
			await test.memory.addFact(master, { text: "My boat is called markboat", messageId: `m${at}` });
			await test.memory.updateAgentNotes({ text: "The password of the master is secret word markplatypus" }, "test");
			const imported = Date.UTC(2026, 0, 1);
			await test.memory.importEntries([{ text: "password: secret word markplatypus", at: imported }]);
			await test.memory.settled();
			const report = await test.memory.forget({ factId: fact.id });
			await test.memory.settled();
			expect(report).toMatchObject({ facts: 2, messages: 1 });
			const left = await everything(test);
			expect(left.replaceAll("markplatypus is the secret word", "")).not.toMatch(/markplatypus|markold/);
			expect((await test.memory.history(privately("ana", "c3")))[0]?.said).toBe("markplatypus is the secret word");
			for (const word of ["markboat", "mark1", `mark${count}`]) expect(left).toContain(word);
			expect(left).toContain("removed on request");
		},
		60_000,
	);

	it("a memory of a talk that told a fact: wherever that was said again, too", async () => {
		const test = await make();
		await talk(test, 2, 20);
		await test.memory.addFact(master, { text: "My secret word is markplatypus", messageId: "m2" });
		await test.memory.remember(privately("master", "c2"), {
			...exchange(200, "what do you know about me?"),
			id: "later",
			replied: "I remember: my secret word is markplatypus",
		});
		await test.memory.settled();
		const hits = (await test.memory.search(master, "secret word markplatypus")).keyword;
		const talked = hits.find((hit) => hit.source === "conversation" && hit.text.includes("markplatypus"));
		expect(talked).toBeDefined();
		const report = await test.memory.forget({ entryId: talked?.id ?? "" }, master);
		await test.memory.settled();
		expect(report).toMatchObject({ facts: 1 });
		expect(await everything(test)).not.toContain("markplatypus");
		expect(await everything(test)).toContain("mark1");
	});

	it("is asked of no embedding model any more: the call on its way is ended, and leaves no vector", async () => {
		const inner = fakeEmbedder("m", 16);
		const ended: string[] = [];
		const asked: string[] = [];
		const slow: Embedder = {
			model: "m",
			async embed(texts, context, signal) {
				const whole = texts.join("\n");
				asked.push(whole);
				if (whole.includes("platypus"))
					await new Promise((_, reject) => {
						signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
					}).finally(() => ended.push(whole));
				return inner.embed(texts, context, signal);
			},
		};
		const test = await make({ embedder: () => slow });
		const texts = ["the boat is called markboat", "the secret word is markplatypus", "the cat is called markcat"];
		await test.memory.importEntries(texts.map((text) => ({ text, at: start })));
		await vi.waitFor(() => expect(asked.at(-1)).toContain("platypus"));
		const whole = asked.length;
		const pending = (await test.store.withoutVector("m/16", 10)).find(({ text }) => text.includes("platypus"));
		const [entry] = (await test.store.entriesOf(master, 0, 10)).filter(({ text }) => text.includes("platypus"));
		await test.memory.forget({ entryId: entry?.id ?? "" });
		expect(ended).toHaveLength(1);
		await vi.waitFor(async () => expect(await test.store.vectorCounts("m/16")).toMatchObject({ indexed: 2, total: 2 }), {
			timeout: 20_000,
		});
		expect(asked.slice(whole).join("\n")).not.toContain("platypus");
		expect((await test.memory.status()).state).toBe("ready");
		// One that came all the same, too late to be ended, is kept by nobody.
		const late = { position: pending?.position ?? 0, hash: pending?.hash ?? "", vector: new Float32Array(16).fill(1) };
		await test.store.cacheVectors(master, "m/16", [late], start);
		await test.store.setVectors("m/16", [late]);
		for (const table of ["memory_vectors", "memory_embedding_cache"])
			expect(test.db.raw.prepare(`select count(*) from ${table}`).pluck().get()).toBe(2);
	});

	it.each(["factId", "messageId"] as const)("is asked of none either when it was a fact (by its %s)", async (by) => {
		const inner = fakeEmbedder("m", 16);
		const asked: string[] = [];
		let ended = 0;
		const slow: Embedder = {
			model: "m",
			async embed(texts, context, signal) {
				asked.push(texts.join("\n"));
				if (asked.at(-1)?.includes("platypus"))
					await new Promise((_, reject) => {
						signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
					}).finally(() => ended++);
				return inner.embed(texts, context, signal);
			},
		};
		const test = await make({ embedder: () => slow });
		await talk(test, 2, 3);
		const { fact } = await test.memory.addFact(master, { text: "The secret word is markplatypus", messageId: "m2" });
		await vi.waitFor(() => expect(asked.at(-1)).toContain("platypus"));
		const before = asked.length;
		await test.memory.forget(by === "factId" ? { factId: fact.id } : { messageId: "m2" });
		expect(ended).toBe(1);
		await test.memory.settled();
		expect(asked.slice(before).join("\n")).not.toContain("platypus");
		expect(await everything(test)).not.toContain("platypus");
	});

	it("takes out of the plan what the message's turn had written there, and a person's plans whole", async () => {
		const test = await make();
		await talk(test, 2, 3);
		const run = (sql: string, ...values: unknown[]) => test.db.raw.prepare(sql).run(...values);
		run("update turns set plan = ? where id = 'e2'", JSON.stringify([{ text: "open with markplatypus", done: false }]));
		const plan = (id: string) => join(test.workspace.paths.workspace, `conversations/${id}/Plan.md`);
		await writeFile(plan("c1"), "- [x] open with markplatypus\n- [ ] open with more\n");
		await test.memory.forget({ messageId: "m2" });
		expect(await readFile(plan("c1"), "utf8")).toBe("- [ ] open with more\n");
		await test.memory.remember(privately("ana", "ana"), exchange(1, "markana", { id: "ana1" }));
		await test.memory.settled();
		await writeFile(plan("ana"), "- [ ] buy markana\n");
		await test.memory.forget({ person: "ana" });
		expect(existsSync(plan("ana"))).toBe(false);
	});

	it("is finished at the next start when it was cut off on the way", async () => {
		const test = await make();
		await talk(test, 2, 20);
		const { fact } = await test.memory.addFact(master, { text: "The secret word is markplatypus", messageId: "m2" });
		await test.memory.settled();
		const whole = test.store.redactTraces;
		test.store.redactTraces = async () => Promise.reject(new Error("the disk went away"));
		await expect(test.memory.forget({ factId: fact.id })).rejects.toThrow("disk went away");
		test.store.redactTraces = whole;
		expect(await everything(test)).toContain("markplatypus");
		const again = await test.restart();
		open.push(again);
		await again.memory.settled();
		expect(await everything(again)).not.toContain("markplatypus");
		expect(await again.memory.facts(master)).toEqual([]);
	});

	it("a person is gone at the next start when it was cut off on the way", async () => {
		const test = await make();
		for (let number = 1; number <= 40; number++)
			await test.memory.remember(privately("ana", "ana"), exchange(number, `markana${number}`, { id: `ana${number}` }));
		await test.memory.addFact(keyOfOwner("ana"), { text: "ana has a boat named markanaboat" });
		await test.memory.updatePerson("ana", { text: "likes markanatea" }, "test");
		await test.memory.settled();
		const whole = test.store.removeOwner;
		test.store.removeOwner = async (owner) => {
			await whole(owner);
			throw new Error("the disk went away");
		};
		await expect(test.memory.forget({ person: "ana" })).rejects.toThrow("disk went away");
		expect(await everything(test)).toContain("markanatea");
		const again = await test.restart();
		open.push(again);
		await again.memory.settled();
		expect(await everything(again)).not.toContain("markana");
	}, 60_000);

	it("a person, and nobody else", async () => {
		const test = await make();
		for (const owner of ["ana", "bo"]) {
			for (let number = 1; number <= 80; number++)
				await test.memory.remember(privately(owner, owner), exchange(number, `mark${owner}${number}`, { id: `${owner}${number}` }));
			await test.memory.addFact(keyOfOwner(owner), { text: `${owner} has a boat named mark${owner}boat` });
			await test.memory.updatePerson(owner, { text: `likes mark${owner}tea` }, "test");
		}
		await test.memory.settled();
		expect(await test.memory.forget({ person: "ana" })).not.toBeNull();
		await test.memory.settled();
		const left = await everything(test);
		expect(left).not.toContain("markana");
		for (const word of ["markbo1", "markbo80", "markboboat", "markbotea"]) expect(left).toContain(word);
		expect(await test.memory.recall(privately("ana", "ana"), "boat named")).toEqual([]);
		expect(await test.memory.history(privately("ana", "ana"))).toEqual([]);
	}, 60_000);
});
