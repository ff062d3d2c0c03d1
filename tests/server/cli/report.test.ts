import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import SQLite from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { CliError, type Command, type Io, readInput } from "../../../server/cli/command.ts";
import { command as replay } from "../../../server/cli/replay.ts";
import { command as report } from "../../../server/cli/report.ts";
import { readEnvironment } from "../../../server/config/environment.ts";
import { recordTurn } from "../observe/recorded-turn.ts";

let recorded: Awaited<ReturnType<typeof recordTurn>> | null = null;
afterEach(async () => {
	await recorded?.close();
	recorded = null;
});

async function run(command: Command, home: string, argv: string[]): Promise<{ code: number; out: string; err: string }> {
	const [stdout, stderr] = [new PassThrough(), new PassThrough()];
	const io: Io = {
		environment: readEnvironment({ TZ: "Asia/Shanghai", LANG: "en_US.UTF-8" }, { home }),
		stdin: new PassThrough(),
		stdout,
		stderr,
		signal: AbortSignal.timeout(30_000),
		startDaemon: () => Promise.reject(new Error("not needed")),
		version: "0",
	};
	const code = await command.run(io, readInput(command, argv, "en"));
	return { code, out: String(stdout.read() ?? ""), err: String(stderr.read() ?? "") };
}

const record = () =>
	recordTurn({
		said: "Read it",
		answers: [{ calls: [["read_file", { path: "a" }]] }, { text: "It says hello." }],
		tools: { read_file: () => "hello" },
	});

describe("a database of an older version, which a daemon may be using", () => {
	it("is left as it is, and said", async () => {
		recorded = await record();
		const file = join(recorded.home, "data", "openlani.db");
		const raw = new SQLite(file);
		raw.pragma("user_version = 4");
		await expect(run(report, recorded.home, [])).rejects.toThrow(/older version/);
		await expect(run(replay, recorded.home, ["turn-1"])).rejects.toThrow(/older version/);
		expect(raw.pragma("user_version", { simple: true })).toBe(4);
		raw.close();
	});
});

describe("openlani report", () => {
	it("writes a turn into a file and prints a day", async () => {
		recorded = await record();
		const out = join(recorded.home, "turn.html");
		expect((await run(report, recorded.home, ["--turn", "turn-1", "--out", out])).code).toBe(0);
		expect(await readFile(out, "utf8")).toMatch(/^<!doctype html>[\s\S]*It says hello\./);
		const day = await run(report, recorded.home, ["--day", "2026-11-30", "--out", "-", "--language", "zh-CN"]);
		expect(day.out).toContain("日报 2026-11-30");
		expect(day.out).toContain("It says hello.");
	});

	it("says what is wrong with a turn, a day or a home that is not there", async () => {
		recorded = await record();
		const { home } = recorded;
		await expect(run(report, home, ["--turn", "nowhere"])).rejects.toThrow(CliError);
		await expect(run(report, home, ["--day", "2026-13-45"])).rejects.toThrow(/is no day/);
		await expect(run(report, home, ["--day", "2026-11-30", "--turn", "x"])).rejects.toThrow(/exclude/);
		const empty = await mkdtemp(join(tmpdir(), "openlani-empty-"));
		await expect(run(report, empty, [])).rejects.toThrow(/no database/);
		await rm(empty, { recursive: true });
	});
});

describe("openlani replay", () => {
	it("finds nothing that differs, and shows another model beside the recording with its cost", async () => {
		recorded = await record();
		const same = await run(replay, recorded.home, ["turn-1"]);
		expect(same).toMatchObject({ code: 0, out: "" });
		expect(same.err).toContain("The same in all 2 steps.");
		const other = await run(replay, recorded.home, ["turn-1", "--model", "demo"]);
		expect(other.code).toBe(0);
		expect(other.out).toMatch(/then {2}some-model: done, 240 \+ 60 tokens, 0\.00036/);
		expect(other.out).toMatch(/now {3}\S+: done, /);
		const json = JSON.parse((await run(replay, recorded.home, ["turn-1", "--json"])).out) as { differences: unknown[] };
		expect(json.differences).toEqual([]);
		await expect(run(replay, recorded.home, ["turn-1", "--model", "no-such"])).rejects.toThrow(/no model/);
		await expect(run(replay, recorded.home, ["nowhere"])).rejects.toThrow(/no turn/);
	});
});
