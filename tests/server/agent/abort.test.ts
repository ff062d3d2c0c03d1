import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { anyOf } from "../../../server/agent/abort.ts";

const aborted = (signal: AbortSignal) => new Promise<unknown>((resolve) => signal.addEventListener("abort", () => resolve(signal.reason)));

describe("one signal of several", () => {
	it("aborts with the first, with its reason", () => {
		const [one, two] = [new AbortController(), new AbortController()];
		const both = anyOf([one.signal, two.signal]);
		expect(both.signal.aborted).toBe(false);
		two.abort("shutdown");
		one.abort("later");
		expect(both.signal.reason).toBe("shutdown");
	});

	it("is aborted at once when one is already", () => {
		const { signal } = anyOf([new AbortController().signal, AbortSignal.abort("before")]);
		expect(signal.reason).toBe("before");
	});

	it("aborts after the limit", async () => {
		expect(await aborted(anyOf([], 1).signal)).toMatchObject({ name: "TimeoutError" });
	});

	it("leaves nothing behind once it has ended", () => {
		const long = new AbortController();
		for (let turn = 0; turn < 20; turn++) anyOf([long.signal], 60_000).end();
		expect(getEventListeners(long.signal, "abort")).toEqual([]);
		const ended = anyOf([long.signal]);
		ended.end();
		long.abort();
		expect(ended.signal.aborted).toBe(false);
	});
});
