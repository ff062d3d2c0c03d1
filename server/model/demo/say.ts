/** The demo model's sentences. */
import { knownResult } from "./known.ts";
import type { Done, Language, Reading } from "./read.ts";

export function introduction(language: Language): string {
	return language === "zh"
		? "我是 OpenLani 内置的演示模型：没有接入真正的大模型，只会按固定规则回答，但工具都是真的。"
		: "I am OpenLani's built-in demo model: no real language model is connected, I answer by fixed rules, but the tools are real.";
}

export function notOffered(tool: string, language: Language): string {
	return language === "zh"
		? `这里没有提供 ${tool} 这个工具，所以我做不了这件事。`
		: `The tool ${tool} is not available here, so I cannot do that.`;
}

const EXAMPLES: [tool: string, en: string, zh: string][] = [
	["write_plan", "plan a weekend in Kyoto", "帮我制定一个周末去京都的计划"],
	["set_alarm", "remind me in 2 minutes to drink water", "2 分钟后提醒我喝水"],
	["remember_fact", "remember that my sister's name is Anna", "记住我妹妹叫安娜"],
	["recall", "what do you know about my sister", "你知道关于我妹妹的什么"],
	["forget", "forget that my sister's name is Anna", "忘记我妹妹叫安娜"],
	["web_search", "search for the weather in Berlin", "搜索柏林天气"],
	["web_fetch", "fetch https://example.com", "打开 https://example.com"],
	["write_file", "write notes.txt with buy milk", "写文件 notes.txt 内容：买牛奶"],
	["read_file", "read notes.txt", "读取 notes.txt"],
	["list_files", "list my files", "列出文件"],
	["now", "what time is it", "现在几点"],
	["run_shell", "run `ls -la`", "运行 `ls -la`"],
	["start_job", "start a job to sort my notes", "后台任务：整理笔记"],
];

function examples(reading: Reading): string {
	const zh = reading.language === "zh";
	const usable = EXAMPLES.filter(([tool]) => reading.tools.has(tool));
	if (usable.length === 0) return zh ? "在设置里添加一个模型，就能得到真正的回答。" : "Add a model in the settings to get real answers.";
	const lines = usable.map(([, en, han]) => `- ${zh ? han : en}`).join("\n");
	return zh
		? `可以试试：\n${lines}\n\n在设置里添加一个模型，就能得到真正的回答。`
		: `You can try:\n${lines}\n\nAdd a model in the settings to get real answers.`;
}

/** No wish was understood. */
export function fallback(reading: Reading): string {
	const zh = reading.language === "zh";
	const { said } = reading;
	if (
		/\b(?:who|what) are you\b|\bare you (?:a |an |the )?(?:demo|real|ai|bot|model)|\bdemo\b|\bwhich model\b|\bwhat (?:can|do) you do\b|^\s*help\b|你是谁|你是什么|演示|什么模型|哪个模型|你能做什么|你会什么|帮助/i.test(
			said,
		)
	) {
		return `${introduction(reading.language)}\n\n${examples(reading)}`;
	}
	if (/\bwhat did i (?:just )?(?:say|ask)|\bmy last message\b|我(?:刚才|刚刚|上次)(?:说|问)了?什么/i.test(said)) {
		const last = reading.earlier.at(-1);
		if (last === undefined) return zh ? "这段对话里你之前还没说过话。" : "You have not said anything before in this conversation.";
		return zh ? `你刚才说的是：“${last}”` : `You said: "${last}"`;
	}
	if (reading.attachments.length > 0) {
		const names = reading.attachments.join(", ");
		return zh
			? `收到附件：${names}。演示模型看不懂内容，但文件已经存好。`
			: `I got ${names}. The demo model cannot look inside, but what you sent is stored.`;
	}
	if (reading.recalled.length > 0 && /[?？]|吗|什么|谁|哪/.test(said)) {
		return `${zh ? "我记得：" : "From memory:"}\n${reading.recalled.map((text) => `- ${text}`).join("\n")}`;
	}
	if (/^(?:Denied: |已拒绝：)/.test(said)) return zh ? "好的，那就不做，什么都没有改动。" : "All right, I leave it: nothing was changed.";
	const sum = arithmetic(said);
	if (sum !== null) return sum;
	if (/^\s*(?:thanks?|thank you|谢谢|多谢)/i.test(said)) return zh ? "不客气。" : "You are welcome.";
	if (reading.first) return examples(reading);
	if (/^\s*(?:hi|hello|hey|good (?:morning|evening)|你好|您好|嗨|早上好|晚上好)/i.test(said))
		return zh ? `你好！${examples(reading)}` : `Hello! ${examples(reading)}`;
	const quote = Array.from(said).slice(0, 80).join("");
	return zh
		? `你说的是：“${quote}”。作为演示模型，我不会真正理解这句话。${examples(reading)}`
		: `You said: "${quote}". As the demo model I do not really understand that. ${examples(reading)}`;
}

/** "12 * 7" and the like. */
function arithmetic(said: string): string | null {
	const match = /(-?\d+(?:\.\d+)?)\s*([+\-*/×÷x])\s*(-?\d+(?:\.\d+)?)\s*(?:=|\?|？|是多少|等于几|$)/.exec(said);
	if (!match) return null;
	const [, left, sign, right] = match;
	const a = Number(left);
	const b = Number(right);
	const value = sign === "+" ? a + b : sign === "-" ? a - b : sign === "/" || sign === "÷" ? a / b : a * b;
	return Number.isFinite(value) ? `${left} ${sign} ${right} = ${Number(value.toPrecision(12))}` : null;
}

const SHOWN = 1_500;

/** What one tool said, told to a person. Words that are the tool's own are marked as a quotation. */
export function tell(done: Done, language: Language): string {
	const known = knownResult(done, language);
	if (known !== null) return known;
	const zh = language === "zh";
	const text = Array.from(done.result.trim()).slice(0, SHOWN).join("");
	const arg = (name: string) => String(done.args[name] ?? "");
	const block = (title: string, shown = (raw: string) => raw) =>
		text === "" ? `${title}${zh ? "（没有输出）" : " (no output)"}` : `${title}\n\n${fence(shown(text))}`;
	/** What was asked for, and the answer in the tool's own words. */
	const about = (subject: string) => {
		if (text === "") return zh ? `${subject}：没有返回内容。` : `${subject}: no answer.`;
		if (text.includes("\n")) return block(zh ? `${subject}，工具返回：` : `${subject}:`);
		return zh ? `${subject}，工具返回：“${text}”` : `${subject}: ${text}`;
	};
	switch (done.name) {
		case "now":
			return about(zh ? "现在的时间" : "The time");
		case "set_alarm":
			return about(zh ? `闹钟“${arg("task")}”` : `Alarm "${arg("task")}"`);
		case "remember_fact":
			return about(zh ? `要记的是“${arg("text")}”` : `To remember "${arg("text")}"`);
		case "recall":
			return about(zh ? `关于“${arg("query")}”` : `About "${arg("query")}" my memory says`);
		case "web_search":
			return block(zh ? `搜索“${arg("query")}”的结果：` : `Results for "${arg("query")}":`);
		case "web_fetch":
			return block(zh ? `${arg("url")} 的内容：` : `What ${arg("url")} says:`);
		case "read_file":
			return block(zh ? `${arg("path")} 的内容：` : `${arg("path")} says:`);
		case "list_files":
			return block(zh ? "文件列表：" : "The files:", (listed) => (zh ? listed.replace(/ (\d+) bytes$/gm, " $1 字节") : listed));
		case "search_files":
			return block(zh ? `在文件里找“${arg("query")}”：` : `"${arg("query")}" in the files:`);
		case "run_shell":
		case "run_python":
			return block(zh ? "运行结果：" : "The output:");
		case "send_message":
			return about(zh ? `发给 ${arg("to")}（${arg("channel")}）` : `To ${arg("to")} on ${arg("channel")}`);
		case "write_file":
		case "edit_file":
			return about(zh ? `文件 ${arg("path")}` : `File ${arg("path")}`);
		case "start_job":
			return about(zh ? `后台任务“${arg("task")}”` : `Job "${arg("task")}"`);
		default:
			return about(zh ? `用了 ${done.name}` : `${done.name} says`);
	}
}

/** A fence longer than any in the text. */
function fence(text: string): string {
	const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
	const marks = "`".repeat(longest + 1);
	return `${marks}\n${text}\n${marks}`;
}
