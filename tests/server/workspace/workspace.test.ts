import { readdirSync, writeFileSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PathRefused, safeName } from "../../../server/workspace/names.ts";
import { WorkspaceConflict, WorkspaceRefused } from "../../../server/workspace/workspace.ts";
import { createTestWorkspace, type TestWorkspace } from "./helpers.ts";

let test: TestWorkspace;
beforeEach(async () => {
	test = await createTestWorkspace();
});
afterEach(() => test.remove());

const agent = { by: "agent", reason: "learned it" } as const;
const person = { by: "person", reason: "editor" } as const;

describe("a new home", () => {
	it("has closed folders and the first prompt files, short, in both languages", async () => {
		expect((await stat(test.home)).mode & 0o777).toBe(0o700);
		expect((await stat(test.at("SOUL.md"))).mode & 0o777).toBe(0o600);
		for (const locale of ["en", "zh-CN"] as const) {
			const one = await createTestWorkspace(locale);
			const { blocks, problems } = await one.workspace.prompt();
			expect(problems).toEqual([]);
			expect(blocks.map(({ name }) => name)).toEqual(["soul", "agent", "identity", "master"]);
			expect(blocks.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(1500);
			expect(blocks[1]?.text).toContain("## Tasks");
			expect(await readdir(join(one.home, "filter"))).toEqual(["house.txt"]);
			await one.remove();
		}
	});
	it("is never overwritten, and a file that was taken away stays away", async () => {
		await writeFile(test.at("SOUL.md"), "mine");
		await rm(test.at("MASTER.md"));
		await chmod(test.home, 0o755);
		expect((await test.again().ensure("zh-CN")).made).toEqual([]);
		expect(await readFile(test.at("SOUL.md"), "utf8")).toBe("mine");
		await expect(stat(test.at("MASTER.md"))).rejects.toThrow();
		expect((await stat(test.home)).mode & 0o777).toBe(0o700);
	});
});

describe("reading", () => {
	it("takes BOM, CRLF and bytes that are not text", async () => {
		await writeFile(test.at("Agent.md"), "\uFEFFone\r\ntwo\r\n");
		expect(await test.workspace.read("Agent.md")).toMatchObject({ text: "one\ntwo\n", problem: null });
		await writeFile(test.at("Agent.md"), Buffer.from([0x61, 0xff, 0x00, 0x62]));
		const damaged = await test.workspace.read("Agent.md");
		expect(damaged.text).toBe("a\uFFFDb");
		expect(damaged.problem).toContain("not text");
		await writeFile(test.at("Agent.md"), Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("你好\r\n", "utf16le")]));
		expect((await test.workspace.read("Agent.md")).text).toBe("你好\n");
	});
	it("a link out of the home or to nowhere is a problem of the file, never followed, and taken away without what it leads to", async () => {
		const outside = join(test.home, "..", `${Date.now()}-outside`);
		await mkdir(outside);
		await writeFile(join(outside, "SUMMARY.md"), "not ours");
		await symlink(join(outside, "SUMMARY.md"), test.at("away.md"));
		await symlink(join(outside, "none"), test.at("nowhere.md"));
		await symlink(test.at("loop.md"), test.at("loop.md"));
		await symlink(outside, test.at("folder"));
		for (const path of ["away.md", "nowhere.md", "loop.md", "folder/SUMMARY.md"]) {
			const file = await test.workspace.read(path);
			expect(file).toMatchObject({ exists: true, text: "", version: null });
			expect(file.problem).toContain("is a link that leads");
			await expect(test.workspace.update(path, () => "ours", agent)).rejects.toThrow(PathRefused);
		}
		expect(await test.workspace.list("folder")).toEqual([]);
		await expect(test.workspace.read("../outside")).rejects.toThrow(PathRefused);
		for (const path of ["away.md", "nowhere.md", "loop.md"]) expect(await test.workspace.remove(path)).toBe(true);
		expect(await test.workspace.remove("folder/SUMMARY.md")).toBe(false);
		expect((await test.workspace.read("away.md")).exists).toBe(false);
		expect(await readFile(join(outside, "SUMMARY.md"), "utf8")).toBe("not ours");
		await rm(outside, { recursive: true });
	});
	it("bytes that are not text are kept aside before they are written over", async () => {
		const gbk = Buffer.from([0x2d, 0x20, 0xce, 0xd2, 0xb5, 0xc4, 0x0a]);
		await writeFile(test.at("MASTER.md"), gbk);
		await test.workspace.update("MASTER.md", (text) => `${text}- more\n`, agent);
		expect(await readFile(test.at("MASTER.md"), "utf8")).toContain("- more");
		const folder = join(test.home, "backups", "damaged");
		const [kept] = await readdir(folder);
		expect(await readFile(join(folder, kept ?? ""))).toEqual(gbk);
		await test.workspace.update("MASTER.md", (text) => `${text}- again\n`, agent);
		expect(await readdir(folder)).toHaveLength(1);
	});
	it("names what is missing, empty, a folder or too large, and goes on with the rest", async () => {
		await rm(test.at("SOUL.md"));
		await writeFile(test.at("Agent.md"), "  \n");
		await rm(test.at("IDENTITY.md"));
		await mkdir(test.at("IDENTITY.md"));
		await writeFile(test.at("MASTER.md"), "x".repeat(5_000_000));
		const { blocks, problems } = await test.workspace.prompt();
		// Its beginning fills any window: the turn says so, instead of going on without it.
		expect(blocks.map(({ name, text }) => [name, text.length])).toEqual([["master", 4_000_000]]);
		expect(problems).toEqual([
			"SOUL.md is missing",
			"Agent.md is empty",
			"IDENTITY.md is a folder; it must be a file",
			expect.stringContaining("MASTER.md is too large"),
		]);
		await expect(test.workspace.write("IDENTITY.md", "x", agent)).rejects.toThrow(WorkspaceRefused);
	});
	it("sees an edit by hand at the next read", async () => {
		expect((await test.workspace.read("USER.md")).text).toBe("# People\n");
		await writeFile(test.at("USER.md"), "# Other\n");
		expect((await test.workspace.read("USER.md")).text).toBe("# Other\n");
	});
});

describe("writing", () => {
	it("keeps line ends and BOM, and leaves no temp file behind", async () => {
		await writeFile(test.at("Agent.md"), "\uFEFFone\r\n");
		await test.workspace.write("Agent.md", "one\ntwo\n", agent);
		expect(await readFile(test.at("Agent.md"), "utf8")).toBe("\uFEFFone\r\ntwo\r\n");
		expect((await readdir(test.at("."))).filter((name) => name.includes("tmp"))).toEqual([]);
	});
	it("lets the edit by hand win", async () => {
		const before = await test.workspace.read("Agent.md");
		await writeFile(test.at("Agent.md"), "by hand\n");
		const refusal = await test.workspace
			.write("Agent.md", "by the agent\n", { ...agent, base: before.version })
			.catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(WorkspaceConflict);
		expect((refusal as WorkspaceConflict).current).toBe((await test.workspace.read("Agent.md")).version);
		expect(await readFile(test.at("Agent.md"), "utf8")).toBe("by hand\n");
		await expect(test.workspace.write("new.md", "x", { ...person, base: "0123456789abcdef" })).rejects.toThrow(WorkspaceConflict);
		await test.workspace.write("new.md", "x", { ...person, base: null });
		await expect(test.workspace.write("new.md", "y", { ...person, base: null })).rejects.toThrow(WorkspaceConflict);
	});
	/** Resolves once the new file is being written beside the old one. */
	async function underWay(folder: string): Promise<void> {
		while (!readdirSync(folder).some((name) => name.endsWith(".tmp"))) await new Promise((resolve) => setImmediate(resolve));
	}
	it("lets an edit by hand win that comes while the new text is on its way to the disk", async () => {
		const before = await test.workspace.write("Agent.md", "one\n", person);
		const writing = test.workspace.write("Agent.md", "ours\n", { ...agent, base: before.version });
		const refused = expect(writing).rejects.toBeInstanceOf(WorkspaceConflict);
		await underWay(test.at("."));
		writeFileSync(test.at("Agent.md"), "by hand\n");
		await refused;
		expect(await readFile(test.at("Agent.md"), "utf8")).toBe("by hand\n");
		const updating = test.workspace.update("Agent.md", (text) => `${text}- ours\n`, agent);
		await underWay(test.at("."));
		writeFileSync(test.at("Agent.md"), "by hand again\n");
		await updating;
		expect(await readFile(test.at("Agent.md"), "utf8")).toBe("by hand again\n- ours\n");
		expect((await readdir(test.at("."))).filter((name) => name.endsWith(".tmp"))).toEqual([]);
	});
	it("without a base it replaces such an edit, and keeps it as a version", async () => {
		await test.workspace.write("Agent.md", "one\n", person);
		const writing = test.workspace.write("Agent.md", "ours\n", agent);
		await underWay(test.at("."));
		writeFileSync(test.at("Agent.md"), "by hand\n");
		await writing;
		const [newest, hand] = await test.workspace.versions("Agent.md");
		expect([newest?.by, hand?.by]).toEqual(["agent", "hand"]);
		expect((await test.workspace.readVersion("Agent.md", hand?.version ?? ""))?.text).toBe("by hand\n");
	});
	it.each([
		["plain", "one\ntwo\n"],
		["with a BOM in front of a BOM", "\uFEFF\uFEFFone\n"],
		["with a zero byte", "one\0two\n"],
		["with half a character", "one\uD800two\r\n"],
		["empty", ""],
	])("answers and remembers what a reader finds: %s", async (_name, text) => {
		await writeFile(test.at("Agent.md"), "\uFEFFwas\r\nthere\r\n");
		const answered = await test.workspace.write("Agent.md", text, person);
		expect(await test.workspace.read("Agent.md")).toEqual(answered);
		expect(await test.again().read("Agent.md")).toEqual(answered);
	});
	it("loses no change of many writers at once", async () => {
		await Promise.all(
			Array.from({ length: 20 }, (_, number) => test.workspace.update("Fact.md", (text) => `${text}- fact ${number}\n`, agent)),
		);
		const { text } = await test.workspace.read("Fact.md");
		expect(text.split("\n").filter((line) => line.startsWith("- fact"))).toHaveLength(20);
	});
	it("keeps SOUL.md for people, by every name and way", async () => {
		for (const path of ["SOUL.md", "./SOUL.md", "soul.md/../SOUL.md"])
			await expect(test.workspace.write(path, "evil", agent)).rejects.toThrow();
		await symlink("../SOUL.md", test.at("files/innocent.md"));
		await expect(test.workspace.write("files/innocent.md", "evil", agent)).rejects.toThrow(WorkspaceRefused);
		await expect(test.workspace.update("SOUL.md", () => "evil", { by: "program", reason: "?" })).rejects.toThrow(WorkspaceRefused);
		expect(await readFile(test.at("SOUL.md"), "utf8")).toContain("You are Lani");
		await test.workspace.write("SOUL.md", "mine\n", person);
		expect((await test.workspace.read("SOUL.md")).text).toBe("mine\n");
	});
	it("stays inside: no way up, no absolute path, no link that leads out", async () => {
		await symlink("/etc", test.at("files/etc"));
		await symlink("/nowhere/at/all", test.at("files/dangling"));
		for (const path of [
			"../config.yaml",
			"a/../../x",
			"/etc/passwd",
			"~/x",
			"files/etc/passwd",
			"files/dangling",
			"a\0b",
			"C:\\x",
			"files\\..\\..\\x",
		]) {
			if (/etc\/|dangling/.test(path) && !path.startsWith("/"))
				expect(await test.workspace.read(path), path).toMatchObject({ text: "", version: null });
			else await expect(test.workspace.read(path), path).rejects.toThrow(PathRefused);
			await expect(test.workspace.write(path, "x", person), path).rejects.toThrow(PathRefused);
			await expect(test.workspace.resolve(path), path).rejects.toThrow(PathRefused);
		}
	});
});

describe("versions", () => {
	it("say who, when, why, before and after, an edit by hand included, and can be put back", async () => {
		const first = (await test.workspace.read("MASTER.md")).text;
		await test.workspace.write("MASTER.md", "two\n", agent);
		await writeFile(test.at("MASTER.md"), "three, by hand\n");
		await test.workspace.write("MASTER.md", "four\n", person);
		const versions = await test.again().versions("MASTER.md");
		expect(versions.map(({ by, reason }) => [by, reason])).toEqual([
			["person", "editor"],
			["hand", "edited by hand"],
			["agent", "learned it"],
			["hand", "as it was at first"],
		]);
		expect(versions[0]?.before).toBe(versions[1]?.version);
		expect(versions[2]?.before).toBe(versions[3]?.version);
		expect(versions[2]?.at).toBeGreaterThan(0);
		expect((await test.workspace.readVersion("MASTER.md", versions[1]?.version ?? ""))?.text).toBe("three, by hand\n");
		await test.workspace.restore("MASTER.md", versions[3]?.version ?? "", person);
		expect((await test.workspace.read("MASTER.md")).text).toBe(first);
		expect(await test.workspace.restore("MASTER.md", "ffffffffffffffff", person)).toBeNull();
	});
	it("survive a damaged record, and are bounded", async () => {
		for (let number = 0; number < 205; number++) await test.workspace.write("USER.md", `${number}\n`, agent);
		const folder = join(test.home, "data", "versions", safeName("USER.md"));
		const names = (await readdir(folder)).sort();
		expect(names.length).toBe(200);
		await writeFile(join(folder, names.at(-1) ?? ""), "{torn");
		await truncate(join(folder, names.at(-2) ?? ""), 0);
		expect((await test.again().versions("USER.md")).length).toBeGreaterThan(190);
		await test.workspace.write("USER.md", "still works\n", agent);
	}, 60_000);
});

describe("damaged files", () => {
	const list = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : null);
	it("are moved aside and said, never taken for empty", async () => {
		await test.workspace.writeJson("conversations/a/Memory.json", [1]);
		expect(await test.workspace.readJson("conversations/a/Memory.json", list)).toEqual([1]);
		for (const damage of ["", '[{"id": 1', "{}", "\0\0\0"]) {
			await writeFile(test.at("conversations/a/Memory.json"), damage);
			expect(await test.workspace.readJson("conversations/a/Memory.json", list)).toBeNull();
			await expect(stat(test.at("conversations/a/Memory.json"))).rejects.toThrow();
		}
		const kept = await readdir(join(test.home, "backups", "damaged"));
		expect(kept).toHaveLength(4);
		expect(test.logged.filter(({ event }) => event === "workspace.quarantine")).toHaveLength(4);
		expect(await test.workspace.readJson("conversations/none/Memory.json", list)).toBeNull();
	});
});

describe("names for ids", () => {
	it("are safe, and never the same for two ids", () => {
		expect(safeName("master")).toBe("master");
		expect(safeName("group-12_a")).toBe("group-12_a");
		const ids = ["../x", "..", ".", "", "A", "a", "张三", "李四", "con", "a/b", "a-b", "x".repeat(300), "group:1", "-a"];
		const names = ids.map(safeName);
		expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length);
		for (const name of names) expect(name).toMatch(/^[a-z0-9][a-z0-9_.-]{0,79}$/);
	});
});
