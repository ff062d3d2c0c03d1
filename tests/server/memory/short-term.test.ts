import { existsSync } from "node:fs";
import { readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { parseSummary } from "../../../server/memory/lines.ts";
import { exchangesPath, keyOfOwner } from "../../../server/memory/scope.ts";
import { exchange, openMemory, privately, smallModel, type TestMemory, userText } from "./setup.ts";

let open: TestMemory[] = [];
async function make(...args: Parameters<typeof openMemory>): Promise<TestMemory> {
	const made = await openMemory(...args);
	open.push(made);
	return made;
}
afterEach(async () => {
	for (const one of open) await one.close();
	for (const one of open) await one.remove();
	open = [];
});

const file = (test: TestMemory, path: string) => readFile(join(test.workspace.paths.workspace, path), "utf8");
const summary = async (test: TestMemory) => parseSummary((await test.workspace.read("people/master/SUMMARY.md")).text);

describe("the window of exchanges", () => {
	it("keeps eight, and leaves the oldest four out at once when a ninth comes, before they are compressed", async () => {
		const test = await make({ quietMs: 60_000 });
		for (let number = 1; number <= 8; number++) await test.memory.remember(privately(), exchange(number, `mark${number}`));
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"]);
		await test.memory.remember(privately(), exchange(9, "mark9"));
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e5", "e6", "e7", "e8", "e9"]);
		expect(await summary(test)).toEqual([]);
		for (let number = 10; number <= 12; number++) await test.memory.remember(privately(), exchange(number, `mark${number}`));
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12"]);
		await test.memory.settled();
		const lines = await summary(test);
		expect(lines).toHaveLength(1);
		expect(lines[0]?.text).toBe("They spoke of mark1, mark2, mark3, mark4.");
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e5", "e6", "e7", "e8", "e9", "e10", "e11", "e12"]);
		expect(JSON.parse(await file(test, "conversations/c1/Memory.json")).map((one: { id: string }) => one.id)).toEqual([
			"e5",
			"e6",
			"e7",
			"e8",
			"e9",
			"e10",
			"e11",
			"e12",
		]);
	});

	it("takes the same exchange once", async () => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "once"));
		await test.memory.remember(privately(), exchange(1, "once"));
		expect(await test.memory.history(privately())).toHaveLength(1);
		const again = await test.restart();
		open.push(again);
		await again.memory.remember(privately(), exchange(1, "once"));
		expect(await again.memory.history(privately())).toHaveLength(1);
	});

	it("leaves out what was edited and sent again", async () => {
		const test = await make();
		for (let number = 1; number <= 3; number++) {
			await test.memory.remember(privately(), exchange(number, `text ${number}`));
			test.db.raw
				.prepare(
					"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes) values (?, 'c1', 'assistant', 'x', 1, 'human', ?, '[]', '[]')",
				)
				.run(`m${number}`, `e${number}`);
		}
		expect(await test.memory.history(privately())).toHaveLength(3);
		test.db.raw.prepare("update messages set superseded = 1 where turn_id in ('e2', 'e3')").run();
		test.memory.takenBack("c1");
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e1"]);
		await test.memory.settled();
		expect(JSON.parse(await file(test, "conversations/c1/Memory.json"))).toHaveLength(1);
	});

	it("leaves out what was taken back before it came to be remembered", async () => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "text 1"));
		test.db.raw
			.prepare(
				"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes, superseded) values ('m2', 'c1', 'user', 'x', 1, 'human', 'e2', '[]', '[]', 1)",
			)
			.run();
		test.memory.takenBack("c1");
		// The turn that answers anew looks at the talk first; what the old one said is remembered behind it.
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e1"]);
		await test.memory.remember(privately(), exchange(2, "text 2"));
		expect((await test.memory.history(privately())).map((one) => one.id)).toEqual(["e1"]);
		await test.memory.settled();
		expect(JSON.parse(await file(test, "conversations/c1/Memory.json"))).toHaveLength(1);
	});

	it("leaves out what is taken back while it is being remembered", async () => {
		const test = await make();
		const supersede = () => {
			test.db.raw
				.prepare(
					"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes, superseded) values ('m1', 'c1', 'user', 'x', 1, 'human', 'e1', '[]', '[]', 1)",
				)
				.run();
			test.memory.takenBack("c1");
		};
		expect(await test.memory.history(privately())).toEqual([]);
		const { addExchange } = test.store;
		let seen: Promise<unknown> = Promise.resolve();
		test.store.addExchange = async (row) => {
			const made = await addExchange(row);
			supersede();
			seen = test.memory.history(privately());
			await new Promise((resolve) => setImmediate(resolve));
			return made;
		};
		await test.memory.remember(privately(), exchange(1, "text 1"));
		test.store.addExchange = addExchange;
		expect(await seen).toEqual([]);
		expect(await test.memory.history(privately())).toEqual([]);
	});

	it("takes from the message log what a crash kept from being remembered", async () => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "one"));
		await test.close();
		const again = await make({ dir: test.dir, recent: async () => [exchange(1, "one"), exchange(2, "two")] });
		expect((await again.memory.history(privately())).map((one) => one.said)).toEqual(["one", "two"]);
	});
});

describe("compressions that lag behind", () => {
	/** So many exchanges are said, and nothing is compressed. */
	async function far(last: number): Promise<TestMemory> {
		const test = await make({ quietMs: 60_000, patienceMs: 60_000, flushMs: 1 });
		for (let number = 1; number <= last; number++) await test.memory.remember(privately(), exchange(number, `mark${number}x`));
		return test;
	}
	const inFile = async (test: TestMemory): Promise<string[]> =>
		JSON.parse(await file(test, "conversations/c1/Memory.json")).map((one: { id: string }) => one.id);
	/** Memory.json as it is written while the compressions wait. */
	async function written(test: TestMemory, ids: string[]): Promise<void> {
		await vi.waitFor(async () => expect(await inFile(test)).toEqual(ids), { timeout: 20_000 });
	}

	it("the file holds the window and no more, and a restart takes what left it for anything but removed by hand", async () => {
		const test = await far(8);
		await written(test, ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"]);
		for (let number = 9; number <= 42; number++) await test.memory.remember(privately(), exchange(number, `mark${number}x`));
		await written(test, ["e37", "e38", "e39", "e40", "e41", "e42"]);
		const again = await test.restart({ quietMs: 1, patienceMs: 20 });
		open.push(again);
		expect((await again.memory.history(privately())).map((one) => one.id)).toEqual(await inFile(again));
		await again.memory.settled();
		expect(await inFile(again)).toEqual(["e37", "e38", "e39", "e40", "e41", "e42"]);
		const lines = `${await file(again, "people/master/SUMMARY.md")}`;
		for (let number = 1; number <= 36; number++) expect(lines.split(`mark${number}x`).length - 1, `mark${number}x`).toBe(1);
		expect(again.small.requests).toHaveLength(9);
	});

	it("what a crash left in the file, or took from it, is neither lost nor doubled", async () => {
		const test = await far(9);
		await written(test, ["e5", "e6", "e7", "e8", "e9"]);
		await test.close();
		// As after a crash between the rows and the file: the file still holds what is to be compressed, and a person has changed it.
		const path = join(test.dir, "workspace/conversations/c1/Memory.json");
		const records = JSON.parse(await readFile(path, "utf8"));
		records.unshift({
			id: "e1",
			at: new Date(exchange(1, "").at).toISOString(),
			channel: "web",
			from: null,
			said: "markedit",
			replied: "x",
		});
		await writeFile(path, JSON.stringify(records));
		const again = await make({ dir: test.dir });
		expect((await again.memory.history(privately())).map((one) => one.id)).toEqual(["e5", "e6", "e7", "e8", "e9"]);
		await again.memory.settled();
		expect(await inFile(again)).toEqual(["e5", "e6", "e7", "e8", "e9"]);
		expect((await summary(again)).map((line) => line.text)).toEqual(["They spoke of markedit, mark2x, mark3x, mark4x."]);
	});

	it("a removal by hand before the file was written anew holds", async () => {
		const test = await make({ quietMs: 60_000, patienceMs: 60_000, flushMs: 10_000 });
		for (let number = 1; number <= 8; number++) await test.memory.remember(privately(), exchange(number, `mark${number}x`));
		await test.memory.settled();
		await test.memory.remember(privately(), exchange(9, "mark9x"));
		const path = join(test.dir, "workspace/conversations/c1/Memory.json");
		const records = JSON.parse(await readFile(path, "utf8"));
		await writeFile(path, JSON.stringify(records.filter((one: { id: string }) => one.id !== "e2")));
		await test.memory.settled();
		expect((await summary(test)).map((line) => line.text)).toEqual(["They spoke of mark1x, mark3x, mark4x."]);
	});

	it("what was edited and sent again is not compressed, also when nobody has asked for the history since", async () => {
		const test = await far(9);
		test.db.raw
			.prepare(
				"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes, superseded) values ('m3', 'c1', 'assistant', 'x', 1, 'human', 'e3', '[]', '[]', 1)",
			)
			.run();
		await test.memory.settled();
		expect((await summary(test)).map((line) => line.text)).toEqual(["They spoke of mark1x, mark2x, mark4x."]);
	});
});

describe("Memory.json changed by hand", () => {
	it("a changed, a removed and an added record all reach the next request and stay", async () => {
		const test = await make();
		for (let number = 1; number <= 3; number++) await test.memory.remember(privately(), exchange(number, `text ${number}`));
		await test.memory.settled();
		const path = join(test.workspace.paths.workspace, "conversations/c1/Memory.json");
		const records = JSON.parse(await readFile(path, "utf8"));
		records[0].said = "changed by hand";
		records.splice(1, 1);
		records.push({ at: "2026-11-30T03:00:00.000Z", said: "added by hand", replied: "yes" });
		await writeFile(path, `\uFEFF${JSON.stringify(records, null, 2).replaceAll("\n", "\r\n")}`);
		expect((await test.memory.history(privately())).map((one) => one.said)).toEqual(["changed by hand", "text 3", "added by hand"]);
		await test.memory.remember(privately(), exchange(4, "text 4"));
		await test.memory.settled();
		const after = JSON.parse((await readFile(path, "utf8")).replace(/^\uFEFF/, ""));
		expect(after.map((one: { said: string }) => one.said)).toEqual(["changed by hand", "text 3", "added by hand", "text 4"]);
	});

	it("an edit in the moment before our write is taken over, not overwritten", async () => {
		const test = await make({ flushMs: 10_000 });
		await test.memory.remember(privately(), exchange(1, "first"));
		await test.memory.settled();
		await test.memory.remember(privately(), exchange(2, "second"));
		const path = join(test.workspace.paths.workspace, "conversations/c1/Memory.json");
		const records = JSON.parse(await readFile(path, "utf8"));
		records[0].said = "first, by hand";
		await writeFile(path, JSON.stringify(records));
		await test.memory.settled();
		expect(JSON.parse(await readFile(path, "utf8")).map((one: { said: string }) => one.said)).toEqual(["first, by hand", "second"]);
	});

	it.each([
		["empty", ""],
		["torn", '[{"id":"e1","sa'],
		["not a list", '{"a":1}'],
	])("%s: it is kept aside, said, and written anew with nothing lost", async (_name, content) => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "first"));
		await test.memory.settled();
		await writeFile(join(test.workspace.paths.workspace, "conversations/c1/Memory.json"), content);
		expect((await test.memory.history(privately())).map((one) => one.said)).toEqual(["first"]);
		await test.memory.settled();
		expect(JSON.parse(await file(test, "conversations/c1/Memory.json"))).toHaveLength(1);
		expect(test.problems.map((one) => one.kind)).toContain("file-damaged");
		expect(await test.workspace.list("../backups").catch(() => [])).toBeDefined();
	});

	it("an edit in the moment after our write, before anybody has looked, is taken over, not overwritten", async () => {
		const test = await make();
		const path = join(test.workspace.paths.workspace, exchangesPath("c1"));
		const { write } = test.workspace;
		let edits = 0;
		test.workspace.write = async (...args) => {
			const written = await write(...args);
			if (args[0] !== exchangesPath("c1") || edits++ > 0) return written;
			const records = JSON.parse(await readFile(path, "utf8"));
			records[0].said = "first, by hand";
			await writeFile(path, JSON.stringify(records));
			return test.workspace.read(args[0]);
		};
		await test.memory.remember(privately(), exchange(1, "first"));
		await test.memory.settled();
		expect(edits).toBe(1);
		expect((await test.memory.history(privately())).map((one) => one.said)).toEqual(["first, by hand"]);
		await test.memory.remember(privately(), exchange(2, "second"));
		await test.memory.settled();
		expect(JSON.parse(await readFile(path, "utf8")).map((one: { said: string }) => one.said)).toEqual(["first, by hand", "second"]);
	});

	it("a time that no calendar has is taken for none, wherever it is written", async () => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "mark1"));
		await test.memory.settled();
		const path = join(test.workspace.paths.workspace, exchangesPath("c1"));
		const list = JSON.parse(await readFile(path, "utf8"));
		const times = [1e20, -1e20, -1, 8.64e15, "+275760-09-13T00:00:00Z", "yesterday"];
		await writeFile(
			path,
			JSON.stringify([...list, ...times.map((at, number) => ({ id: `hand-${number}`, at, said: `mark by hand ${number}`, replied: "" }))]),
		);
		const seen = await test.memory.history(privately());
		expect(seen.slice(1).map((one) => one.at)).toEqual(times.map(() => test.now.value));
		for (let number = 2; number <= 20; number++) await test.memory.remember(privately(), exchange(number, `mark${number}`));
		await test.memory.settled();
		expect(test.problems).toEqual([]);
		expect(JSON.parse(await readFile(path, "utf8"))).toHaveLength(6);
		expect(JSON.stringify(await test.memory.exportPerson(keyOfOwner("master")))).toContain("mark by hand 5");
	});

	it.each(["file", "folder"])("a link out of the home in place of its %s is said; the conversation goes on from the rows", async (what) => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "mark1"));
		await test.memory.settled();
		const path = join(test.workspace.paths.workspace, exchangesPath("c1"));
		const place = what === "file" ? path : dirname(path);
		await rm(place, { recursive: true });
		await symlink("/nowhere/at/all", place);
		await test.memory.remember(privately(), exchange(2, "mark2"));
		const again = await test.restart();
		open.push(again);
		expect((await again.memory.history(privately())).map((one) => one.id)).toEqual(["e1", "e2"]);
		expect(
			test.problems
				.concat(again.problems)
				.map((one) => one.message)
				.join(),
		).toContain("is a link that leads nowhere");
		await again.memory.conversationRemoved("c1");
		expect(await again.memory.history(privately())).toEqual([]);
	});

	it("of a conversation that is deleted go with its plan and its folder; what a person keeps there stays", async () => {
		const test = await make();
		const below = (path: string) => join(test.workspace.paths.workspace, "conversations", path);
		for (const id of ["c1", "c2"]) {
			await test.memory.remember(privately("master", id), exchange(1, "hello", { id: `${id}-1` }));
			await test.memory.settled();
			await writeFile(below(`${id}/Plan.md`), "- [ ] look\n");
		}
		await writeFile(below("c2/mine.md"), "mine");
		for (const id of ["c1", "c2", "c3"]) await test.memory.conversationRemoved(id);
		expect(existsSync(below("c1"))).toBe(false);
		expect(await readdir(below("c2"))).toEqual(["mine.md"]);
	});

	it("a huge file is reported, left alone, and the conversation goes on from the rows", async () => {
		const test = await make();
		await test.memory.remember(privately(), exchange(1, "first"));
		await test.memory.settled();
		const huge = "x".repeat(4_100_000);
		await writeFile(join(test.workspace.paths.workspace, "conversations/c1/Memory.json"), huge);
		await test.memory.remember(privately(), exchange(2, "second"));
		await test.memory.settled();
		expect((await test.memory.history(privately())).map((one) => one.said)).toEqual(["first", "second"]);
		expect((await file(test, "conversations/c1/Memory.json")).length).toBe(huge.length);
		expect(test.problems.some((one) => /too large/.test(one.message))).toBe(true);
	});
});

describe("a thousand exchanges", () => {
	it("never more than eight and twelve in a request; nothing said is missing; the size stays flat", async () => {
		const test = await make({ flushMs: 100 });
		const sizes: number[] = [];
		for (let number = 1; number <= 1000; number++) {
			await test.memory.remember(privately(), exchange(number, `mark${number}x said at ${number}`));
			const history = await test.memory.history(privately());
			const blocks = await test.memory.blocks(privately());
			const lines = (blocks.find((one) => one.name === "summary")?.text ?? "").split("\n").filter((line) => line !== "");
			expect(history.length).toBeLessThanOrEqual(8);
			expect(history.at(-1)?.id).toBe(`e${number}`);
			expect(lines.length).toBeLessThanOrEqual(12);
			sizes.push(JSON.stringify(history).length + JSON.stringify(blocks).length);
			if (number % 50 === 0) await test.memory.settled();
			if (number === 500) {
				// A person writes into the summary meanwhile.
				const path = join(test.workspace.paths.workspace, "people/master/SUMMARY.md");
				const text = await readFile(path, "utf8");
				await writeFile(path, text.replace(/\n?$/, "\n- a line by hand\n"));
			}
		}
		await test.memory.settled();
		const late = Math.max(...sizes.slice(900));
		expect(late).toBeLessThan(Math.max(...sizes.slice(100, 200)) * 1.2);

		const diary = (
			await Promise.all((await test.workspace.list("diary")).map(async (one) => (await test.workspace.read(one.path)).text))
		).join("\n");
		const everywhere = `${await file(test, "people/master/SUMMARY.md")}\n${diary}\n${await file(test, "conversations/c1/Memory.json")}`;
		const store = (await test.store.entriesOf({ owner: "master", audience: "private" }, 0, 5000)).map((one) => one.text).join("\n");
		for (let number = 1; number <= 1000; number++) {
			expect(everywhere.split(`mark${number}x`).length - 1, `mark${number}x`).toBe(1);
			if (number <= 990) expect(store).toContain(`mark${number}x`);
		}
		expect(everywhere.split("a line by hand").length - 1).toBe(1);
		const rows = await test.store.exchangesOfOwner({ owner: "master", audience: "private" }, 0, 2000);
		expect(rows).toHaveLength(1000);
	}, 180_000);
});

describe("compression", () => {
	it("what is removed or changed by hand, or deleted, while the model writes is not in what stays", async () => {
		let changes: (() => Promise<unknown>)[] = [];
		const small = smallModel();
		const { answer } = small;
		small.answer = async (request) => {
			await changes.shift()?.();
			return answer(request);
		};
		const test = await make({ small, flushMs: 60_000 });
		const path = join(test.workspace.paths.workspace, exchangesPath("c1"));
		for (let number = 1; number <= 8; number++) await test.memory.remember(privately(), exchange(number, `mark${number}x`));
		await test.memory.settled();
		changes = [
			async () => {
				const list = JSON.parse(await readFile(path, "utf8")) as { id: string; said: string }[];
				const kept = list.filter((one) => one.id !== "e2").map((one) => (one.id === "e3" ? { ...one, said: "markchanged" } : one));
				await writeFile(path, JSON.stringify(kept));
			},
		];
		await test.memory.remember(privately(), exchange(9, "mark9x"));
		await test.memory.settled();
		const kept = `${await file(test, "people/master/SUMMARY.md")}${JSON.stringify(await test.memory.search(keyOfOwner("master"), "mark2x mark3x markchanged"))}`;
		expect(kept).toContain("markchanged");
		expect(kept).not.toMatch(/mark[23]x/);
		changes = [() => test.memory.conversationRemoved("c2")];
		for (let number = 21; number <= 29; number++) await test.memory.remember(privately("master", "c2"), exchange(number, `mark${number}x`));
		await test.memory.settled();
		expect(changes).toEqual([]);
		// A turn that ran while its conversation was deleted ends after it.
		await test.memory.remember(privately("master", "c2"), exchange(30, "mark30x"));
		await test.memory.settled();
		expect(await file(test, "people/master/SUMMARY.md")).not.toContain("mark2");
		expect(JSON.stringify(test.db.raw.prepare("select * from memory_exchanges").all())).not.toMatch(/mark(2\d|30)x/);
		expect((await test.workspace.read(exchangesPath("c2"))).exists).toBe(false);
		expect(await test.memory.history(privately("master", "c2"))).toEqual([]);
	});

	it("falls back to an extract, marked, when the model fails, and loses nothing", async () => {
		const test = await make();
		test.small.answer = () => {
			throw new Error("no answer");
		};
		for (let number = 1; number <= 9; number++)
			await test.memory.remember(
				privately(),
				exchange(number, number === 2 ? "We decided to move to Berlin on 5 May." : "Hello there, how is it going today?"),
			);
		await test.memory.settled();
		const lines = await summary(test);
		expect(lines[0]?.text).toMatch(/^\[extract\] .*decided to move to Berlin on 5 May/);
	});

	it("one at a time per person", async () => {
		const test = await make();
		let running = 0;
		let most = 0;
		test.small.answer = async (request) => {
			running++;
			most = Math.max(most, running);
			await new Promise((resolve) => setTimeout(resolve, 3));
			running--;
			return `line ${userText(request).length}`;
		};
		for (let place = 0; place < 4; place++)
			for (let number = 1; number <= 13; number++)
				await test.memory.remember(privately("master", `c${place}`), exchange(number, "text", { id: `${place}-${number}` }));
		await test.memory.settled();
		expect(test.small.requests.length).toBe(8);
		expect(most).toBe(1);
	});

	it("a summary edited by hand keeps the edit when lines are added and archived", async () => {
		const test = await make();
		for (let number = 1; number <= 9; number++) await test.memory.remember(privately(), exchange(number, `mark${number}`));
		await test.memory.settled();
		const path = join(test.workspace.paths.workspace, "people/master/SUMMARY.md");
		await writeFile(path, (await readFile(path, "utf8")).replace("They spoke of", "Edited by hand:"));
		for (let number = 10; number <= 80; number++) await test.memory.remember(privately(), exchange(number, `mark${number}`));
		await test.memory.settled();
		expect((await summary(test)).length).toBeLessThanOrEqual(12);
		const diary = (await test.workspace.read("diary/2026-11-30.md")).text;
		expect(diary).toContain("Edited by hand: mark1, mark2, mark3, mark4.");
	});
});
