import { describe, expect, it, vi } from "vitest";
import type { LiveFrame } from "../../../server/http/contract.ts";
import type { EventBus } from "../../../server/observe/bus.ts";
import { createBus } from "../../../server/observe/create-bus.ts";
import { standingClock, testHome } from "../../helpers/store.ts";

it("a disk that stays full is said once: what is said is an event itself and cannot be written either", async () => {
	const home = await testHome();
	const store = await home.open();
	let isFull = false;
	let tries = 0;
	const append: typeof store.events.append = async (rows) => {
		tries += 1;
		if (isFull) throw new Error("database or disk is full");
		await store.events.append(rows);
	};
	const said: string[] = [];
	const log = (message: string) =>
		bus.publish({ type: "log", level: "error", event: "test", message, conversation: null, turnId: null, data: {} });
	const bus = await createBus({
		events: { ...store.events, append },
		clock: standingClock(),
		messages: async () => new Map(),
		onError(error) {
			said.push((error as Error).message);
			log("bus.failed");
		},
	});
	try {
		for (const times of [1, 2]) {
			isFull = true;
			log("something");
			// Whatever is written next, too: the attempt after the one that was said.
			const before = tries;
			await vi.waitFor(() => expect(tries).toBeGreaterThanOrEqual(before + 2));
			log("something else");
			await vi.waitFor(() => expect(tries).toBeGreaterThanOrEqual(before + 3));
			expect(said).toHaveLength(times);
			isFull = false;
			log("again");
			await vi.waitFor(async () => expect((await store.events.list({ after: 0, limit: 100 })).length).toBe(times));
		}
	} finally {
		await bus.close();
		await store.close();
		await home.remove();
	}
});

describe("listeners", () => {
	const line = (message: string) =>
		({ type: "log", level: "info", event: "test", message, conversation: null, turnId: null, data: {} }) as const;
	const text = (frame: LiveFrame) => (frame.type === "log" ? frame.message : frame.type);

	async function withBus(work: (bus: EventBus) => Promise<void>): Promise<void> {
		const home = await testHome();
		const store = await home.open();
		const bus = await createBus({
			events: store.events,
			clock: standingClock(),
			messages: async () => new Map(),
			onError: () => undefined,
		});
		await work(bus);
		await bus.close();
		await store.close();
		await home.remove();
	}

	it("hear everything in order at the end of the round, what a listener says behind what was said before", () =>
		withBus(async (bus) => {
			const heard: string[] = [];
			bus.subscribe((frame) => {
				if (text(frame) === "one") bus.publish(line("said on hearing one"));
				bus.deliver();
			});
			bus.subscribe((frame) => void heard.push(`${frame.seq} ${text(frame)}`));
			const first = bus.publish(line("one")).seq;
			bus.publish(line("two"));
			expect(heard).toEqual([]);
			await new Promise((resolve) => setImmediate(resolve));
			expect(heard).toEqual([`${first} one`, `${first + 1} two`, `${first + 2} said on hearing one`]);
		}));

	it("hear it at once when that is asked for, and one that fails keeps it from nobody", () =>
		withBus(async (bus) => {
			const heard: string[] = [];
			bus.subscribe(() => {
				throw new Error("a listener's fault");
			});
			bus.subscribe((frame) => void heard.push(text(frame)));
			bus.publish(line("one"));
			bus.deliver();
			bus.publish(line("two"));
			bus.deliver();
			expect(heard).toEqual(["one", "two"]);
		}));

	it("hear only what is said after they came; a replay has what was said before it", () =>
		withBus(async (bus) => {
			const heard: string[] = [];
			const before = bus.seq();
			bus.publish(line("before"));
			bus.subscribe((frame) => void heard.push(text(frame)));
			bus.publish(line("after"));
			const { frames } = await bus.replay(before);
			expect(heard).toEqual(["after"]);
			expect(frames.map(text)).toEqual(["before", "after"]);
		}));
});
