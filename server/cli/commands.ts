/** Every command by name. Each is loaded only when it is called. */
import type { Command, Text } from "./command.ts";

export interface Entry {
	name: string;
	about: Text;
	load(): Promise<{ command: Command }>;
}

export const commands: Entry[] = [
	{ name: "chat", about: { en: "talk in the terminal", zh: "在终端里聊天" }, load: () => import("./chat.ts") },
	{ name: "run", about: { en: "do one task and print the answer", zh: "完成一项任务并输出答案" }, load: () => import("./run.ts") },
	{ name: "init", about: { en: "make a home with a first configuration", zh: "建立数据目录和初始配置" }, load: () => import("./init.ts") },
	{
		name: "inspect",
		about: { en: "show settings, models, files, sizes, last turns", zh: "查看设置、模型、文件、大小、最近的回合" },
		load: () => import("./inspect.ts"),
	},
	{
		name: "doctor",
		about: { en: "check everything, and say how to mend it", zh: "全面检查，并给出修复办法" },
		load: () => import("./doctor.ts"),
	},
	{ name: "token", about: { en: "print the API token", zh: "输出 API 令牌" }, load: () => import("./token.ts") },
	{
		name: "backup",
		about: { en: "write the whole home into one file", zh: "把整个数据目录备份成一个文件" },
		load: () => import("./backup.ts"),
	},
	{
		name: "report",
		about: { en: "write a turn or a day as one HTML file", zh: "把一个回合或一天写成一个 HTML 文件" },
		load: () => import("./report.ts"),
	},
	{
		name: "replay",
		about: { en: "run a stored turn again from its recorded calls", zh: "用记录下来的模型调用重放一个回合" },
		load: () => import("./replay.ts"),
	},
	{ name: "restore", about: { en: "put a backup back", zh: "恢复备份" }, load: () => import("./restore.ts") },
];
