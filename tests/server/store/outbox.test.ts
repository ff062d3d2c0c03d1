import { v7 } from "uuid";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NewOutbox, Store } from "../../../server/store/store.ts";
import { type TestHome, testHome } from "../../helpers/store.ts";

let home: TestHome;
let store: Store;
beforeEach(async () => {
	home = await testHome();
	store = await home.open();
});
afterEach(async () => {
	await store.close();
	await home.remove();
});

const row = (place: string, text: string): NewOutbox => ({
	id: v7(),
	conversationId: null,
	turnId: null,
	address: { channel: "tg", account: "bot", conversation: place },
	profile: "social",
	text,
	attachments: [],
	at: home.clock.now(),
	message: null,
});
const claim = async () => (await store.outbox.claim("tg", "bot", home.clock.now(), 1))[0] ?? null;

describe("the outbox", () => {
	it("keeps the order of one place while another place goes on", async () => {
		const first = await store.outbox.add(row("a", "a1"));
		await store.outbox.add(row("a", "a2"));
		await store.outbox.add(row("b", "b1"));
		expect((await claim())?.text).toBe("a1");
		await store.outbox.settle(first.id, { state: "pending", error: "429", notBefore: home.clock.now() + 5000, at: home.clock.now() });
		expect((await claim())?.text).toBe("b1");
		expect(await claim()).toBeNull();
		expect(await store.outbox.nextDue("tg", "bot")).toBe(home.clock.now() + 5000);
		home.clock.forward(5000);
		expect((await claim())?.text).toBe("a1");
	});

	it("sends once more what was being sent at a crash, marked, and then never again", async () => {
		const { id } = await store.outbox.add(row("a", "hello"));
		await claim();
		expect(await store.outbox.recover(home.clock.now())).toBe(1);
		expect(await store.outbox.get(id)).toMatchObject({ state: "pending", error: expect.stringContaining("once more") });
		await claim();
		expect(await store.outbox.recover(home.clock.now())).toBe(0);
		expect(await store.outbox.get(id)).toMatchObject({ state: "unknown" });
		expect(await claim()).toBeNull();
	});

	it("takes a person's decision only where it fits", async () => {
		const { id } = await store.outbox.add(row("a", "hello"));
		expect(await store.outbox.decide(id, "release", 1)).toBeNull();
		expect(await store.outbox.decide(id, "drop", 1)).toMatchObject({ state: "dropped" });
		await store.outbox.settle(id, { state: "sent", at: 2 });
		expect(await store.outbox.get(id)).toMatchObject({ state: "dropped" });
		expect(await store.outbox.decide(id, "retry", 3)).toMatchObject({ state: "pending", attempts: 0 });
	});

	it("lists by state, newest first, page by page", async () => {
		for (const text of ["1", "2", "3"]) await store.outbox.add(row(text, text));
		const [newest] = await store.outbox.list({ state: "pending", limit: 1 });
		expect(newest?.text).toBe("3");
		expect((await store.outbox.list({ state: "pending", limit: 5, before: newest?.id as string })).map((one) => one.text)).toEqual([
			"2",
			"1",
		]);
	});
});
