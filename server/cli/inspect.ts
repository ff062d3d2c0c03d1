/** `openlani inspect`: what this home is, without changing it. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type ConfigService, loadConfig } from "../config/service.ts";
import { errorWords } from "../observe/alert-words.ts";
import { checkDatabase } from "../store/inspect.ts";
import { createWorkspace } from "../workspace/workspace.ts";
import { type Command, type Io, print, say } from "./command.ts";
import { findDaemon } from "./connect.ts";
import { modelsInForce } from "./models-in-force.ts";
import { needHome } from "./places.ts";
import { counted, createPaint, formatBytes, localTime, oneLine } from "./terminal.ts";

interface TurnLine {
	id: string;
	state: string;
	origin: string;
	model: string | null;
	startedAt: string | null;
	error: string | null;
}

export const command: Command = {
	name: "inspect",
	usage: "",
	about: {
		en: "show what this home is: settings, models, files, sizes, last turns",
		zh: "查看数据目录：设置、模型、文件、大小、最近的回合",
	},
	flags: { json: { type: "switch", about: { en: "print it as JSON", zh: "以 JSON 输出" } } },
	words: [0, 0],
	async run(io, input) {
		await needHome(io);
		const silent = { info: () => undefined, warn: () => undefined };
		const config = await loadConfig({ environment: io.environment, clock: { now: () => Date.now() }, log: silent, readOnly: true });
		try {
			const facts = await gather(io, config);
			if (input.on("json")) print(io, JSON.stringify(facts, null, "\t"));
			else show(io, facts);
			return 0;
		} finally {
			await config.close();
		}
	},
};

async function gather(io: Io, config: ConfigService) {
	const { home } = io.environment;
	const silent = { info: () => undefined, warn: () => undefined };
	const workspace = createWorkspace({ home, clock: { now: () => Date.now() }, log: silent });
	const current = config.current();
	const daemon = await findDaemon(io).catch(() => null);
	const { models, chat } = await modelsInForce(config, daemon, io.signal);
	const prompt = await workspace.prompt();
	const files = (await workspace.list("")).filter(({ path }) => !path.startsWith("files/"));
	const database = checkDatabase(workspace.paths.database);
	let turns: TurnLine[] = [];
	let conversations: number | null = null;
	if (daemon) {
		turns = await daemon.turns(10, io.signal).catch(() => []);
		conversations = (await daemon.conversations(io.signal).catch(() => [])).length;
	} else if (database.state === "ok") {
		({ turns, conversations } = await fromStore(workspace.paths.database, workspace.paths.assets));
	}
	return {
		version: io.version,
		home,
		daemon: daemon?.url ?? null,
		config: { file: workspace.paths.config, safeMode: config.safeMode(), errors: config.errors() },
		locale: current.locale ?? io.environment.language,
		timezone: current.timezone,
		models,
		roles: { ...current.roles, chat },
		prompt: {
			characters: prompt.blocks.reduce((sum, block) => sum + block.text.length, 0),
			blocks: prompt.blocks.map(({ name, text }) => ({ name, characters: text.length })),
			problems: prompt.problems,
		},
		files: files.slice(0, 200).map(({ path, bytes }) => ({ path, bytes })),
		sizes: {
			workspace: await folderSize(workspace.paths.workspace),
			database: database.bytes,
			assets: await folderSize(workspace.paths.assets),
			logs: await folderSize(workspace.paths.logs),
			backups: await folderSize(workspace.paths.backups),
		},
		database: { state: database.state, schema: database.schema, problem: database.problem },
		conversations,
		turns,
	};
}

async function fromStore(file: string, assetsDir: string): Promise<{ turns: TurnLine[]; conversations: number }> {
	const { openStore } = await import("../store/open.ts");
	const { v7: newId } = await import("uuid");
	const store = await openStore({ file, assetsDir, clock: { now: () => Date.now() }, newId, asItIs: true });
	try {
		const rows = await store.turns.list({ limit: 10 });
		const turns = rows.map(({ id, state, origin, model, startedAt, error }) => ({
			id,
			state,
			origin,
			model,
			startedAt: startedAt === null ? null : new Date(startedAt).toISOString(),
			error,
		}));
		return { turns, conversations: (await store.conversations.list({ limit: 1000 })).length };
	} finally {
		await store.close();
	}
}

async function folderSize(folder: string): Promise<number> {
	let total = 0;
	for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
		const path = join(folder, entry.name);
		if (entry.isDirectory()) total += await folderSize(path);
		else if (entry.isFile()) total += (await stat(path).catch(() => null))?.size ?? 0;
	}
	return total;
}

function show(io: Io, facts: Awaited<ReturnType<typeof gather>>): void {
	const paint = createPaint(io.environment.terminal.color && io.stdout.isTTY === true);
	const head = (en: string, zh: string) => print(io, paint.bold(say(io, { en, zh })));
	print(io, `OpenLani ${facts.version} · ${facts.home}`);
	print(
		io,
		facts.daemon
			? say(io, { en: `running at ${facts.daemon}`, zh: `正在运行：${facts.daemon}` })
			: say(io, { en: "not running", zh: "没有运行" }),
	);
	print(io, `${facts.locale} · ${facts.timezone}`);
	head("\nSettings", "\n设置");
	if (facts.config.errors.length === 0) print(io, say(io, { en: "  no problems", zh: "  没有问题" }));
	for (const { key, line, message } of facts.config.errors)
		print(io, paint.warn(`  ${key}${line === null ? "" : ` (line ${line})`}: ${message}`));
	head("\nModels", "\n模型");
	if (facts.models.length === 0) print(io, say(io, { en: "  none: the demo model answers", zh: "  没有：由演示模型回答" }));
	const environment = facts.daemon
		? say(io, { en: "from the running daemon's environment", zh: "来自运行中的守护进程的环境变量" })
		: say(io, { en: "from this shell's environment", zh: "来自当前环境变量" });
	for (const { id, provider, model, kind, keys, from } of facts.models)
		print(
			io,
			`  ${facts.roles.chat[0] === id ? "→" : " "} ${id}  ${provider} ${model}  ${paint.dim(`${kind}, ${counted(keys, "key")}, ${from === "environment" ? environment : from}`)}`,
		);
	head("\nFiles", "\n文件");
	for (const { path, bytes } of facts.files.slice(0, 30)) print(io, `  ${path}  ${paint.dim(formatBytes(bytes))}`);
	if (facts.files.length > 30) print(io, paint.dim(`  … ${facts.files.length - 30}`));
	print(
		io,
		paint.dim(
			say(io, { en: `  prompt files: ${facts.prompt.characters} characters`, zh: `  提示文件：${facts.prompt.characters} 个字符` }),
		),
	);
	for (const problem of facts.prompt.problems) print(io, paint.warn(`  ${problem}`));
	head("\nSizes", "\n大小");
	for (const [name, bytes] of Object.entries(facts.sizes)) print(io, `  ${name.padEnd(10)} ${formatBytes(bytes)}`);
	if (facts.database.problem) print(io, paint.warn(`  ${facts.database.problem}`));
	head("\nLast turns", "\n最近的回合");
	if (facts.conversations !== null)
		print(io, paint.dim(say(io, { en: `  ${counted(facts.conversations, "conversation")}`, zh: `  ${facts.conversations} 个对话` })));
	for (const turn of facts.turns)
		print(
			io,
			`  ${turn.id}  ${turn.startedAt === null ? "" : localTime(Date.parse(turn.startedAt), facts.timezone)}  ${turn.state.padEnd(8)} ${turn.origin}  ${turn.model ?? ""}${turn.error ? paint.warn(`  ${oneLine(say(io, errorWords(turn.error)), 80)}`) : ""}`,
		);
}
