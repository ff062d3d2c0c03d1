import { describe, expect, it } from "vitest";
import { recently } from "../../../server/model/recent.ts";
import { createTokenCounter } from "../../../server/model/tokens.ts";

const long = (letter: string) => letter.repeat(1_000);

describe("what was made of long texts", () => {
	it("is made once while it comes again, and the longest unasked goes first", () => {
		const made: string[] = [];
		const size = recently((text) => {
			made.push(text[0] ?? "");
			return text.length;
		}, 2_500);
		for (const letter of ["a", "b", "a", "c", "a", "b"]) expect(size(long(letter))).toBe(1_000);
		// c took the place of b, which had not been asked for since a.
		expect(made).toEqual(["a", "b", "c", "b"]);
		for (const letter of ["s", "s"]) size(letter);
		expect(made.slice(4)).toEqual(["s", "s"]);
	});

	it("weighs the same in parts as in one piece, also after a lesson", () => {
		const counter = createTokenCounter();
		const parts = [long("word "), "short", long("词"), "{}"];
		for (const actual of [0, 3_000]) {
			counter.learn("m", 1_000, actual);
			for (let again = 0; again < 2; again++) expect(counter.countParts("m", parts)).toBe(counter.count("m", parts.join("")));
		}
	});
});
