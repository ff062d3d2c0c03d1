import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveBody } from "../../../server/http/contract.ts";
import { createLog, type LogOptions } from "../../../server/observe/log.ts";
import { createRedactor } from "../../../server/safety/redact.ts";

let dir: string;
beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-log-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

function make(change: Partial<LogOptions> = {}) {
	const lines: string[] = [];
	const log = createLog({
		dir,
		level: "info",
		quiet: false,
		clock: { now: () => Date.parse("2026-11-30T04:05:06Z") },
		redact: createRedactor(["canary-secret-1"]),
		console: { write: (text: string) => lines.push(text) },
		timezone: () => "Asia/Shanghai",
		...change,
	});
	return { log, lines };
}

const records = async (): Promise<Record<string, unknown>[]> =>
	(await readFile(join(dir, "openlani.log"), "utf8"))
		.trim()
		.split("\n")
		.map((line) => JSON.parse(line) as Record<string, unknown>);

describe("the log", () => {
	it("writes one readable line an event and the same as JSON", async () => {
		const { log, lines } = make();
		log.info("turn.done", { conversation: "c1", turnId: "t1", ms: 12, reply: "two\nlines\u001b[31m" });
		await log.close();
		expect(lines).toEqual(['12:05:06   turn.done conversation=c1 turnId=t1 ms=12 reply="two⏎lines�[31m"\n']);
		expect(await records()).toEqual([
			{
				level: "info",
				at: "2026-11-30T04:05:06.000Z",
				conversation: "c1",
				turnId: "t1",
				ms: 12,
				reply: "two\nlines\u001b[31m",
				event: "turn.done",
			},
		]);
	});

	it("writes lines of one moment together, in order, and what is wrong at once", async () => {
		const { log, lines } = make();
		log.info("one");
		log.info("two");
		expect(lines).toEqual([]);
		log.warn("three");
		expect(lines.join("")).toBe("12:05:06   one\n12:05:06   two\n12:05:06 ! three\n");
		log.info("four");
		await new Promise((resolve) => setImmediate(resolve));
		expect(lines.slice(1)).toEqual(["12:05:06   four\n"]);
		log.info("five");
		await log.close();
		log.info("six");
		expect(lines.slice(2)).toEqual(["12:05:06   five\n", "12:05:06   six\n"]);
	});

	it("obeys the level, and quiet keeps warnings on the console and everything in the file", async () => {
		const { log, lines } = make({ quiet: true });
		log.debug("no");
		log.info("file-only");
		log.warn("both");
		log.setLevel("error");
		log.warn("no");
		await log.close();
		expect(lines).toEqual(["12:05:06 ! both\n"]);
		expect((await records()).map((record) => record.event)).toEqual(["file-only", "both"]);
	});

	it("lets no secret through to console, file or bus", async () => {
		const { log, lines } = make();
		const frames: LiveBody[] = [];
		log.attach((body) => frames.push(body));
		log.child({ channel: "tg", token: "abc" }).error("failed canary-secret-1", {
			error: new Error("canary-secret-1"),
			url: "http://x.test/?key=canary-secret-1",
			message: "m canary-secret-1",
		});
		await log.close();
		const all = lines.join("") + JSON.stringify(frames) + (await readFile(join(dir, "openlani.log"), "utf8"));
		expect(all).not.toContain("canary");
		expect(all).not.toContain("abc");
		expect(frames).toMatchObject([
			{ type: "log", level: "error", event: "failed [redacted]", message: "m [redacted]", data: { channel: "tg", token: "[redacted]" } },
		]);
	});

	it("publishes with conversation and turn, and what publishing logs is not published again", async () => {
		const { log } = make();
		const frames: LiveBody[] = [];
		log.attach((body) => {
			frames.push(body);
			log.info("from-inside");
			throw new Error("listener");
		});
		log.info("x", { conversation: "c", turnId: "t", n: 1 });
		await log.close();
		expect(frames).toEqual([{ type: "log", level: "info", event: "x", message: "x", conversation: "c", turnId: "t", data: { n: 1 } }]);
	});

	it("keeps its files bounded", async () => {
		const { log } = make({ file: { maxBytes: 10_000, files: 3, delayMs: 1 }, console: null });
		await log.flush();
		for (let i = 0; i < 400; i += 1) {
			log.info("event", { text: "x".repeat(500), i });
			if (i % 10 === 0) await log.flush();
		}
		await log.close();
		const names = (await readdir(dir)).sort();
		expect(names).toEqual(["openlani.1.log", "openlani.2.log", "openlani.log"]);
		for (const name of names) expect((await stat(join(dir, name))).size).toBeLessThan(17_000);
		expect((await records()).at(-1)?.i).toBe(399);
	});

	it("survives a folder that cannot be written and counts what was lost", async () => {
		await writeFile(join(dir, "taken"), "");
		const { log, lines } = make({ dir: join(dir, "taken", "logs") });
		log.error("still-on-console");
		await log.flush();
		expect(lines).toHaveLength(1);
		expect(log.lost()).toBe(1);
		await log.close();
	});
});
