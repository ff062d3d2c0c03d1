import { existsSync } from "node:fs";
import { open, readdir, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import SQLite from "better-sqlite3";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NewerSchemaError, OlderSchemaError, openSqlite, writeBack } from "../../../server/store/sqlite.ts";
import { createWriter } from "../../../server/store/writer.ts";
import { conversation, ending, say, type TestHome, testHome } from "../../helpers/store.ts";

let home: TestHome;
beforeEach(async () => {
	home = await testHome();
});
afterEach(() => home.remove());

const filesBeside = () => readdir(dirname(home.file));

describe("a full disk", () => {
	it("is told as such by every kind of write, and the next ones work", async () => {
		const { raw, db, prepare } = await openSqlite(home.file, 0);
		const write = createWriter(db, prepare);
		const row = (key: string, size: number) => ({ key, value: "x".repeat(size) });
		raw.pragma("cache_size = 10");
		raw.pragma(`max_page_count = ${Number(raw.pragma("page_count", { simple: true })) + 20}`);
		const big = 4_000_000;
		const full = { code: "SQLITE_FULL" };
		await expect(db.transaction().execute((trx) => trx.insertInto("meta").values(row("a", big)).execute())).rejects.toMatchObject(full);
		await expect(write((trx) => trx.insertInto("meta").values(row("b", big)).execute())).rejects.toMatchObject(full);
		const together = await Promise.allSettled(
			["c", "d", "e"].map((key) =>
				write((trx) =>
					trx
						.insertInto("meta")
						.values(row(key, key === "d" ? big : 1))
						.execute(),
				),
			),
		);
		expect(together[1]).toMatchObject({ status: "rejected", reason: full });
		raw.pragma("max_page_count = 100000");
		await write((trx) => trx.insertInto("meta").values(row("f", big)).execute());
		expect((await db.selectFrom("meta").select("key").where("key", "in", ["a", "b", "d", "f"]).execute()).map(({ key }) => key)).toEqual([
			"f",
		]);
		await db.destroy();
	});
});

describe("jobs that share a transaction", () => {
	it("are each done once, also when others among them fail and are told so", async () => {
		const { db, prepare } = await openSqlite(home.file, 0);
		const write = createWriter(db, prepare);
		const add = (key: string) =>
			write(async (trx) => {
				await trx.insertInto("meta").values({ key, value: "0" }).execute();
				await sql`update meta set value = value + 1 where key = ${key}`.execute(trx);
				if (key.startsWith("bad")) throw new Error(`${key} fails`);
				return key;
			});
		const keys = ["a", "bad1", "b", "a", "bad2", "c"];
		const outcomes = await Promise.allSettled(keys.map(add));
		expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message))).toEqual([
			"a",
			"bad1 fails",
			"b",
			"UNIQUE constraint failed: meta.key",
			"bad2 fails",
			"c",
		]);
		const rows = await db.selectFrom("meta").selectAll().where("key", "in", keys).orderBy("key").execute();
		expect(rows).toEqual(["a", "b", "c"].map((key) => ({ key, value: "1" })));
		await db.destroy();
	});

	it("are all told when nothing could be committed, and nothing of them is there", async () => {
		const { db, prepare, raw } = await openSqlite(home.file, 0);
		raw.pragma("busy_timeout = 10");
		const write = createWriter(db, prepare);
		const other = new SQLite(home.file);
		other.exec("begin immediate");
		const add = (key: string) => write((trx) => trx.insertInto("meta").values({ key, value: "" }).execute());
		const outcomes = await Promise.allSettled(["a", "b"].map(add));
		expect(outcomes).toMatchObject([
			{ status: "rejected", reason: { code: "SQLITE_BUSY" } },
			{ status: "rejected", reason: { code: "SQLITE_BUSY" } },
		]);
		other.exec("rollback");
		other.close();
		await add("c");
		expect((await db.selectFrom("meta").select("key").where("key", "in", ["a", "b", "c"]).execute()).map(({ key }) => key)).toEqual(["c"]);
		await db.destroy();
	});

	it("let the program breathe, also when each comes as soon as the one before it is done", async () => {
		const { db, prepare } = await openSqlite(home.file, 0);
		const write = createWriter(db, prepare);
		let breaths = 0;
		let over = false;
		const breathe = () => {
			breaths += 1;
			if (!over) setImmediate(breathe);
		};
		setImmediate(breathe);
		for (let n = 0; n < 1_000; n++)
			await write((trx) =>
				trx
					.insertInto("meta")
					.values({ key: `n${n}`, value: "" })
					.execute(),
			);
		over = true;
		expect(breaths).toBeGreaterThan(10);
		await db.destroy();
	});
});

/** Takes away what came with schema 6. */
function withoutHeads(raw: SQLite.Database): void {
	raw.exec(`drop table call_heads; drop index calls_bodies; alter table calls drop column head;
		create index calls_bodies on calls (at, bytes) where bytes > 0`);
}

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

	it("brings along what calls had sent when it moves into a table of its own", async () => {
		const { db, raw } = await openSqlite(home.file, 0);
		// As it stood before: the request in the call's own row.
		raw.exec("drop table call_requests; alter table calls add column request text not null default 'null'");
		withoutHeads(raw);
		for (const [id, request] of [
			["kept", '{"messages":[]}'],
			["pruned", "null"],
		])
			raw
				.prepare(
					"insert into calls (id, source, model, model_name, at, attempt, state, request, response) values (?, 'chat', 'm', 'm', 1, 1, 'done', ?, '1')",
				)
				.run(id, request);
		raw.pragma("user_version = 4");
		await db.destroy();
		const copy = `${home.file}.before-6`;
		// What a crash and a full disk left of earlier attempts.
		for (const name of [copy, `${copy}.part`, `${copy}.part-journal`]) await writeFile(name, Buffer.alloc(8192, 7));
		const told: unknown[] = [];
		await (await openSqlite(home.file, 0, { onMigrate: ({ from, to }) => told.push([from, to]) })).db.destroy();
		expect(told).toEqual([[4, 6]]);
		expect(await filesBeside()).toEqual(["openlani.db", "openlani.db.before-6"]);
		const before = new SQLite(copy);
		expect(before.prepare("select id, request from calls order by id").all()).toEqual([
			{ id: "kept", request: '{"messages":[]}' },
			{ id: "pruned", request: "null" },
		]);
		before.close();
		const store = await home.open();
		expect(await store.calls.get("kept")).toMatchObject({ request: { messages: [] }, response: 1 });
		expect(await store.calls.get("pruned")).toMatchObject({ request: null, response: 1 });
		await store.close();
	});

	it("leaves what calls had sent before as it is when it begins to keep their heads apart", async () => {
		const { db, raw } = await openSqlite(home.file, 0);
		const call =
			"insert into calls (id, source, model, model_name, at, attempt, state, bytes) values (?, 'chat', 'm', 'm', 1, 1, 'done', ?)";
		const request = `{"tools":["${"x".repeat(2_000)}"],"messages":[]}`;
		raw.prepare(call).run("kept", request.length);
		raw.prepare(call).run("pruned", 0);
		raw.prepare("insert into call_requests (position, request) values (1, ?)").run(request);
		withoutHeads(raw);
		raw.pragma("user_version = 5");
		await db.destroy();
		const store = await home.open();
		expect(await filesBeside()).toContain("openlani.db.before-6");
		expect(JSON.stringify((await store.calls.get("kept"))?.request)).toBe(request);
		expect(await store.calls.get("pruned")).toMatchObject({ request: null });
		await store.close();
		const after = new SQLite(home.file);
		expect(after.prepare("select bytes, head from calls order by position").all()).toEqual([
			{ bytes: request.length, head: null },
			{ bytes: 0, head: null },
		]);
		expect(after.prepare("select count(*) as n from call_heads").get()).toEqual({ n: 0 });
		after.close();
	});

	it("keeps the copy of an older database for a month", async () => {
		const day = 24 * 60 * 60;
		const now = home.clock.now() / 1000;
		await (await home.open()).close();
		const copy = `${home.file}.before-6`;
		for (const [days, kept] of [
			[29, true],
			[31, false],
		] as const) {
			await writeFile(copy, "as it was");
			await utimes(copy, now - days * day, now - days * day);
			await (await openSqlite(home.file, home.clock.now(), { asItIs: true })).db.destroy();
			expect(existsSync(copy), "whoever only looks drops nothing").toBe(true);
			await (await home.open()).close();
			expect(existsSync(copy)).toBe(kept);
		}
	});

	it("leaves a database as it is for whoever only looks at it", async () => {
		await (await home.open()).close();
		const { raw, db } = await openSqlite(home.file, 0, { asItIs: true });
		raw.pragma("user_version = 4");
		await db.destroy();
		await expect(openSqlite(home.file, 0, { asItIs: true })).rejects.toBeInstanceOf(OlderSchemaError);
		await writeFile(home.file, Buffer.alloc(8192, 7));
		await expect(openSqlite(home.file, 0, { asItIs: true })).rejects.toMatchObject({
			code: expect.stringMatching(/^SQLITE_(NOTADB|CORRUPT)/),
		});
		await rm(home.file);
		await expect(openSqlite(home.file, 0, { asItIs: true })).rejects.toThrow("no database");
		expect((await filesBeside()).filter((name) => name.includes("before") || name.includes("damaged"))).toEqual([]);
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

describe("a quiet moment", () => {
	const fill = (raw: SQLite.Database, pages: number) =>
		raw.prepare("insert into meta (key, value) values (?, ?)").run(`${pages} ${Math.random()}`, "x".repeat(pages * 4096));
	const log = (raw: SQLite.Database) => (raw.pragma("wal_checkpoint(noop)") as [{ log: number; checkpointed: number }])[0];

	it("writes a long log back into the database, and leaves a short one", async () => {
		const { raw, db } = await openSqlite(home.file, 0);
		raw.pragma("wal_checkpoint(truncate)");
		fill(raw, 500);
		writeBack(raw);
		expect(log(raw)).toMatchObject({ checkpointed: 0 });
		fill(raw, 600);
		writeBack(raw);
		const after = log(raw);
		expect(after.log).toBeGreaterThan(1000);
		expect(after.checkpointed).toBe(after.log);
		await db.destroy();
	});

	it("is no error while somebody reads what is older", async () => {
		const { raw, db } = await openSqlite(home.file, 0);
		raw.pragma("wal_checkpoint(truncate)");
		const reader = new SQLite(home.file, { readonly: true });
		reader.exec("begin");
		reader.prepare("select count(*) from meta").get();
		fill(raw, 1200);
		writeBack(raw);
		expect(log(raw).checkpointed).toBe(0);
		reader.close();
		writeBack(raw);
		expect(log(raw).checkpointed).toBe(log(raw).log);
		await db.destroy();
	});
});

describe("events", () => {
	it("are stored in any number, each once, as they were said", async () => {
		const store = await home.open();
		const events = Array.from({ length: 45 }, (_, n) => ({
			seq: n + 1,
			at: home.clock.now() + n,
			type: `type-${n}`,
			level: n % 2 ? ("warn" as const) : ("debug" as const),
			conversationId: n % 3 ? `c${n}` : null,
			turnId: n % 5 ? `t${n}` : null,
			body: { text: `说 ${n}`, at: n },
		}));
		await store.events.append(events.slice(0, 3));
		await store.events.append(events);
		expect(await store.events.list({ after: 0, limit: 100 })).toEqual(events);
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
