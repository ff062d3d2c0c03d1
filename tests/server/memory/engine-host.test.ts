import { afterEach, describe, expect, it } from "vitest";
import { createEngineHost } from "../../../server/memory/engine-host.ts";
import { openMemory, privately, start, type TestMemory } from "./setup.ts";

const open: TestMemory[] = [];
afterEach(async () => {
	for (const one of open) await one.close();
	for (const one of open.splice(0)) await one.remove();
});

const alive = (pid: number): boolean => {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
};
async function until(what: () => boolean): Promise<void> {
	for (let tries = 0; tries < 500 && !what(); tries++) await new Promise((resolve) => setTimeout(resolve, 20));
	expect(what()).toBe(true);
}

describe("the search engine's process", () => {
	it("starts at the first question, ends when idle, begins anew when it died, and ends with the memory", async () => {
		let host: ReturnType<typeof createEngineHost> | null = null;
		const log = { info: () => undefined, warn: () => undefined };
		const test = await openMemory({
			engine: (options) => {
				host = createEngineHost({ ...options, log, idleMs: 200, answerMs: 30_000 });
				return host;
			},
		});
		open.push(test);
		const pid = () => host?.pid() ?? null;
		await test.memory.importEntries([
			{ text: "The boat is named Albatross", at: start },
			{ text: "船的名字叫信天翁", at: start },
		]);
		await test.memory.settled();
		expect(pid()).toBeNull();
		expect((await test.memory.recall(privately(), "boat Albatross")).map((one) => one.text)).toContain("The boat is named Albatross");
		const first = pid() as number;
		expect(alive(first)).toBe(true);
		await until(() => pid() === null && !alive(first));
		expect((await test.memory.recall(privately(), "信天翁")).map((one) => one.text)).toContain("船的名字叫信天翁");
		const second = pid() as number;
		process.kill(second, "SIGKILL");
		await until(() => !alive(second) && pid() === null);
		expect(await test.memory.recall(privately(), "boat Albatross")).not.toEqual([]);
		const third = pid() as number;
		await test.close();
		await until(() => !alive(third));
	}, 60_000);
});
