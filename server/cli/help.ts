/** The help of the program and of each command. */
import { type Command, commonFlags, type FlagSpec, type Text } from "./command.ts";

export type Language = "zh-CN" | "en";
const of = (text: Text, language: Language) => (language === "zh-CN" ? text.zh : text.en);

export function programHelp(commands: { name: string; about: Text }[], version: string, language: Language): string {
	const width = Math.max(...commands.map(({ name }) => name.length));
	const lines = commands.map(({ name, about }) => `  ${name.padEnd(width)}  ${of(about, language)}`);
	return language === "zh-CN"
		? `OpenLani ${version}：住在你自己电脑上的私人助手\n\n用法：openlani [命令] [选项]\n\n命令：\n${lines.join("\n")}\n\n每个命令都接受 --home DIR；openlani 命令 --help 查看详细说明。\n`
		: `OpenLani ${version}: a personal agent that lives on your own machine\n\nUsage: openlani [COMMAND] [FLAGS]\n\nCommands:\n${lines.join("\n")}\n\nEvery command takes --home DIR; openlani COMMAND --help says more.\n`;
}

export function commandHelp(command: Command, language: Language): string {
	const flags = Object.entries({ ...command.flags, ...commonFlags });
	const left = ([name, spec]: [string, FlagSpec]) =>
		`${spec.short ? `-${spec.short}, ` : ""}--${name}${spec.type === "switch" ? "" : ` ${spec.value ?? "VALUE"}`}`;
	const width = Math.max(...flags.map((flag) => left(flag).length));
	const lines = flags.map((flag) => `  ${left(flag).padEnd(width)}  ${of(flag[1].about, language)}`);
	const usage = `openlani ${command.name} ${command.usage}`.trim();
	const details = command.details ? `\n${of(command.details, language)}\n` : "";
	return language === "zh-CN"
		? `${of(command.about, language)}\n\n用法：${usage}\n${details}\n选项：\n${lines.join("\n")}\n`
		: `${of(command.about, language)}\n\nUsage: ${usage}\n${details}\nFlags:\n${lines.join("\n")}\n`;
}
