/** `openlani backup FILE`: the whole home in one file, while the daemon runs or not. */
import { resolve } from "node:path";
import { writeArchive } from "./archive.ts";
import { CliError, type Command, note, say } from "./command.ts";
import { needHome, needTarget } from "./places.ts";
import { counted, formatBytes } from "./terminal.ts";

export const command: Command = {
	name: "backup",
	usage: "FILE",
	about: { en: "write the whole home into one file", zh: "把整个数据目录备份成一个文件" },
	details: {
		en: "Database, workspace, configuration, assets and secrets (mode 0600: keep it safe). The daemon may go on running.",
		zh: "包含数据库、工作区、配置、附件和密钥（权限 0600，请妥善保管）。备份时守护进程可以继续运行。",
	},
	flags: { force: { type: "switch", about: { en: "overwrite FILE", zh: "覆盖已有的文件" } } },
	words: [1, 1],
	async run(io, input) {
		const { home } = io.environment;
		const target = resolve(input.words[0] ?? "");
		if ((await needTarget(io, target)) && !input.on("force"))
			throw new CliError(say(io, { en: `${target} is there already; --force overwrites it.`, zh: `${target} 已存在；加 --force 覆盖。` }));
		await needHome(io);
		const { bytes, files, linksLeftOut } = await writeArchive(home, target, {
			format: 1,
			version: io.version,
			createdAt: new Date().toISOString(),
		});
		note(
			io,
			say(io, {
				en: `${target}: ${counted(files, "file")}, ${formatBytes(bytes)}. It holds secrets: keep it safe.`,
				zh: `${target}：${files} 个文件，${formatBytes(bytes)}。其中含有密钥，请妥善保管。`,
			}),
		);
		if (linksLeftOut > 0)
			note(
				io,
				say(io, {
					en: `${counted(linksLeftOut, "link")} left out; a backup holds files only.`,
					zh: `有 ${linksLeftOut} 个链接没有备份；备份只包含文件。`,
				}),
			);
		return 0;
	},
};
