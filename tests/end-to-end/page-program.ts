/** The built program as a person starts it, for tests in a browser. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const program = fileURLToPath(new URL("../../dist/server/main.js", import.meta.url));

export interface Program {
	readonly home: string;
	readonly origin: string;
	/** The one-time link of the first start, or null later. */
	readonly setupLink: string | null;
	/** SIGTERM and wait, or SIGKILL. */
	stop(signal?: NodeJS.Signals): Promise<void>;
	/** Starts again on the same home and port. */
	restart(): Promise<void>;
	/** Stops it and removes the home. */
	remove(): Promise<void>;
}

export async function startProgram(env: Record<string, string> = {}): Promise<Program> {
	const home = await mkdtemp(join(tmpdir(), "openlani-page-"));
	let child: ChildProcess;
	let port = 0;
	let origin = "";
	let setupLink: string | null = null;

	async function start(): Promise<void> {
		const { PATH = "", LANG = "C.UTF-8" } = process.env;
		child = spawn(process.execPath, [program, "--home", home, "--port", String(port)], {
			env: { PATH, LANG, HOME: home, ...env },
			stdio: ["ignore", "pipe", "pipe"],
		});
		let out = "";
		let errors = "";
		await new Promise<void>((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error(`not ready in 30 s: ${out}${errors}`)), 30_000);
			child.once("exit", (code) => reject(new Error(`ended with ${code}: ${out}${errors}`)));
			child.stderr?.on("data", (chunk) => {
				errors += String(chunk);
			});
			child.stdout?.on("data", (chunk) => {
				out += String(chunk);
				const ready = /OpenLani ready at (http:\/\/\S+:(\d+))\n/.exec(out);
				const link = /(http:\/\/\S+#setup=\S+)\n/.exec(out);
				if (!ready?.[1] || (port === 0 && !link)) return;
				clearTimeout(timer);
				origin = ready[1];
				setupLink = link?.[1] ?? null;
				port = Number(ready[2]);
				resolve();
			});
		});
	}

	async function stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
		if (child.exitCode !== null || child.signalCode !== null) return;
		const ended = new Promise((resolve) => child.once("exit", resolve));
		child.kill(signal);
		await ended;
	}

	await start();
	return {
		home,
		get origin() {
			return origin;
		},
		get setupLink() {
			return setupLink;
		},
		stop,
		restart: start,
		async remove() {
			await stop("SIGKILL");
			await rm(home, { recursive: true, force: true });
		},
	};
}

export const account = { username: "robin", password: "correct horse battery" };

/** The first set-up, without its pages. */
export async function setUpAccount(program: Program, settings: Record<string, unknown> = {}): Promise<void> {
	const response = await fetch(`${program.origin}/api/v1/setup`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({
			code: program.setupLink?.split("#setup=")[1],
			...account,
			locale: "en",
			timezone: "Asia/Shanghai",
			...settings,
		}),
	});
	if (response.status !== 204) throw new Error(`the set-up answered ${response.status}: ${await response.text()}`);
}

/** Signs in, in whatever language the page is, and waits for the chat. */
export async function signIn(page: Page, program: Program): Promise<void> {
	await page.goto(`${program.origin}/login`);
	await page.locator("input").first().fill(account.username);
	await page.locator('input[type="password"]').fill(account.password);
	await page.keyboard.press("Enter");
	await page.waitForURL("**/chat");
}
