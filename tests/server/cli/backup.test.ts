import { mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import Database from "better-sqlite3";
import { create } from "tar";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unpackArchive, writeArchive } from "../../../server/cli/archive.ts";
import { lockHome } from "../../../server/workspace/lock.ts";
import { createTestProgram, type TestProgram } from "./helpers.ts";

let test: TestProgram;
let file: string;
beforeEach(async () => {
	test = await createTestProgram();
	file = join(test.root, "backup.tar.gz");
});
afterEach(() => test.remove());

describe("backup and restore", () => {
	it("bring the whole home back: talk, files, settings, secrets, while the daemon runs", async () => {
		await test.run(["init", "--yes"]);
		await writeFile(join(test.home, "config.yaml"), "agent: { maxSteps: 7 } # mine\n");
		const daemon = await test.daemon();
		await test.run(["run", "-q", "what time is it?"]);
		await writeFile(join(test.home, "workspace", "files", "note.txt"), "kept");
		await symlink("/etc/passwd", join(test.home, "workspace", "files", "link"));
		const token = (await test.run(["token"])).out;
		const made = await test.run(["backup", file]);
		expect(made.code).toBe(0);
		expect(made.err).toContain("1 link left out");
		expect((await stat(file)).mode & 0o777).toBe(0o600);
		await daemon.stop();
		const before = JSON.parse((await test.run(["inspect", "--json"])).out) as { turns: { id: string }[]; conversations: number };
		// Other commands are given a turn by its id: it must be read off here.
		const shown = (await test.run(["inspect"])).out;
		for (const { id } of before.turns) expect(shown).toContain(id);

		const other = join(test.root, "other");
		expect((await test.run(["restore", file, "--home", other])).code).toBe(0);
		const after = JSON.parse((await test.run(["inspect", "--json", "--home", other])).out) as { turns: unknown[]; conversations: number };
		expect(after.turns).toEqual(before.turns);
		expect(after.conversations).toBe(before.conversations);
		expect(before.turns).toHaveLength(1);
		expect(await readFile(join(other, "workspace", "files", "note.txt"), "utf8")).toBe("kept");
		expect(await readFile(join(other, "config.yaml"), "utf8")).toBe("agent: { maxSteps: 7 } # mine\n");
		expect((await test.run(["token", "--home", other])).out).toBe(token);
		expect((await stat(other)).mode & 0o777).toBe(0o700);
		expect((await stat(join(other, "data", "token"))).mode & 0o777).toBe(0o600);
		expect((await test.run(["run", "-q", "what time is it?", "--home", other])).code).toBe(0);
		expect((await readdir(join(test.home, "backups"))).filter((name) => name.startsWith("."))).toEqual([]);
	}, 60_000);

	it("refuse to overwrite without --force, and then keep what was there", async () => {
		await test.run(["init", "--yes"]);
		await test.run(["backup", file]);
		expect((await test.run(["backup", file])).err).toContain("--force");
		expect((await test.run(["backup", file, "--force"])).code).toBe(0);
		await writeFile(join(test.home, "workspace", "SOUL.md"), "newer");
		await writeFile(join(test.home, "backups", "old.txt"), "old backup");
		expect((await test.run(["restore", file])).err).toContain("is not empty");
		expect(await readFile(join(test.home, "workspace", "SOUL.md"), "utf8")).toBe("newer");
		expect((await test.run(["restore", file, "--force"])).code).toBe(0);
		expect(await readFile(join(test.home, "workspace", "SOUL.md"), "utf8")).toContain("You are Lani");
		expect(await readFile(join(test.home, "backups", "old.txt"), "utf8")).toBe("old backup");
		const aside = (await readdir(test.root)).find((name) => name.startsWith("home.before-restore-")) ?? "";
		expect(await readFile(join(test.root, aside, "workspace", "SOUL.md"), "utf8")).toBe("newer");
		expect((await readdir(test.root)).filter((name) => name.includes(".restore-"))).toEqual([]);
	});

	it("leave a home alone in which the daemon runs", async () => {
		await test.run(["init", "--yes"]);
		await test.run(["backup", file]);
		const lock = await lockHome(test.home);
		expect((await test.run(["restore", file, "--force"])).err).toContain("Stop it first");
		await lock.release();
	});

	it("refuse files that are torn, foreign or full of tricks, and change nothing", async () => {
		await test.run(["init", "--yes"]);
		await test.run(["backup", file]);
		const soul = await readFile(join(test.home, "workspace", "SOUL.md"), "utf8");
		const make = async (name: string, prepare: (folder: string) => Promise<string[]>, options: { preservePaths?: boolean } = {}) => {
			const folder = join(test.root, `make-${name}`);
			await mkdir(join(folder, "workspace"), { recursive: true });
			await writeFile(join(folder, "manifest.json"), '{"format":1,"version":"x","createdAt":"x","files":0}');
			const target = join(test.root, `${name}.tar.gz`);
			await create({ gzip: true, file: target, cwd: folder, ...options }, await prepare(folder));
			return target;
		};
		const torn = join(test.root, "torn.tar.gz");
		await writeFile(torn, await readFile(file));
		await truncate(torn, Math.floor((await stat(file)).size / 2));
		const empty = join(test.root, "empty.tar.gz");
		await writeFile(empty, "");
		const noise = join(test.root, "noise.tar.gz");
		await writeFile(noise, "no archive at all ".repeat(100));
		await writeFile(join(test.root, "outside.txt"), "x");
		const bad = [
			torn,
			empty,
			noise,
			await make("link", async (folder) => {
				await symlink("/etc", join(folder, "workspace", "files"));
				return ["manifest.json", "workspace"];
			}),
			await make("up", async () => ["manifest.json", "../outside.txt"], { preservePaths: true }),
			await make("absolute", async () => ["manifest.json", join(test.root, "outside.txt")], { preservePaths: true }),
			await make("foreign", async (folder) => {
				await writeFile(join(folder, "evil.sh"), "x");
				return ["manifest.json", "evil.sh"];
			}),
			await make("nameless", async () => ["workspace"]),
			await make("short", async (folder) => {
				await writeFile(join(folder, "manifest.json"), '{"format":1,"version":"x","createdAt":"x","files":3}');
				return ["manifest.json", "workspace"];
			}),
			await make("format", async (folder) => {
				await writeFile(join(folder, "manifest.json"), '{"format":99}');
				return ["manifest.json", "workspace"];
			}),
			await make("database", async (folder) => {
				await mkdir(join(folder, "data"));
				await writeFile(join(folder, "data", "openlani.db"), "not a database".repeat(100));
				return ["manifest.json", "data"];
			}),
		];
		for (const one of bad) {
			const { code, err } = await test.run(["restore", one, "--force"]);
			expect(code, one).toBe(1);
			expect(err, one).toContain("Nothing was changed");
		}
		expect(await readFile(join(test.home, "workspace", "SOUL.md"), "utf8")).toBe(soul);
		expect((await readdir(test.root)).filter((name) => name.includes("restore-"))).toEqual([]);
		await rm(test.home, { recursive: true });
		expect((await test.run(["restore", bad[0] ?? ""])).code).toBe(1);
		await expect(stat(test.home)).rejects.toThrow();
	}, 60_000);

	it("are of one moment, however busy the daemon is, and no attachment that the copy names is missing", async () => {
		const assets = join(test.home, "data", "assets");
		await mkdir(assets, { recursive: true });
		const busy = new Database(join(test.home, "data", "openlani.db"));
		busy.pragma("journal_mode = WAL");
		busy.exec("CREATE TABLE filler (x BLOB); CREATE TABLE message (asset TEXT)");
		for (let count = 0; count < 20; count += 1) busy.prepare("INSERT INTO filler VALUES (randomblob(1000000))").run();
		const insert = busy.prepare("INSERT INTO message VALUES (?)");
		let isMade = false;
		const making = writeArchive(test.home, file, { format: 1, version: "1", createdAt: "" }).finally(() => {
			isMade = true;
		});
		// As a message is stored: what it names first. No more than so many, or a copy that waits for silence would never end.
		let stored = 0;
		while (!isMade && stored < 2000) {
			stored += 1;
			await writeFile(join(assets, String(stored)), "");
			insert.run(String(stored));
		}
		await making;
		busy.close();
		const folder = join(test.root, "unpacked");
		await unpackArchive(file, folder);
		const copy = new Database(join(folder, "data", "openlani.db"), { readonly: true });
		const named = copy.prepare("SELECT asset FROM message").pluck().all() as string[];
		copy.close();
		expect(named.length).toBeLessThan(stored);
		const kept = new Set(await readdir(join(folder, "data", "assets")));
		expect(named.filter((name) => !kept.has(name))).toEqual([]);
	}, 60_000);
});
