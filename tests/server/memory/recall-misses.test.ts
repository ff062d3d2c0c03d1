import { describe, expect, it } from "vitest";
import { createExplainer } from "../../../bench/lib/misses.ts";

/** Vectors at angles of our own: what is near to the question is known. */
const angles: Record<string, number> = {
	"Where does Priya live?": 0,
	"Priya has a cat": 10,
	"Priya likes tea": 20,
	"Priya has moved to Delft": 60,
	"The wireless code is zebra": 80,
};
const embed = async (texts: string[]) =>
	texts.map((text) => [Math.cos(((angles[text] as number) * Math.PI) / 180), Math.sin(((angles[text] as number) * Math.PI) / 180)]);
const memories = Object.keys(angles).slice(1);
const parts = {
	memories,
	cutter: () => null,
	vectors: "meaning" as const,
	embed,
	semantic: 2,
	keyword: 2,
	brought: async () => [{ text: "Priya has a cat", by: "semantic" as const }],
	byWords: async () => ["Priya has a cat", "Priya likes tea", "Priya has moved to Delft"],
};

describe("why an answer was not brought", () => {
	it("is told by its measured rank and distance by meaning and by words", async () => {
		const explain = await createExplainer(parts);
		// cos 20° - cos 60° = 0.44
		expect(await explain("Where does Priya live?", "Priya has moved to Delft")).toBe(
			"rank 3 by meaning, 0.440 under number 2; rank 3 by words",
		);
		// cos 20° - cos 80° = 0.77
		expect(await explain("Where does Priya live?", "The wireless code is zebra")).toBe(
			"rank 4 by meaning, 0.766 under number 2; no word in common",
		);
	});

	it("says which word is shared, and that a near one was not close enough", async () => {
		const explain = await createExplainer({ ...parts, byWords: async () => [], brought: async () => [] });
		expect(await explain("Where does Priya live?", "Priya likes tea")).toBe(
			'rank 2 by meaning (0.940), but the half brought nothing: none is close enough; no rare word in common ("priya" is in 3 of 4 memories)',
		);
		const wide = await createExplainer({
			...parts,
			memories: [...memories, ...Array.from({ length: 60 }, (_, at) => `filler ${at}`)],
			embed: async (texts) => texts.map(() => [1, 0]),
			semantic: 0,
			byWords: async () => [],
		});
		expect(await wide("zebra?", "The wireless code is zebra")).toBe(
			'one rare word in common ("zebra", in 1 of 64 memories) is too little of the question',
		);
	});
});
