import { afterEach, describe, expect, it } from "vitest";
import { createLanes } from "../../../server/memory/lanes.ts";

let stop = new AbortController();
afterEach(() => {
	stop.abort();
	stop = new AbortController();
});

function open(patienceMs: number, answering: () => boolean) {
	let jobs = 0;
	const lanes = createLanes({
		count: 1,
		quietMs: 2,
		patienceMs,
		answering,
		signal: stop.signal,
		next: async () => {
			jobs++;
			return false;
		},
		failed: (error) => {
			throw error;
		},
	});
	return { lanes, jobs: () => jobs };
}

describe("background work", () => {
	it("waits while somebody waits for an answer", async () => {
		let isAnswering = true;
		let looks = 0;
		const { lanes, jobs } = open(1_000_000, () => {
			looks++;
			return isAnswering;
		});
		lanes.wake();
		await expect.poll(() => looks).toBeGreaterThan(5);
		expect(jobs()).toBe(0);
		isAnswering = false;
		await expect.poll(jobs).toBe(1);
		await lanes.ended();
	});

	it("that is put off again and again is done after a while, also where each look comes late", async () => {
		const { lanes, jobs } = open(20, () => {
			for (const until = Date.now() + 5; Date.now() < until; );
			return true;
		});
		lanes.wake();
		await expect.poll(jobs).toBe(1);
	});
});
