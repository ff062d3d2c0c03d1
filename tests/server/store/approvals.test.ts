import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NewApproval } from "../../../server/store/approvals.ts";
import type { OpenStore } from "../../../server/store/open.ts";
import { conversation, type TestHome, testHome } from "../../helpers/store.ts";

let home: TestHome;
let store: OpenStore;
beforeEach(async () => {
	home = await testHome();
	store = (await home.open()) as OpenStore;
});
afterEach(async () => {
	await store.close();
	await home.remove();
});

const request = (change: Partial<NewApproval> = {}): NewApproval => ({
	id: "a1",
	tool: "forget",
	arguments: '{"id":"m1"}',
	conversationId: "c1",
	groupId: null,
	turnId: "t1",
	callId: "r1",
	personId: "master",
	tier: "master",
	origin: "human",
	tainted: false,
	createdAt: 1_000,
	expiresAt: 2_000,
	...change,
});

describe("stored approvals", () => {
	it("are there after a restart, and the same call asks once", async () => {
		expect(await store.approvals.ask(request())).toMatchObject({ asked: true });
		const again = await store.approvals.ask(request({ id: "a2", tainted: true }));
		// What a tainted turn asks for too is shown as such.
		expect(again).toMatchObject({ asked: false, row: { id: "a1", tainted: true } });
		await store.close();
		store = (await home.open()) as OpenStore;
		expect(await store.approvals.list({ state: "pending", limit: 10 })).toEqual([
			{ ...request(), tainted: true, state: "pending", scope: null, decidedAt: null, validUntil: null, usedBy: null, toldTurn: null },
		]);
	});

	it("are decided in time and once, and may be asked for again then", async () => {
		await store.approvals.ask(request());
		const allow = { state: "allowed", scope: "once", validUntil: 9_000, at: 1_500 } as const;
		expect(await store.approvals.decide("a1", { ...allow, at: 2_000 })).toBeNull();
		expect(await store.approvals.decide("a1", allow)).toMatchObject({ state: "allowed", decidedAt: 1_500 });
		expect(await store.approvals.decide("a1", allow)).toBeNull();
		expect(await store.approvals.ask(request({ id: "a2" }))).toMatchObject({ asked: true });
		expect((await store.approvals.untold()).map(({ id }) => id)).toEqual(["a1"]);
		await store.approvals.told("a1", "t2");
		expect(await store.approvals.untold()).toEqual([]);
	});

	it("are used up by one call, which may ask again", async () => {
		await store.approvals.ask(request());
		await store.approvals.decide("a1", { state: "allowed", scope: "once", validUntil: 9_000, at: 1_500 });
		expect(await store.approvals.use("a1", "r2")).toBe(true);
		expect(await store.approvals.use("a1", "r2")).toBe(true);
		expect(await store.approvals.use("a1", "r3")).toBe(false);
		expect(await store.approvals.decided("c1", "forget", 20_000, "r2")).toHaveLength(1);
		expect(await store.approvals.decided("c1", "forget", 2_000, "r3")).toEqual([]);
	});

	it("expire, are listed newest first, and are dropped in the end", async () => {
		await store.approvals.ask(request());
		await store.approvals.ask(request({ id: "a2", arguments: "{}", expiresAt: 5_000 }));
		expect((await store.approvals.expire(2_000)).map(({ id }) => id)).toEqual(["a1"]);
		expect(await store.approvals.expire(2_000)).toEqual([]);
		expect(await store.approvals.pending("c1")).toBe(1);
		expect((await store.approvals.list({ limit: 10 })).map(({ id }) => id)).toEqual(["a2", "a1"]);
		expect((await store.approvals.list({ limit: 10, before: "a2" })).map(({ id }) => id)).toEqual(["a1"]);
		await store.approvals.decide("a2", { state: "allowed", scope: "conversation", validUntil: null, at: 2_500 });
		await store.approvals.prune(50_000);
		// What still allows something stays.
		expect((await store.approvals.list({ limit: 10 })).map(({ id }) => id)).toEqual(["a2"]);
	});

	it("go with their conversation", async () => {
		const { id } = await conversation(store);
		await store.approvals.ask(request({ conversationId: id }));
		await store.approvals.ask(request({ id: "a2" }));
		await store.conversations.remove(id);
		expect((await store.approvals.list({ limit: 10 })).map((row) => row.id)).toEqual(["a2"]);
	});
});
