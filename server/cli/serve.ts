import type { Environment } from "../config/environment.ts";
import { startDaemon } from "../daemon.ts";
import { whyNotStarted } from "./start-words.ts";

/**
 * Runs the daemon in the foreground until SIGINT or SIGTERM. Prints the ready line, and on a home without an account the set-up
 * link. A first signal ends in order (exit code 0), a second one at once. Answers the exit code when it could not start.
 */
export async function serve(environment: Environment, options: { quiet?: boolean } = {}): Promise<number> {
	let daemon: Awaited<ReturnType<typeof startDaemon>> | null = null;
	let ended: ((code: number) => void) | null = null;
	const code = new Promise<number>((resolve) => {
		ended = resolve;
	});
	let signalled = false;
	function onSignal(): void {
		// Everything that matters is in the store: leaving at once loses nothing.
		if (signalled) process.exit(130);
		signalled = true;
		void (daemon ? daemon.stop() : Promise.resolve()).then(
			() => ended?.(0),
			() => ended?.(1),
		);
	}
	// A fault of ours in work that nobody waits for: said, and survived. What matters is in the store.
	process.on("unhandledRejection", (error) => {
		process.stderr.write(`OpenLani: an error that nobody waited for: ${(error as Error)?.stack ?? String(error)}\n`);
	});
	process.on("SIGINT", onSignal);
	process.on("SIGTERM", onSignal);
	try {
		daemon = await startDaemon({ environment, ...options });
	} catch (error) {
		const why = whyNotStarted(error, environment.home);
		const sentence = why && (environment.language === "zh-CN" ? why.zh : why.en);
		process.stderr.write(`${sentence ?? `OpenLani could not start: ${(error as Error).stack ?? String(error)}`}\n`);
		return 1;
	}
	if (signalled) {
		await daemon.stop();
		return 0;
	}
	process.stdout.write(`OpenLani ready at ${daemon.url}\n`);
	if (daemon.setupUrl) process.stdout.write(`Set up your account (this link works once): ${daemon.setupUrl}\n`);
	return code;
}
