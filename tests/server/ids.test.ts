import { validate, version } from "uuid";
import { describe, expect, it } from "vitest";
import { createIds } from "../../server/ids.ts";

describe("ids", () => {
	it("are valid, never the same, and grow from call to call, also where the clock stands or goes back", () => {
		let at = 1_700_000_000_000;
		const newId = createIds(() => at);
		const made: string[] = [];
		for (let n = 0; n < 2000; n++) {
			if (n % 7 === 0) at += 1;
			if (n === 1000) at -= 60_000;
			made.push(newId());
		}
		expect(made.every((id) => validate(id) && version(id) === 7)).toBe(true);
		expect(new Set(made).size).toBe(made.length);
		expect([...made].sort()).toEqual(made);
	});

	it("of two makers in the same millisecond differ", () => {
		const one = createIds(() => 5);
		const other = createIds(() => 5);
		expect(new Set([...Array.from({ length: 100 }, one), ...Array.from({ length: 100 }, other)]).size).toBe(200);
	});
});
