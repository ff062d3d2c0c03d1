import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

/** Stands in for npm: `ci` puts better-sqlite3 without its binary in place, `rebuild` adds the binary, both leave a line in npm.log. */
const FAKE_NPM = `
const { appendFileSync, cpSync, mkdirSync, rmSync, writeFileSync, readFileSync } = require("node:fs");
const { join } = require("node:path");
const [command] = process.argv.slice(2);
appendFileSync(process.env.FAKE_LOG, command + "\\n");
const from = join(${JSON.stringify(ROOT)}, "node_modules");
if (process.env.FAKE_FAIL === command) process.exit(1);
if (process.env.FAKE_DEAF === command) {
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
	setInterval(() => {}, 1000);
	console.log("npm hears nothing");
	return;
}
if (command === "ci") {
	rmSync("node_modules", { recursive: true, force: true });
	mkdirSync("node_modules");
	for (const name of ["bindings", "file-uri-to-path"]) cpSync(join(from, name), join("node_modules", name), { recursive: true });
	cpSync(join(from, "better-sqlite3"), "node_modules/better-sqlite3", { recursive: true, filter: (path) => !/better-sqlite3.(build|deps|src)/.test(path) });
}
if (command === "rebuild") {
	mkdirSync("node_modules/better-sqlite3/build/Release", { recursive: true });
	cpSync(join(from, "better-sqlite3/build/Release/better_sqlite3.node"), "node_modules/better-sqlite3/build/Release/better_sqlite3.node");
}
`;

interface Outcome {
	code: number | null;
	signal: NodeJS.Signals | null;
	stdout: string;
	stderr: string;
}

let directory: string;
let clone: string;
const children: ChildProcess[] = [];

function environment(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
	const { PATH, SystemRoot } = process.env;
	const npm = join(directory, "npm-cli.js");
	return { PATH, SystemRoot, HOME: join(directory, "home"), FAKE_LOG: join(directory, "npm.log"), npm_execpath: npm, ...extra };
}

function start(
	args: string[],
	env: NodeJS.ProcessEnv = {},
): { child: ChildProcess; ended: Promise<Outcome>; until(text: string): Promise<void> } {
	const child = spawn(process.execPath, args, { cwd: clone, env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
	children.push(child);
	let stdout = "";
	let stderr = "";
	const waiting = new Set<() => void>();
	const wake = () => {
		for (const look of waiting) look();
	};
	child.stdout?.on("data", (chunk) => {
		stdout += chunk;
		wake();
	});
	child.stderr?.on("data", (chunk) => {
		stderr += chunk;
		wake();
	});
	const ended = new Promise<Outcome>((resolve) => child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr })));
	const until = (text: string) =>
		new Promise<void>((resolve, reject) => {
			const look = () => {
				if (!(stdout + stderr).includes(text)) return;
				waiting.delete(look);
				resolve();
			};
			waiting.add(look);
			look();
			void ended.then((outcome) => reject(new Error(`ended before "${text}": ${JSON.stringify(outcome)}`)));
		});
	return { child, ended, until };
}

const npmLog = async () => (await readFile(join(directory, "npm.log"), "utf8").catch(() => "")).split("\n").filter(Boolean);

/** A clone with the real scripts and a server and a page of a few lines. */
async function makeClone(name: string): Promise<string> {
	clone = join(directory, name);
	await mkdir(join(clone, "server", "http"), { recursive: true });
	await mkdir(join(clone, "channels"), { recursive: true });
	await mkdir(join(clone, "web"), { recursive: true });
	for (const file of ["scripts", "package.json", "package-lock.json", "vite.config.ts", "vite.server.config.ts", "server/launch"]) {
		await cp(join(ROOT, file), join(clone, file), { recursive: true });
	}
	await writeFile(join(clone, "tsconfig.json"), "{}");
	await writeFile(join(clone, "server", "http", "contract.ts"), "export type A = 1;\n");
	await writeFile(join(clone, "web", "index.html"), "<!doctype html><title>page</title>\n");
	await writeFile(
		join(clone, "server", "main.ts"),
		`import { greeting } from "./greeting.ts";
console.log(greeting, JSON.stringify(process.argv.slice(2)));
let signals = 0;
const life = setInterval(() => {}, 1000);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
	process.on(signal, () => {
		signals += 1;
		console.log("signal", signals);
		if (signals > 1) process.exit(9);
		if (process.argv.includes("--quick")) {
			clearInterval(life);
			process.exitCode = 5;
		}
	});
}
// Nobody listens there: what is built cannot be recorded, and is used as it is.
console.log("OpenLani ready at http://127.0.0.1:1");
`,
	);
	await writeFile(join(clone, "server", "greeting.ts"), 'export const greeting = "first";\n');
	return clone;
}

/** The clone uses this project's own packages, so that it can build without installing. */
const lendPackages = () => symlink(join(ROOT, "node_modules"), join(clone, "node_modules"), "dir");

beforeEach(async () => {
	directory = await mkdtemp(join(tmpdir(), "openlani-setup-"));
	await mkdir(join(directory, "home"));
	await writeFile(join(directory, "npm-cli.js"), FAKE_NPM);
	await makeClone("clone");
});

afterEach(async () => {
	for (const child of children.splice(0)) child.kill("SIGKILL");
	await rm(directory, { recursive: true, force: true });
});

const SETUP = ["-e", 'import("./scripts/setup.mjs").then((m) => m.main(() => m.setup()))'];

vi.setConfig({ testTimeout: 60_000 });

describe("installing", () => {
	it.each([
		["SIGINT", 130],
		["SIGTERM", 143],
	] as const)("ends on %s although npm does not hear it, and the next start installs", async (signal, code) => {
		const deaf = start(SETUP, { FAKE_DEAF: "ci" });
		await deaf.until("npm hears nothing");
		deaf.child.kill(signal);
		const outcome = await deaf.ended;
		expect(outcome).toMatchObject({ code, stderr: expect.stringContaining("openlani: interrupted; the next start makes the rest\n") });
		expect((await start(SETUP).ended).code).toBe(0);
		expect(await npmLog()).toEqual(["ci", "ci", "rebuild"]);
	});

	it("installs once, and again only when the lock changed", async () => {
		expect((await start(SETUP).ended).code).toBe(0);
		expect(await npmLog()).toEqual(["ci", "rebuild"]);
		const second = await start(SETUP).ended;
		expect(second).toMatchObject({ code: 0, stderr: "" });
		expect(await npmLog()).toEqual(["ci", "rebuild"]);
		await writeFile(join(clone, "package-lock.json"), `${await readFile(join(clone, "package-lock.json"), "utf8")}\n`);
		expect((await start(SETUP).ended).code).toBe(0);
		expect((await npmLog()).slice(2)).toEqual(["ci"]); // the binary came from the cache
	});

	it("a failed install ends with a sentence and code 1, and is tried again", async () => {
		const failed = await start(SETUP, { FAKE_FAIL: "ci" }).ended;
		expect(failed.code).toBe(1);
		expect(failed.stderr).toContain("npm-cli.js ci");
		expect(failed.stderr).not.toContain("    at ");
		expect((await start(SETUP).ended).code).toBe(0);
	});

	it("two at once install once", async () => {
		const outcomes = await Promise.all([start(SETUP).ended, start(SETUP).ended, start(SETUP).ended]);
		expect(outcomes.map((outcome) => outcome.code)).toEqual([0, 0, 0]);
		expect(await npmLog()).toEqual(["ci", "rebuild"]);
		expect(existsSync(join(clone, ".cache", "setup.lock"))).toBe(false);
	});

	it("a lock left by a killed set-up does not hold up the next", async () => {
		await mkdir(join(clone, ".cache"));
		const lock = join(clone, ".cache", "setup.lock");
		await writeFile(lock, "1 another-machine 0");
		await utimes(lock, new Date(Date.now() - 60_000), new Date(Date.now() - 60_000));
		expect((await start(SETUP).ended).code).toBe(0);
		expect(await npmLog()).toEqual(["ci", "rebuild"]);
	});
});

describe("the cache of the compiled better-sqlite3", () => {
	const cached = async () => {
		const native = join(directory, "home", ".cache", "openlani", "native");
		const [name] = await readdir(native);
		return join(native, String(name));
	};
	const fresh = async (name: string, env: NodeJS.ProcessEnv = {}) => {
		await makeClone(name);
		await rm(join(directory, "npm.log"), { force: true });
		const outcome = await start(SETUP, env).ended;
		expect(outcome.code).toBe(0);
		return npmLog();
	};

	it("serves the next clone", async () => {
		expect(await fresh("a")).toEqual(["ci", "rebuild"]);
		expect(await cached()).toContain(`abi${process.versions.modules}-${process.platform}-${process.arch}`);
		expect(await fresh("b")).toEqual(["ci"]);
	});

	it("is not believed when its checksum is wrong", async () => {
		await fresh("a");
		await writeFile(join(await cached(), "better_sqlite3.node"), "damaged");
		expect(await fresh("b")).toEqual(["ci", "rebuild"]);
		expect(await fresh("c")).toEqual(["ci"]); // mended
	});

	it.skipIf(process.platform === "win32")("is not used when others can write to it", async () => {
		await fresh("a");
		await chmod(await cached(), 0o777);
		expect(await fresh("b")).toEqual(["ci", "rebuild"]);
	});

	it("is not needed", async () => {
		expect(await fresh("a", { XDG_CACHE_HOME: join(directory, "npm-cli.js") /* a file: no directory can be made in it */ })).toEqual([
			"ci",
			"rebuild",
		]);
	});
});

describe("npm start", () => {
	const START = ["scripts/start.mjs", "--home", "x y", "--port", "0"];
	beforeEach(lendPackages);

	it("builds what is stale, passes flags on, and builds again only what changed", async () => {
		const first = start(START);
		await first.until("ready");
		first.child.kill("SIGTERM");
		first.child.kill("SIGKILL");
		const one = await first.ended;
		expect(one.stderr).toContain("Building the server");
		expect(one.stderr).toContain("Building the page");
		expect(one.stderr).toContain("will start more slowly");
		expect(one.stdout).toContain('first ["--home","x y","--port","0"]');

		const second = start(START);
		await second.until("ready");
		second.child.kill("SIGKILL");
		expect((await second.ended).stderr).toBe("");

		// Other times and the same content: nothing to build.
		await utimes(join(clone, "server", "main.ts"), new Date(), new Date());
		const third = start(START);
		await third.until("ready");
		third.child.kill("SIGKILL");
		expect((await third.ended).stderr).toBe("");

		await writeFile(join(clone, "server", "greeting.ts"), 'export const greeting = "other";\n');
		const fourth = start(START);
		await fourth.until("ready");
		fourth.child.kill("SIGKILL");
		const four = await fourth.ended;
		expect(four.stdout).toContain("other [");
		expect(four.stderr).toContain("Building the server");
		expect(four.stderr).not.toContain("Building the page");
	});

	it("a build that fails says why, leaves the old one in place and nothing half-made", async () => {
		expect((await start(["scripts/build.mjs"]).ended).code).toBe(0);
		const before = await readFile(join(clone, "dist", "server", "main.js"), "utf8");
		await writeFile(join(clone, "server", "main.ts"), 'import "./missing.ts";\n');
		const outcome = await start(START).ended;
		expect(outcome.code).toBe(1);
		expect(outcome.stderr).toContain("missing.ts");
		expect(await readFile(join(clone, "dist", "server", "main.js"), "utf8")).toBe(before);
		expect((await readdir(join(clone, "dist"))).sort()).toEqual(["page", "server"]);
	});

	it("what a killed build has left is cleared by the next one", async () => {
		await mkdir(join(clone, "dist", ".server-1", "part"), { recursive: true });
		await mkdir(join(clone, "dist", ".page-1"), { recursive: true });
		expect((await start(["scripts/build.mjs"]).ended).code).toBe(0);
		expect((await readdir(join(clone, "dist"))).sort()).toEqual(["page", "server"]);
	});

	it("two at once build once and both start", async () => {
		const both = [start(START), start(START)];
		await Promise.all(both.map((one) => one.until("ready")));
		for (const one of both) one.child.kill("SIGKILL");
		const outcomes = await Promise.all(both.map((one) => one.ended));
		expect(
			outcomes
				.map((outcome) => outcome.stderr)
				.join("")
				.split("Building the server: done").length - 1,
		).toBe(1);
	});

	it("the exit code is the daemon's", async () => {
		const one = start([...START, "--quick"]);
		await one.until("ready");
		one.child.kill("SIGTERM");
		expect((await one.ended).code).toBe(5);
	});

	it("a signal that npm sends a second time is one signal; a later one is a second", async () => {
		const one = start(START, { npm_lifecycle_event: "start" });
		await one.until("ready");
		one.child.kill("SIGINT");
		await one.until("signal 1");
		one.child.kill("SIGINT"); // npm's echo of the same key press
		const pressed = setInterval(() => one.child.kill("SIGINT"), 400);
		const outcome = await one.ended;
		clearInterval(pressed);
		expect(outcome.code).toBe(9);
		expect(outcome.stdout.match(/signal/g)).toHaveLength(2);
	});
});
