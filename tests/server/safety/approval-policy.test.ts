import { describe, expect, it } from "vitest";
import { policyFor, settingFor } from "../../../server/safety/approval-policy.ts";

const own = { tier: "master" as const, origin: "human" as const, tainted: [] };

describe("safety.approvals.tools", () => {
	it("names tools, or many by a pattern; what says more goes first", () => {
		const settings = { "files__*": "ask", "files__read*": "allow", files__read_all: "deny", "*_end": "deny", "a*b*c": "ask" } as const;
		for (const [tool, setting] of [
			["files__write", "ask"],
			["files__read_one", "allow"],
			["files__read_all", "deny"],
			["files_write", null],
			["the_end", "deny"],
			["the_ending", null],
			["abc", "ask"],
			["a1b2b3c", "ask"],
			["acb", null],
			["ab", null],
			["constructor", null],
		] as const)
			expect([tool, settingFor(tool, settings)]).toEqual([tool, setting]);
	});

	it("deny and ask hold in every turn; allow lifts what a tool asks for in the master's own turn alone", () => {
		const forget = { name: "forget", approval: "ask" as const };
		const now = { name: "now" };
		const others = [
			{ ...own, tier: "trusted" as const },
			{ ...own, origin: "alarm" as const },
			{ ...own, tainted: ["a page"] },
		];
		expect(policyFor(forget, {}, own)).toBe("ask");
		expect(policyFor(now, {}, own)).toBe("allow");
		expect(policyFor(forget, { forget: "allow" }, own)).toBe("allow");
		for (const turn of others) expect(policyFor(forget, { forget: "allow" }, turn)).toBe("ask");
		for (const turn of [own, ...others]) {
			expect(policyFor(now, { now: "ask" }, turn)).toBe("ask");
			expect(policyFor(forget, { forget: "deny" }, turn)).toBe("deny");
			expect(policyFor({ name: "finish" }, { "*": "deny" }, turn)).toBe("allow");
		}
	});
});
