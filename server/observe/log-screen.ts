/** The console's lines. Those of one moment are one write: a console is written to synchronously. */

export interface Screen {
	/** Takes one line, ended by a newline. Written within the moment, at once when `now` is true. */
	write(line: string, now: boolean): void;
	flush(): void;
	/** Writes what waits; lines that come later are written at once. */
	close(): void;
}

export function createScreen(out: { write(text: string): unknown }): Screen {
	let waiting = "";
	let timer: NodeJS.Immediate | null = null;
	let closed = false;

	function flush(): void {
		if (timer) clearImmediate(timer);
		timer = null;
		if (waiting === "") return;
		const text = waiting;
		waiting = "";
		out.write(text);
	}

	// Whoever ends the process at once still gets the last lines.
	process.on("exit", flush);
	return {
		write(line, now) {
			waiting += line;
			if (now || closed) flush();
			else timer ??= setImmediate(flush);
		},
		flush,
		close() {
			flush();
			closed = true;
			process.off("exit", flush);
		},
	};
}
