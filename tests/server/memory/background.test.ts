import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { exchangesPath, keyOfOwner } from "../../../server/memory/scope.ts";
import { isMemoryOrder } from "../../fakes/openai-server.ts";
import { exchange, openMemory, privately, type SmallModel, smallModel, start, type TestMemory, userText } from "./setup.ts";

const open: TestMemory[] = [];
const warned: string[] = [];
async function make(...[change]: Parameters<typeof openMemory>): Promise<TestMemory> {
	const made = await openMemory({ log: { info: () => undefined, warn: (event) => void warned.push(event) }, ...change });
	open.push(made);
	return made;
}
afterEach(async () => {
	for (const one of open) await one.close();
	for (const one of open.splice(0)) await one.remove();
	warned.length = 0;
});

const master = keyOfOwner("master");

/** A model that answers, of what it is asked `when`, nothing before it is told to. */
function slowModel(when: (text: string) => boolean = () => true): SmallModel & { release(): void } {
	const small = smallModel();
	const { answer } = small;
	let release = (): void => undefined;
	const released = new Promise<void>((resolve) => (release = resolve));
	small.answer = async (request) => {
		if (when(userText(request))) await released;
		return answer(request);
	};
	return Object.assign(small, { release: () => release() });
}

const asked = (small: SmallModel, count: number) =>
	vi.waitFor(() => expect(small.requests.length).toBeGreaterThanOrEqual(count), { timeout: 20_000 });

/** What is said in a conversation: `e1`, `e2` … with the secret in one of them. */
async function talk(test: TestMemory, last: number, { secret = 0, from = 1, owner = "master", place = "c1" } = {}): Promise<void> {
	for (let number = from; number <= last; number++)
		await test.memory.remember(
			privately(owner, place),
			exchange(number, number === secret ? "the word is markplatypus" : `mark${number}x`, {
				id: place === "c1" ? `e${number}` : `${place}-${number}`,
			}),
		);
}

const page = async (test: TestMemory, path: string) => (await test.workspace.read(path)).text;
const summary = (test: TestMemory, owner = "master") => page(test, `people/${owner}/SUMMARY.md`);

/** Files of the workspace and rows of the memory, in one string. */
async function everything(test: TestMemory): Promise<string> {
	const tables = ["memory_exchanges", "memory_entries", "memory_facts", "memory_jobs", "messages"];
	const rows = tables.map((table) => JSON.stringify(test.db.raw.prepare(`select * from ${table}`).all()));
	const paths = ["people/master/SUMMARY.md", "diary/2026-11-30.md", exchangesPath("c1"), "Fact.md"];
	return [...rows, ...(await Promise.all(paths.map((path) => page(test, path))))].join("\n");
}

const attempts = (test: TestMemory, kind: string) =>
	(test.db.raw.prepare("select attempts from memory_jobs where kind = ?").all(kind) as { attempts: number }[]).map((row) => row.attempts);

describe("forgetting while a model writes", () => {
	it("ends the compression that tells of it and does not wait for the model; the compression is done anew of what is left", async () => {
		const small = slowModel();
		const test = await make({ small });
		await talk(test, 9, { secret: 2 });
		await asked(small, 1);
		expect(await test.memory.forget({ messageId: "e2" })).toMatchObject({ exchanges: 1 });
		expect(await everything(test)).not.toContain("platypus");
		await asked(small, 2);
		expect(small.requests.map((request) => userText(request).includes("platypus"))).toEqual([true, false]);
		small.release();
		await test.memory.settled();
		expect(await summary(test)).toMatch(/^- \S+ \S+ They spoke of mark1x, mark3x, mark4x\. <!--m:\w+-->\n$/);
		expect(await everything(test)).not.toContain("platypus");
		expect(small.requests).toHaveLength(2);
		expect({ warned, problems: test.problems, attempts: attempts(test, "compress") }).toEqual({ warned: [], problems: [], attempts: [1] });
	});

	it("also where the process dies before the compression is done anew", async () => {
		const small = slowModel();
		const test = await make({ small });
		await talk(test, 9, { secret: 2 });
		await asked(small, 1);
		await test.memory.forget({ messageId: "e2" });
		await test.close();
		const again = await make({ dir: test.dir });
		await again.memory.settled();
		expect(await summary(again)).toMatch(/^- \S+ \S+ They spoke of mark1x, mark3x, mark4x\. <!--m:\w+-->\n$/);
		expect(await everything(again)).not.toContain("platypus");
	});

	it("ends the paragraph on a day that tells of it, which is then written of what is left", async () => {
		const small = slowModel();
		const test = await make({ small });
		await talk(test, 3, { secret: 2 });
		await test.memory.settled();
		test.now.value += 2 * 86_400_000;
		const settled = test.memory.settled();
		await asked(small, 1);
		expect(userText(small.requests[0] as never)).toContain("platypus");
		expect(await test.memory.forget({ messageId: "e2" })).toMatchObject({ exchanges: 1 });
		await asked(small, 2);
		small.release();
		await settled;
		expect(await page(test, "diary/2026-11-30.md")).toContain('summary: "They spoke of mark1x, mark3x."');
		expect(await everything(test)).not.toContain("platypus");
		expect({ warned, attempts: attempts(test, "day") }).toEqual({ warned: [], attempts: [1] });
	});

	it("a paragraph that is written and waits for its page does not bring it back", async () => {
		const test = await make();
		await talk(test, 3, { secret: 2 });
		await test.workspace.write("diary/2026-11-30.md", "by hand\n", { by: "person", reason: "test" });
		const path = join(test.workspace.paths.workspace, "diary/2026-11-30.md");
		await chmod(path, 0o400);
		test.now.value = start + 20 * 3_600_000;
		await test.memory.settled();
		expect(await everything(test)).toContain("They spoke of mark1x, markplatypus, mark3x");
		await expect(test.memory.forget({ messageId: "e2" })).rejects.toThrow("is read-only");
		expect(JSON.stringify(test.db.raw.prepare("select * from memory_jobs where kind = 'day'").all())).not.toContain("platypus");
		// It is tried again, in vain, before the page is freed.
		await test.memory.settled();
		await chmod(path, 0o600);
		test.now.value += 3_600_000;
		await test.memory.settled();
		expect(await readFile(path, "utf8")).toContain("They spoke of mark1x, mark3x");
		expect(await everything(test)).not.toContain("platypus");
	});

	it("a person goes at once, with what was to be made of their talk", async () => {
		const small = slowModel();
		const test = await make({ small });
		await talk(test, 9, { owner: "ana", place: "c1", secret: 2 });
		await asked(small, 1);
		expect((await test.memory.forget({ person: "ana" }))?.exchanges).toBeGreaterThan(0);
		expect(small.ended).toBe(1);
		small.release();
		await test.memory.settled();
		expect(await everything(test)).not.toMatch(/platypus|mark\dx/);
		expect(await summary(test, "ana")).toBe("");
		expect(small.requests).toHaveLength(1);
		expect(warned).toEqual([]);
	});

	it("leaves a compression alone that tells of something else, of whomever", async () => {
		const small = slowModel();
		const test = await make({ small });
		for (const place of ["c1", "c2"]) await talk(test, 9, { place });
		await talk(test, 9, { owner: "ana", place: "a1" });
		await asked(small, 2);
		await test.memory.forget({ messageId: "c2-9" });
		await test.memory.forget({ messageId: "a1-9" });
		const { fact } = await test.memory.addFact(master, { text: "My boat is called Albatros" });
		await test.memory.forget({ factId: fact.id });
		expect(small.requests).toHaveLength(2);
		small.release();
		await test.memory.settled();
		expect(small.requests).toHaveLength(3);
	});

	it("again and again lets the compression come to its end meanwhile", async () => {
		const small = smallModel();
		let forgotten = 0;
		// Of every answer more is forgotten than it would take to end it, were any forgetting its end.
		small.answer = async () => {
			const before = forgotten;
			await vi.waitFor(() => expect(forgotten).toBeGreaterThan(before + 5), { timeout: 20_000 });
			return "They spoke.";
		};
		const test = await make({ small });
		await talk(test, 9);
		const isWritten = async () => (await summary(test)).includes("They spoke.");
		const forgetting = async (name: string) => {
			for (let number = 0; number < 200 && !(await isWritten()); number++) {
				const { fact } = await test.memory.addFact(master, { text: `The ${name} number ${number} is called ${name}${number}` });
				await test.memory.forget({ factId: fact.id });
				forgotten++;
			}
		};
		await Promise.all(["boat", "cat", "dog"].map(forgetting));
		expect(await isWritten()).toBe(true);
		expect(small.requests).toHaveLength(1);
		await test.memory.settled();
	}, 60_000);

	it("a turn that ran meanwhile is looked at when it has ended, whatever models are still writing", async () => {
		const small = slowModel();
		const test = await make({ small });
		const run = (sql: string, ...values: unknown[]) => test.db.raw.prepare(sql).run(...values);
		run(
			"insert into conversations (id, title, titled, channel, account, place, address, person_id, created_at, updated_at) values ('c9', '', 0, 'web', 'default', 'c9', '{}', 'master', 1, 1)",
		);
		run(
			"insert into turns (id, conversation_id, person_id, tier, origin, state, usage, created_at) values ('t9', 'c9', 'master', 'master', 'human', 'running', '{}', 1)",
		);
		run(
			"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes) values ('m9', 'c9', 'user', 'so the secret word is markplatypus', 1, 'human', 't9', '[]', '[]')",
		);
		const { fact } = await test.memory.addFact(master, { text: "The secret word is markplatypus" });
		// Each lane waits for the model, and more waits behind them.
		for (const place of ["c1", "c2", "c3"]) await talk(test, 9, { place });
		await talk(test, 9, { owner: "ana", place: "a1" });
		await asked(small, 2);
		await test.memory.forget({ factId: fact.id });
		expect(await everything(test)).toContain("platypus");
		run("update turns set state = 'done' where id = 't9'");
		test.now.value += 400;
		await vi.waitFor(async () => expect(await everything(test)).not.toContain("platypus"), { timeout: 20_000 });
		await vi.waitFor(async () => expect(await test.store.forgetJobs()).toEqual([]), { timeout: 20_000 });
		expect(small.requests).toHaveLength(2);
		small.release();
		await test.memory.settled();
		expect(small.requests).toHaveLength(4);
	});

	it("a line that waits to be archived is not kept behind", async () => {
		const small = slowModel((text) => text.includes("mark4x"));
		const settings = { exchanges: 2, compress: 1, summaryLines: 1, archive: 1, recallSemantic: 2, recallKeyword: 2 };
		const test = await make({ small, settings: () => settings });
		await talk(test, 6, { secret: 2 });
		await asked(small, 4);
		expect(await summary(test)).toContain("platypus");
		await test.memory.forget({ messageId: "e2" });
		expect(await everything(test)).not.toContain("platypus");
		small.release();
		await test.memory.settled();
		expect(await summary(test)).toContain("mark4x");
		expect(await page(test, "diary/2026-11-30.md")).toMatch(/mark1x[\s\S]*mark3x|mark3x[\s\S]*mark1x/);
		expect(await everything(test)).not.toContain("platypus");
	});
});

describe("background work", () => {
	it("that a stop interrupts has not failed, however often", async () => {
		let test = await make({ small: slowModel() });
		await talk(test, 9);
		for (let count = 1; count <= 5; count++) {
			await asked(test.small, 1);
			await test.close();
			const next = await make({ dir: test.dir, small: slowModel() });
			expect(attempts(next, "compress")).not.toContain(2);
			test = next;
		}
		await asked(test.small, 1);
		(test.small as ReturnType<typeof slowModel>).release();
		await test.memory.settled();
		expect(await summary(test)).toContain("mark1x, mark2x, mark3x, mark4x");
		expect({ warned, problems: test.problems }).toEqual({ warned: [], problems: [] });
	});

	it("is not begun anew because the file of the exchanges was written while the model wrote", async () => {
		const small = slowModel();
		const test = await make({ small, flushMs: 60_000 });
		await talk(test, 8);
		await test.memory.settled();
		await talk(test, 9, { from: 9 });
		await asked(small, 1);
		const settled = test.memory.settled();
		test.db.raw.prepare("update memory_exchanges set state = 'new' where id in ('e1', 'e2', 'e3', 'e4')").run();
		small.release();
		await settled;
		expect(await summary(test)).toContain("mark1x, mark2x, mark3x, mark4x");
		expect(small.requests).toHaveLength(1);
	});

	it("is taken up while another's model is slow", async () => {
		const small = slowModel((text) => text.includes("ana"));
		const test = await make({ small });
		for (let number = 1; number <= 9; number++)
			await test.memory.remember(privately("ana", "a1"), exchange(number, "by ana", { id: `a${number}` }));
		await asked(small, 1);
		await talk(test, 9);
		await vi.waitFor(async () => expect(await summary(test)).toContain("mark1x"), { timeout: 20_000 });
		small.release();
		await test.memory.settled();
	});

	it("that takes longer than its lease, or than a clock that jumps says, is not taken a second time", async () => {
		const small = slowModel((text) => text.includes("mark1x"));
		const test = await make({ small });
		await talk(test, 9);
		await asked(small, 1);
		test.now.value += 3_600_000;
		for (let number = 1; number <= 9; number++)
			await test.memory.remember(privately("ana", "a1"), exchange(number, `by ana mark${number}y`, { id: `a${number}` }));
		await vi.waitFor(async () => expect(await summary(test, "ana")).toContain("mark1y"), { timeout: 20_000 });
		await vi.waitFor(async () => expect((await test.store.waitingJobs(keyOfOwner("ana"))).dueAt).toBeGreaterThan(test.now.value));
		// Time for a lane that finds nothing else to do to take it.
		await test.memory.facts(master);
		expect(small.requests.filter((request) => userText(request).includes("mark1x"))).toHaveLength(1);
		small.release();
		await test.memory.settled();
		expect(attempts(test, "compress")).toEqual([1, 1]);
	});

	it("whose end cannot be written is ended as soon as it can be, and not done once more", async () => {
		const test = await make();
		const run = (sql: string) => test.db.raw.exec(sql);
		run(`create trigger full before update of state on memory_jobs when new.state = 'done' begin select raise(abort, 'no room'); end`);
		await talk(test, 9);
		await vi.waitFor(() => expect(warned).toContain("memory.job-not-ended"), { timeout: 20_000 });
		expect(await summary(test)).toContain("mark1x");
		run("drop trigger full");
		await vi.waitFor(async () => expect(await test.store.compressionsOf("c1")).toEqual([]), { timeout: 20_000 });
		expect(test.small.requests).toHaveLength(1);
		expect(attempts(test, "compress")).toEqual([1]);
		// The owner's other work goes on.
		await talk(test, 13, { from: 10 });
		await test.memory.settled();
		expect(test.small.requests).toHaveLength(2);
	});

	it("whose failure cannot be written is taken up when it can be", async () => {
		const test = await make();
		const run = (sql: string) => test.db.raw.exec(sql);
		run(`create trigger full before update on memory_jobs when new.attempts = old.attempts begin select raise(abort, 'no room'); end`);
		await talk(test, 9);
		await vi.waitFor(() => expect(warned).toContain("memory.job-not-ended"), { timeout: 20_000 });
		run("drop trigger full");
		await vi.waitFor(
			() => expect(test.db.raw.prepare("select lease_until from memory_jobs where kind = 'compress'").pluck().all()).toEqual([0]),
			{ timeout: 20_000 },
		);
		test.now.value += 60_000;
		await test.memory.settled();
		expect(await summary(test)).toContain("mark1x");
		expect(attempts(test, "compress")).toEqual([2]);
	});

	it("is known by its orders to the scripted server", async () => {
		const test = await make();
		await talk(test, 9);
		test.now.value += 2 * 86_400_000;
		await test.memory.settled();
		const orders = test.small.requests.map(({ messages: [first] }) => (first?.role === "system" ? first.text : ""));
		expect(orders.map((order) => order.slice(0, 9))).toEqual(["You compr", "You write"]);
		expect(orders.every(isMemoryOrder)).toBe(true);
	});
});
