/** The built-in tools' usual results as whole sentences in the person's language. What is not known here is quoted, never guessed at. */
import type { Done, Language } from "./read.ts";

type Say = (match: RegExpExecArray, arg: (name: string) => string) => string;

const WEEKDAYS: Record<string, string> = {
	Monday: "星期一",
	Tuesday: "星期二",
	Wednesday: "星期三",
	Thursday: "星期四",
	Friday: "星期五",
	Saturday: "星期六",
	Sunday: "星期日",
};

const RESULTS: { tools: string[]; when: RegExp; en: Say; zh: Say }[] = [
	{
		tools: ["now"],
		when: /^(\d{4})-(\d\d)-(\d\d) (\w+day) (\d\d:\d\d):\d\d (\S+) \((\S+)\); \S+$/,
		en: (m) => `It is ${m[4]}, ${m[1]}-${m[2]}-${m[3]}, ${m[5]} (${m[6]}${m[6] === "UTC" ? "" : `, ${m[7]}`}).`,
		zh: (m) =>
			`现在是 ${m[1]} 年 ${Number(m[2])} 月 ${Number(m[3])} 日，${WEEKDAYS[m[4] ?? ""]}，${m[5]}（${m[6]}${m[6] === "UTC" ? "" : `，${m[7]}`}）。`,
	},
	{
		tools: ["remember_fact"],
		when: /^Kept\.$/,
		en: (_, arg) => `I will remember: "${arg("text")}".`,
		zh: (_, arg) => `我记住了：“${arg("text")}”。`,
	},
	{
		tools: ["recall"],
		when: /^Nothing found\.$/,
		en: (_, arg) => (isOneself(arg("query")) ? "I remember nothing about you yet." : `I remember nothing about "${arg("query")}".`),
		zh: (_, arg) => (isOneself(arg("query")) ? "我还不记得关于你的什么。" : `关于“${arg("query")}”，我什么都不记得。`),
	},
	{
		tools: ["recall"],
		when: /^\d{4}-\d\d-\d\d \([^)\n]*\) [\s\S]* \[\S+\]$/,
		en: (m, arg) =>
			`${isOneself(arg("query")) ? "About you" : `About "${arg("query")}"`} I remember:\n${memories(m[0], (text, day) => `- ${text} (${day})`)}`,
		zh: (m, arg) =>
			`${isOneself(arg("query")) ? "关于你" : `关于“${arg("query")}”`}，我记得：\n${memories(m[0], (text, day) => `- ${text}（${day}）`)}`,
	},
	{
		tools: ["forget"],
		when: /^Removed: /,
		en: () => "It is forgotten, with all that was made of it.",
		zh: () => "已经忘记了，由它产生的内容也一并删除了。",
	},
	{
		tools: ["forget"],
		when: /^Waiting for the master's approval/,
		en: () => "I found it. Nothing is removed before it is approved: it waits for that now.",
		zh: () => "找到了。在获得批准之前什么都不会删除，现在等待批准。",
	},
	{
		tools: ["write_file"],
		when: /^(Created|Replaced) (.+) \((\d+) bytes\)\.$/,
		en: (m) => `${m[1] === "Created" ? "I made the file" : "I wrote the file anew:"} ${m[2]} (${m[3]} bytes).`,
		zh: (m) => `${m[1] === "Created" ? "新建了文件" : "重写了文件"} ${m[2]}（${m[3]} 字节）。`,
	},
	{
		tools: ["edit_file"],
		when: /^Changed (.+) at line (\d+)\.$/,
		en: (m) => `I changed line ${m[2]} of ${m[1]}.`,
		zh: (m) => `改好了 ${m[1]} 的第 ${m[2]} 行。`,
	},
	{
		tools: ["list_files"],
		when: /^\(empty directory\)$/,
		en: () => "There are no files.",
		zh: () => "这里没有文件。",
	},
	{
		tools: ["read_file"],
		when: /^\(empty file\)$/,
		en: (_, arg) => `${arg("path")} is empty.`,
		zh: (_, arg) => `${arg("path")} 是空文件。`,
	},
	{
		tools: ["search_files"],
		when: /^Nothing found for ".*" in (\d+) files\.$/s,
		en: (m, arg) => `I looked through ${m[1]} files and found "${arg("query")}" in none of them.`,
		zh: (m, arg) => `查看了 ${m[1]} 个文件，没有找到“${arg("query")}”。`,
	},
	{
		tools: ["send_message"],
		when: /^The message to .+ on \S+ is queued\.$/s,
		en: (_, arg) => `The message to ${arg("to")} on ${arg("channel")} is on its way.`,
		zh: (_, arg) => `给 ${arg("to")} 的消息正在通过 ${arg("channel")} 发出。`,
	},
	{
		tools: ["update_user", "update_identity", "update_agent_notes"],
		when: /^Done\.$/,
		en: (_, arg) => `I wrote it down: "${arg("text")}".`,
		zh: (_, arg) => `写下来了：“${arg("text")}”。`,
	},
	{
		tools: ["update_user", "update_identity", "update_agent_notes"],
		when: /^Nothing changed: /,
		en: (_, arg) => `Nothing had to be changed for "${arg("text")}".`,
		zh: (_, arg) => `“${arg("text")}”不用改动。`,
	},
];

/** A search for the speaker themselves. */
export const isOneself = (query: string): boolean => /^(?:me|myself|我)$/i.test(query);

export interface MemoryRow {
	day: string;
	text: string;
	id: string;
}

/** What `recall` found. A talk has lines of its own: a row goes on until its id. */
export function memoryRows(result: string): MemoryRow[] {
	return result.split(/\n(?=\d{4}-\d\d-\d\d \([^)\n]*\) )/).flatMap((row) => {
		const [, day, text, id] = /^(\S+) \([^)\n]*\) ([\s\S]*) \[(\S+)\]$/.exec(row.trim()) ?? [];
		return day && text !== undefined && id ? [{ day, text, id }] : [];
	});
}

const longestMemory = 200;

/** Each memory on a line of its own, whatever Markdown and line breaks stand in it. */
function memories(rows: string, say: (text: string, day: string) => string): string {
	return memoryRows(rows)
		.map(({ text, day }) => {
			const characters = [
				...text
					.replace(/`{3,}\w*/g, " ")
					.replace(/\s+/g, " ")
					.trim(),
			];
			return say(characters.length > longestMemory ? `${characters.slice(0, longestMemory - 1).join("")}…` : characters.join(""), day);
		})
		.join("\n");
}

/** The sentence for a result that a tool of ours usually gives; null for any other result. */
export function knownResult(done: Done, language: Language): string | null {
	const text = done.result.trim();
	for (const { tools, when, en, zh } of RESULTS) {
		const match = tools.includes(done.name) ? when.exec(text) : null;
		if (match) return (language === "zh" ? zh : en)(match, (name) => String(done.args[name] ?? ""));
	}
	return null;
}
