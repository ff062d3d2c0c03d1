import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FloorMessage, ModelCommand, ModelMessage } from "./messages.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** Milliseconds with fractions on a clock that all processes of this machine share and nobody sets. (A process's `timeOrigin` is the wall clock's, which is.) */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Ends a child and resolves when it is gone. */
export function end(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
	if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
	return new Promise((resolve) => {
		const hard = setTimeout(() => child.kill("SIGKILL"), 15_000);
		child.once("exit", () => {
			clearTimeout(hard);
			resolve();
		});
		child.kill(signal);
	});
}

export interface ModelTimes {
	/** When a request had arrived, and when its answer's last byte was out. */
	arrivedAt: number;
	endedAt: number;
	lastUser: string;
}

export interface ModelProcess {
	/** `http://127.0.0.1:PORT/v1` */
	url: string;
	/** Forgets what was noted and begins to note times (`times`) or whole request bodies (`bodies`), or stops noting. */
	note(what: "times" | "bodies" | "nothing"): Promise<void>;
	times(): Promise<ModelTimes[]>;
	bodies(): Promise<string[]>;
	close(): Promise<void>;
}

function forkTs(file: string, env: NodeJS.ProcessEnv = {}): ChildProcess {
	return fork(join(ROOT, "bench", file), {
		cwd: ROOT,
		execArgv: ["--import", "tsx"],
		env: { ...process.env, ...env },
		stdio: ["ignore", "inherit", "inherit", "ipc"],
	});
}

const nextMessage = <T>(child: ChildProcess) => new Promise<T>((resolve) => child.once("message", (message) => resolve(message as T)));

/** The scripted model server, in a process of its own so that it takes no time from what is measured. */
export async function startModel(): Promise<ModelProcess> {
	const child = forkTs("model-process.ts");
	const ready = await nextMessage<ModelMessage>(child);
	const ask = async (command: ModelCommand) => {
		const answer = nextMessage<ModelMessage>(child);
		child.send(command);
		return answer;
	};
	return {
		url: ready.url ?? "",
		note: async (what) => void (await ask({ note: what })),
		times: async () => (await ask({ get: "times" })).times ?? [],
		bodies: async () => (await ask({ get: "bodies" })).bodies ?? [],
		close: () => end(child),
	};
}

/** The bare echo: Fastify, WebSocket, SQLite and the openai SDK, and nothing of ours. */
export async function startFloor(modelUrl: string): Promise<{ url: string; pid: number; close(): Promise<void> }> {
	const home = await mkdtemp(join(tmpdir(), "openlani-floor-"));
	const child = forkTs("floor-process.ts", { BENCH_MODEL_URL: modelUrl, BENCH_FLOOR_HOME: home });
	const { url } = await nextMessage<FloorMessage>(child);
	return {
		url,
		pid: child.pid ?? 0,
		async close() {
			await end(child);
			await rm(home, { recursive: true, force: true });
		},
	};
}

export interface DaemonProcess {
	url: string;
	token: string;
	pid: number;
	/** From the start of the process to the ready line, ms. */
	readyMs: number;
	startedAt: number;
	stop(): Promise<void>;
}

export interface Home {
	path: string;
	remove(): Promise<void>;
}

/** An empty home whose only setting is a daily limit that a benchmark does not reach. */
export async function makeHome(): Promise<Home> {
	const path = await mkdtemp(join(tmpdir(), "openlani-bench-"));
	await writeFile(join(path, "config.yaml"), "budget: { dailyTokens: 100000000000 }\n");
	return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

const TOKEN = "bench-token-0123456789";

/** The built daemon, started as a person would start it after `npm run build`. */
export async function startDaemon(home: string, modelUrl: string): Promise<DaemonProcess> {
	const startedAt = now();
	const child = spawn(process.execPath, [join(ROOT, "dist", "server", "main.js"), "serve", "--home", home, "--port", "0"], {
		cwd: ROOT,
		env: {
			PATH: process.env.PATH,
			HOME: home,
			LANG: "en_US.UTF-8",
			OPENLANI_TOKEN: TOKEN,
			OPENAI_BASE_URL: modelUrl,
			OPENAI_API_KEY: "sk-bench",
			OPENLANI_MODEL: "bench-model",
		},
		stdio: ["ignore", "pipe", "pipe"],
	});
	let output = "";
	const url = await new Promise<string>((resolve, reject) => {
		const look = (chunk: Buffer) => {
			if (output.length < 100_000) output += chunk;
			const found = /^OpenLani ready at (http:\/\/\S+)$/m.exec(output);
			if (found?.[1]) resolve(found[1]);
		};
		child.stdout.on("data", look);
		child.stderr.on("data", look);
		child.once("exit", (code) => reject(new Error(`the daemon ended with code ${code}:\n${output}`)));
	});
	return { url, token: TOKEN, pid: child.pid ?? 0, readyMs: now() - startedAt, startedAt, stop: () => end(child) };
}

/** Resident and anonymous memory of a process in MB; null where /proc does not tell. */
export async function memoryOf(pid: number): Promise<{ resident: number; anonymous: number } | null> {
	const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => null);
	const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text ?? "")?.[1]) / 1024;
	return text === null ? null : { resident: of("Rss"), anonymous: of("Anonymous") };
}

/** Processor time that a process has used so far, ms (all threads); null where /proc does not tell. */
export async function cpuOf(pid: number): Promise<number | null> {
	const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
	// After the name in brackets: fields 14 and 15 of the line, in hundredths of a second.
	const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
	return fields ? (Number(fields[11]) + Number(fields[12])) * 10 : null;
}
