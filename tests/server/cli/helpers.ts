import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { runProgram } from "../../../server/cli/main.ts";
import { readEnvironment } from "../../../server/config/environment.ts";
import { type Daemon, startDaemon } from "../../../server/daemon.ts";

export interface Result {
	code: number;
	out: string;
	err: string;
}

export interface TestProgram {
	root: string;
	home: string;
	env: Record<string, string>;
	/** Daemons that a command started in its own process. */
	started: number;
	run(
		argv: string[],
		options?: { input?: string; env?: Record<string, string>; onSignal?: (callback: () => void) => void },
	): Promise<Result>;
	daemon(env?: Record<string, string>): Promise<Daemon>;
	remove(): Promise<void>;
}

/** The program with its real daemon, without a terminal and without a process of its own. */
export async function createTestProgram(): Promise<TestProgram> {
	const root = await mkdtemp(join(tmpdir(), "lani-cli-"));
	const home = join(root, "home");
	const daemons: Daemon[] = [];
	const test: TestProgram = {
		root,
		home,
		env: { OPENLANI_HOME: home, OPENLANI_PORT: "0", HOME: root, TZ: "UTC", LANG: "C.UTF-8", OPENLANI_LOG_LEVEL: "error" },
		started: 0,
		async run(argv, options = {}) {
			const stdout = new PassThrough();
			const stderr = new PassThrough();
			const parts = { out: "", err: "" };
			stdout.on("data", (part: Buffer) => (parts.out += part.toString("utf8")));
			stderr.on("data", (part: Buffer) => (parts.err += part.toString("utf8")));
			const code = await runProgram({
				argv,
				env: { ...test.env, ...options.env },
				stdin: Readable.from(options.input === undefined ? [] : [options.input]),
				stdout,
				stderr,
				version: "0.0.0-test",
				startDaemon(daemonOptions) {
					test.started += 1;
					return startDaemon({ ...daemonOptions, quiet: true });
				},
				serve: async (environment, { quiet }) => {
					stdout.write(`${JSON.stringify({ home: environment.home, host: environment.host, port: environment.port, quiet })}\n`);
					return 0;
				},
				onSignal(callback) {
					options.onSignal?.(callback);
					return () => undefined;
				},
			});
			await new Promise((resolve) => setImmediate(resolve));
			return { code, ...parts };
		},
		async daemon(env = {}) {
			const daemon = await startDaemon({ environment: readEnvironment({ ...test.env, ...env }), quiet: true });
			daemons.push(daemon);
			return daemon;
		},
		async remove() {
			for (const daemon of daemons) await daemon.stop();
			await rm(root, { recursive: true, force: true });
		},
	};
	return test;
}
