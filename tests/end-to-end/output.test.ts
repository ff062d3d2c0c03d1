import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = join(import.meta.dirname, "..", "..", "dist", "server", "main.js");
let home: string;
let child: ChildProcess | null = null;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "openlani-output-"));
});
afterEach(async () => {
	child?.kill("SIGKILL");
	await rm(home, { recursive: true, force: true });
});

function start(args: string[], env: Record<string, string> = {}) {
	const { PATH = "" } = process.env;
	const program = spawn(process.execPath, [main, ...args, "--home", home], {
		env: { PATH, HOME: home, LANG: "C.UTF-8", ...env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	child = program;
	return { program, ended: new Promise<number | null>((resolve) => program.once("exit", resolve)) };
}

describe("a reader of the output that leaves", () => {
	it("ends a command without a stack", async () => {
		const { program, ended } = start(["--help"]);
		program.stdout.destroy();
		let errors = "";
		program.stderr.on("data", (chunk) => (errors += String(chunk)));
		expect(await ended).toBe(141);
		expect(errors).toBe("");
	});

	it("does not end the daemon: it answers, and ends in order", async () => {
		const token = "a-token-of-the-owner-0123456789";
		const { program, ended } = start(["--port", "0"], { OPENLANI_TOKEN: token });
		const url = await new Promise<string>((resolve) => {
			let out = "";
			program.stdout.on("data", (chunk) => {
				out += String(chunk);
				const found = /ready at (\S+)\n/.exec(out)?.[1];
				if (found) resolve(found);
			});
		});
		program.stdout.destroy();
		program.stderr.destroy();
		const call = async (path: string, body: unknown) => {
			const response = await fetch(`${url}/api/v1/${path}`, {
				method: "POST",
				headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
				body: JSON.stringify(body),
			});
			return (await response.json()) as { id: string; reply?: { text: string } };
		};
		const { id } = await call("conversations", {});
		for (const text of ["list my files", "what time is it?"]) {
			expect((await call(`conversations/${id}/messages?wait=30`, { text })).reply?.text).toBeTruthy();
		}
		program.kill("SIGTERM");
		expect(await ended).toBe(0);
	});
});
