import { existsSync } from "node:fs";
import { open, readdir, truncate, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import SQLite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NewerSchemaError } from "../../../server/store/sqlite.ts";
import { conversation, ending, say, type TestHome, testHome } from "../../helpers/store.ts";

let home: TestHome;
beforeEach(async () => {
	home = await testHome();
});
afterEach(() => home.remove());

const filesBeside = () => readdir(dirname(home.file));

describe("opening the database", () => {
	it("keeps a damaged file aside, says so, and begins a new one", async () => {
		const store = await home.open();
		await conversation(store);
		await store.close();
		await writeFile(home.file, Buffer.alloc(8192, 7));
		const again = await home.open();
		expect(await again.health()).toMatchObject({ ok: false, problem: expect.stringContaining("damaged") });
		expect(await again.conversations.list({})).toEqual([]);
		await again.close();
		expect((await filesBeside()).some((name) => name.includes(".damaged-"))).toBe(true);
	});

	it("notices a page torn in the middle", async () => {
		const store = await home.open();
		const to = await conversation(store);
		for (let n = 0; n < 200; n++) await say(store, to, `message ${n} ${"x".repeat(200)}`);
		await store.close();
		const file = await open(home.file, "r+");
		await file.write(Buffer.alloc(4096 * 3, 0xff), 0, 4096 * 3, 4096 * 5);
		await file.close();
		const again = await home.open();
		expect((await again.health()).problem).toContain("damaged");
		await again.close();
	});

	it("never takes an emptied file for a new home without a word", async () => {
		const store = await home.open();
		await store.close();
		await truncate(home.file, 0);
		const again = await home.open();
		expect((await again.health()).problem).toContain("empty");
		await again.close();
	});

	it("refuses a newer schema and leaves the file alone", async () => {
		await (await home.open()).close();
		const raw = new SQLite(home.file);
		raw.pragma("user_version = 999");
		raw.close();
		await expect(home.open()).rejects.toBeInstanceOf(NewerSchemaError);
		const after = new SQLite(home.file);
		expect(after.pragma("user_version", { simple: true })).toBe(999);
		after.close();
	});

	it("copies an older database before it migrates it", async () => {
		await (await home.open()).close();
		const raw = new SQLite(home.file);
		const known = Number(raw.pragma("user_version", { simple: true }));
		raw.close();
		expect(known).toBeGreaterThan(0);
		expect(existsSync(`${home.file}.before-${known}`)).toBe(false);
	});

	it("makes a copy that answers as the original while in use", async () => {
		const store = await home.open();
		const to = await conversation(store);
		const { turnId } = await say(store, to, "question");
		await store.inbox.claim({ owner: "a", leaseMs: 1000, now: home.clock.now(), background: true });
		await store.turns.end(turnId, ending(to, turnId, "answer"));
		const copy = await testHome(home.clock);
		await (await copy.open()).close();
		await store.backup(copy.file);
		const restored = await copy.open();
		expect((await restored.messages.list(to.id, { limit: 10 })).map((row) => row.text)).toEqual(["question", "answer"]);
		await restored.close();
		await store.close();
		await copy.remove();
	});
});

describe("the durable point", () => {
	it("is shared by all who wait and works again and again", async () => {
		const store = await home.open();
		await conversation(store);
		await Promise.all(Array.from({ length: 50 }, () => store.durable()));
		await store.durable();
		await store.close();
	});
});

describe("sequence numbers", () => {
	it("are never given out twice, also over a restart", async () => {
		const store = await home.open();
		const one = await store.events.reserve(100);
		const two = await store.events.reserve(100);
		await store.close();
		const again = await home.open();
		const three = await again.events.reserve(100);
		await again.close();
		expect([one.from, two.from, three.from]).toEqual([1, 101, 201]);
	});
});

describe("retention", () => {
	it("drops old events, and never a message", async () => {
		const store = await home.open();
		const to = await conversation(store);
		await say(store, to, "kept for ever");
		const day = 86_400_000;
		await store.events.append([
			{ seq: 1, at: home.clock.now() - 40 * day, type: "log", level: "info", conversationId: null, turnId: null, body: {} },
			{ seq: 2, at: home.clock.now(), type: "log", level: "info", conversationId: null, turnId: null, body: {} },
		]);
		await store.prune(home.clock.now(), { eventDays: 30 });
		expect((await store.events.list({ after: 0, limit: 10 })).map((row) => row.seq)).toEqual([2]);
		expect(await store.messages.list(to.id, { limit: 10 })).toHaveLength(1);
		await store.close();
	});
});
