import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

let directory: string;
let child: ChildProcess | null = null;

beforeEach(async () => {
	directory = await mkdtemp(join(tmpdir(), "openlani-start-"));
});
afterEach(async () => {
	child?.kill("SIGKILL");
	child = null;
	await rm(directory, { recursive: true, force: true });
});

/** `npm start` as a person types it, in this clone, with a home and no settings of its own. */
function npmStart(...flags: string[]): {
	ended: Promise<number | null>;
	line(pattern: RegExp): Promise<RegExpExecArray>;
	output(): string;
} {
	const { PATH } = process.env;
	const started = spawn("npm", ["start", "--", ...flags], { cwd: ROOT, env: { PATH, HOME: directory }, stdio: ["ignore", "pipe", "pipe"] });
	child = started;
	let output = "";
	let look = () => {};
	for (const stream of [started.stdout, started.stderr]) {
		stream.on("data", (chunk) => {
			output += chunk;
			look();
		});
	}
	const ended = new Promise<number | null>((resolve) => started.once("close", resolve));
	const line = (pattern: RegExp) =>
		new Promise<RegExpExecArray>((resolve, reject) => {
			look = () => {
				const found = pattern.exec(output);
				if (found) resolve(found);
			};
			look();
			void ended.then((code) => reject(new Error(`ended with ${code} before ${pattern}:\n${output}`)));
		});
	return { ended, line, output: () => output };
}

it("npm start -- FLAGS serves, says so in one line, and ends with 0 on SIGTERM", async () => {
	const started = npmStart("--home", join(directory, "home"), "--port", "0");
	const [, url] = await started.line(/^OpenLani ready at (http:\/\/127\.0\.0\.1:\d+)$/m);
	await started.line(/#setup=\S+$/m);
	const health = await fetch(`${url}/healthz`);
	expect(await health.json()).toMatchObject({ status: "ok" });
	const page = await fetch(`${url}/`);
	expect(page.headers.get("content-type")).toContain("text/html");
	child?.kill("SIGTERM");
	expect(await started.ended).toBe(0);
	await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

it("passes the daemon's exit code on", async () => {
	const started = npmStart("--home", join(directory, "home"), "--host", "0.0.0.0", "--port", "0");
	expect(await started.ended).toBe(1);
	expect(started.output()).toContain("password");
});
