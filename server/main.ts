/** The entry of the program: words on the command line -> a command. Everything is loaded when it is needed. */
import { constants } from "node:os";
import { runProgram } from "./cli/main.ts";
import { processVariables } from "./config/environment.ts";
import { version } from "./version.ts";

let serving = false;

/**
 * Whoever read the output has left (`| head`, a closed terminal). The daemon goes on, its log is in the home; a command goes on without
 * its progress, and without a reader of its answer ends as a program does that is told so by a signal.
 */
function onOutputError(this: NodeJS.WriteStream, error: NodeJS.ErrnoException): void {
	if (serving) return;
	if (error.code !== "EPIPE") throw error;
	if (this === process.stdout) process.exit(128 + constants.signals.SIGPIPE);
}
process.stdout.on("error", onOutputError);
process.stderr.on("error", onOutputError);

const code = runProgram({
	argv: process.argv.slice(2),
	env: processVariables(),
	// Made by Node when it is first asked for; a daemon never does.
	get stdin() {
		return process.stdin;
	},
	stdout: process.stdout,
	stderr: process.stderr,
	version,
	async startDaemon(options) {
		const { startDaemon } = await import("./daemon.ts");
		return startDaemon(options);
	},
	async serve(environment, options) {
		serving = true;
		const { serve } = await import("./cli/serve.ts");
		return serve(environment, options);
	},
	onSignal(callback) {
		let signalled = false;
		const onSignal = () => {
			if (signalled) process.exit(130);
			signalled = true;
			callback();
		};
		process.on("SIGINT", onSignal);
		process.on("SIGTERM", onSignal);
		return () => {
			process.off("SIGINT", onSignal);
			process.off("SIGTERM", onSignal);
		};
	},
});

async function end(code: number): Promise<never> {
	// Nothing may hold the process back once the command has ended; what was written to a pipe still gets there.
	process.exitCode = code;
	await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
	process.exit();
}

// Not awaited at the top: that is for modules only, and what is built is scripts.
void code.then(end);
