/** What `openlani doctor` looks at: each finding is fine, a warning or a fault, and says how to mend it. */
import { stat, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import type { ConfigService } from "../config/service.ts";
import { checkDatabase } from "../store/inspect.ts";
import { homeHolder, readRuntime } from "../workspace/lock.ts";
import { readToken, tokenPath } from "../workspace/token.ts";
import { createWorkspace } from "../workspace/workspace.ts";
import type { Client } from "./client.ts";
import type { Io, Text } from "./command.ts";
import { modelsInForce } from "./models-in-force.ts";
import { cannotWriteInto } from "./places.ts";
import { counted, formatBytes, localTime } from "./terminal.ts";

export interface Finding {
	area: "node" | "home" | "config" | "files" | "token" | "database" | "disk" | "model" | "sandbox" | "clock" | "port";
	/** `note`: neither good nor bad, but worth knowing. */
	state: "ok" | "note" | "warn" | "fault";
	what: Text;
	fix?: Text;
}

export interface Checked {
	io: Io;
	config: ConfigService;
	/** The daemon that runs with this home, if any. */
	daemon: Client | null;
}

const same = (text: string): Text => ({ en: text, zh: text });
const ok = (area: Finding["area"], en: string, zh: string): Finding => ({ area, state: "ok", what: { en, zh } });
const lowBytes = 1_000_000_000;
const fullBytes = 100_000_000;

export async function checkHome({ io }: Checked): Promise<Finding[]> {
	const { home } = io.environment;
	const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
	const found: Finding[] = [
		major > 20 || (major === 20 && minor >= 19)
			? ok("node", `Node ${process.versions.node}`, `Node ${process.versions.node}`)
			: {
					area: "node",
					state: "fault",
					what: { en: `Node ${process.versions.node} is too old`, zh: `Node ${process.versions.node} 太旧` },
					fix: { en: "Install Node 20.19 or newer.", zh: "请安装 Node 20.19 或更新的版本。" },
				},
	];
	const info = await stat(home).catch(() => null);
	if (!info)
		return [
			...found,
			{
				area: "home",
				state: "warn",
				what: { en: `There is no home ${home} yet`, zh: `还没有数据目录 ${home}` },
				fix: { en: "openlani init (or serve) makes it.", zh: "openlani init（或 serve）会建立它。" },
			},
		];
	if (!info.isDirectory())
		return [
			...found,
			{
				area: "home",
				state: "fault",
				what: { en: `${home} is not a folder`, zh: `${home} 不是文件夹` },
				fix: { en: "Move it away, or choose another home with --home DIR.", zh: "把它移开，或用 --home DIR 另选目录。" },
			},
		];
	const why = await cannotWriteInto(home);
	if (why)
		found.push({
			area: "home",
			state: "fault",
			what: { en: `${home} cannot be written: ${why.en}`, zh: `无法写入 ${home}：${why.zh}` },
			fix:
				why.code === "EROFS"
					? {
							en: "Mount it for writing (mount -o remount,rw), or choose another home with --home DIR.",
							zh: "以可写方式挂载（mount -o remount,rw），或用 --home DIR 另选目录。",
						}
					: same(`chown -R $(id -u) ${home}`),
		});
	else if ((info.mode & 0o077) !== 0)
		found.push({
			area: "home",
			state: "warn",
			what: { en: `${home} can be read by other users`, zh: `其他用户也能读取 ${home}` },
			fix: same(`chmod 700 ${home}`),
		});
	else found.push(ok("home", home, home));
	return found;
}

export function checkConfig({ config }: Checked): Finding[] {
	const problems = config.errors();
	const idle = config.withoutEffect().map(
		({ key, line, message }): Finding => ({
			area: "config",
			state: "note",
			what: {
				en: `${key}${line === null ? "" : ` (line ${line})`} ${message}`,
				zh: `${key}${line === null ? "" : `（第 ${line} 行）`}在这个版本里还不起作用`,
			},
		}),
	);
	if (problems.length === 0) return [ok("config", "config.yaml is right", "config.yaml 没有问题"), ...idle];
	const found = problems.map((problem): Finding => {
		const where = `${problem.key}${problem.line === null ? "" : ` (line ${problem.line})`}`;
		const variable = /environment variable (\S+) is not set/.exec(problem.message)?.[1];
		const fix = variable
			? {
					en: `Set ${variable} where the daemon is started, or write the value into config.yaml.`,
					zh: `在启动守护进程的环境里设置 ${variable}，或直接写进 config.yaml。`,
				}
			: { en: "Correct it in config.yaml; it takes effect by itself.", zh: "在 config.yaml 中改正，会自动生效。" };
		return { area: "config", state: config.safeMode() && !variable ? "fault" : "warn", what: same(`${where}: ${problem.message}`), fix };
	});
	return [...found, ...idle];
}

export async function checkFiles({ io, config }: Checked): Promise<Finding[]> {
	const { home } = io.environment;
	const silent = { info: () => undefined, warn: () => undefined };
	const workspace = createWorkspace({ home, clock: { now: () => Date.now() }, log: silent });
	const found: Finding[] = [];
	if (!(await stat(workspace.paths.workspace).catch(() => null))) return [];
	const { blocks, problems } = await workspace.prompt();
	for (const problem of problems)
		found.push({
			area: "files",
			state: "warn",
			what: same(`workspace: ${problem}`),
			fix: {
				en: "Put the file back (the page keeps its versions), or run openlani init with another --home to see a fresh one.",
				zh: "把文件放回去（网页里有历史版本），或用 openlani init --home 另一目录 得到一份新的。",
			},
		});
	const characters = blocks.reduce((sum, block) => sum + block.text.length, 0);
	if (characters > 12_000)
		found.push({
			area: "files",
			state: "warn",
			what: {
				en: `The prompt files have ${characters} characters, and every model call carries them`,
				zh: `提示文件共 ${characters} 个字符，每次模型调用都要带上`,
			},
			fix: { en: "Shorten SOUL.md, Agent.md, IDENTITY.md and MASTER.md.", zh: "精简 SOUL.md、Agent.md、IDENTITY.md 和 MASTER.md。" },
		});
	for (const [name, list] of Object.entries(config.current().safety.filter.lists)) {
		if (!(await stat(join(home, list.file)).catch(() => null))?.isFile())
			found.push({
				area: "files",
				state: "warn",
				what: { en: `The filter list "${name}" (${list.file}) is missing`, zh: `过滤词表“${name}”（${list.file}）不存在` },
				fix: same(`touch ${join(home, list.file)}`),
			});
	}
	if (found.length === 0) found.push(ok("files", `Prompt files: ${characters} characters`, `提示文件：${characters} 个字符`));
	return found;
}

export async function checkToken({ io, config }: Checked): Promise<Finding[]> {
	const { home, token, host } = io.environment;
	const path = tokenPath(home);
	const info = await stat(path).catch(() => null);
	if (info && (info.mode & 0o077) !== 0)
		return [
			{
				area: "token",
				state: "warn",
				what: { en: "The API token can be read by other users", zh: "其他用户也能读取 API 令牌" },
				fix: same(`chmod 600 ${path}`),
			},
		];
	if (info && token === null && (await readToken(home)) === null)
		return [
			{
				area: "token",
				state: "warn",
				what: { en: "The kept API token is damaged; a new one is made at the next start", zh: "保存的 API 令牌已损坏，下次启动会重新生成" },
				fix: { en: "Programs that used it need the new one: openlani token", zh: "使用它的程序需要换成新的：openlani token" },
			},
		];
	const listens = host ?? config.current().server.host;
	if (!/^(localhost|127\.|::1$|\[::1\]$)/.test(listens) && token === null)
		return [
			{
				area: "token",
				state: "warn",
				what: { en: `OpenLani is to listen on ${listens}, where others can reach it`, zh: `OpenLani 将在 ${listens} 上监听，别人也能访问` },
				fix: {
					en: "It starts there only with a password that was set on the page, or with OPENLANI_TOKEN.",
					zh: "必须先在网页上设好密码，或设置 OPENLANI_TOKEN，才能这样启动。",
				},
			},
		];
	return [];
}

export function checkStore({ io }: Checked): Finding[] {
	const file = join(io.environment.home, "data", "openlani.db");
	const check = checkDatabase(file);
	const size = formatBytes(check.bytes);
	switch (check.state) {
		case "missing":
			return [ok("database", "No database yet", "还没有数据库")];
		case "ok":
			return [ok("database", `Database whole, schema ${check.schema}, ${size}`, `数据库完好，结构版本 ${check.schema}，${size}`)];
		case "older":
			return [
				ok(
					"database",
					`Database whole, schema ${check.schema}: brought up to date at the next start, with a copy first`,
					`数据库完好，结构版本 ${check.schema}：下次启动时升级，会先留一份副本`,
				),
			];
		case "newer":
			return [
				{
					area: "database",
					state: "fault",
					what: {
						en: `The database (schema ${check.schema}) was written by a newer version of OpenLani`,
						zh: `数据库（结构版本 ${check.schema}）由更新版本的 OpenLani 写成`,
					},
					fix: { en: "Start the newer version, or restore a backup made with this one.", zh: "请启动新版本，或恢复用本版本做的备份。" },
				},
			];
		case "damaged":
			return [
				{
					area: "database",
					state: "fault",
					what: { en: `The database is damaged: ${check.problem}`, zh: `数据库已损坏：${check.problem}` },
					fix: {
						en: "Stop the daemon and openlani restore FILE --force. Without a backup: the next start keeps the damaged file aside and begins a new one.",
						zh: "停掉守护进程，然后 openlani restore 备份文件 --force。没有备份时：下次启动会保留损坏的文件并新建一个。",
					},
				},
			];
		case "unreadable":
			return [
				{
					area: "database",
					state: "fault",
					what: { en: `The database cannot be read: ${check.problem}`, zh: `读不了数据库：${check.problem}` },
					fix: { en: `Look at the rights and the disk of ${file}.`, zh: `请检查 ${file} 的权限和磁盘。` },
				},
			];
	}
}

export async function checkDisk({ io }: Checked): Promise<Finding[]> {
	const space = await statfs(io.environment.home).catch(() => null);
	if (!space) return [];
	const free = Number(space.bavail) * Number(space.bsize);
	const what = { en: `${formatBytes(free)} free on the disk`, zh: `磁盘剩余 ${formatBytes(free)}` };
	const fix = {
		en: "Make room: older files in backups/ and logs/, or move the home to a larger disk.",
		zh: "请腾出空间：backups/ 和 logs/ 里的旧文件，或把数据目录移到更大的磁盘。",
	};
	if (free < fullBytes) return [{ area: "disk", state: "fault", what, fix }];
	return [free < lowBytes ? { area: "disk", state: "warn", what, fix } : { area: "disk", state: "ok", what }];
}

/** Said because `safety.sandbox` can be set: nobody should take it for a protection that is at work. */
export function checkSandbox(): Finding[] {
	return [
		{
			area: "sandbox",
			state: "note",
			what: {
				en: "Nothing uses a sandbox yet: this version runs no code and no commands",
				zh: "还没有用到沙箱：这个版本不运行代码和命令",
			},
		},
	];
}

export async function checkClock({ io, config }: Checked): Promise<Finding[]> {
	const now = Date.now();
	const zone = config.current().timezone;
	const local = localTime(now, zone);
	const newest = await stat(join(io.environment.home, "data", "openlani.db")).catch(() => null);
	if (now < Date.UTC(2025, 0, 1))
		return [
			{
				area: "clock",
				state: "fault",
				what: { en: `The clock says ${local}: it is wrong`, zh: `系统时间是 ${local}，明显不对` },
				fix: { en: "Set the time (timedatectl set-ntp true).", zh: "请校准时间（timedatectl set-ntp true）。" },
			},
		];
	if (newest && newest.mtimeMs > now + 300_000)
		return [
			{
				area: "clock",
				state: "warn",
				what: {
					en: `The clock says ${local}, but the database was written later: the clock was set back`,
					zh: `系统时间是 ${local}，但数据库的修改时间更晚：时钟被调回过`,
				},
				fix: { en: "Set the time (timedatectl set-ntp true).", zh: "请校准时间（timedatectl set-ntp true）。" },
			},
		];
	return [ok("clock", `${local} (${zone})`, `${local}（${zone}）`)];
}

export async function checkPort({ io, config, daemon }: Checked): Promise<Finding[]> {
	const host = io.environment.host ?? config.current().server.host;
	const port = io.environment.port ?? config.current().server.port;
	if (daemon) return [ok("port", `The daemon answers at ${daemon.url}`, `守护进程在 ${daemon.url} 正常回答`)];
	if (await homeHolder(io.environment.home))
		return [
			{
				area: "port",
				state: "fault",
				what: { en: "A process holds this home but gives no address", zh: "有进程占用这个数据目录，但没有给出地址" },
				fix: { en: "Look into logs/, stop it and start it again.", zh: "请查看 logs/，停掉后重新启动。" },
			},
		];
	if (port === 0) return [ok("port", "Any free port is taken", "会使用任意空闲端口")];
	const code = await new Promise<string | null>((resolve) => {
		const server = createServer();
		server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
		server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
	});
	if (code === null) return [ok("port", `${host}:${port} is free`, `${host}:${port} 空闲`)];
	const other = code === "EADDRINUSE" ? await otherOpenLani(host, port, io) : null;
	if (other)
		return [
			{
				area: "port",
				state: "warn",
				what: {
					en: `${host}:${port} is used by another OpenLani${other.home ? ` (home ${other.home})` : ""}`,
					zh: `${host}:${port} 正被另一个 OpenLani 使用${other.home ? `（数据目录 ${other.home}）` : ""}`,
				},
				fix: {
					en: "To run both, give this home a port of its own: server.port in its config.yaml, OPENLANI_PORT, or --port. Or stop the other one.",
					zh: "要同时运行两个，请给这个数据目录另设端口：它的 config.yaml 里的 server.port、OPENLANI_PORT 或 --port；或者停掉另一个。",
				},
			},
		];
	const fix =
		code === "EADDRINUSE"
			? {
					en: `Stop the program that uses port ${port}, or set server.port (or OPENLANI_PORT) to another.`,
					zh: `停掉占用端口 ${port} 的程序，或把 server.port（或 OPENLANI_PORT）改成别的。`,
				}
			: { en: "Choose another server.host and server.port.", zh: "请换一个 server.host 和 server.port。" };
	return [
		{
			area: "port",
			state: "fault",
			what: { en: `${host}:${port} cannot be used (${code})`, zh: `无法使用 ${host}:${port}（${code}）` },
			fix,
		},
	];
}

/** The OpenLani that answers at a port; its home where that is the user's usual one. Null for any other program. */
async function otherOpenLani(host: string, port: number, io: Io): Promise<{ home: string | null } | null> {
	const name = /^(0\.0\.0\.0|::|\[::\])$/.test(host) ? "127.0.0.1" : host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
	try {
		const signal = AbortSignal.any([io.signal, AbortSignal.timeout(2000)]);
		const response = await fetch(`http://${name}:${port}/healthz`, { signal, redirect: "error" });
		const body = (await response.json()) as { status?: unknown; version?: unknown };
		if (typeof body.status !== "string" || typeof body.version !== "string") return null;
	} catch {
		return null;
	}
	const usual = join(io.environment.userHome, ".openlani");
	const runtime = await readRuntime(usual);
	return { home: runtime && Number(new URL(runtime.url).port) === port ? usual : null };
}

/** Asks every configured model for a few words. Costs a few tokens each. */
export async function checkModels({ io, config, daemon }: Checked, offline: boolean): Promise<Finding[]> {
	const { models } = await modelsInForce(config, daemon, io.signal);
	if (models.length === 0)
		return [
			{
				area: "model",
				state: "warn",
				what: { en: "No model is configured: the demo model answers", zh: "没有配置模型：由演示模型回答" },
				fix: {
					en: "Add one on the settings page, in config.yaml, or with OPENAI_API_KEY.",
					zh: "在设置页、config.yaml 或用 OPENAI_API_KEY 添加一个。",
				},
			},
		];
	const origin = (from: string): Text =>
		from === "config.yaml"
			? same(from)
			: daemon
				? { en: "the running daemon's environment", zh: "运行中的守护进程的环境变量" }
				: { en: "this shell's environment", zh: "当前环境变量" };
	if (offline) {
		const origins = [...new Set(models.map(({ from }) => from))].map(origin);
		return [
			ok(
				"model",
				`${counted(models.length, "model")} from ${origins.map(({ en }) => en).join(" and ")} (not asked)`,
				`${models.length} 个模型，来自${origins.map(({ zh }) => zh).join("和")}（未测试）`,
			),
		];
	}
	const test = await tester(io, config, daemon);
	try {
		return await Promise.all(
			models.map(async (entry): Promise<Finding> => {
				const result = await test.run(entry.id).catch((error: Error) => ({ ok: false, message: error.message, ms: null }));
				const from = origin(entry.from);
				const en = `${entry.id} (${entry.provider} ${entry.model}, from ${from.en})`;
				const zh = `${entry.id}（${entry.provider} ${entry.model}，来自${from.zh}）`;
				if (result.ok)
					return ok(
						"model",
						`${en} answers${result.ms === null ? "" : ` in ${result.ms} ms`}`,
						`${zh} 正常回答${result.ms === null ? "" : `，${result.ms} 毫秒`}`,
					);
				return {
					area: "model",
					state: "fault",
					what: { en: `${en}: ${result.message}`, zh: `${zh}：${result.message}` },
					fix: {
						en: "Correct its entry under models: (key, baseUrl, model name) and run doctor again.",
						zh: "改正 models: 里它的设置（密钥、baseUrl、模型名称）后再运行 doctor。",
					},
				};
			}),
		);
	} finally {
		await test.close();
	}
}

/** Through the running daemon, whose breakers and keys count; else by the models room alone, without waking anything. */
async function tester(
	io: Io,
	config: ConfigService,
	daemon: Client | null,
): Promise<{ run(id: string): Promise<{ ok: boolean; message: string; ms: number | null }>; close(): Promise<void> }> {
	if (daemon) return { run: (id) => daemon.testModel(id, io.signal), close: async () => undefined };
	const { createModels } = await import("../model/models.ts");
	const { v7: newId } = await import("uuid");
	const { models, roles } = config.current();
	const room = createModels({
		models: models.map((entry) => ({ ...entry, price: entry.price ? { ...entry.price, currency: entry.price.currency ?? "USD" } : null })),
		roles,
		meter: { open: async () => newId(), close: async () => undefined },
		prices: { cost: () => ({ cost: null, currency: "USD" }) },
		readAsset: async () => new Uint8Array(),
		clock: { now: () => Date.now() },
		newId,
		log: { info: () => undefined, warn: () => undefined },
	});
	return {
		run: (id) => room.test(id, io.signal),
		async close() {
			room.close();
		},
	};
}
