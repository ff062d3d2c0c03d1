import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRestarting } from "../../scripts/lib/restarting.mjs";

/** Begins, ends at a signal only when `may-end` is there, and notes both. */
const program = `
const { appendFileSync, existsSync } = require("node:fs");
const note = (what) => appendFileSync("notes", what + "\\n");
const alive = setInterval(() => {}, 1000);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {
	note(signal);
	setInterval(() => {
		if (!existsSync("may-end")) return;
		note("ended");
		process.exit(7);
	}, 10);
});
note("begun");
`;

let cwd: string;
beforeEach(async () => {
	cwd = await mkdtemp(join(tmpdir(), "openlani-restarting-"));
	await writeFile(join(cwd, "program.cjs"), program);
});
afterEach(() => rm(cwd, { recursive: true, force: true }));

const notes = async () => (await readFile(join(cwd, "notes"), "utf8").catch(() => "")).split("\n").filter(Boolean);
async function noted(count: number): Promise<string[]> {
	for (;;) {
		const found = await notes();
		if (found.length >= count) return found;
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}
const mayEnd = () => writeFile(join(cwd, "may-end"), "");

function restarting() {
	const exits: string[] = [];
	const options = { cwd, stdio: "inherit" as const };
	const made = createRestarting({
		command: process.execPath,
		args: ["program.cjs"],
		options,
		onStart: () => {},
		onExit: (how: string) => void exits.push(how),
	});
	return { ...made, exits };
}

it("is started anew when it has ended by itself, once for many wishes, and then stopped in order", async () => {
	const one = restarting();
	one.start();
	await noted(1);
	for (let count = 0; count < 3; count += 1) one.restart();
	await noted(2);
	one.restart();
	await mayEnd();
	expect(await noted(4)).toEqual(["begun", "SIGTERM", "ended", "begun"]);
	one.stop("SIGINT");
	expect(await one.ended).toBe(7);
	expect(await notes()).toEqual(["begun", "SIGTERM", "ended", "begun", "SIGINT", "ended"]);
	expect(one.exits).toEqual([]);
});

it("a second wish to stop does not wait for it", async () => {
	const one = restarting();
	one.start();
	await noted(1);
	one.stop("SIGINT");
	await noted(2);
	one.stop("SIGINT");
	expect(await one.ended).not.toBe(7);
	expect(await notes()).toEqual(["begun", "SIGINT", "SIGINT"]);
});

it("what ended by itself is said, and begins with the next wish", async () => {
	await writeFile(join(cwd, "program.cjs"), "process.exit(3)");
	const one = restarting();
	one.start();
	while (one.exits.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
	expect(one.exits).toEqual(["code 3"]);
	await writeFile(join(cwd, "program.cjs"), program);
	one.restart();
	await noted(1);
	await mayEnd();
	one.stop("SIGTERM");
	expect(await one.ended).toBe(7);
	one.restart();
	expect(await notes()).toEqual(["begun", "SIGTERM", "ended"]);
});
