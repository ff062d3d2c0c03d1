/** The log's files: one that is written, a few older ones, never more than so many bytes in all. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

export interface LogFile {
	/** Takes one line, ended by a newline. Written within `delayMs`, at once when `now` is true. Never throws. */
	write(line: string, now?: boolean): void;
	flush(): void;
	close(): void;
	/** Lines that could not be written (disk full, no permission) since the last success. */
	lost(): number;
}

export interface LogFileOptions {
	dir: string;
	/** Base name; the older ones are `NAME.1.log`, `NAME.2.log`, … */
	name?: string;
	/** Size at which the file is changed. Default 5 MB. */
	maxBytes?: number;
	/** Files in all, the current one included. Default 6. */
	files?: number;
	/** Longest time a line waits for others, ms. Default 100. */
	delayMs?: number;
}

/** Opens nothing until the first line. Whoever makes it closes it. */
export function createLogFile({ dir, name = "openlani", maxBytes = 5_000_000, files = 6, delayMs = 100 }: LogFileOptions): LogFile {
	const current = join(dir, `${name}.log`);
	const older = (number: number): string => join(dir, `${name}.${number}.log`);
	let handle: number | null = null;
	let size = 0;
	let waiting: string[] = [];
	let waitingLength = 0;
	let timer: NodeJS.Timeout | null = null;
	let lost = 0;
	let closed = false;

	function open(): number {
		mkdirSync(dir, { recursive: true, mode: 0o700 });
		const made = openSync(current, "a", 0o600);
		size = statSync(current).size;
		handle = made;
		return made;
	}

	function rotate(): void {
		if (handle !== null) closeSync(handle);
		handle = null;
		rmSync(older(files - 1), { force: true });
		for (let number = files - 2; number >= 1; number -= 1) move(older(number), older(number + 1));
		if (files > 1) move(current, older(1));
		else rmSync(current, { force: true });
	}

	function flush(): void {
		if (timer) clearTimeout(timer);
		timer = null;
		if (waiting.length === 0) return;
		const lines = waiting;
		waiting = [];
		waitingLength = 0;
		try {
			const bytes = Buffer.from(lines.join(""), "utf8");
			let to = handle ?? open();
			if (size > 0 && size + bytes.length > maxBytes) {
				rotate();
				to = open();
			}
			for (let from = 0; from < bytes.length; ) from += writeSync(to, bytes, from);
			size += bytes.length;
			lost = 0;
		} catch {
			// A log that cannot be written must not stop the service: the console has the line, status has the count.
			lost += lines.length;
			try {
				if (handle !== null) closeSync(handle);
			} catch {}
			handle = null;
		}
	}

	return {
		write(line, now = false) {
			if (closed) return;
			waiting.push(line);
			waitingLength += line.length;
			if (now || waitingLength >= 65_536) flush();
			else if (!timer) {
				timer = setTimeout(flush, delayMs);
				timer.unref();
			}
		},
		flush,
		close() {
			flush();
			closed = true;
			if (handle === null) return;
			try {
				fsyncSync(handle);
				closeSync(handle);
			} catch {}
			handle = null;
		},
		lost: () => lost,
	};
}

function move(from: string, to: string): void {
	try {
		renameSync(from, to);
	} catch (error) {
		if ((error as { code?: string }).code !== "ENOENT") throw error;
	}
}
