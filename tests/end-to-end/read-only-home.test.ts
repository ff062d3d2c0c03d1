import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** Modes bind everybody but a root with its capabilities: as root the program is run as a root without any. */
const unprivileged = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] : [];
const probe = `new (require(${JSON.stringify(createRequire(import.meta.url).resolve("better-sqlite3"))}))(":memory:")`;
const [first = "", ...others] = [...unprivileged, process.execPath, "-e", probe];
const reads = spawnSync(first, others, { cwd: tmpdir() }).status === 0;

let dir: string;
let home: string;

function openlani(...argv: string[]): { code: number | null; out: string; err: string } {
	const [command = "", ...rest] = [...unprivileged, process.execPath, resolve("dist/server/main.js"), ...argv];
	const env = { PATH: process.env.PATH ?? "", HOME: dir, OPENLANI_HOME: home, TMPDIR: join(dir, "tmp"), LANG: "C.UTF-8" };
	const { status, stdout, stderr } = spawnSync(command, rest, { env, encoding: "utf8", input: "" });
	return { code: status, out: stdout, err: stderr };
}

async function protect(path: string, isProtected: boolean): Promise<void> {
	const { mode } = await stat(path);
	if ((await stat(path)).isDirectory()) {
		if (!isProtected) await chmod(path, mode | 0o200);
		for (const entry of await readdir(path)) await protect(join(path, entry), isProtected);
	}
	await chmod(path, isProtected ? mode & ~0o222 : mode | 0o200);
}

beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-read-only-"));
	home = join(dir, "home");
	await mkdir(join(dir, "tmp"));
	if (!reads) return;
	expect(openlani("run", "-q", "what time is it?").code).toBe(0);
	await rm(join(home, "data", "token"));
	await protect(home, true);
});
afterAll(async () => {
	await protect(home, false).catch(() => undefined);
	await rm(dir, { recursive: true, force: true });
});

describe.skipIf(!reads)("a home that can only be read", () => {
	it("is shown, reported, replayed and backed up, and nothing of it stays elsewhere", async () => {
		const shown = openlani("inspect", "--json");
		expect(shown).toMatchObject({ code: 0, err: "" });
		const facts = JSON.parse(shown.out) as { database: unknown; turns: { id: string }[] };
		expect(facts).toMatchObject({ database: { state: "ok", problem: null }, conversations: 1, turns: [{ state: "done" }] });
		const report = join(dir, "report.html");
		expect(openlani("report", "--out", report)).toMatchObject({ code: 0 });
		expect(await readFile(report, "utf8")).toContain("what time is it?");
		expect(openlani("replay", facts.turns[0]?.id ?? "")).toMatchObject({ code: 0 });
		const backup = join(dir, "backup.tgz");
		expect(openlani("backup", backup)).toMatchObject({ code: 0 });
		expect(openlani("restore", backup, "--home", join(dir, "other"))).toMatchObject({ code: 0 });
		expect(JSON.parse(openlani("inspect", "--json", "--home", join(dir, "other")).out)).toMatchObject({ turns: facts.turns });
		expect(await readdir(join(dir, "tmp"))).toEqual([]);
		expect((await readdir(dir)).filter((name) => name.startsWith("."))).toEqual([]);
	});

	it("is said to be so, with the place, by what has to write there", () => {
		const cannot = `The home ${home} cannot be written: this user has no right to write there`;
		for (const argv of [
			["run", "hi"],
			["serve", "--port", "0"],
			["init", "--yes"],
			["restore", join(dir, "backup.tgz"), "--force"],
		]) {
			const { code, err } = openlani(...argv);
			expect({ argv, code, err }).toEqual({ argv, code: 1, err: expect.stringContaining(cannot) });
		}
		const turn = (JSON.parse(openlani("inspect", "--json").out) as { turns: { id: string }[] }).turns[0]?.id ?? "";
		expect(openlani("token")).toMatchObject({ code: 1, err: expect.stringContaining(`none can be kept in ${home}`) });
		expect(openlani("replay", turn, "--model", "demo")).toMatchObject({ code: 1, err: expect.stringContaining("cannot be written") });
		expect(openlani("doctor", "--offline").out).toContain(`${home} cannot be written: this user has no right to write there`);
	});

	it("a file is not put where none can be, nor in the place of what is none", () => {
		for (const [target, why] of [
			[join(home, "out"), `Nothing can be written into the folder ${home}: this user has no right to write there`],
			[join(dir, "none", "out"), `There is no folder ${join(dir, "none")}.`],
			[dir, `${dir} is a folder`],
			["/dev/null", "/dev/null is no plain file"],
		] as const) {
			expect(openlani("backup", target, "--force")).toMatchObject({ code: 1, err: expect.stringContaining(why) });
			expect(openlani("report", "--out", target)).toMatchObject({ code: 1, err: expect.stringContaining(why) });
		}
	});
});
