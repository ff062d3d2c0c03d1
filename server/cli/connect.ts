/** The way to a daemon: the one that runs with this home, or one in this process for the time of the command. */
import type { Environment } from "../config/environment.ts";
import { homeHolder, readRuntime } from "../workspace/lock.ts";
import { readToken } from "../workspace/token.ts";
import { ApiError, type Client, createClient, pause, Unreachable } from "./client.ts";
import { CliError, type Io, say } from "./command.ts";
import { whyNotStarted } from "./start-words.ts";

export interface RunningDaemon {
	url: string;
	token: string;
	stop(): Promise<void>;
}

/** The composition root, for the time of one command: its log says nothing on the console but errors. */
export type StartDaemon = (options: { environment: Environment; inProcess: true }) => Promise<RunningDaemon>;

export interface Connection {
	client: Client;
	/** True when the daemon lives in this process and ends with it. */
	own: boolean;
	close(): Promise<void>;
}

/** The daemon that runs with this home, or null when none does. */
export async function findDaemon(io: Io): Promise<Client | null> {
	const { home, token: environmentToken } = io.environment;
	for (let attempt = 0; ; attempt++) {
		const runtime = await readRuntime(home);
		if (runtime) return tryTokens(io, runtime.url, [environmentToken, await readToken(home)]);
		// It holds the home but has no address yet: it is just starting, or just stopping.
		if (attempt >= 50 || !(await homeHolder(home))) return null;
		await pause(100, io.signal);
	}
}

async function tryTokens(io: Io, url: string, tokens: (string | null)[]): Promise<Client> {
	let refused: ApiError | null = null;
	for (const token of new Set(tokens)) {
		if (token === null) continue;
		const client = createClient({ url, token });
		try {
			await client.status(AbortSignal.any([io.signal, AbortSignal.timeout(10_000)]));
			return client;
		} catch (error) {
			if (error instanceof ApiError && error.status === 401) refused = error;
			else if (error instanceof Unreachable || error instanceof ApiError)
				throw new CliError(
					say(io, {
						en: `The daemon of this home runs, but ${error.message}. Look into its log, or stop it and try again.`,
						zh: `守护进程在运行，但没有正常回答：${error.message}。请查看它的日志，或停掉后再试。`,
					}),
				);
			else if (io.signal.aborted) throw error;
			else
				throw new CliError(
					say(io, { en: `The daemon at ${url} does not answer within 10 seconds.`, zh: `${url} 的守护进程 10 秒内没有回答。` }),
				);
		}
	}
	throw new CliError(
		say(
			io,
			refused
				? {
						en: "The running daemon does not take this token. It was started with an OPENLANI_TOKEN of its own: set the same one here.",
						zh: "运行中的守护进程不接受这个令牌：它启动时设置了自己的 OPENLANI_TOKEN，请在这里设置同一个。",
					}
				: {
						en: "There is no token for the running daemon: set the OPENLANI_TOKEN that it was started with.",
						zh: "没有可用的令牌：请设置守护进程启动时的 OPENLANI_TOKEN。",
					},
		),
	);
}

/** Connects; starts the daemon in this process when none runs. `close` ends what was started. */
export async function connect(io: Io): Promise<Connection> {
	const running = await findDaemon(io);
	if (running) return { client: running, own: false, close: async () => undefined };
	const daemon = await io
		.startDaemon({ environment: { ...io.environment, host: "127.0.0.1", port: 0 }, inProcess: true })
		.catch((error: unknown) => {
			const why = whyNotStarted(error, io.environment.home);
			throw why ? new CliError(say(io, why)) : error;
		});
	return { client: createClient(daemon), own: true, close: () => daemon.stop() };
}
