import { describe, expect, it } from "vitest";
import type { ModelEvent } from "../../../server/model/model.ts";
import { type Emit, eventStream, type Halt } from "../../../server/model/stream.ts";

const text = (value: string): ModelEvent => ({ type: "text", text: value });
const restart: ModelEvent = { type: "restart", model: "m", reason: "r" };

function open(signal = new AbortController().signal) {
	let emit: Emit = () => {};
	let finish = (_error?: Error) => {};
	let halt: Halt | null = null;
	const stream = eventStream(signal, (send, halted) => {
		emit = send;
		halt = halted;
		return new Promise((resolve, reject) => {
			finish = (error) => (error ? reject(error) : resolve());
		});
	});
	return { stream, emit: (event: ModelEvent) => emit(event), finish: (error?: Error) => finish(error), why: () => halt?.why ?? null };
}

const all = async (stream: AsyncIterable<ModelEvent>) => {
	const events: ModelEvent[] = [];
	for await (const event of stream) events.push(event);
	return events;
};

describe("a request's events", () => {
	it("begin with the first read", async () => {
		const { stream, why } = open();
		expect(why()).toBeNull();
		await stream.return?.();
		expect(await all(stream)).toEqual([]);
	});

	it("keep their order, whoever is quicker", async () => {
		const one = open();
		const first = one.stream.next();
		one.emit(text("a"));
		one.emit(restart);
		one.emit(text("b"));
		expect((await first).value).toEqual(text("a"));
		one.finish();
		expect(await all(one.stream)).toEqual([restart, text("b")]);
	});

	it("come before the failure that follows them", async () => {
		const one = open();
		const read = one.stream.next();
		one.emit(text("a"));
		one.emit(text("b"));
		one.finish(new Error("broken"));
		expect((await read).value).toEqual(text("a"));
		expect((await one.stream.next()).value).toEqual(text("b"));
		await expect(one.stream.next()).rejects.toThrow("broken");
		expect((await one.stream.next()).done).toBe(true);
	});

	it("a reader that goes away halts whoever makes them, and waits for their end", async () => {
		const one = open();
		const read = one.stream.next();
		one.emit(text("a"));
		await read;
		let gone = false;
		const left = one.stream.return?.()?.then(() => {
			gone = true;
		});
		expect(one.why()).toContain("not read");
		await Promise.resolve();
		expect(gone).toBe(false);
		one.emit(text("b"));
		one.finish(new Error("halted"));
		await left;
		expect((await one.stream.next()).done).toBe(true);
	});

	it("the signal halts them", async () => {
		const controller = new AbortController();
		const one = open(controller.signal);
		const read = one.stream.next();
		controller.abort();
		expect(one.why()).toBe("stopped");
		one.finish(new Error("aborted"));
		await expect(read).rejects.toThrow("aborted");
	});
});
