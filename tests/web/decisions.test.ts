import { describe, expect, it } from "vitest";
import type { Approval } from "../../server/http/contract.ts";
import { decisionOn, isDecision, waitingIn } from "../../web/src/features/chat/decisions.ts";

const approval = (change: Partial<Approval>): Approval => ({
	id: "a",
	tool: "forget",
	arguments: {},
	about: null,
	conversation: "c1",
	turnId: "t1",
	origin: "human",
	tainted: false,
	person: "master",
	state: "pending",
	scope: null,
	createdAt: "2026-11-30T07:04:00.000Z",
	expiresAt: "2026-11-30T07:19:00.000Z",
	decidedAt: null,
	...change,
});

describe("approvals in a thread", () => {
	it("are those that wait in it, as they were asked for", () => {
		const all = [
			approval({ id: "late", createdAt: "2026-11-30T07:05:00.000Z" }),
			approval({ id: "b" }),
			approval({ id: "a" }),
			approval({ id: "elsewhere", conversation: "c2" }),
			approval({ id: "over", state: "expired" }),
		];
		expect(waitingIn(all, "c1").map(({ id }) => id)).toEqual(["a", "b", "late"]);
	});

	it("a decision is known from what a person typed", () => {
		expect(isDecision({ role: "user", clientId: "approval:1" })).toBe(true);
		expect(isDecision({ role: "user", clientId: "m-1" })).toBe(false);
		expect(isDecision({ role: "user", clientId: null })).toBe(false);
		expect(isDecision({ role: "assistant", clientId: "approval:1" })).toBe(false);
	});
});

describe("what became of a call that was put aside", () => {
	it("is the decision on exactly it, its own turn's first", () => {
		const all = [
			approval({ id: "later", turnId: "t2", arguments: { b: 2, a: 1 }, state: "pending" }),
			approval({ id: "mine", arguments: { a: 1, b: 2 }, state: "denied" }),
			approval({ id: "other", arguments: { a: 2 }, state: "allowed" }),
		];
		expect(decisionOn(all, "t1", "forget", '{"b":2,"a":1}')?.id).toBe("mine");
		expect(decisionOn(all, "t9", "forget", '{"b":2,"a":1}')?.id).toBe("later");
		expect(decisionOn(all, "t1", "write_file", '{"a":2}')).toBeNull();
		expect(decisionOn(all, "t1", "forget", "cut off {")).toBeNull();
	});
});
