/** The built program as its own process, driven over real HTTP. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const built = fileURLToPath(new URL("../../dist/server/main.js", import.meta.url));

export interface RunningDaemon {
	url: string;
	token: string;
	/** The code of the one-time set-up link, which is printed behind the ready line on a home without an account. */
	setupCode(): Promise<string>;
	child: ChildProcess;
	/** Everything it has printed. */
	output(): string;
	call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }>;
	/** SIGKILL, and gone. */
	kill(): Promise<void>;
	/** SIGTERM; answers the exit code. */
	stop(): Promise<number | null>;
}

export interface DaemonSettings {
	home: string;
	env?: Record<string, string>;
	args?: string[];
	/** Another copy's main.js. */
	program?: string;
	/** A command, with its arguments, that starts it and becomes it, such as `setpriv`. */
	under?: string[];
}

const readyLine = /^OpenLani ready at (http:\/\/\S+)$/m;

/** Starts `serve` on a free port and resolves at its ready line. Rejects with what it printed when it ends before. */
export async function startDaemonProcess(settings: DaemonSettings): Promise<RunningDaemon> {
	const serve = [process.execPath, settings.program ?? built, "serve", "--home", settings.home, "--port", "0", ...(settings.args ?? [])];
	const [command = "", ...rest] = [...(settings.under ?? []), ...serve];
	const child = spawn(command, rest, {
		env: { PATH: process.env.PATH ?? "", HOME: settings.home, TZ: "Asia/Shanghai", LANG: "en_US.UTF-8", ...settings.env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	let output = "";
	const gone = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
	const url = await new Promise<string>((resolve, reject) => {
		const take = (chunk: Buffer) => {
			output += chunk.toString();
			const ready = readyLine.exec(output);
			if (ready?.[1]) resolve(ready[1]);
		};
		child.stdout.on("data", take);
		child.stderr.on("data", take);
		void gone.then((code) => reject(new Error(`the daemon ended with ${code} before it was ready:\n${output}`)));
	});
	const token = settings.env?.OPENLANI_TOKEN ?? (await readFile(join(settings.home, "data", "token"), "utf8")).trim();
	return {
		url,
		token,
		async setupCode() {
			for (;;) {
				const code = /#setup=(\S+)\n/.exec(output)?.[1];
				if (code) return code;
				const ended = await Promise.race([
					new Promise((resolve) => child.stdout.once("data", () => resolve(false))),
					gone.then(() => true),
				]);
				if (ended) throw new Error(`the daemon ended and had no set-up link:\n${output}`);
			}
		},
		child,
		output: () => output,
		async call<T>(method: string, path: string, body?: unknown) {
			const response = await fetch(url + path, {
				method,
				headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
				...(body === undefined ? {} : { body: JSON.stringify(body) }),
			});
			const text = await response.text();
			return { status: response.status, body: (text === "" ? null : JSON.parse(text)) as T };
		},
		async kill() {
			child.kill("SIGKILL");
			await gone;
		},
		async stop() {
			child.kill("SIGTERM");
			return gone;
		},
	};
}

/** A home whose one chat model is the server at `modelUrl`. */
export async function homeWithModel(home: string, modelUrl: string, more = ""): Promise<void> {
	await mkdir(home, { recursive: true, mode: 0o700 });
	await writeFile(
		join(home, "config.yaml"),
		`models:\n  - { id: main, provider: custom, model: scripted, baseUrl: "${modelUrl}", apiKeys: ["sk-test-0123456789abcdef"] }\n${more}`,
		{ mode: 0o600 },
	);
}
