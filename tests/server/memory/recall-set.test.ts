import { describe, expect, it } from "vitest";
import { recallSet } from "../../../bench/memory-set.ts";
import { openMemory, privately } from "./setup.ts";

describe("the recall set", () => {
	it("is large enough, and 2 + 2 without any model find well over what a plain top 10 would", async () => {
		const { memories, questions } = recallSet();
		expect(questions.length).toBeGreaterThanOrEqual(60);
		expect(memories.length).toBeGreaterThanOrEqual(500);
		const test = await openMemory();
		try {
			await test.memory.importEntries(memories);
			await test.memory.settled();
			let found = 0;
			for (const { question, answer } of questions) {
				const recalled = await test.memory.recall(privately(), question);
				expect(recalled.filter((one) => one.by === "semantic").length).toBeLessThanOrEqual(2);
				expect(recalled.filter((one) => one.by === "keyword").length).toBeLessThanOrEqual(2);
				if (recalled.some((one) => one.text === answer)) found++;
			}
			expect(found / questions.length).toBeGreaterThanOrEqual(0.85);
		} finally {
			await test.remove();
		}
	}, 60_000);
});
