import SQLite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallStart } from "../../../server/model/model.ts";
import { type OpenStore, openStore } from "../../../server/store/open.ts";
import { conversation, type TestHome, testHome } from "../../helpers/store.ts";

let home: TestHome;
let store: OpenStore;
/** Another process's connection. */
let raw: SQLite.Database;
const openAt = (file: string) => openStore({ file, assetsDir: home.dir, clock: home.clock, newId: () => "new" });
beforeEach(async () => {
	home = await testHome();
	store = await openAt(home.file);
	raw = new SQLite(home.file);
});
afterEach(async () => {
	raw.close();
	await store.close();
	await home.remove();
});

const day = 86_400_000;
const bodyOf = (said: string, about: string, tool = "数") => ({
	model: "m",
	tools: [{ name: "one", description: tool.repeat(1_200) }],
	messages: [{ role: "user", content: `${said} ${about}` }],
});
/** A request as it is sent, with what it begins with. */
function start(said: string, change: Partial<CallStart> & { tool?: string } = {}): CallStart & { request: string } {
	const { tool, ...more } = change;
	const request = JSON.stringify(bodyOf(said, "😀 of it", tool));
	return {
		context: { source: "chat", conversationId: "c1", turnId: null, personId: "master" },
		model: "main",
		modelName: "m",
		key: null,
		attempt: 1,
		requestHead: request.indexOf('{"role"'),
		estimatedInputTokens: 10,
		maxOutputTokens: 10,
		startedAt: home.clock.now(),
		...more,
		request,
	};
}
const close = (id: string) => store.calls.close(id, { response: "x", error: null, usage: null, ms: 1, firstByteMs: 1 });
/** What reading a call gives back, as the text it was. */
const read = async (id: string, from = store) => JSON.stringify((await from.calls.get(id))?.request);
const heads = () => raw.prepare("select id, text from call_heads order by id").all() as { id: number; text: string }[];
const kept = (id: string) =>
	raw
		.prepare("select request, head, bytes from calls left join call_requests on call_requests.position = calls.position where id = ?")
		.get(id) as { request: string | null; head: number | null; bytes: number };

describe("what requests begin with", () => {
	it("is kept once for calls that begin alike, and every call is read as it was sent", async () => {
		const calls = [start("first"), start("second"), start("other tools", { tool: "x" }), start("third")];
		// The first two share a transaction.
		await Promise.all([store.calls.open("a", calls[0] as CallStart), store.calls.open("b", calls[1] as CallStart)]);
		await store.calls.open("c", calls[2] as CallStart);
		await store.close();
		store = await openAt(home.file);
		await store.calls.open("d", calls[3] as CallStart);
		expect(heads()).toHaveLength(2);
		expect(heads()[0]?.text).toBe(calls[0]?.request.slice(0, calls[0].requestHead));
		expect([kept("a").head, kept("b").head, kept("c").head, kept("d").head]).toEqual([1, 1, 2, 1]);
		expect(await Promise.all(["a", "b", "c", "d"].map((id) => read(id)))).toEqual(calls.map(({ request }) => request));
		expect(JSON.stringify((await store.ledger.call("b"))?.request)).toBe(calls[1]?.request);
		const rest = calls[0]?.request.slice(calls[0].requestHead) ?? "";
		expect(kept("a")).toEqual({ request: rest, head: 1, bytes: rest.length });
		await close("a");
		expect(kept("a").bytes).toBe(rest.length + "x".length);
	});

	it.each([
		["that are short", { requestHead: 999 }],
		["that nobody named", { requestHead: undefined }],
		["that would be all there is", { requestHead: 100_000 }],
	])("is left where it is in requests %s", async (_name, { requestHead }) => {
		const { requestHead: _, ...call } = start("whole");
		await store.calls.open("a", requestHead === undefined ? call : { ...call, requestHead });
		expect([heads(), kept("a")]).toEqual([[], { request: call.request, head: null, bytes: call.request.length }]);
	});

	it("is left where it is when the request is not stored as it came", async () => {
		const call = start("whole");
		await store.calls.open("a", { ...call, request: `${call.request.slice(0, -4)}\ud800"}]}` });
		expect([heads(), kept("a").head]).toEqual([[], null]);
		expect(await read("a")).toContain("of it\ufffd");
	});

	it("is stored again after the transaction that stored it was undone", async () => {
		const call = start("again");
		const outcomes = await Promise.allSettled([store.calls.open("a", call), store.calls.open("a", call)]);
		expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
		expect(heads()).toHaveLength(1);
		expect(await read("a")).toBe(call.request);
	});

	it("is stored again after another process removed it and gave its number away", async () => {
		const call = start("again");
		await store.calls.open("a", call);
		raw.exec("delete from call_requests; delete from calls; delete from call_heads; insert into call_heads values (1, 'hash', 'not this')");
		await store.calls.open("b", call);
		expect(kept("b").head).toBe(2);
		expect(await read("b")).toBe(call.request);
	});

	it("costs no statement of its own once it is stored", async () => {
		await store.calls.open("a", start("first"));
		raw.exec("create trigger no_more before insert on call_heads begin select raise(abort, 'stored again'); end");
		raw.exec("create trigger no_change before update on calls begin select raise(abort, 'changed'); end");
		await store.calls.open("b", start("second"));
		expect(kept("b").head).toBe(1);
	});
});

describe("a head that no call begins with any more", () => {
	it("goes with the last body by age; others stay", async () => {
		const now = home.clock.now();
		await store.calls.open("old", start("old", { tool: "x", startedAt: now - 40 * day }));
		await store.calls.open("old too", start("old too", { startedAt: now - 40 * day }));
		const fresh = start("fresh");
		await store.calls.open("fresh", fresh);
		for (const id of ["old", "old too", "fresh"]) await close(id);
		await store.ledger.pruneCalls(now, { days: 50, bytes: 1e9 });
		expect(heads()).toHaveLength(2);
		await store.ledger.pruneCalls(now, { days: 30, bytes: 1e9 });
		expect(heads().map(({ id }) => id)).toEqual([2]);
		expect([await read("old"), await read("old too"), await read("fresh")]).toEqual(["null", "null", fresh.request]);
	});

	it("counts for nobody where bodies go by size", async () => {
		for (const id of ["a", "b", "c"]) {
			await store.calls.open(id, start(id));
			await close(id);
		}
		const each = kept("a").bytes;
		await store.ledger.pruneCalls(home.clock.now(), { days: 30, bytes: 3 * each });
		expect(kept("a").request).not.toBeNull();
		await store.ledger.pruneCalls(home.clock.now(), { days: 30, bytes: 2 * each });
		expect([kept("a"), kept("b").head]).toEqual([{ request: null, head: null, bytes: 0 }, 1]);
	});

	it("goes after its conversation was deleted", async () => {
		await conversation(store, { id: "c1" });
		await store.calls.open("a", start("a"));
		expect(await store.conversations.remove("c1")).toBe(true);
		expect(kept("a")).toEqual({ request: null, head: null, bytes: 0 });
		await store.ledger.pruneCalls(home.clock.now(), { days: 30, bytes: 1e9 });
		expect(heads()).toEqual([]);
	});
});

it("a copy of the database has the heads of its calls", async () => {
	const call = start("copied");
	await store.calls.open("a", call);
	const copy = await testHome(home.clock);
	await (await copy.open()).close();
	await store.backup(copy.file);
	const restored = await openAt(copy.file);
	expect(await read("a", restored)).toBe(call.request);
	await restored.calls.open("b", call);
	expect(await read("b", restored)).toBe(call.request);
	await restored.close();
	await copy.remove();
});
