import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

vi.setConfig({ testTimeout: 60_000 });

const ROOT = join(import.meta.dirname, "..", "..");

/** Notes, from before the program begins, of each of its files whether the engine took what had been compiled before. */
const PROBE = `
const { appendFileSync } = require("node:fs");
const vm = require("node:vm");
const { Script } = vm;
vm.Script = class extends Script {
	constructor(text, options) {
		super(text, options);
		appendFileSync(process.env.PROBE_LOG, (this.cachedDataRejected === false ? "kept " : "compiled ") + options.filename + "\\n");
	}
};
`;

let directory: string;
let daemon: RunningDaemon | null = null;

beforeEach(async () => {
	directory = await mkdtemp(join(tmpdir(), "openlani-compiled-"));
	await cp(join(ROOT, "dist"), join(directory, "dist"), { recursive: true });
	await cp(join(ROOT, "workspace-template"), join(directory, "workspace-template"), { recursive: true });
	await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"), "dir");
	await mkdir(join(directory, "elsewhere"));
	await writeFile(join(directory, "probe.cjs"), PROBE);
});
afterEach(async () => {
	await daemon?.kill();
	daemon = null;
	await rm(directory, { recursive: true, force: true });
});

const compiled = () => join(directory, "dist", "server", "compiled.bin");

/** Starts the copy, asks it something, and answers what its files were. */
async function start(env: Record<string, string> = {}): Promise<{ kept: number; compiled: number }> {
	const log = join(directory, "probe.log");
	await rm(log, { force: true });
	daemon = await startDaemonProcess({
		home: join(directory, "home"),
		program: join(directory, "dist", "server", "main.js"),
		env: { PROBE_LOG: log, ...env, NODE_OPTIONS: `--require=${join(directory, "probe.cjs")} ${env.NODE_OPTIONS ?? ""}` },
	});
	const { status, body } = await daemon.call<{ version: string }>("GET", "/api/v1/status");
	expect(status).toBe(200);
	expect(body.version).toMatch(/^\d/);
	const page = await fetch(daemon.url);
	expect(page.headers.get("content-type")).toContain("text/html");
	expect(await daemon.stop()).toBe(0);
	daemon = null;
	const lines = (await readFile(log, "utf8")).split("\n");
	return {
		kept: lines.filter((line) => line.startsWith("kept ")).length,
		compiled: lines.filter((line) => line.startsWith("compiled ")).length,
	};
}

it("a built server starts with nothing left to compile, wherever it is copied", async () => {
	expect(await start()).toEqual({ kept: expect.any(Number), compiled: 0 });
});

it("starts as well without, with a damaged one, and with flags it was not made for", async () => {
	expect((await start({ NODE_OPTIONS: "--stack-trace-limit=11" })).kept).toBe(0);
	const whole = await readFile(compiled());
	const half = whole.subarray(0, whole.length / 2);
	await writeFile(compiled(), half);
	expect((await start()).compiled).toBeGreaterThan(0);
	await writeFile(compiled(), Buffer.concat([half, Buffer.alloc(whole.length - half.length, 0xff)]));
	expect((await start()).compiled).toBeGreaterThan(0);
	await writeFile(compiled(), whole.toString("latin1").replaceAll(process.version, "v18.0.0 "), "latin1");
	expect((await start()).kept).toBe(0);
	await rm(compiled());
	expect((await start()).kept).toBe(0);
});

it("any working directory will do", () => {
	const main = join(directory, "dist", "server", "main.js");
	const run = spawnSync(process.execPath, [main, "--version"], { cwd: join(directory, "elsewhere"), encoding: "utf8" });
	expect(run).toMatchObject({ status: 0, stderr: "" });
	expect(run.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
