import { execFileSync } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { compiledFile, type Loaded, writeCompiled } from "../../../server/launch/compiled.ts";
import { createLoader } from "../../../server/launch/loader.ts";

let dir: string;

beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-loader-"));
	await mkdir(join(dir, "node_modules", "other"), { recursive: true });
	await writeFile(join(dir, "node_modules", "other", "index.js"), "exports.three = 3;\n");
	await writeFile(join(dir, "main.js"), "");
	await writeFile(
		join(dir, "program.js"),
		`"use strict";
const parts = require("./parts.js");
exports.sum = () => parts.two() + require("other").three;
exports.place = [__filename, __dirname];
`,
	);
	await writeFile(join(dir, "parts.js"), `exports.two = () => "二".length + 1;\nexports.again = require("./program.js");\n`);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

interface Program {
	sum(): number;
	place: string[];
}

/** Runs the program; answers which of its files did not have to be compiled. */
function run(): { program: Program; loaded: Loaded[]; kept: string[] } {
	const loaded: Loaded[] = [];
	const program = createLoader({ dir, onLoaded: (one) => loaded.push(one) })("program.js") as Program;
	expect(program.sum()).toBe(5);
	return { program, loaded, kept: loaded.filter((one) => one.kept).map((one) => one.file) };
}
const record = () => writeCompiled(dir, run().loaded);
const compiled = () => join(dir, compiledFile);

async function change(alter: (bytes: Buffer) => Buffer): Promise<void> {
	await writeFile(compiled(), alter(await readFile(compiled())));
}

it("runs the program's files once each, and packages beside them", () => {
	const { program, loaded, kept } = run();
	expect(loaded.map((one) => one.file)).toEqual(["program.js", "parts.js"]);
	expect(kept).toEqual([]);
	expect(program.place).toEqual([join(dir, "program.js"), dir]);
});

it("a file that throws is run again when it is asked for again, as Node does it", async () => {
	await writeFile(
		join(dir, "program.js"),
		"globalThis.tries = (globalThis.tries ?? 0) + 1; if (globalThis.tries === 1) throw new Error('not yet');",
	);
	const load = createLoader({ dir });
	expect(() => load("program.js")).toThrow("not yet");
	expect(() => load("program.js")).not.toThrow();
});

it("takes what was compiled before", () => {
	record();
	expect(run().kept).toEqual(["program.js", "parts.js"]);
});

it("a text that has changed is compiled anew, also when it is as long as before", async () => {
	record();
	const path = join(dir, "parts.js");
	await writeFile(path, (await readFile(path, "utf8")).replace("length + 1", "length * 2"));
	expect(run().kept).toEqual(["program.js"]);
});

it("a bit that has changed anywhere harms nothing", async () => {
	record();
	const whole = await readFile(compiled());
	const step = Math.ceil(whole.length / 300);
	for (let at = 0; at < whole.length; at += step) {
		const bytes = Buffer.from(whole);
		bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at);
		await writeFile(compiled(), bytes);
		expect(run().kept.length, `byte ${at}`).toBeLessThanOrEqual(2);
	}
	// The engine's own look would not have seen it: the last bytes are code.
	const bytes = Buffer.from(whole);
	bytes.writeUInt8(bytes.readUInt8(whole.length - 20) ^ 0x10, whole.length - 20);
	await writeFile(compiled(), bytes);
	expect(run().kept).toEqual(["program.js"]);
});

it.each<[string, (bytes: Buffer) => Buffer]>([
	["empty", () => Buffer.alloc(0)],
	["cut off in its header", (bytes) => bytes.subarray(0, 50)],
	["something else", () => Buffer.from("not what it should be".repeat(1000))],
	["a header of any size", () => Buffer.from("99999999{}")],
	["a header that is no object", () => Buffer.from("00000004null")],
	["a header without files", (bytes) => Buffer.from(bytes.toString("latin1").replace('"files"', '"filed"'), "latin1")],
	[
		"of another version of Node",
		(bytes) => Buffer.from(bytes.toString("latin1").replace(process.version, process.version.replace(/\d$/, "x")), "latin1"),
	],
])("a file that is %s is as none", async (_name, alter) => {
	record();
	await change(alter);
	expect(run().kept).toEqual([]);
});

it("what is cut off at its end serves as far as it goes", async () => {
	record();
	await change((bytes) => bytes.subarray(0, -1));
	expect(run().kept).toEqual(["program.js"]);
});

it("a folder in its place, or a link to nowhere, is as none", async () => {
	await mkdir(compiled());
	expect(run().kept).toEqual([]);
	await rm(compiled(), { recursive: true });
	await symlink(join(dir, "nowhere"), compiled());
	expect(run().kept).toEqual([]);
});

it.skipIf(process.platform === "win32")("a pipe in its place is as none, and not waited for", () => {
	execFileSync("mkfifo", [compiled()]);
	expect(run().kept).toEqual([]);
});

it.skipIf(process.platform === "win32")("is not believed when more people may write it than the program", async () => {
	record();
	for (const mode of [0o666, 0o664, 0o646]) {
		await chmod(compiled(), mode);
		expect(run().kept).toEqual([]);
	}
	await chmod(compiled(), 0o664);
	await chmod(join(dir, "main.js"), 0o664);
	expect(run().kept).toEqual(["program.js", "parts.js"]);
});

it.skipIf(process.getuid?.() !== 0)("is not believed when it is another one's", async () => {
	record();
	await chown(compiled(), 65534, 65534);
	expect(run().kept).toEqual([]);
});

it("writes it whole or leaves what was there", () => {
	record();
	const { loaded } = run();
	const broken = [...loaded, { ...loaded[0], script: { createCachedData: () => "no buffer" } } as unknown as Loaded];
	expect(() => writeCompiled(dir, broken)).toThrow();
	expect(run().kept).toEqual(["program.js", "parts.js"]);
});
