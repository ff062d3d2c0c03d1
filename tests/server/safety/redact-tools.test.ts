import { describe, expect, it } from "vitest";
import type { GateTurn } from "../../../server/agent/types.ts";
import { createRedactor } from "../../../server/safety/redact.ts";
import { redactTools } from "../../../server/safety/redact-tools.ts";
import type { Tool, ToolContext } from "../../../server/tools/tool.ts";

describe("tools behind the redactor", () => {
	it("answer without any secret and are otherwise the same", async () => {
		const tool: Tool = {
			name: "read_file",
			description: "d",
			parameters: { type: "object" },
			capability: "files",
			readOnly: true,
			effect: "none",
			run: async (args) => ({ text: `${args.path}: canary-secret-1`, isError: true, taint: "file" }),
		};
		const box = redactTools(
			{ list: () => [tool], get: (name) => (name === tool.name ? tool : undefined), gate: async () => "no" },
			createRedactor(["canary-secret-1"]),
		);
		expect(await box.get("read_file")?.run({ path: "a" }, {} as ToolContext)).toEqual({
			text: "a: [redacted]",
			isError: true,
			taint: "file",
		});
		expect(box.list()[0]).toBe(box.get("read_file"));
		expect(box.get("other")).toBeUndefined();
		expect(await box.gate?.({ id: "1", name: "x", arguments: "{}" }, {} as GateTurn)).toBe("no");
	});
});
