import { describe, expect, it } from "vitest";
import { canonicalArguments, checkArguments, signature } from "../../../server/agent/arguments.ts";

const schema = {
	name: "t",
	description: "",
	parameters: {
		type: "object",
		properties: {
			path: { type: "string" },
			offset: { type: "integer", minimum: 1 },
			mode: { type: "string", enum: ["a", "b"] },
			items: {
				type: "array",
				items: { type: "object", properties: { text: { type: "string" }, done: { type: "boolean" } }, required: ["text"] },
			},
			any: { anyOf: [{ type: "number" }, { type: "null" }] },
		},
		required: ["path"],
	},
};
const check = (args: unknown, more = {}) =>
	checkArguments({ id: "1", name: "t", arguments: typeof args === "string" ? args : JSON.stringify(args), ...more }, schema);

describe("arguments", () => {
	it("shows how a tool is called", () => {
		expect(signature(schema)).toBe(
			't(path: string, offset?: integer, mode?: "a" | "b", items?: [{text: string, done?: boolean}], any?: number | null)',
		);
	});

	it.each([
		["{", "not valid JSON"],
		["[1]", "one JSON object"],
		["", "missing argument path"],
		[{ path: 1 }, "path must be string"],
		[{ path: "x", offset: 0 }, "at least 1"],
		[{ path: "x", offset: 1.5 }, "offset must be integer"],
		[{ path: "x", mode: "c" }, 'mode must be "a" | "b"'],
		[{ path: "x", items: [{ done: true }] }, "missing argument items[0].text"],
		[{ path: "x", extra: 1 }, "unknown argument extra"],
		[{ path: null }, "path must be string"],
	])("refuses %j", (args, problem) => {
		expect(check(args)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
	});

	it("never runs what was cut, even if it can be read", () => {
		expect(check({ path: "x" }, { truncated: true })).toMatchObject({ ok: false });
	});

	it("takes numbers written as text and leaves out nulls", () => {
		expect(check({ path: "x", offset: "3", mode: null, any: null })).toEqual({ ok: true, args: { path: "x", offset: 3, any: null } });
	});

	it("does not let an argument touch the prototype", () => {
		const free = { name: "f", description: "", parameters: { type: "object" } };
		const checked = checkArguments({ id: "1", name: "f", arguments: '{"__proto__":{"x":1}}' }, free);
		expect(checked.ok && Object.getPrototypeOf(checked.args)).toBe(Object.prototype);
	});

	it("sees through the order of keys", () => {
		expect(canonicalArguments('{"b":1,"a":{"d":1,"c":2}}')).toBe(canonicalArguments('{"a":{"c":2,"d":1}, "b":1}'));
	});
});
