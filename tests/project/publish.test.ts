import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { publish } from "../../scripts/lib/make.mjs";

let dir: string;
beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-publish-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

async function build(name: string, files: string[]): Promise<string> {
	const staging = join(dir, name);
	await mkdir(staging);
	for (const file of files) await writeFile(join(staging, file), name);
	return staging;
}

it("what asks for new files is not replaced before they are there, at whatever point a start looks", async () => {
	const target = join(dir, "dist");
	publish(await build("first", ["loader.js", "main.js", "part-1.js", "program.js"]), target, "main.js");
	const second = await build("second", ["loader.js", "main.js", "part-2.js", "program.js", "version-2.js"]);
	// The last of the new ones cannot be put in place.
	await mkdir(join(target, "version-2.js", "in the way"), { recursive: true });
	expect(() => publish(second, target, "main.js")).toThrow();
	for (const file of ["loader.js", "main.js", "part-1.js", "program.js"]) expect(await readFile(join(target, file), "utf8")).toBe("first");
	await rm(join(target, "version-2.js"), { recursive: true });
	publish(await build("third", ["loader.js", "main.js", "part-2.js", "program.js", "version-2.js"]), target, "main.js");
	for (const file of ["loader.js", "main.js", "part-2.js", "program.js", "version-2.js"])
		expect(await readFile(join(target, file), "utf8")).toBe("third");
	expect(await readFile(join(target, "part-1.js"), "utf8")).toBe("first");
});

it("what runs from a build before the last one still finds its parts, and no pile grows", async () => {
	const target = join(dir, "dist");
	for (let at = 0; at < 30; at += 1) publish(await build(`build ${at}`, ["main.js", `part-${at}.js`]), target, "main.js");
	const parts = (await readdir(target)).filter((name) => name.startsWith("part-"));
	expect(parts).toEqual(expect.arrayContaining(["part-29.js", "part-28.js", "part-27.js", "part-24.js"]));
	expect(parts.length).toBeLessThan(15);
});
