/** A line about the set-up, on stderr: stdout belongs to the program that is started. */
export function say(text) {
	process.stderr.write(`openlani: ${text}\n`);
}

/** A step of the set-up failed in a way that a person can do something about. */
export class SetupError extends Error {
	constructor(message, exitCode = 1) {
		super(message);
		this.name = "SetupError";
		this.exitCode = exitCode;
	}
}
