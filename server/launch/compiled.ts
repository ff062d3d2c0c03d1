/**
 * What the engine has compiled of the program, kept in one file beside it: a start that finds it there need not compile a megabyte of
 * text again. Only what the same runtime wrote, for the very same text, is given out; everything else is as if the file were not there.
 */
import { closeSync, constants, fstatSync, openSync, readSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Script } from "node:vm";
import { crc32 } from "node:zlib";

export const compiledFile = "compiled.bin";

/** Length of a header in bytes is written in this many digits before it. */
const digits = 8;
const maxHeaderBytes = 1_000_000;

interface Place {
	at: number;
	bytes: number;
	/** Of the program's text and its compiled form together: the engine itself looks at the length of the one and at nothing of the other. */
	sum: number;
}

interface Header {
	runtime: string;
	files: Record<string, Place>;
}

export interface Loaded {
	file: string;
	source: Buffer;
	script: Script;
	/** It did not have to be compiled. */
	kept: boolean;
}

/** What has to be the same for compiled code to fit. The engine's flags belong to it as well; those it checks by itself. */
export const runtimeOf = () => `${process.version} ${process.versions.v8} ${process.platform} ${process.arch}`;

function read(fd: number, at: number, bytes: number): Buffer {
	const buffer = Buffer.allocUnsafeSlow(bytes);
	if (readSync(fd, buffer, 0, bytes, at) !== bytes) throw new Error("too short");
	return buffer;
}

function readHeader(fd: number): Header | null {
	const bytes = Number(read(fd, 0, digits).toString("latin1"));
	if (!(bytes > 0 && bytes < maxHeaderBytes)) return null;
	const header = JSON.parse(read(fd, digits, bytes).toString()) as Header;
	return header.runtime === runtimeOf() ? header : null;
}

/** Answers the compiled form of a file of the program, or undefined where it has to be compiled. Never throws. */
export function openCompiled(dir: string, entry: string): (file: string, source: Buffer) => Buffer | undefined {
	const none = () => undefined;
	let fd: number | null = null;
	try {
		// Not to be waited for, should it be a pipe.
		fd = openSync(join(dir, compiledFile), constants.O_RDONLY | constants.O_NONBLOCK);
		const [it, program] = [fstatSync(fd), statSync(join(dir, entry))];
		// Compiled code is code: nobody may have written it who could not have written the program itself.
		const isOurs = it.isFile() && it.uid === program.uid && (it.mode & 0o022 & ~program.mode) === 0;
		const header = isOurs ? readHeader(fd) : null;
		if (header) {
			const open = fd;
			fd = null;
			return (file, source) => {
				try {
					const place = Object.hasOwn(header.files, file) ? header.files[file] : undefined;
					if (!place || place.at + place.bytes > it.size) return undefined;
					const code = read(open, place.at, place.bytes);
					return crc32(code, crc32(source)) === place.sum ? code : undefined;
				} catch {
					return undefined;
				}
			};
		}
		return none;
	} catch {
		return none;
	} finally {
		if (fd !== null) closeSync(fd);
	}
}

/** Writes what is compiled of these files by now, functions that have run included: whole, or not at all. */
export function writeCompiled(dir: string, loaded: Loaded[]): void {
	const codes = loaded.map(({ file, source, script }) => ({ file, source, code: script.createCachedData() }));
	const headerOf = (start: number): string => {
		let at = start;
		const files: Header["files"] = {};
		for (const { file, source, code } of codes) {
			files[file] = { at, bytes: code.length, sum: crc32(code, crc32(source)) };
			at += code.length;
		}
		return JSON.stringify({ runtime: runtimeOf(), files } satisfies Header);
	};
	// Where the first one begins depends on the header, and the header on that: room for the longest is left.
	const room = headerOf(Number.MAX_SAFE_INTEGER).length + 1;
	const header = headerOf(digits + room).padEnd(room);
	const temporary = join(dir, `${compiledFile}.${process.pid}.tmp`);
	try {
		const head = Buffer.from(String(room).padStart(digits, "0") + header);
		writeFileSync(temporary, Buffer.concat([head, ...codes.map(({ code }) => code)]), { mode: 0o644 });
		renameSync(temporary, join(dir, compiledFile));
	} catch (error) {
		rmSync(temporary, { force: true });
		throw error;
	}
}
