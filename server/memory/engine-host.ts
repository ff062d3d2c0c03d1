/** Starts the search engine's process at the first question, ends it when it is idle, and begins anew when it died. */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Engine, EngineOptions, SearchAnswer, SearchRequest, SyncState } from "../store/memory-search.ts";
import type { WorkerCall, WorkerReply } from "../store/memory-worker.ts";
import type { MemoryLog } from "./options.ts";

export interface EngineHostOptions extends EngineOptions {
	log: MemoryLog;
	/** Ends the process after this time without a question. Default 60 s. */
	idleMs?: number;
	/** A question that takes longer is given up. Default 5 s. */
	answerMs?: number;
}

interface Running {
	child: ChildProcess;
	waiting: Map<number, { resolve(value: unknown): void; reject(error: Error): void; timer: NodeJS.Timeout }>;
	next: number;
	ready: Promise<unknown>;
}

/** The process is gone or does not answer: by its code told from a question that it refused. */
const unavailable = (message: string): Error => Object.assign(new Error(message), { code: "MEMORY_ENGINE" });

/** Among the sources, or beside this file in a build. */
function workerFile(): string {
	const file = fileURLToPath(
		new URL(import.meta.url.endsWith(".ts") ? "../store/memory-worker.ts" : "./memory-worker.js", import.meta.url),
	);
	if (!existsSync(file)) throw new Error("the program file memory-worker is missing");
	return file;
}

/** What a process needs to run TypeScript sources: nothing for a build. */
const execArgvFor = (file: string): string[] => (file.endsWith(".ts") ? ["--import", "tsx"] : []);

/** In a process of its own where that is possible; else in this one, which is worse but works. */
export function createEngineHost(options: EngineHostOptions): Engine & { pid(): number | null } {
	let inside: Promise<Engine> | null = null;
	let file: string;
	try {
		file = workerFile();
	} catch (error) {
		options.log.warn("memory.engine-inside", { error: (error as Error).message });
		const engine = (): Promise<Engine> => {
			inside ??= import("../store/memory-engine.ts").then((room) => room.createEngine(options));
			return inside;
		};
		return {
			search: async (request) => (await engine()).search(request),
			sync: async (model, limit) => (await engine()).sync(model, limit),
			close: async () => (await inside)?.close(),
			pid: () => null,
		};
	}
	return createChildHost(options, file);
}

function createChildHost(options: EngineHostOptions, file: string): Engine & { pid(): number | null } {
	const { log, mainFile, indexFile, timezone } = options;
	const idleMs = options.idleMs ?? 60_000;
	const answerMs = options.answerMs ?? 5000;
	let running: Running | null = null;
	let idle: NodeJS.Timeout | null = null;
	let closed = false;

	function end(which: Running, why: Error): void {
		if (running === which) running = null;
		for (const one of which.waiting.values()) {
			clearTimeout(one.timer);
			one.reject(why);
		}
		which.waiting.clear();
	}

	function start(): Running {
		// No keys and no settings of the daemon reach it.
		const env: NodeJS.ProcessEnv = {};
		const child = fork(file, [], {
			env,
			execArgv: [...execArgvFor(file), "--max-old-space-size=256"],
			serialization: "advanced",
			stdio: ["ignore", "ignore", "pipe", "ipc"],
		});
		const made: Running = { child, waiting: new Map(), next: 1, ready: Promise.resolve() };
		let stderr = "";
		child.stderr?.setEncoding("utf8");
		child.stderr?.on("data", (text: string) => {
			stderr = (stderr + text).slice(-2000);
		});
		child.on("message", (reply: WorkerReply) => {
			const one = made.waiting.get(reply.id);
			if (!one) return;
			made.waiting.delete(reply.id);
			clearTimeout(one.timer);
			if (reply.error) one.reject(Object.assign(new Error(reply.error.message), { code: reply.error.code }));
			else one.resolve(reply.value);
		});
		child.on("error", (error) => end(made, unavailable(error.message)));
		child.on("exit", (code, signal) => {
			const why = /^\w*Error: .+$/m.exec(stderr)?.[0] ?? null;
			if (made.waiting.size > 0 && !closed) log.warn("memory.engine-ended", { code, signal, why, stderr: stderr.slice(-500) });
			end(made, unavailable(why === null ? "the search engine ended" : `the search engine ended: ${why}`));
		});
		// The daemon's exit must not wait for it.
		child.unref();
		child.channel?.unref();
		running = made;
		made.ready = post(made, { type: "open", options: { mainFile, indexFile, timezone } }, 30_000);
		made.ready.catch(() => {
			child.kill("SIGKILL");
		});
		return made;
	}

	function post(
		on: Running,
		call:
			| { type: "open"; options: EngineOptions }
			| { type: "search"; request: SearchRequest }
			| { type: "sync"; model: string; limit: number },
		limitMs: number,
	): Promise<unknown> {
		return new Promise((resolve, reject) => {
			const id = on.next++;
			const timer = setTimeout(() => {
				on.waiting.delete(id);
				reject(unavailable("the search engine takes too long"));
			}, limitMs);
			on.waiting.set(id, { resolve, reject, timer });
			on.child.send({ id, ...call } as WorkerCall, (error) => {
				if (!error) return;
				const one = on.waiting.get(id);
				on.waiting.delete(id);
				clearTimeout(timer);
				one?.reject(error);
			});
		});
	}

	async function call<T>(
		message: { type: "search"; request: SearchRequest } | { type: "sync"; model: string; limit: number },
		limitMs: number,
	): Promise<T> {
		if (closed) throw new Error("the memory is stopped");
		const on = running ?? start();
		on.child.channel?.ref();
		if (idle) clearTimeout(idle);
		idle = null;
		try {
			await on.ready;
			return (await post(on, message, limitMs)) as T;
		} finally {
			if (on.waiting.size === 0) {
				on.child.channel?.unref();
				if (idle) clearTimeout(idle);
				idle = setTimeout(() => {
					idle = null;
					if (running === on && on.waiting.size === 0) {
						running = null;
						on.child.disconnect();
					}
				}, idleMs);
				idle.unref();
			}
		}
	}

	return {
		search: (request) => call<SearchAnswer>({ type: "search", request }, answerMs),
		sync: (model, limit) => call<SyncState>({ type: "sync", model, limit }, 60_000),
		async close() {
			closed = true;
			if (idle) clearTimeout(idle);
			const on = running;
			running = null;
			if (!on || on.child.exitCode !== null || !on.child.connected) return;
			await new Promise<void>((resolve) => {
				const force = setTimeout(() => on.child.kill("SIGKILL"), 3000);
				on.child.once("exit", () => {
					clearTimeout(force);
					resolve();
				});
				on.child.ref();
				on.child.disconnect();
			});
		},
		pid: () => running?.child.pid ?? null,
	};
}
