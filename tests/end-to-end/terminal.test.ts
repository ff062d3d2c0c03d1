import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

/** `script` of util-linux gives a program a real terminal. */
const missing = spawnSync("script", ["--version"]).error ? "the package util-linux (script) is missing" : null;
if (missing) console.warn(`tests of the terminal are skipped: ${missing}`);

const main = join(import.meta.dirname, "..", "..", "dist", "server", "main.js");
let home: string;
let child: ChildProcess | null = null;
afterEach(async () => {
	child?.kill("SIGKILL");
	await rm(home, { recursive: true, force: true });
});

/** The program in a terminal: keys go in, what the terminal shows comes out. */
function terminal(args: string[]) {
	const command = [process.execPath, main, ...args].map((word) => `'${word}'`).join(" ");
	const program = spawn("script", ["--quiet", "--flush", "--return", "--command", command, "/dev/null"], {
		env: { PATH: process.env.PATH, HOME: home, TERM: "xterm-256color", LANG: "en_US.UTF-8", OPENLANI_LOG_LEVEL: "error" },
		stdio: ["pipe", "pipe", "inherit"],
	});
	child = program;
	let shown = "";
	let look = () => {};
	program.stdout.setEncoding("utf8").on("data", (text: string) => {
		shown += text;
		look();
	});
	const ended = new Promise<number | null>((resolve) => program.once("exit", resolve));
	return {
		ended,
		keys: (text: string) => void program.stdin.write(text),
		/** What the terminal has shown since the last look, once it holds `what`. */
		sees: (what: RegExp) =>
			new Promise<string>((resolve, reject) => {
				const late = setTimeout(() => reject(new Error(`never saw ${what}; saw ${JSON.stringify(shown)}`)), 60_000);
				look = () => {
					const found = what.exec(shown);
					if (!found) return;
					clearTimeout(late);
					const seen = shown.slice(0, found.index + found[0].length);
					shown = shown.slice(seen.length);
					resolve(seen);
				};
				look();
			}),
	};
}

describe.skipIf(missing)("chat in a terminal", () => {
	it("shows a prompt, tools and a plan, knows what was typed before, and ends", async () => {
		home = await mkdtemp(join(tmpdir(), "openlani-terminal-"));
		const to = terminal(["chat", "--home", join(home, "lani")]);
		await to.sees(/› /);
		to.keys("plan a small party\r");
		expect(await to.sees(/5 of 5 items done[\s\S]*demo · [\s\S]*› /)).toContain("[x] Check the date");
		to.keys("/plan\r");
		expect(await to.sees(/Sum up[\s\S]*› /)).toContain("[x] Check the date");
		to.keys("\u001b[A\u001b[A");
		await to.sees(/plan a small party/);
		to.keys("\u0015/exit\r");
		expect(await to.ended).toBe(0);
	});
});
