import { describe, expect, it } from "vitest";
import { type Beat, createBeat } from "../../../server/model/beat.ts";
import type { ModelEvent } from "../../../server/model/model.ts";
import { type Emit, eventStream, type Halt } from "../../../server/model/stream.ts";

const text = (value: string): ModelEvent => ({ type: "text", text: value });
const restart: ModelEvent = { type: "restart", model: "m", reason: "r" };
/** Longer than any test: what waits for it would hang. */
const NEVER_MS = 1_000_000;

function open(joinMs: number | Beat, signal = new AbortController().signal) {
	let emit: Emit = () => {};
	let finish = (_error?: Error) => {};
	let halt: Halt | null = null;
	const stream = eventStream(
		signal,
		(send, halted) => {
			emit = send;
			halt = halted;
			return new Promise((resolve, reject) => {
				finish = (error) => (error ? reject(error) : resolve());
			});
		},
		typeof joinMs === "number" ? createBeat(joinMs, joinMs) : joinMs,
	);
	return { stream, emit: (event: ModelEvent) => emit(event), finish: (error?: Error) => finish(error), why: () => halt?.why ?? null };
}

const all = async (stream: AsyncIterable<ModelEvent>) => {
	const events: ModelEvent[] = [];
	for await (const event of stream) events.push(event);
	return events;
};

describe("a request's events", () => {
	it("begin with the first read", async () => {
		const { stream, why } = open(NEVER_MS);
		expect(why()).toBeNull();
		await stream.return?.();
		expect(await all(stream)).toEqual([]);
	});

	it("bring the first text at once, what comes soon after it together, and the rest before the end", async () => {
		const one = open(NEVER_MS);
		const first = one.stream.next();
		one.emit(text("a"));
		expect((await first).value).toEqual(text("a"));
		const second = one.stream.next();
		for (const piece of ["b", "c", "d"]) one.emit(text(piece));
		one.finish();
		expect((await second).value).toEqual(text("bcd"));
		expect((await one.stream.next()).done).toBe(true);
	});

	it("wait for a beat only as long as every beat brings some", async () => {
		const listeners = new Set<() => void>();
		const beat = () => {
			for (const listener of listeners) listener();
		};
		const one = open({
			listen: (listener) => {
				listeners.add(listener);
				return () => listeners.delete(listener);
			},
		});
		const read = async () => (await one.stream.next()).value;
		const first = read();
		one.emit(text("a"));
		expect(await first).toEqual(text("a"));
		for (const piece of ["b", "c"]) {
			const next = read();
			one.emit(text(piece));
			beat();
			expect(await next).toEqual(text(piece));
		}
		beat();
		expect(listeners.size).toBe(0);
		const last = read();
		one.emit(text("d"));
		expect(await last).toEqual(text("d"));
		one.finish();
		expect((await one.stream.next()).done).toBe(true);
		expect(listeners.size).toBe(0);
	});

	it("hear beat after beat", async () => {
		const beat = createBeat(2, 2);
		let beats = 0;
		await new Promise<void>((resolve) => {
			const leave = beat.listen(() => {
				if (++beats < 3) return;
				leave();
				resolve();
			});
		});
		expect(beats).toBe(3);
	});

	it("of several streams wait for one beat, which goes on as long as somebody listens", async () => {
		const beat = createBeat(5, 5);
		const order: string[] = [];
		const heard = (name: string) =>
			new Promise<() => void>((resolve) => {
				const leave = beat.listen(() => {
					order.push(name);
					resolve(leave);
				});
			});
		const [leaveFirst, leaveSecond] = await Promise.all([heard("a"), heard("b")]);
		expect(order).toEqual(["a", "b"]);
		leaveFirst();
		await heard("c").then((leave) => leave());
		leaveSecond();
		expect(order.slice(-2)).toEqual(["b", "c"]);
		await heard("d").then((leave) => leave());
		expect(order.at(-1)).toBe("d");
		expect(order.filter((name) => name === "a")).toHaveLength(1);
	});

	it("wait no longer than the time for joining", async () => {
		const one = open(5);
		const read = one.stream.next();
		one.emit(text("a"));
		await read;
		one.emit(text("b"));
		one.emit(text("c"));
		expect((await one.stream.next()).value).toEqual(text("bc"));
		one.finish();
	});

	it("keep their order; nothing but text waits", async () => {
		const one = open(NEVER_MS);
		const events = all(one.stream);
		one.emit({ type: "reasoning", text: "1" });
		one.emit({ type: "reasoning", text: "2" });
		one.emit(text("a"));
		one.emit(text("b"));
		one.emit(restart);
		one.emit(text("c"));
		one.finish();
		expect(await events).toEqual([
			{ type: "reasoning", text: "1" },
			{ type: "reasoning", text: "2" },
			text("a"),
			text("b"),
			restart,
			text("c"),
		]);
	});

	it("come before the failure that follows them", async () => {
		const one = open(NEVER_MS);
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
		const one = open(NEVER_MS);
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
		const one = open(NEVER_MS, controller.signal);
		const read = one.stream.next();
		controller.abort();
		expect(one.why()).toBe("stopped");
		one.finish(new Error("aborted"));
		await expect(read).rejects.toThrow("aborted");
	});
});
