/** From words on the command line to a command and its exit code. */
import { readEnvironment } from "../config/environment.ts";
import { nearest } from "../config/nearest.ts";
import { CliError, type Command, commonFlags, type Io, readInput } from "./command.ts";
import { commands } from "./commands.ts";
import type { StartDaemon } from "./connect.ts";
import { commandHelp, programHelp } from "./help.ts";

export interface Program {
	argv: string[];
	env: Record<string, string | undefined>;
	stdin: Io["stdin"];
	stdout: Io["stdout"];
	stderr: Io["stderr"];
	version: string;
	startDaemon: StartDaemon;
	/** Runs the daemon in the foreground; answers its exit code. */
	serve(environment: Io["environment"], options: { quiet: boolean }): Promise<number>;
	/** Calls back on Ctrl-C and SIGTERM; the answer ends that. */
	onSignal(callback: () => void): () => void;
}

const serveAbout = { en: "run the daemon in the foreground (the default)", zh: "在前台运行守护进程（默认）" };
const serveCommand: Omit<Command, "run"> = {
	name: "serve",
	usage: "",
	about: serveAbout,
	flags: {
		host: { type: "text", value: "HOST", about: { en: "address to listen on (127.0.0.1)", zh: "监听地址（127.0.0.1）" } },
		port: {
			type: "number",
			value: "PORT",
			about: { en: "port to listen on (7717; 0 picks a free one)", zh: "监听端口（7717；0 表示任选空闲端口）" },
		},
		quiet: { type: "switch", short: "q", about: { en: "only warnings and errors in the terminal", zh: "终端里只显示警告和错误" } },
	},
	words: [0, 0],
};

/** Runs one command and answers the exit code. Says what is wrong in a sentence; a stack only with the log level debug or trace. */
export async function runProgram(program: Program): Promise<number> {
	const environment = readEnvironment(program.env);
	const { language } = environment;
	const fail = (message: string) => {
		program.stderr.write(`${message}\n`);
		return 1;
	};
	try {
		const { name, rest } = commandOf(program.argv);
		if (name === "--version" || name === "version") {
			program.stdout.write(`${program.version}\n`);
			return 0;
		}
		if (name === "--help" || name === "help") {
			const all = [{ name: "serve", about: serveAbout }, ...commands];
			const asked = rest[0];
			if (asked && all.some((entry) => entry.name === asked)) return await runProgram({ ...program, argv: [asked, "--help"] });
			program.stdout.write(programHelp(all, program.version, language));
			return 0;
		}
		if (name === "serve") return await serve(program, rest);
		const entry = commands.find((one) => one.name === name);
		if (!entry) {
			const meant = nearest(name, ["serve", ...commands.map((one) => one.name)]);
			return fail(
				language === "zh-CN"
					? `没有“${name}”这个命令${meant ? `，是不是 ${meant}？` : ""}（openlani --help）`
					: `There is no command "${name}"${meant ? `; did you mean ${meant}?` : ""} (openlani --help)`,
			);
		}
		const { command } = await entry.load();
		const input = readInput(command, rest, language);
		if (input.on("help")) {
			program.stdout.write(commandHelp(command, language));
			return 0;
		}
		const ending = new AbortController();
		const off = program.onSignal(() => ending.abort(new CliError(language === "zh-CN" ? "已中断。" : "Interrupted.", 130)));
		const io: Io = {
			environment: readEnvironment(program.env, homeOf(input.text("home"))),
			stdin: program.stdin,
			stdout: program.stdout,
			stderr: program.stderr,
			signal: ending.signal,
			startDaemon: program.startDaemon,
			version: program.version,
		};
		for (const problem of io.environment.problems) program.stderr.write(`${problem.key}: ${problem.message}\n`);
		try {
			return await command.run(io, input);
		} finally {
			off();
		}
	} catch (error) {
		if (error instanceof CliError) {
			program.stderr.write(`${error.message}\n`);
			return error.exitCode;
		}
		const debug = environment.logLevel === "debug" || environment.logLevel === "trace";
		return fail(debug && error instanceof Error ? (error.stack ?? error.message) : sentence(error, language));
	}
}

async function serve(program: Program, rest: string[]): Promise<number> {
	const { language } = readEnvironment(program.env);
	const input = readInput(serveCommand, rest, language);
	if (input.on("help")) {
		program.stdout.write(commandHelp({ ...serveCommand, run: async () => 0 }, language));
		return 0;
	}
	const port = input.number("port");
	if (port !== null && (!Number.isInteger(port) || port > 65_535))
		throw new CliError(language === "zh-CN" ? "--port 必须是 0 到 65535 之间的整数" : "--port must be a whole number from 0 to 65535");
	const host = input.text("host");
	const environment = readEnvironment(program.env, {
		...homeOf(input.text("home")),
		...(host === null ? {} : { host }),
		...(port === null ? {} : { port }),
	});
	return program.serve(environment, { quiet: input.on("quiet") });
}

const homeOf = (home: string | null) => (home === null ? {} : { home });

/** The first word that is no flag is the command; without one it is `serve`. `--home DIR` may stand before it. */
function commandOf(argv: string[]): { name: string; rest: string[] } {
	const before: string[] = [];
	for (let index = 0; index < argv.length; index++) {
		const word = argv[index] ?? "";
		if (!word.startsWith("-")) return { name: word, rest: [...before, ...argv.slice(index + 1)] };
		if (word === "--version" || word === "-v" || ((word === "--help" || word === "-h") && before.length === 0))
			return { name: word === "-h" ? "--help" : word === "-v" ? "--version" : word, rest: argv.slice(index + 1) };
		before.push(word);
		const flags = { ...serveCommand.flags, ...commonFlags };
		const spec = flags[word.replace(/^--?/, "")];
		const isKnown = spec !== undefined || word.includes("=") || Object.values(flags).some((flag) => `-${flag.short}` === word);
		// An unknown flag is named by serve rather than its value be taken for a command.
		if (!isKnown) return { name: "serve", rest: argv };
		if (spec && spec.type !== "switch" && argv[index + 1] !== undefined) before.push(argv[++index] ?? "");
	}
	return { name: "serve", rest: before };
}

function sentence(error: unknown, language: "zh-CN" | "en"): string {
	const { code, path, message } = error as NodeJS.ErrnoException;
	const where = path ? ` ${path}` : "";
	const zh = language === "zh-CN";
	if (code === "EROFS")
		return zh ? `文件系统是只读的，无法写入${where}。` : `The file system is read-only: it takes nothing${path ? ` at ${path}` : ""}.`;
	if (code === "EACCES" || code === "EPERM") return zh ? `没有权限访问${where}（${code}）。` : `No right to use${where} (${code}).`;
	if (code === "ENOSPC" || code === "SQLITE_FULL") return zh ? "磁盘已满。" : "The disk is full.";
	if (code?.startsWith("SQLITE_CANTOPEN"))
		return zh
			? "数据目录里的数据库 data/openlani.db 打不开：请检查它的权限。"
			: "The database data/openlani.db in the home cannot be opened: look at its rights.";
	if (code?.startsWith("SQLITE_READONLY"))
		return zh
			? "数据目录里的数据库 data/openlani.db 不能写入，而这个命令需要写入它。"
			: "The database data/openlani.db in the home cannot be written, and this command has to.";
	const detail = zh ? "（设置 OPENLANI_LOG_LEVEL=debug 可查看细节）" : " (OPENLANI_LOG_LEVEL=debug shows more)";
	return `${message || String(error)}${detail}`;
}
