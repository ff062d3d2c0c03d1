import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { WebSocket } from "ws";

const ROOT = join(import.meta.dirname, "..", "..");
vi.setConfig({ testTimeout: 60_000 });

let directory: string;
let child: ChildProcess | null = null;
let ended: Promise<number | null>;

beforeEach(async () => {
	directory = await mkdtemp(join(tmpdir(), "openlani-dev-"));
});
afterEach(async () => {
	if (child?.exitCode === null) child.kill("SIGTERM");
	await ended;
	await rm(directory, { recursive: true, force: true });
});

/** `npm run dev` without npm, which would not pass a signal on. Answers the set-up link. */
async function startDev(): Promise<URL> {
	const { PATH } = process.env;
	const flags = ["--home", join(directory, "home"), "--port", "0"];
	const started = spawn(process.execPath, ["scripts/dev.mjs", ...flags], {
		cwd: ROOT,
		env: { PATH, HOME: directory },
		stdio: ["ignore", "pipe", "pipe"],
		// A group of its own, as a terminal makes one: a key press reaches all of it.
		detached: true,
	});
	child = started;
	ended = new Promise((resolve) => started.once("close", resolve));
	let output = "";
	return new Promise((resolve, reject) => {
		for (const stream of [started.stdout, started.stderr]) {
			stream.on("data", (chunk) => {
				output += chunk;
				const link = /(http:\S+#setup=\S+)\n/.exec(output)?.[1];
				if (link) resolve(new URL(link));
			});
		}
		void ended.then((code) => reject(new Error(`ended with ${code}:\n${output}`)));
	});
}

it("serves the page from its sources, wherever the daemon listens, and the page's calls alone reach it as such", async () => {
	const link = await startDev();
	const page = await fetch(`${link.origin}/setup`, { headers: { accept: "text/html" } });
	expect(await page.text()).toContain("/src/main.tsx");
	expect(await (await fetch(`${link.origin}/healthz`)).json()).toMatchObject({ status: "ok" });

	const setUp = (origin: string) =>
		fetch(`${link.origin}/api/v1/setup`, {
			method: "POST",
			headers: { "content-type": "application/json", origin },
			body: JSON.stringify({ code: link.hash.slice("#setup=".length), username: "robin", password: "correct horse battery" }),
		});
	expect((await setUp("http://evil.example.test")).status).toBe(403);
	const response = await setUp(link.origin);
	expect(response.status).toBe(204);

	const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
	const socket = new WebSocket(`${link.origin.replace("http", "ws")}/api/v1/live`, { origin: link.origin, headers: { cookie } });
	try {
		await new Promise<void>((resolve, reject) => {
			socket.on("error", reject);
			socket.on("close", (code) => reject(new Error(`closed with ${code}`)));
			socket.on("open", () => socket.send(JSON.stringify({ type: "hello", since: 0 })));
			socket.on("message", (data) => {
				if ((JSON.parse(String(data)) as { type: string }).type === "hello") resolve();
			});
		});
	} finally {
		socket.terminate();
	}
});

it("Ctrl-C in a terminal, which reaches all at once, ends the daemon in order", async () => {
	await startDev();
	const inData = () => readdir(join(directory, "home", "data"));
	expect(await inData()).toContain("daemon.lock");
	process.kill(-(child?.pid ?? 0), "SIGINT");
	expect(await ended).toBe(0);
	const left = await inData();
	expect(left).toContain("openlani.db");
	for (const file of ["daemon.lock", "daemon.json", "openlani.db-wal"]) expect(left).not.toContain(file);
});
