import { v7 } from "uuid";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { StepRecord } from "../../../server/agent/types.ts";
import type { NewInbound, Store } from "../../../server/store/store.ts";
import { conversation, ending, say, type TestHome, testHome, usage } from "../../helpers/store.ts";

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

const claim = (owner = "a", background = true) => store.inbox.claim({ owner, leaseMs: 30_000, now: home.clock.now(), background });

/** What a kill -9 leaves: the file as it is, opened by the next process. */
async function crash(): Promise<void> {
	await store.close();
	store = await home.open();
	await store.inbox.recover(home.clock.now());
}

function step(n: number, calls: StepRecord["calls"] = []): StepRecord {
	return {
		step: n,
		round: 1,
		text: `step ${n}`,
		reasoning: "",
		calls,
		usage,
		model: "main",
		modelName: "scripted",
		callIds: [],
		joined: [],
		note: null,
		startedAt: 1,
		endedAt: 2,
	};
}

describe("a message coming in", () => {
	it("is one message however often its platform sends it", async () => {
		const to = await conversation(store);
		const first = await say(store, to, "hello", { externalId: "update-1" });
		const again = await say(store, to, "hello", { externalId: "update-1" });
		expect(again).toMatchObject({ duplicate: true, messageId: first.messageId, turnId: first.turnId });
		expect(await store.messages.list(to.id, { limit: 10 })).toHaveLength(1);
		expect(await store.turns.list({ conversationId: to.id, limit: 10 })).toHaveLength(1);
	});

	it("of the same id on another channel is another message", async () => {
		const to = await conversation(store);
		const other = await conversation(store, { channel: "tg", place: "7" });
		await say(store, to, "one", { externalId: "1" });
		expect((await say(store, other, "two", { externalId: "1" })).duplicate).toBe(false);
	});

	it("keeps no lone surrogate", async () => {
		const to = await conversation(store);
		const { messageId } = await say(store, to, "broken \ud83d end", {
			message: { id: "x", text: "broken \ud83d end", from: null, at: 1, attachments: [], notes: [] },
		});
		expect((await store.messages.get(messageId))?.text.isWellFormed()).toBe(true);
	});

	it("supersedes the message it replaces and all after it", async () => {
		const to = await conversation(store);
		const kept = await say(store, to, "first");
		const replaced = await say(store, to, "secnd");
		const after = await say(store, to, "third");
		const edited = await say(store, to, "second", { replaces: replaced.messageId });
		expect(edited.supersededIds).toEqual([replaced.messageId, after.messageId]);
		const shown = await store.messages.list(to.id, { limit: 10 });
		expect(shown.map((row) => row.id)).toEqual([kept.messageId, edited.messageId]);
	});

	it("supersedes no answer to what stays, also where that came after it", async () => {
		const to = await conversation(store);
		const kept = await say(store, to, "first");
		await claim();
		const replaced = await say(store, to, "secnd", { personId: "other" });
		const answer = (await store.turns.end(kept.turnId, ending(to, kept.turnId, "to the first"))).message;
		await claim();
		const theirs = (await store.turns.end(replaced.turnId, ending(to, replaced.turnId, "to the second"))).message;
		const edited = await say(store, to, "second", { replaces: replaced.messageId, personId: "other" });
		expect(edited.supersededIds).toEqual([replaced.messageId, theirs?.id]);
		const shown = await store.messages.list(to.id, { limit: 10 });
		expect(shown.map((row) => row.id)).toEqual([kept.messageId, answer?.id, edited.messageId]);
		// One that is itself to be made anew goes, with what follows.
		const again = await say(store, to, "once more", { replaces: answer?.id ?? "" });
		expect(again.supersededIds).toEqual([answer?.id, edited.messageId]);
	});
});

describe("a turn that begins with its message", () => {
	const start = { owner: "a", leaseMs: 30_000 };

	it("is claimed as a later claim would have, and by nobody else", async () => {
		const to = await conversation(store);
		const { claim: begun, messageId, turnId } = await begin(to, "hello");
		expect(begun).toMatchObject({
			turn: { id: turnId, state: "running", personId: "master", startedAt: expect.any(Number) },
			rows: [{ id: messageId, state: "claimed", attempts: 1, message: { text: "hello" } }],
			conversation: { id: to.id, title: "hello", preview: "hello" },
			poisoned: false,
		});
		const stored = await store.turns.get(turnId);
		expect(begun?.turn).toEqual(stored);
		expect(await claim("b")).toBeNull();
		await crash();
		const taken = await claim("b");
		expect(taken?.rows).toEqual([{ ...begun?.rows[0], attempts: 2 }]);
		expect(taken?.turn).toEqual(stored);
		expect(taken?.poisoned).toBe(false);
	});

	it("waits where somebody works or has waited longer, and once its message is there already", async () => {
		const to = await conversation(store, { channel: "tg", place: "g", groupId: "g" });
		await say(store, to, "first", { personId: "p1", tier: "group" });
		expect((await begin(to, "second", { personId: "p2", tier: "group" })).claim).toBeNull();
		expect((await claim())?.rows.map((row) => row.message.text)).toEqual(["first"]);
		expect((await begin(to, "third", { personId: "p3", tier: "group", externalId: "3" })).claim).toBeNull();
		expect(await store.inbox.waiting()).toEqual({ people: 2, background: 0 });
		expect(await begin(to, "third", { personId: "p3", tier: "group", externalId: "3" })).toMatchObject({ duplicate: true, claim: null });
	});

	it("joins what the same person said before instead of running beside it", async () => {
		const to = await conversation(store);
		const waiting = await say(store, to, "one");
		const joined = await begin(to, "two");
		expect(joined).toMatchObject({ claim: null, turnId: waiting.turnId });
		expect((await claim())?.rows.map((row) => row.message.text)).toEqual(["one", "two"]);
	});

	it("takes over what a lease that ran out has left", async () => {
		const to = await conversation(store);
		await begin(to, "one", { at: 1_000 });
		const late = await begin(to, "two", { personId: "p2", at: 1_000 + start.leaseMs });
		expect(late.claim?.rows.map((row) => row.message.text)).toEqual(["two"]);
	});

	const begin = (to: Awaited<ReturnType<typeof conversation>>, text: string, change: Partial<NewInbound> = {}) =>
		say(store, to, text, change, start);
});

describe("claiming", () => {
	it("gives one conversation to one turn at a time, and others meanwhile", async () => {
		const one = await conversation(store);
		const two = await conversation(store);
		await say(store, one, "a");
		await say(store, two, "b");
		const first = await claim();
		await say(store, one, "c", { personId: "other", tier: "known" });
		const second = await claim();
		expect([first?.conversation.id, second?.conversation.id]).toEqual([one.id, two.id]);
		expect(await claim()).toBeNull();
	});

	it("takes waiting messages of one person together and leaves another person's for the next turn", async () => {
		const group = await conversation(store, { channel: "tg", place: "g", groupId: "g" });
		const mine = await say(store, group, "one");
		await say(store, group, "two");
		const theirs = await say(store, group, "three", { personId: "p2", tier: "group" });
		const first = await claim();
		expect(first?.rows.map((row) => row.message.text)).toEqual(["one", "two"]);
		expect(first?.turn.id).toBe(mine.turnId);
		await store.turns.end(mine.turnId, ending(group, mine.turnId, "ok"));
		const next = await claim();
		expect(next?.rows.map((row) => row.message.text)).toEqual(["three"]);
		expect(next?.turn).toMatchObject({ id: theirs.turnId, personId: "p2", tier: "group" });
	});

	it("takes people before background work, and background only when it may", async () => {
		const quiet = await conversation(store);
		const loud = await conversation(store);
		await say(store, quiet, "beat", { origin: "heartbeat", priority: 1 });
		await say(store, loud, "hi");
		expect((await claim())?.conversation.id).toBe(loud.id);
		expect(await claim("a", false)).toBeNull();
		expect((await claim("a", true))?.conversation.id).toBe(quiet.id);
	});

	it("hands a conversation on when its lease has run out", async () => {
		const to = await conversation(store);
		const { turnId } = await say(store, to, "a");
		await claim("gone");
		await say(store, to, "b");
		home.clock.forward(29_000);
		expect(await claim("b")).toBeNull();
		expect(await store.inbox.extend(turnId, "gone", home.clock.now() + 30_000)).toBe(true);
		home.clock.forward(31_000);
		expect(await claim("b")).not.toBeNull();
		expect(await store.inbox.extend(turnId, "gone", home.clock.now() + 30_000)).toBe(false);
	});
});

describe("after a crash", () => {
	it("the same turn goes on with its steps, its messages and its plan", async () => {
		const to = await conversation(store);
		const { turnId, messageId } = await say(store, to, "a");
		await claim();
		const record = {
			call: { id: "c1", name: "write_plan", arguments: "{}" },
			recordId: v7(),
			state: "open" as const,
			result: null,
			startedAt: null,
			endedAt: null,
		};
		await store.turns.stepStored(turnId, step(1, [record]));
		await store.turns.callFinished(turnId, record.recordId, {
			state: "done",
			result: "ok",
			at: 5,
			attachments: [],
			effects: [{ type: "plan", items: [{ text: "x", done: true }] }],
			outbox: [],
		});
		await crash();
		const again = await claim();
		expect(again).toMatchObject({ poisoned: false, turn: { id: turnId, plan: [{ text: "x", done: true }] } });
		expect(again?.rows.map((row) => row.id)).toEqual([messageId]);
		expect(again?.steps).toMatchObject([{ step: 1, calls: [{ state: "done", result: "ok" }] }]);
	});

	it("messages that had joined stand in their step, those that had not still wait", async () => {
		const to = await conversation(store);
		const { turnId } = await say(store, to, "a");
		await claim();
		await store.turns.stepStored(turnId, step(1));
		await say(store, to, "joined");
		expect((await store.turns.takeJoining(turnId, 1, 5)).map((message) => message.text)).toEqual(["joined"]);
		const late = await say(store, to, "late");
		expect(late.turnId).toBe(turnId);
		await crash();
		const again = await claim();
		expect(again?.rows.map((row) => row.message.text)).toEqual(["a"]);
		expect(again?.steps[0]?.joined.map((message) => message.text)).toEqual(["joined"]);
		expect((await store.turns.takeJoining(turnId, 1, 6)).map((message) => message.text)).toEqual(["late"]);
	});

	it("a message whose turn ended before it could join begins the next turn", async () => {
		const to = await conversation(store);
		const { turnId } = await say(store, to, "a");
		await claim();
		const late = await say(store, to, "late");
		await store.turns.end(turnId, ending(to, turnId, "answer"));
		const next = await claim();
		expect(next?.turn.id).not.toBe(turnId);
		expect(next?.rows.map((row) => row.id)).toEqual([late.messageId]);
		expect((await store.messages.get(late.messageId))?.turnId).toBe(next?.turn.id);
	});

	it("a message that brought two processes down is not run a third time; an orderly stop does not count", async () => {
		const to = await conversation(store);
		const { turnId } = await say(store, to, "poison");
		await claim();
		await store.inbox.release(turnId);
		expect((await claim())?.poisoned).toBe(false);
		await crash();
		expect((await claim())?.poisoned).toBe(false);
		await crash();
		expect((await claim())?.poisoned).toBe(true);
	});
});

describe("a turn that is held", () => {
	it("with steps waits as queued, goes on from its steps, and can be stopped while it waits", async () => {
		const to = await conversation(store);
		const { turnId, messageId } = await say(store, to, "a");
		await claim();
		await store.turns.stepStored(turnId, step(1));
		await store.inbox.hold(turnId, home.clock.now() + 60_000);
		expect((await store.turns.get(turnId))?.state).toBe("queued");
		expect(await claim()).toBeNull();
		await store.inbox.unhold();
		const again = await claim();
		expect(again?.rows.map((row) => row.id)).toEqual([messageId]);
		expect(again?.steps.map((one) => one.step)).toEqual([1]);
		await store.inbox.hold(turnId, home.clock.now() + 60_000);
		expect(await store.turns.cancelQueued(turnId, 5)).toBe(true);
		await say(store, to, "b");
		expect((await claim())?.rows.map((row) => row.message.text)).toEqual(["b"]);
	});
});

describe("the end of a turn", () => {
	it("writes reply, outbox and 'done' once", async () => {
		const to = await conversation(store);
		const { turnId, messageId } = await say(store, to, "a");
		await claim();
		expect((await store.turns.end(turnId, ending(to, turnId, "answer"))).message).toMatchObject({ text: "answer", delivery: "pending" });
		expect((await store.turns.end(turnId, ending(to, turnId, "again"))).message).toBeNull();
		expect((await store.messages.list(to.id, { limit: 10 })).map((row) => row.text)).toEqual(["a", "answer"]);
		expect(await store.outbox.list({ limit: 10 })).toHaveLength(1);
		expect(await store.inbox.outcome(messageId)).toEqual({ turnId, state: "done" });
	});

	it("hands the reply over to be sent, unless something else waits for its place", async () => {
		const to = await conversation(store);
		const sends = (turnId: string, text: string) =>
			store.turns.end(turnId, { ...ending(to, turnId, text), step: step(1), sendsReply: true });
		const first = await say(store, to, "a");
		await claim();
		const { sending, message } = await sends(first.turnId, "one");
		expect(sending).toMatchObject({ text: "one", state: "sending", attempts: 1, messageId: message?.id });
		expect(sending).toEqual(await store.outbox.get(sending?.id as string));
		expect((await store.turns.steps(first.turnId)).map((one) => one.text)).toEqual(["step 1"]);
		expect(await store.outbox.claim("web", "default", home.clock.now(), 5)).toEqual([]);
		const second = await say(store, to, "b");
		await claim();
		expect(await sends(second.turnId, "two")).toMatchObject({ sending: null, message: { delivery: "pending" } });
		expect(await store.outbox.claim("web", "default", home.clock.now(), 5)).toEqual([]);
		await store.outbox.settle(sending?.id as string, { state: "sent", at: 9 });
		expect((await store.outbox.claim("web", "default", home.clock.now(), 5)).map((row) => row.text)).toEqual(["two"]);
	});

	it("leaves a result that is stored already as it is", async () => {
		const to = await conversation(store);
		const { turnId } = await say(store, to, "a");
		await claim();
		const record = {
			call: { id: "c1", name: "send_message", arguments: "{}" },
			recordId: v7(),
			state: "open" as const,
			result: null,
			startedAt: null,
			endedAt: null,
		};
		await store.turns.stepStored(turnId, step(1, [record]));
		const outcome = {
			state: "done" as const,
			result: "sent",
			at: 5,
			attachments: [],
			effects: [],
			outbox: [{ ...ending(to, turnId, "x").reply, message: null }],
		};
		expect(await store.turns.callFinished(turnId, record.recordId, outcome)).toBe(true);
		expect(
			await store.turns.callFinished(turnId, record.recordId, {
				...outcome,
				outbox: [{ ...ending(to, turnId, "x").reply, message: null }],
			}),
		).toBe(false);
		expect(await store.outbox.list({ limit: 10 })).toHaveLength(1);
	});

	it("a queued turn whose messages all joined another is gone", async () => {
		const group = await conversation(store, { groupId: "g" });
		const { turnId } = await say(store, group, "a");
		await claim();
		await store.turns.stepStored(turnId, step(1));
		const other = await say(store, group, "theirs", { personId: "p2", tier: "group" });
		await say(store, group, "mine");
		expect((await store.turns.takeJoining(turnId, 1, 5)).map((message) => message.text)).toEqual(["mine"]);
		expect((await store.turns.open(group.id)).map((turn) => turn.id).sort()).toEqual([turnId, other.turnId].sort());
	});
});

describe("a message that takes others back", () => {
	it("runs alone: what waited is not answered, and a turn that ends late leaves no answer", async () => {
		const to = await conversation(store);
		const one = await say(store, to, "one");
		await claim();
		const two = await say(store, to, "two", { personId: "other" });
		const edited = await say(store, to, "one edited", { replaces: one.messageId });
		expect(edited.supersededIds).toEqual([one.messageId, two.messageId]);
		expect(new Set([one.turnId, two.turnId, edited.turnId]).size).toBe(3);
		expect((await store.turns.get(two.turnId))?.state).toBe("stopped");
		expect((await store.turns.end(one.turnId, ending(to, one.turnId, "too late"))).message).toBeNull();
		const next = await claim();
		expect(next?.rows.map((row) => row.message.text)).toEqual(["one edited"]);
		await store.turns.end(edited.turnId, ending(to, edited.turnId, "answer"));
		expect((await store.messages.list(to.id, { limit: 10 })).map((row) => row.text)).toEqual(["one edited", "answer"]);
		expect(await claim()).toBeNull();
	});
});
