import { execFileSync } from "node:child_process";
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	realpathSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorkArea, pathParts, type WorkArea } from "../../../server/tools/work-area.ts";

let home: string;
let root: string;
let area: WorkArea;

beforeEach(() => {
	home = realpathSync(mkdtempSync(join(tmpdir(), "area-")));
	root = join(home, "files");
	mkdirSync(root);
	writeFileSync(join(home, "secret.txt"), "SECRET");
	mkdirSync(join(home, "outside"));
	writeFileSync(join(home, "outside", "secret.txt"), "SECRET");
	area = createWorkArea(root);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function read(path: string): Promise<string> {
	const file = await area.open(path);
	try {
		return await file.handle.readFile("utf8");
	} finally {
		await file.handle.close();
	}
}

describe("paths", () => {
	it.each([
		"../secret.txt",
		"a/../../secret.txt",
		"a/..",
		"/etc/passwd",
		"/proc/self/environ",
		"~/x",
		"~",
		"~root/x",
		"a\0b",
		"C:\\x",
		`${"x".repeat(300)}/a`,
	])("refuses %j", (path) => {
		expect(() => pathParts(path)).toThrow();
	});
	it("takes ordinary ones, odd names included", () => {
		expect(pathParts("./a//b/./c.txt")).toEqual(["a", "b", "c.txt"]);
		expect(pathParts("笔记/…/~draft.md")).toEqual(["笔记", "…", "~draft.md"]);
	});
});

describe("links", () => {
	it.each([
		["file", "../secret.txt"],
		["absolute", "/etc/passwd"],
		["dangling", "../not-there.txt"],
		["inside", "real.txt"],
		["process", "/proc/self/environ"],
	])("a link to a file is neither read nor written through (%s)", async (_kind, target) => {
		writeFileSync(join(root, "real.txt"), "real");
		symlinkSync(target, join(root, "link"));
		await expect(area.open("link")).rejects.toThrow("link");
		await expect(area.write("link", "x")).rejects.toThrow("link");
		expect(existsSync(join(home, "not-there.txt"))).toBe(false);
		expect(readFileSync(join(home, "secret.txt"), "utf8")).toBe("SECRET");
	});

	it.each(["../outside", "/etc", "/proc/self", "../gone"])("a link to the directory %s is not entered", async (target) => {
		symlinkSync(target, join(root, "dir"));
		await expect(area.open("dir/secret.txt")).rejects.toThrow("links are not followed");
		await expect(area.list("dir")).rejects.toThrow("links are not followed");
		await expect(area.write("dir/new/evil.txt", "x")).rejects.toThrow("links are not followed");
		expect(readdirSync(join(home, "outside"))).toEqual(["secret.txt"]);
		expect(existsSync(join(home, "gone"))).toBe(false);
	});

	it("swapped in while files are read and written never lead outside", async () => {
		mkdirSync(join(root, "d"));
		writeFileSync(join(root, "d", "secret.txt"), "inside");
		let going = true;
		symlinkSync("../outside", join(root, "link"));
		const swapper = (async () => {
			while (going) {
				await rename(join(root, "d"), join(root, "real"));
				// A write may have made a new `d` in the gap: it is taken away and the swap tried again.
				while (
					await rename(join(root, "link"), join(root, "d")).then(
						() => false,
						() => true,
					)
				)
					rmSync(join(root, "d"), { recursive: true, force: true });
				await rename(join(root, "d"), join(root, "link"));
				while (
					await rename(join(root, "real"), join(root, "d")).then(
						() => false,
						() => true,
					)
				)
					rmSync(join(root, "d"), { recursive: true, force: true });
			}
		})();
		const seen = new Set<string>();
		for (let round = 0; round < 150; round++) {
			await read("d/secret.txt").then(
				(text) => seen.add(text),
				() => seen.add("refused"),
			);
			await area.write("d/mine.txt", String(round)).catch(() => {});
		}
		going = false;
		await swapper;
		expect(seen).not.toContain("SECRET");
		expect(readdirSync(join(home, "outside"))).toEqual(["secret.txt"]);
	});
});

describe("what is no file", () => {
	it("is refused at once: directories, pipes, devices", async () => {
		mkdirSync(join(root, "dir"));
		execFileSync("mkfifo", [join(root, "pipe")]);
		await expect(area.open("dir")).rejects.toThrow("is a directory");
		await expect(area.open("pipe")).rejects.toThrow("pipe");
		await expect(area.write("pipe", "x")).rejects.toThrow("pipe");
		await expect(area.write("dir", "x")).rejects.toThrow("directory");
		await expect(area.open("")).rejects.toThrow("work area itself");
		await expect(area.open("nope")).rejects.toThrow("There is no file nope");
		await expect(area.list("nope")).rejects.toThrow("There is no directory nope");
		if (process.getuid?.() === 0) {
			try {
				execFileSync("mknod", [join(root, "null"), "c", "1", "3"], { stdio: "ignore" });
			} catch {
				return; // No right to make devices here; the pipe stands for them.
			}
			await expect(area.open("null")).rejects.toThrow("device");
		}
	});
});

describe("writing", () => {
	it("is whole or not at all, keeps the mode, leaves nothing behind", async () => {
		expect(await area.write("a/b/c.txt", "one")).toEqual({ path: "a/b/c.txt", created: true });
		chmodSync(join(root, "a/b/c.txt"), 0o640);
		expect(await area.write("./a/b/c.txt", "two")).toEqual({ path: "a/b/c.txt", created: false });
		expect(await read("a/b/c.txt")).toBe("two");
		expect(statSync(join(root, "a/b/c.txt")).mode & 0o777).toBe(0o640);
		expect(readdirSync(join(root, "a/b"))).toEqual(["c.txt"]);
	});

	it("is refused when the file changed since it was read", async () => {
		await area.write("x.txt", "one");
		const file = await area.open("x.txt");
		await area.write("x.txt", "by hand");
		await expect(area.write("x.txt", "two", { unchanged: file })).rejects.toThrow("changed meanwhile");
		await file.handle.close();
		expect(await read("x.txt")).toBe("by hand");
		expect(readdirSync(root)).toEqual(["x.txt"]);
	});

	it("makes the work area when it is not there yet", async () => {
		rmSync(root, { recursive: true });
		expect(await area.list("")).toEqual([]);
		await area.write("first.txt", "x");
		expect(await read("first.txt")).toBe("x");
	});

	it("leaves no descriptor open", async () => {
		const open = () => readdirSync("/proc/self/fd").length;
		await area.write("d/x.txt", "x");
		const before = open();
		for (let round = 0; round < 30; round++) {
			await read("d/x.txt");
			await area.write("d/x.txt", "y");
			await area.list("d");
			await area.open("none/x").catch(() => {});
			await area.open("d").catch(() => {});
			await area.write("d/x.txt/y", "z").catch(() => {});
		}
		expect(open()).toBeLessThanOrEqual(before + 2);
	});
});
