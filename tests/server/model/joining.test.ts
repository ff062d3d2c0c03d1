import { describe, expect, it } from "vitest";
import { type Beat, createBeat } from "../../../server/model/beat.ts";
import { joining, type WireEvent } from "../../../server/model/joining.ts";

const text = (value: string): WireEvent => ({ type: "text", text: value });
const thought = (value: string): WireEvent => ({ type: "reasoning", text: value });

/** A beat that beats when it is told to. */
function byHand(): Beat & { beat(): void; readonly heard: number } {
	const listeners = new Set<() => void>();
	return {
		listen(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		beat() {
			for (const listener of listeners) listener();
		},
		get heard() {
			return listeners.size;
		},
	};
}

function open(beat: Beat) {
	const told: WireEvent[] = [];
	return { told, ...joining(beat, (event) => told.push(event)) };
}

describe("streamed text", () => {
	it("comes at once at first, what comes soon after it together, and the rest at the end", () => {
		const beat = byHand();
		const one = open(beat);
		one.emit(text("a"));
		expect(one.told).toEqual([text("a")]);
		for (const piece of ["b", "c", "d"]) one.emit(text(piece));
		expect(one.told).toEqual([text("a")]);
		one.end();
		expect(one.told).toEqual([text("a"), text("bcd")]);
		expect(beat.heard).toBe(0);
	});

	it("waits for a beat only as long as every beat brings some", () => {
		const beat = byHand();
		const one = open(beat);
		one.emit(text("a"));
		for (const piece of ["b", "c"]) {
			one.emit(text(piece));
			beat.beat();
			expect(one.told.at(-1)).toEqual(text(piece));
		}
		beat.beat();
		expect(beat.heard).toBe(0);
		one.emit(text("d"));
		expect(one.told.at(-1)).toEqual(text("d"));
		one.end();
		expect(one.told).toHaveLength(4);
		expect(beat.heard).toBe(0);
	});

	it("waits no longer than a beat", async () => {
		const one = open(createBeat(5, 5));
		one.emit(text("a"));
		one.emit(text("b"));
		one.emit(text("c"));
		await expect.poll(() => one.told).toEqual([text("a"), text("bc")]);
		one.end();
	});

	it("keeps its order; nothing but text waits", () => {
		const one = open(byHand());
		one.emit(thought("1"));
		one.emit(thought("2"));
		one.emit(text("a"));
		one.emit(text("b"));
		one.emit({ type: "void" });
		one.emit(text("c"));
		one.end();
		expect(one.told).toEqual([thought("1"), thought("2"), text("a"), text("b"), { type: "void" }, text("c")]);
	});
});

describe("a beat", () => {
	it("comes again and again", async () => {
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

	it("is one for all who listen, and goes on as long as somebody does", async () => {
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
});
