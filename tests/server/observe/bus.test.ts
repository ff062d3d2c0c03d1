import { expect, it, vi } from "vitest";
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
