import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBuiltinTools } from "../../../server/tools/tool-box.ts";
import { caller } from "./context.ts";

let root: string;
let use: ReturnType<typeof caller>;
const put = (path: string, data: string | Uint8Array) => {
	mkdirSync(join(root, path, ".."), { recursive: true });
	writeFileSync(join(root, path), data);
};
const get = (path: string) => readFileSync(join(root, path), "utf8");

beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), "files-"));
	use = caller(createBuiltinTools({ files: root, keep: () => Promise.reject(new Error("unused")) }));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("read_file", () => {
	it("gives small files as they are, byte for byte", async () => {
		put("a.txt", "one\n\ttwo  \nthree");
		expect(await use("read_file", { path: "a.txt" })).toEqual({ text: "one\n\ttwo  \nthree", taint: "file:a.txt" });
		put("empty", "");
		expect((await use("read_file", { path: "empty" })).text).toBe("(empty file)");
	});

	it("counts lines from 1 and tells where to go on", async () => {
		put("n.txt", Array.from({ length: 1_200 }, (_, n) => `line ${n + 1}`).join("\n"));
		const first = (await use("read_file", { path: "n.txt" })).text;
		expect(first.startsWith("line 1\n")).toBe(true);
		expect(first).toMatch(/line 500\n\[lines 1-500 of 1200; next offset 501\]$/);
		expect((await use("read_file", { path: "n.txt", offset: 1_199 })).text).toBe("line 1199\nline 1200\n[lines 1199-1200 of 1200]");
		expect((await use("read_file", { path: "n.txt", offset: 2, limit: 1 })).text).toBe("line 2\n[lines 2-2 of 1200; next offset 3]");
		expect(await use("read_file", { path: "n.txt", offset: 1_201 })).toMatchObject({
			isError: true,
			text: expect.stringContaining("only 1200 lines"),
		});
	});

	it("keeps CRLF and says so", async () => {
		put("w.txt", "a\r\nb\r\n");
		expect((await use("read_file", { path: "w.txt" })).text).toBe("a\r\nb\r\n[CRLF line ends]");
	});

	it("reads parts of a big file without holding it, cut lines and characters over chunk borders included", async () => {
		const line = `${"é😀".repeat(50)}\n`;
		put("big.txt", line.repeat(150_000));
		const before = process.memoryUsage().rss;
		const { text } = await use("read_file", { path: "big.txt", offset: 140_000, limit: 2 });
		expect(text.startsWith(line + line)).toBe(true);
		expect(text).toContain("lines 140000-140001; next offset 140002");
		expect(process.memoryUsage().rss - before).toBeLessThan(60_000_000);
		put("wide.txt", `${"😀".repeat(100_000)}\nend`);
		const wide = (await use("read_file", { path: "wide.txt" })).text;
		expect(wide.length).toBeLessThan(5_000);
		expect(wide).toMatch(/…\[line cut\]\nend\n\[1 lines cut/);
		expect(wide).not.toMatch(/\p{Surrogate}/u);
	});

	it("reads UTF-16 and GB18030, strips a mark, and says what a binary file is", async () => {
		put("u16.txt", Buffer.from("\ufeff你好\n", "utf16le"));
		expect((await use("read_file", { path: "u16.txt" })).text).toBe("你好\n[encoding utf-16le]");
		put("gb.txt", Buffer.from([0xc4, 0xe3, 0xba, 0xc3, 0x0a]));
		expect((await use("read_file", { path: "gb.txt" })).text).toBe("你好\n[encoding gb18030]");
		put("bom.txt", "\ufeffx");
		expect((await use("read_file", { path: "bom.txt" })).text).toBe("x");
		put("p.png", Buffer.from("89504e470d0a1a0a0000", "hex"));
		expect(await use("read_file", { path: "p.png" })).toMatchObject({ isError: true, text: expect.stringContaining("PNG image") });
		put("b.bin", Buffer.from([1, 0, 2]));
		expect(await use("read_file", { path: "b.bin" })).toMatchObject({
			isError: true,
			text: expect.stringContaining("binary file, 3 bytes"),
		});
	});

	it("ends when it is stopped", async () => {
		put("big.txt", "x\n".repeat(200_000));
		await expect(use("read_file", { path: "big.txt", offset: 199_999 }, { signal: AbortSignal.abort() })).rejects.toThrow();
	});

	it("finds the full text of a result that was cut", async () => {
		put("results/r_1.txt", "whole");
		expect((await use("read_file", { path: "results/r_1.txt" })).text).toBe("whole");
	});

	it("tells of bad paths as results", async () => {
		for (const path of ["../x", "/etc/passwd", "none.txt", "~/x"])
			expect(await use("read_file", { path })).toMatchObject({ isError: true });
	});
});

describe("write_file and list_files", () => {
	it("write whole files and list them", async () => {
		expect((await use("write_file", { path: "notes/a.md", content: "你好\r\n" })).text).toBe("Created notes/a.md (8 bytes).");
		expect((await use("write_file", { path: "notes/a.md", content: "x" })).text).toContain("Replaced");
		symlinkSync("/etc", join(root, "out"));
		expect((await use("list_files")).text).toBe("notes/\nout  (link, not readable)");
		expect((await use("list_files", { path: "notes" })).text).toBe("a.md  1 bytes");
		mkdirSync(join(root, "void"));
		expect((await use("list_files", { path: "void" })).text).toBe("(empty directory)");
		for (let n = 0; n < 310; n++) put(`many/${n}`, "");
		expect((await use("list_files", { path: "many" })).text).toContain("[10 more;");
	});
});

describe("edit_file", () => {
	const edit = (path: string, old: string, next: string) => use("edit_file", { path, old, new: next });

	it("replaces the one place and nothing else, dollar signs included", async () => {
		put("a.txt", "alpha\nbeta\ngamma\n");
		expect((await edit("a.txt", "beta", "$& $1 $$")).text).toBe("Changed a.txt at line 2.");
		expect(get("a.txt")).toBe("alpha\n$& $1 $$\ngamma\n");
	});

	it("keeps CRLF, whatever line ends the model writes, and a byte order mark", async () => {
		put("w.txt", "\ufeffone\r\ntwo\r\nthree\r\n");
		await edit("w.txt", "one\ntwo", "1\n2\r\nnew");
		expect(get("w.txt")).toBe("\ufeff1\r\n2\r\nnew\r\nthree\r\n");
		put("mixed.txt", "a\r\nb\nc");
		await edit("mixed.txt", "b\nc", "B\nC");
		expect(get("mixed.txt")).toBe("a\r\nB\nC");
	});

	it.each([
		["", "x", "is empty"],
		["same", "same", "are the same"],
		["nowhere", "x", "was not found"],
		["  beta()", "x", "similar text is at line 2"],
		["dup", "x", "occurs 2 times (lines 3, 4)"],
	])("refuses %j and changes nothing", async (old, next, reason) => {
		const before = "same\nbeta()\ndup\ndup\n";
		put("a.txt", before);
		expect(await edit("a.txt", old, next)).toMatchObject({ isError: true, text: expect.stringContaining(reason) });
		expect(get("a.txt")).toBe(before);
	});

	it("sees overlapping places, and leaves what is not UTF-8 alone", async () => {
		put("o.txt", "aaa");
		expect(await edit("o.txt", "aa", "b")).toMatchObject({ isError: true, text: expect.stringContaining("2 times") });
		put("gb.txt", Buffer.from([0xc4, 0xe3, 0x61]));
		expect(await edit("gb.txt", "a", "b")).toMatchObject({ isError: true, text: expect.stringContaining("not UTF-8") });
	});
});

describe("search_files", () => {
	it("finds text and names, with line numbers, without case when asked in lower case", async () => {
		put("src/Main.ts", "one\nconst Needle = 1;\n");
		put("needle.md", "nothing here");
		put("中文.txt", "第一行\n找到针了\n");
		expect((await use("search_files", { query: "needle" })).text).toBe("needle.md\nsrc/Main.ts:2: const Needle = 1;");
		expect((await use("search_files", { query: "Needle" })).text).toBe("src/Main.ts:2: const Needle = 1;");
		expect((await use("search_files", { query: "找到" })).text).toContain("中文.txt:2: 找到针了");
		expect((await use("search_files", { query: "absent" })).text).toContain('Nothing found for "absent"');
		expect((await use("search_files", { query: "one", path: "src/Main.ts" })).text).toBe("src/Main.ts:1: one");
	});

	it("filters by glob and lists with an empty query", async () => {
		for (const path of ["a.ts", "a.js", "x/b.ts", "x/y/c.test.ts", "x/y/c.md"]) put(path, "hit");
		const list = async (glob: string) => (await use("search_files", { query: "", glob })).text.split("\n");
		expect(await list("*.ts")).toEqual(["a.ts", "x/b.ts", "x/y/c.test.ts"]);
		expect(await list("x/**/*.ts")).toEqual(["x/b.ts", "x/y/c.test.ts"]);
		expect(await list("x/*.ts")).toEqual(["x/b.ts"]);
		expect(await list("*.{js,md}")).toEqual(["a.js", "x/y/c.md"]);
		expect((await use("search_files", { query: "hit", glob: "?.js" })).text).toBe("a.js:1: hit");
		expect(await use("search_files", { query: "" })).toMatchObject({ isError: true });
	});

	it("is not held up by a hostile glob", async () => {
		put(`${"a".repeat(200)}.txt`, "x");
		const started = performance.now();
		await use("search_files", { query: "", glob: `${"*a".repeat(100)}b` });
		await use("search_files", { query: "", glob: `${"{a,b}".repeat(80)}` });
		expect(performance.now() - started).toBeLessThan(500);
	});

	it("skips noise, binaries and links, and caps what it brings", async () => {
		put("node_modules/p/i.js", "needle");
		put(".git/config", "needle");
		put("bin", Buffer.from("needle\0"));
		put("many.txt", "needle\n".repeat(500));
		put("long.txt", `${"x".repeat(5_000)}needle${"y".repeat(5_000)}`);
		symlinkSync("/etc", join(root, "etc"));
		const { text } = await use("search_files", { query: "needle" });
		expect(text).not.toMatch(/node_modules|\.git|bin:|etc\//);
		expect(text.match(/many\.txt/g)).toHaveLength(20);
		expect(text.length).toBeLessThan(2_500);
		expect(text).toMatch(/long\.txt:1: …x+needley+…/);
		expect(text).toContain("not everything was searched");
		expect((await use("search_files", { query: "needle", path: "node_modules" })).text).toContain("node_modules/p/i.js:1");
	});
});
