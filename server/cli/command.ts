/** What a command of `openlani` is, and how its words are read. Nothing here is loaded twice or costs time at start. */
import type { Environment } from "../config/environment.ts";
import { nearest } from "../config/nearest.ts";
import type { StartDaemon } from "./connect.ts";

/** A sentence in both languages. */
export interface Text {
	en: string;
	zh: string;
}

export interface FlagSpec {
	type: "switch" | "text" | "number";
	/** Placeholder of the value in the help. */
	value?: string;
	/** May be given several times. */
	many?: boolean;
	short?: string;
	about: Text;
}

export interface Command {
	name: string;
	/** Words after the name, for the help. */
	usage: string;
	about: Text;
	/** More for `--help`. */
	details?: Text;
	flags: Record<string, FlagSpec>;
	/** Fewest and most words beside the flags. */
	words: [number, number];
	/** Answers the exit code. Throws `CliError` for what a person can mend. */
	run(io: Io, input: Input): Promise<number>;
}

export interface Input {
	words: string[];
	on(flag: string): boolean;
	text(flag: string): string | null;
	number(flag: string): number | null;
	list(flag: string): string[];
}

/** Where a command reads and writes. Handed in, so that tests need no terminal. */
export interface Io {
	environment: Environment;
	stdin: NodeJS.ReadableStream & { isTTY?: boolean };
	stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
	stderr: NodeJS.WritableStream & { isTTY?: boolean };
	/** Aborted by Ctrl-C and SIGTERM. */
	signal: AbortSignal;
	/** Puts the daemon's whole composition into this process, on a port of its own, with a quiet log. */
	startDaemon: StartDaemon;
	version: string;
}

/** Something a person can mend: said in one sentence, without a stack. */
export class CliError extends Error {
	readonly exitCode: number;
	constructor(message: string, exitCode = 1) {
		super(message);
		this.name = "CliError";
		this.exitCode = exitCode;
	}
}

export function say(io: Io, text: Text): string {
	return io.environment.language === "zh-CN" ? text.zh : text.en;
}

export function print(io: Io, line = ""): void {
	io.stdout.write(`${line}\n`);
}

export function note(io: Io, line = ""): void {
	io.stderr.write(`${line}\n`);
}

/** Flags that every command takes. */
export const commonFlags: Record<string, FlagSpec> = {
	home: { type: "text", value: "DIR", about: { en: "where everything lives (default ~/.openlani)", zh: "数据目录（默认 ~/.openlani）" } },
	help: { type: "switch", short: "h", about: { en: "this help", zh: "显示帮助" } },
};

/** Reads the words after a command's name. Throws `CliError` that names the wrong flag and the nearest right one. */
export function readInput(command: Pick<Command, "name" | "flags" | "words" | "usage">, argv: string[], language: "zh-CN" | "en"): Input {
	const specs: Record<string, FlagSpec> = { ...command.flags, ...commonFlags };
	const byShort = new Map(Object.entries(specs).flatMap(([name, spec]) => (spec.short ? [[spec.short, name] as const] : [])));
	const fail = (text: Text) => new CliError(language === "zh-CN" ? text.zh : text.en);
	const values = new Map<string, string[]>();
	const words: string[] = [];
	let flagsEnded = false;

	for (let index = 0; index < argv.length; index++) {
		const word = argv[index] ?? "";
		if (flagsEnded || word === "-" || !/^-/.test(word) || /^-\d/.test(word)) {
			words.push(word);
			continue;
		}
		if (word === "--") {
			flagsEnded = true;
			continue;
		}
		const [, dashes, given = "", inline] = /^(--?)([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
		const name = dashes === "-" ? byShort.get(given) : given;
		const spec = name === undefined ? undefined : specs[name];
		if (!name || !spec) {
			const meant = nearest(given, Object.keys(specs));
			throw fail({
				en: `${command.name}: unknown flag ${dashes}${given}${meant ? `; did you mean --${meant}?` : ""} (openlani ${command.name} --help)`,
				zh: `${command.name}：没有 ${dashes}${given} 这个选项${meant ? `，是不是 --${meant}？` : ""}（openlani ${command.name} --help）`,
			});
		}
		let value = inline;
		if (spec.type === "switch") {
			if (value !== undefined && !/^(true|false)$/.test(value)) throw fail({ en: `--${name} takes no value`, zh: `--${name} 不带值` });
			value ??= "true";
		} else if (value === undefined) {
			value = argv[++index];
			if (value === undefined)
				throw fail({ en: `--${name} needs a value (${spec.value ?? "VALUE"})`, zh: `--${name} 需要一个值（${spec.value ?? "VALUE"}）` });
		}
		if (spec.type === "number" && !/^\d+(\.\d+)?$/.test(value))
			throw fail({ en: `--${name} must be a number, not "${value}"`, zh: `--${name} 必须是数字，不能是“${value}”` });
		values.set(name, spec.many ? [...(values.get(name) ?? []), value] : [value]);
	}

	const [fewest, most] = command.words;
	if (!values.has("help") && (words.length < fewest || words.length > most)) {
		throw fail({
			en: `usage: openlani ${command.name} ${command.usage}`.trim(),
			zh: `用法：openlani ${command.name} ${command.usage}`.trim(),
		});
	}
	const text = (flag: string) => values.get(flag)?.at(-1) ?? null;
	return {
		words,
		text,
		on: (flag) => text(flag) === "true",
		number: (flag) => (text(flag) === null ? null : Number(text(flag))),
		list: (flag) => values.get(flag) ?? [],
	};
}
