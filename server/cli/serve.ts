import type { Environment } from "../config/environment.ts";
import { startDaemon } from "../daemon.ts";
import { StartRefused } from "../http/listen.ts";
import { NewerSchemaError } from "../store/sqlite.ts";
import { HomeLocked } from "../workspace/lock.ts";

/** What a person reads instead of a stack trace; null for a fault of ours. */
function sentenceOf(error: unknown): string | null {
	if (error instanceof StartRefused || error instanceof HomeLocked || error instanceof NewerSchemaError) return error.message;
	const { code, path, syscall } =
		(error as Error).cause instanceof Error ? ((error as Error).cause as NodeJS.ErrnoException) : (error as NodeJS.ErrnoException);
	// Making a folder inside a read-only one ends with ENOENT when its parents are to be made as well.
	if (code === "EACCES" || code === "EPERM" || code === "EROFS" || (code === "ENOENT" && syscall === "mkdir"))
		return `The home cannot be written${path ? ` (${path})` : ""}: ${code}. Use another one with --home DIR.`;
	if (code === "ENOSPC" || code === "SQLITE_FULL") return "The disk is full: OpenLani cannot start.";
	if (code === "ENOTDIR" || code === "EISDIR" || code === "EEXIST")
		return `Something else stands where OpenLani keeps its files${path ? ` (${path})` : ""}: ${code}. Move it away, or use another home with --home DIR.`;
	if (code?.startsWith("SQLITE_CANTOPEN") || code?.startsWith("SQLITE_READONLY"))
		return "The database data/openlani.db in the home cannot be opened for writing: it must be a file that this user may write, in a folder likewise.";
	if (code?.startsWith("SQLITE_BUSY"))
		return "The database data/openlani.db in the home is locked by another program. Close that one and start again.";
	return null;
}

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
		const sentence = sentenceOf(error);
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
