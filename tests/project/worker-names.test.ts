import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";
import { publish } from "../../scripts/lib/make.mjs";

/** A program that starts its thread anew at each line it is given, and says what that answers. */
const program = `
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
createInterface({ input: process.stdin }).on("line", () => {
	new Worker(new URL("./small-worker.js", import.meta.url)).once("message", (said) => console.log(said));
});
`;
const worker = (build: string) => `
import { parentPort } from "node:worker_threads";
parentPort.postMessage(${JSON.stringify(build)});
`;

let root: string;
let running: ChildProcess[];
beforeEach(async () => {
	root = await mkdtemp(join(tmpdir(), "openlani-workers-"));
	running = [];
	await mkdir(join(root, "server", "launch"), { recursive: true });
	await writeFile(join(root, "server", "launch", "main.ts"), 'import "../main.ts";\n');
	await writeFile(join(root, "server", "launch", "loader.ts"), "export const nothing = 0;\n");
	await writeFile(join(root, "server", "main.ts"), 'void import("./part.ts");\n');
	await writeFile(join(root, "server", "part.ts"), program);
});
afterEach(async () => {
	for (const child of running) child.kill("SIGKILL");
	await rm(root, { recursive: true, force: true });
});

const dist = () => join(root, "dist");

/** The project's own way of building, for this program. */
async function build(name: string): Promise<void> {
	await writeFile(join(root, "server", "small-worker.ts"), worker(name));
	const vite = resolve("node_modules/vite/bin/vite.js");
	const staging = join(root, `staging-${name}`);
	const args = [vite, "build", "--config", resolve("vite.server.config.ts"), "--outDir", staging, "--logLevel", "error"];
	await promisify(execFile)(process.execPath, args, { cwd: root, env: { ...process.env, NODE_ENV: "production" } });
	publish(staging, dist(), "main.js");
}

function start(): () => Promise<string> {
	const child = spawn(process.execPath, [join(dist(), "main.js")], { stdio: ["pipe", "pipe", "inherit"] });
	running.push(child);
	const lines = createInterface({ input: child.stdout });
	return () =>
		new Promise((said) => {
			lines.once("line", said);
			child.stdin.write("go\n");
		});
}

it("a program that runs from an earlier build starts the threads of that build, also after another one was put in place", async () => {
	await build("first");
	const old = start();
	expect(await old()).toBe("first");
	await build("second");
	expect(await start()()).toBe("second");
	expect(await old()).toBe("first");
});

it("whoever names a thread's program has another name when that program is another", async () => {
	await build("first");
	const before = await readdir(dist());
	await build("second");
	const added = (await readdir(dist())).filter((file) => file.endsWith(".js") && !before.includes(file));
	expect(added).toEqual([expect.stringMatching(/^part-.{8}\.js$/), expect.stringMatching(/^small-worker-.{8}\.js$/)]);
});
