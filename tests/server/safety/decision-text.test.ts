import { describe, expect, it } from "vitest";
import { decisionText, readDecision } from "../../../server/safety/approvals.ts";

describe("a decision that is read again", () => {
	it.each(["en", "zh-CN"])("says what was decided on which call (%s)", (locale) => {
		for (const state of ["allowed", "denied"] as const) {
			const row = { tool: "write_file", arguments: '{"text":"one. Go on.\\ntwo"}', state };
			expect(readDecision(decisionText(row, locale))).toEqual({
				allowed: state === "allowed",
				tool: row.tool,
				arguments: row.arguments,
			});
		}
		expect(readDecision("Approved: so be it")).toBeNull();
	});
});
