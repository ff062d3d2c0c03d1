/** Plain sentences, English and Chinese, as tool calls. */
import type { Reading } from "./read.ts";
import { readWhen } from "./when.ts";

export interface Intent {
	tool: string;
	args: Record<string, unknown>;
}

type Args = Record<string, unknown>;
type Match = RegExpExecArray;

const clean = (text: string | undefined): string =>
	(text ?? "")
		.trim()
		.replace(/^[\s:：,，“”"'`「『]+|[\s“”"'`」』]+$/g, "")
		.trim();
const unstop = (text: string | undefined): string => clean(clean(text).replace(/[.。!！?？]+$/, ""));
const path = (text: string | undefined): string =>
	unstop(text)
		.replace(/^(?:the )?(?:file|folder|directory)\s+/i, "")
		.replace(/^(?:文件夹?|目录)/, "");
function parsed(json: string | undefined): Args | null {
	try {
		return JSON.parse(json ?? "") as Args;
	} catch {
		return null;
	}
}
const FILE = "[\"'`“「]?([\\w\\u4e00-\\u9fff./-]*\\.\\w{1,8}|[\\w./-]+/[\\w./-]*)[\"'`”」]?";

/** Each rule: the tool, how a sentence asks for it, and the arguments it means. The first that fits wins. */
const RULES: { tool: string; when: RegExp; args(match: Match, reading: Reading): Args | null }[] = [
	{
		tool: "write_plan",
		when: /^(?:please\s+|can you\s+|could you\s+)?(?:make|write|draw up|create)?\s*(?:me\s+)?(?:a\s+)?plan\b(?!\s*(?:is|was)\b)\s*(?:for|to|of|:)?\s*([\s\S]*)|^(?:请|帮我|给我)*(?:制定|写|做|订|列)?(?:一个|一份|个)?(?:计划|规划)(?:一下)?[:：，]?([\s\S]*)|^(?:请|帮我|给我)+(?:制定|写|做|订|列)(?:一个|一份|个)?([\s\S]+?)的?计划[。！]?$/i,
		args: (m) => ({ goal: unstop(m[1] ?? m[2] ?? m[3]) }),
	},
	{
		tool: "list_alarms",
		when: /\b(?:list|show|what)\b.*\b(?:alarms|reminders)\b|(?:列出|查看|看看|有哪些|有什么).*(?:闹钟|提醒)|(?:闹钟|提醒)(?:列表|有哪些|有什么)/i,
		args: () => ({}),
	},
	{
		tool: "cancel_alarm",
		when: /\b(?:cancel|delete|remove)\b.*\b(?:alarm|reminder)\s+([\w-]+)|(?:取消|删除).*?(?:闹钟|提醒)\s*([\w-]+)/i,
		args: (m) => ({ id: m[1] ?? m[2] }),
	},
	{
		tool: "set_alarm",
		when: /\bremind me\b|\bset (?:an?|the) (?:alarm|reminder|timer)\b|\bwake me\b|提醒我|(?:设|定)(?:一?个|置)?(?:闹钟|提醒)|叫我/i,
		args(_, reading) {
			const when = readWhen(reading.said, reading.date, reading.time);
			const task = reading.said
				.replace(when?.said ?? "\u0000", " ")
				.replace(/^\s*(?:please|can you|could you|请|帮我|麻烦)\s*/i, "")
				.replace(
					/\b(?:remind me|wake me(?: up)?|set (?:an?|the) (?:alarm|reminder|timer))\b|提醒我|(?:设|定)(?:一?个|置)?(?:闹钟|提醒)|叫我/gi,
					" ",
				)
				.replace(/^\s*[,，:：]?\s*(?:to|that|about|for|of)\b/i, " ")
				.replace(/\s+/g, " ");
			return {
				task: unstop(task.replace(/^[\s,，:：]*(?:to|that|about|for)\b/i, "")) || unstop(reading.said),
				...(when?.args ?? { in: "10m" }),
			};
		},
	},
	{
		// What the master has approved is done now; a claim of it only asks again.
		tool: "forget",
		when: /^(?:Approved: |已批准：)forget (\{[^{}]*\})[.。]/,
		args: (m) => parsed(m[1]),
	},
	{
		tool: "forget",
		when: /^(?:please\s+|can you\s+|could you\s+)?forget\b(?:\s+(?:that|about))?[:,]?\s+([\s\S]+)|^(?:请|帮我|麻烦)?(?:你)?(?:忘记|忘掉|忘了)(?:关于)?[:：，]?\s*([\s\S]+)/i,
		args: (m) =>
			/^(?:it|this|me|everything|to\b)[.!]?$|了[。！]?$|^(?:吧|它|这个)/i.test(clean(m[1] ?? m[2]))
				? null
				: { query: unstop(m[1] ?? m[2]) },
	},
	{
		tool: "remember_fact",
		when: /\b(?:please )?(?:remember|note|keep in mind)\b(?: that|:)?\s+([\s\S]+)|(?:请|帮我)?(?:记住|记下|记一下|牢记)[:：，]?\s*([\s\S]+)/i,
		args: (m) => (/^(?:what|when|who|where|how|me\b|什么|吗)/i.test(clean(m[1] ?? m[2])) ? null : { text: unstop(m[1] ?? m[2]) }),
	},
	{
		tool: "recall",
		when: /\bwhat (?:do|did|have) you (?:know|remember|learn(?:ed|t)?) (?:about|of) (?:me|myself)\b|\b(?:tell me )?(?:everything|all|what) you (?:know|remember) (?:about|of) me\b|\bdo you (?:know|remember) (?:anything |something )?about me\b|^你(?:都|还)?(?:知道|了解|记得)(?:些|哪些|多少)?(?:关于|有关)?我(?:的)?(?:些|哪些)?(?:什么|多少|事情?|信息|情况)*(?:吗)?[？?。]?$|^(?:关于|有关)我(?:的)?(?:事情?|信息|情况)?[，,]?你(?:都|还)?(?:知道|记得|了解)(?:些|哪些)?(?:什么|多少)[？?。]?$|^你对我(?:都|有)?(?:知道|了解)(?:些|多少|哪些)?(?:什么)?[？?。]?$/i,
		args: (m) => ({ query: /\p{Script=Han}/u.test(m[0]) ? "我" : "me" }),
	},
	{
		tool: "recall",
		when: /\bwhat (?:do|did) (?:you|i) (?:know|remember|say|tell you) (?:about|of|on)\s+([\s\S]+)|\bdo you (?:remember|recall|know)\s+(?:what |when |where |who |about )?([\s\S]+)|\brecall\s+([\s\S]+)|(?:你)?(?:知道|记得|了解)(?:些|哪些|什么|多少)?(?:关于|有关)\s*([^？?。]+?)(?:的(?:什么|哪些|事情?|信息|内容))*[？?。]?$|关于(.+?)你(?:知道|记得)(?:什么|多少|些什么)?|(?:回忆|回想)(?:一下)?(.+)|你还?记得(.+?)吗/i,
		args: (m) => ({ query: unstop(m.slice(1).find((part) => part)) }),
	},
	{
		tool: "recall",
		when: /^(?:what|who|when|where|which|how)\b[^.]*\b(?:my|mine|i|me)\b[\s\S]*\?|^我的?.*(?:什么|谁|哪|多少|几|吗)[\s\S]*[？?]?$/i,
		args: (m) => (/\b(?:can i|do i|should i|could i|may i)\b|我(?:能|可以|该|应该)/i.test(m[0]) ? null : { query: unstop(m[0]) }),
	},
	{
		tool: "web_fetch",
		when: /\b(?:fetch|open|read|get|load|visit|summari[sz]e)\b[^\n]*?(https?:\/\/\S+)|(?:打开|抓取|读取?|访问|看看|总结)[^\n]*?(https?:\/\/[^\s，。]+)|^(https?:\/\/\S+)$/i,
		args: (m) => ({ url: clean(m[1] ?? m[2] ?? m[3]).replace(/[.,;)。，]+$/, "") }),
	},
	{
		tool: "edit_file",
		when: new RegExp(
			`\\breplace\\s+["'\`“]?(.+?)["'\`”]?\\s+(?:with|by)\\s+["'\`“]?(.*?)["'\`”]?\\s+in\\s+(?:the file\\s+)?${FILE}|(?:把|将)\\s*${FILE}\\s*(?:里|中)?(?:面)?的?\\s*["“「]?(.+?)["”」]?\\s*(?:改成|改为|替换成|替换为|换成)\\s*["“「]?(.+?)["”」]?[。]?$`,
			"i",
		),
		args: (m) =>
			m[3] ? { path: path(m[3]), old: clean(m[1]), new: clean(m[2]) } : { path: path(m[4]), old: clean(m[5]), new: clean(m[6]) },
	},
	{
		tool: "write_file",
		when: new RegExp(
			`\\b(?:write|create|save|make)\\b[^\\n]*?${FILE}\\s*(?:with(?: the)?(?: content| text)?|containing|saying|:)\\s*([\\s\\S]+)|\\b(?:write|save)\\s+["'\`“]?([\\s\\S]+?)["'\`”]?\\s+(?:to|into|in)\\s+(?:the file |a file called )?${FILE}\\s*\\.?$|(?:写|新建|创建|保存)(?:一个|入)?(?:文件)?\\s*${FILE}\\s*[，,:：]?\\s*(?:内容(?:是|为)?|写(?:上|着)?)?[:：]?\\s*([\\s\\S]+)|(?:把|将)\\s*["“「]?([\\s\\S]+?)["”」]?\\s*(?:写入|写到|保存到|存到)(?:文件)?\\s*${FILE}`,
			"i",
		),
		args(m) {
			const pairs: [string | undefined, string | undefined][] = [
				[m[1], m[2]],
				[m[4], m[3]],
				[m[5], m[6]],
				[m[8], m[7]],
			];
			const [file, content] = pairs.find(([one]) => one) ?? [];
			return file && content ? { path: path(file), content: clean(content) } : null;
		},
	},
	{
		tool: "view_image",
		when: /\b(?:look at|view|describe|show)\b[^\n]*?([\w./-]+\.(?:png|jpe?g|gif|webp))|(?:看|查看|描述)[^\n]*?([\w\u4e00-\u9fff./-]+\.(?:png|jpe?g|gif|webp))/i,
		args: (m) => ({ path: path(m[1] ?? m[2]) }),
	},
	{
		tool: "code_outline",
		when: new RegExp(`\\boutline\\b[^\\n]*?${FILE}|(?:大纲|结构)[^\\n]*?${FILE}`, "i"),
		args: (m) => ({ path: path(m[1] ?? m[2]) }),
	},
	{
		tool: "read_file",
		when: new RegExp(
			`\\b(?:read|show|open|print|cat)\\b[^\\n]*?${FILE}|(?:读取?|打开|显示|查看|看看|看一下)(?:一下)?(?:文件)?\\s*${FILE}`,
			"i",
		),
		args: (m) => ({ path: path(m[1] ?? m[2]) }),
	},
	{
		tool: "search_files",
		when: /\b(?:search|find|grep|look for)\s+(?:for\s+)?["'`“]?(.+?)["'`”]?\s+in\s+(?:my |the |all )?(?:files?|notes|folder|work area)|\b(?:search|grep)\s+(?:my |the |all )?files\s+for\s+(.+)|在(?:我的)?文件(?:里|中)(?:搜索|查找|找|搜)(.+)|(?:搜索|查找)文件(?:里|中)?的?(.+)/i,
		args: (m) => ({ query: unstop(m.slice(1).find((part) => part)) }),
	},
	{
		tool: "list_files",
		when: /\b(?:list|show)\b[^\n]*\b(?:files|folder|directory)\b(?:\s+(?:in|of)\s+(\S+))?|\bwhat files\b|(?:列出|显示|查看|有哪些|看看).*(?:文件|目录)/i,
		args: (m) => (m[1] && !/^(?:the|my|work|this)\b/i.test(m[1]) ? { path: path(m[1]) } : {}),
	},
	{
		tool: "web_search",
		when: /\b(?:search|google|look up)\b(?:\s+(?:the )?(?:web|internet|online))?(?:\s+for|\s+about)?\s+([\s\S]+)|(?:上网|网上|在网上)?(?:搜索|搜一下|搜搜|查一下|搜)(?:一下)?[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ query: unstop(m[1] ?? m[2]) }),
	},
	{
		tool: "run_python",
		when: /```(?:python|py)\s*\n([\s\S]*?)```|\b(?:run|execute)\b(?: this| the| some)? python(?: code)?\s*:?\s*([\s\S]+)|(?:运行|执行)(?:这段)?\s*python(?:代码)?[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ code: m[1] ?? fenced(m[2] ?? m[3] ?? "") }),
	},
	{
		tool: "run_shell",
		when: /```(?:sh|bash|shell|console)\s*\n([\s\S]*?)```|\b(?:run|execute)\b(?: the| this| a)?(?: shell)?(?: command| code)?\s*:?\s*([\s\S]+)|(?:运行|执行)(?:命令|代码|脚本)?[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ command: m[1]?.trim() ?? fenced(m[2] ?? m[3] ?? "") }),
	},
	{
		tool: "send_message",
		when: /\bsend\b\s+(?:a message\s+)?(?:to\s+)?(\S+)\s+(?:on|via|by|through|over)\s+(\S+?)\s*(?:saying|that|:)\s*([\s\S]+)|\bsend\b\s+["“]?([\s\S]+?)["”]?\s+to\s+(\S+)\s+(?:on|via|by|through|over)\s+(\S+)|(?:用|通过|在)\s*(\S+?)\s*(?:上)?给\s*(\S+?)\s*发(?:一条)?(?:消息|信息|短信|邮件)?[:：说，,]+\s*([\s\S]+)|给\s*(\S+?)\s*(?:的)?\s*(\S+?)\s*发(?:一条)?(?:消息|信息)[:：说，,]+\s*([\s\S]+)/i,
		args(m) {
			if (m[1]) return { channel: clean(m[2]), to: clean(m[1]), text: clean(m[3]) };
			if (m[4]) return { channel: unstop(m[6]), to: clean(m[5]), text: clean(m[4]) };
			if (m[7]) return { channel: clean(m[7]), to: clean(m[8]), text: clean(m[9]) };
			return { channel: clean(m[11]), to: clean(m[10]), text: clean(m[12]) };
		},
	},
	{
		tool: "start_job",
		when: /\b(?:start|run|do)\b(?: a| this| it)?\s*(?:background )?(?:job|in the background)\b\s*(?:to|that|:|for)?\s*([\s\S]*)|(?:后台(?:任务)?|开(?:始|启)?(?:一个)?(?:后台)?任务)(?:运行|执行|做|处理)?[:：，]?\s*([\s\S]+)/i,
		args: (m) => ({ task: unstop(m[1] ?? m[2]) || unstop(m[0]) }),
	},
	{
		tool: "draw_image",
		when: /\b(?:draw|paint|generate an image of|make a picture of)\s+(?:me\s+)?([\s\S]+)|(?:画|绘制)(?:一张|一幅|一个|个)?(?:图片?[:：])?\s*([\s\S]+)/i,
		args: (m) => ({ prompt: unstop(m[1] ?? m[2]) }),
	},
	{
		tool: "speak",
		when: /\b(?:say|speak|read)\b(?: this)? (?:aloud|out loud)\s*:?\s*([\s\S]+)|\bspeak\s*:?\s+([\s\S]+)|(?:朗读|念|读出来)[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ text: clean(m.slice(1).find((part) => part)) }),
	},
	{
		tool: "complete_task",
		when: /\b(?:complete|tick(?: off)?|check off|mark)\b(?: the)?(?: task)?\s+["“]?(.+?)["”]?(?: as done| done)?$|(?:完成|勾掉)任务[:：]?\s*(.+)/i,
		args: (m) => ({ text: unstop(m[1] ?? m[2]) }),
	},
	{
		tool: "set_identity",
		when: /\b(?:your name is|call yourself|rename yourself to)\s+(\S+)|(?:你的名字(?:叫|是)|你(?:以后)?叫)\s*(\S+)/i,
		args: (m) => ({ name: unstop(m[1] ?? m[2]), motto: "" }),
	},
	{ tool: "whoami", when: /\bwho am i\b|我是谁/i, args: () => ({}) },
	{
		tool: "context_usage",
		when: /\bcontext usage\b|\bhow (?:full|large) is (?:the|your) context\b|上下文(?:用了|占用|使用)/i,
		args: () => ({}),
	},
	{ tool: "limits_usage", when: /\b(?:limits|usage limits)\b.*\b(?:left|used|usage)\b|限额|还剩多少(?:步|额度)/i, args: () => ({}) },
	{ tool: "list_functions", when: /\b(?:list|show)\b.*\bfunctions\b|(?:列出|有哪些)函数/i, args: () => ({}) },
	{ tool: "use_skill", when: /\buse (?:the )?skill\s+([\w-]+)|使用技能\s*([\w-]+)/i, args: (m) => ({ name: m[1] ?? m[2] }) },
	{
		tool: "find_tools",
		when: /\bfind (?:a |me )?tools?\s+(?:for|to)\s+([\s\S]+)|(?:找|查找)工具[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ query: unstop(m[1] ?? m[2]) }),
	},
	{
		tool: "update_agent_notes",
		when: /\badd to your notes\s*:?\s*([\s\S]+)|(?:写进|加到)你的笔记[:：]?\s*([\s\S]+)/i,
		args: (m) => ({ text: clean(m[1] ?? m[2]) }),
	},
	{
		tool: "now",
		when: /\bwhat(?:'s| is) the (?:time|date)\b|\bwhat time is it\b|\bwhat day is (?:it|today)\b|\bcurrent (?:time|date)\b|几点|(?:现在|今天|今儿|今日)?是?(?:星期几|周几|礼拜几|几月几号)|现在.*(?:时间|几号|日期)|今天.*(?:几号|星期几|周几|日期)/i,
		args: () => ({}),
	},
];

const fenced = (text: string): string =>
	/```\w*\s*\n?([\s\S]*?)```/.exec(text)?.[1]?.trim() ?? /^`([^`]+)`/.exec(text.trim())?.[1] ?? unstop(text);

/** "call web_search {"query": "x"}" names a tool outright: works for every tool there is. */
function named(said: string, reading: Reading): Intent | null {
	const match =
		/^(?:please\s+)?(?:call|use|run|调用|使用)\s+(?:the\s+)?(?:tool\s+|工具\s*)?[`"]?([\w-]{2,64})[`"]?\s*(?:with|:|：|，)?\s*(\{[\s\S]*\})?\s*[.。]?$/i.exec(
			said,
		);
	const tool = match?.[1];
	if (!tool || (!reading.tools.has(tool) && !/_/.test(tool))) return null;
	try {
		return { tool, args: match?.[2] ? (JSON.parse(match[2]) as Args) : {} };
	} catch {
		return null;
	}
}

function one(said: string, reading: Reading): Intent | null {
	const direct = named(said, reading);
	if (direct) return direct;
	for (const rule of RULES) {
		const match = rule.when.exec(said);
		const args = match ? rule.args(match, { ...reading, said }) : null;
		if (args) return { tool: rule.tool, args };
	}
	return null;
}

const THEN = /\s*(?:[;；]\s*|\n+|,?\s+(?:and\s+)?then\s+|[，。]?\s*(?:然后|接着)[，]?)\s*/i;

/** What a message asks for, in order. Several wishes joined by "then" are several intents, if every one of them is understood. */
export function intentsOf(reading: Reading): Intent[] {
	const said = reading.said.replace(/\n*\[(?:image|audio|video|file): [^\]]+\]/g, "").trim();
	// A denial is no wish, whatever words stand in it.
	if (said === "" || /^(?:Denied: |已拒绝：)/.test(said)) return [];
	const parts = said.includes("```") ? [said] : said.split(THEN).filter((part) => part.trim() !== "");
	if (parts.length > 1 && parts.length <= 6) {
		const intents = parts.map((part) => one(part.trim(), reading));
		if (intents.every((intent) => intent !== null)) return intents;
	}
	const whole = one(said, reading);
	return whole ? [whole] : [];
}
