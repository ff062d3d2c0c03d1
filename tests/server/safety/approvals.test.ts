import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
	automaticText,
	crowdedText,
	decisionText,
	deniedText,
	judge,
	mostPending,
	validUntil,
	waitingText,
} from "../../../server/safety/approvals.ts";
import type { ApprovalRow } from "../../../server/store/approvals.ts";
import { openApprovals } from "./approvals-setup.ts";

let room: Awaited<ReturnType<typeof openApprovals>>;
beforeEach(async () => {
	room = await openApprovals();
});
afterEach(() => room.close());

describe("the gate", () => {
	it("lets tools that ask nobody through and writes nothing", async () => {
		expect(await room.gate({ tool: "recall" })).toBeNull();
		expect(await room.gate({ tool: "never" })).toContain("do not allow");
		expect(await room.pending()).toEqual([]);
	});

	it("puts a call aside once, however often it is made, and says so", async () => {
		expect(await room.gate()).toBe(waitingText);
		expect(await room.gate()).toBe(waitingText);
		expect(await room.gate({ turnId: "t2" })).toBe(waitingText);
		expect(await room.pending()).toHaveLength(1);
		expect(room.frames).toEqual([{ type: "approval", id: await room.one(), state: "pending", conversation: "c1", tool: "forget" }]);
		await room.gate({ arguments: '{"id":"m2"}' });
		await room.gate({ conversationId: "c2" });
		expect(await room.pending()).toHaveLength(3);
	});

	it("uses a single allowance up for exactly this call in this conversation by this person", async () => {
		await room.gate();
		await room.approvals.decide(await room.one(), "allow", "once");
		expect(await room.gate({ arguments: '{"id":"m2"}' })).toBe(waitingText);
		expect(await room.gate({ conversationId: "c2" })).toBe(waitingText);
		expect(await room.gate({ personId: "bob", tier: "known" })).toBe(waitingText);
		expect(await room.gate({ recordId: "the-call" })).toBeNull();
		// The process died right after: the same call asks again.
		expect(await room.gate({ recordId: "the-call" })).toBeNull();
		expect(await room.gate()).toBe(waitingText);
	});

	it("lets one of two calls at the same moment through", async () => {
		await room.gate();
		await room.approvals.decide(await room.one(), "allow", "once");
		const answers = await Promise.all([room.gate(), room.gate(), room.gate()]);
		expect(answers.filter((answer) => answer === null)).toHaveLength(1);
		expect(await room.pending()).toHaveLength(1);
	});

	it("for the hour or the conversation: the tool with any arguments, but nothing less to be trusted", async () => {
		await room.gate();
		await room.approvals.decide(await room.one(), "allow", "hour");
		expect(await room.gate()).toBeNull();
		expect(await room.gate({ arguments: '{"id":"m2"}' })).toBeNull();
		expect(await room.gate({ arguments: '{"id":"m3"}', tainted: ["web:example.test"] })).toBe(waitingText);
		expect(await room.gate({ arguments: '{"id":"m3"}', origin: "alarm" })).toBe(automaticText);
		room.home.clock.forward(60 * 60_000);
		expect(await room.gate({ arguments: '{"id":"m4"}' })).toBe(waitingText);
		await room.approvals.decide(await room.one(), "allow", "conversation");
		room.home.clock.forward(400 * 24 * 60 * 60_000);
		await room.approvals.tick();
		expect(await room.gate({ arguments: '{"id":"m5"}' })).toBeNull();
		expect(await room.gate({ arguments: '{"id":"m5"}', conversationId: "c2" })).toBe(waitingText);
	});

	it("does what the settings say in work that starts by itself", async () => {
		for (const origin of ["heartbeat", "alarm", "job"] as const) expect(await room.gate({ origin })).toBe(automaticText);
		expect(await room.pending()).toEqual([]);
		room.state.automatic = "ask";
		expect(await room.gate({ origin: "alarm" })).toBe(waitingText);
		await room.approvals.decide(await room.one(), "allow", "once");
		// The decision's message is a person's: the turn that it wakes makes the call.
		expect(await room.gate({ origin: "human" })).toBeNull();
	});

	it("refuses in the turn that hears the denial, and asks anew when it is wanted later", async () => {
		await room.gate();
		const id = await room.one();
		await room.approvals.decide(id, "deny", "once");
		expect(await room.gate({ turnId: `turn-of-approval:${id}` })).toBe(deniedText);
		expect(await room.pending()).toEqual([]);
		expect(await room.gate({ turnId: "later" })).toBe(waitingText);
	});

	it("is not flooded", async () => {
		for (let n = 0; n < mostPending; n++) await room.gate({ arguments: `{"id":"m${n}"}` });
		expect(await room.gate({ arguments: '{"id":"one more"}' })).toBe(crowdedText);
		expect(await room.gate({ conversationId: "c2" })).toBe(waitingText);
	});
});

describe("a decision", () => {
	it("comes back to the conversation once, with the rights of the person whose turn asked", async () => {
		await room.gate({ personId: "bob", tier: "known" });
		const id = await room.one();
		const made = await room.approvals.decide(id, "allow", "once");
		expect(made).toMatchObject({ decided: true, row: { state: "allowed", scope: "once" } });
		expect(room.resumed).toEqual([
			{
				conversationId: "c1",
				personId: "bob",
				tier: "known",
				text: 'Approved: forget {"id":"m1"}. Go on.',
				note: expect.stringContaining("master's decision"),
				externalId: `approval:${id}`,
			},
		]);
		expect(room.frames.at(-1)).toMatchObject({ type: "approval", id, state: "allowed" });
		await room.approvals.tick();
		expect(room.resumed).toHaveLength(1);
	});

	it("is made once", async () => {
		await room.gate();
		const id = await room.one();
		const both = await Promise.all([room.approvals.decide(id, "allow", "once"), room.approvals.decide(id, "deny", "once")]);
		expect(both.filter((made) => made?.decided)).toHaveLength(1);
		expect(room.resumed).toHaveLength(1);
		expect(await room.approvals.decide("nobody", "allow", "once")).toBeNull();
	});

	it("that could not be told is told by the next process", async () => {
		await room.gate();
		room.state.failing = true;
		expect(await room.approvals.decide(await room.one(), "allow", "once")).toMatchObject({ decided: true });
		expect(room.resumed).toEqual([]);
		room.state.failing = false;
		const next = room.make();
		await next.start();
		next.stop();
		expect(room.resumed).toHaveLength(1);
	});

	it("comes too late when the time is over", async () => {
		await room.gate();
		const id = await room.one();
		room.home.clock.forward(900_000);
		expect(await room.approvals.decide(id, "allow", "once")).toMatchObject({ decided: false, row: { state: "expired" } });
		expect(room.frames.at(-1)).toMatchObject({ id, state: "expired" });
		expect(await room.pending()).toEqual([]);
		expect((await room.approvals.list({ state: "all", limit: 5 }))[0]).toMatchObject({ id, state: "expired" });
		// Wanted again, it is asked anew.
		expect(await room.gate()).toBe(waitingText);
		expect(await room.one()).not.toBe(id);
	});
});

describe("the rules", () => {
	const row = (change: Partial<ApprovalRow>): ApprovalRow => ({
		id: "a",
		tool: "forget",
		arguments: "{}",
		conversationId: "c1",
		groupId: null,
		turnId: "t1",
		callId: "r1",
		personId: "master",
		tier: "master",
		origin: "human",
		tainted: false,
		state: "allowed",
		scope: "once",
		createdAt: 0,
		expiresAt: 1,
		decidedAt: 0,
		validUntil: null,
		usedBy: null,
		toldTurn: null,
		...change,
	});
	const call = { tool: "forget", arguments: "{}", callId: "r2", turnId: "t2", personId: "master", origin: "human", tainted: false };

	it("prefer an allowance that stands to one that is used up", () => {
		expect(judge(call, [row({}), row({ id: "b", scope: "conversation" })])).toEqual({ do: "run" });
		expect(judge(call, [row({})])).toEqual({ do: "use", id: "a" });
		expect(judge(call, [row({ usedBy: "other" })])).toEqual({ do: "ask" });
		expect(judge({ ...call, tainted: true }, [row({})])).toEqual({ do: "use", id: "a" });
		expect(judge({ ...call, tainted: true, arguments: '{"a":1}' }, [row({ scope: "hour", tainted: true })])).toEqual({ do: "run" });
		expect(judge({ ...call, tool: "other" }, [row({ scope: "conversation" })])).toEqual({ do: "ask" });
	});

	it("keep a single allowance for at least an hour", () => {
		expect(validUntil("once", 0, 1000)).toBe(3_600_000);
		expect(validUntil("once", 0, 7_200_000)).toBe(7_200_000);
		expect(validUntil("hour", 0, 7_200_000)).toBe(3_600_000);
		expect(validUntil("conversation", 0, 1000)).toBeNull();
	});

	it("say it in the person's language, well formed whatever the arguments", () => {
		expect(decisionText(row({ state: "denied" }), "zh-CN")).toBe("已拒绝：forget {}。不要执行。");
		expect(decisionText(row({ state: "allowed" }), "zh-CN")).toBe("已批准：forget {}。请继续。");
		expect(decisionText(row({ state: "denied" }), "en")).toBe("Denied: forget {}. Do not do it.");
		const long = decisionText(row({ arguments: `${"x".repeat(7_999)}😀${"y".repeat(100)}` }), "en");
		expect(long).not.toMatch(/\p{Surrogate}/u);
		expect(long.length).toBeLessThan(8_100);
	});
});
