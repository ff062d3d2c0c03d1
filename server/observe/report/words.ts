/** The report's words in both languages. */

export interface Words {
	day: string;
	turn: string;
	turns: string;
	made: string;
	tokens: string;
	input: string;
	output: string;
	cached: string;
	calls: string;
	cost: string;
	most: string;
	free: string;
	unknownPrice: string;
	unpriced: string;
	bySource: string;
	byModel: string;
	tasks: string;
	nothing: string;
	step: string;
	round: string;
	arguments: string;
	result: string;
	plan: string;
	reply: string;
	master: string;
	cut: string;
	why: string;
	recalled: string;
	failedCall: string;
	files: string;
	states: Record<string, string>;
	origins: Record<string, string>;
	by: Record<string, string>;
}

const english: Words = {
	day: "day",
	turn: "turn",
	turns: "turns",
	made: "Made",
	tokens: "tokens",
	input: "input",
	output: "output",
	cached: "cached",
	calls: "calls",
	cost: "cost",
	most: "highest",
	free: "free",
	unknownPrice: "price unknown",
	unpriced: "tokens without a known price",
	bySource: "What it was for",
	byModel: "Which model",
	tasks: "Tasks",
	nothing: "Nothing happened.",
	step: "Step",
	round: "round",
	arguments: "arguments",
	result: "result",
	plan: "Plan",
	reply: "Answer",
	master: "You",
	cut: "Ended by a guard",
	why: "Why: prompt, memories, failed calls",
	recalled: "recalled",
	failedCall: "failed call",
	files: "Changes of prompt files",
	states: {
		done: "done",
		failed: "failed",
		stopped: "stopped",
		running: "running",
		queued: "waiting",
		open: "open",
		started: "started",
		skipped: "skipped",
		interrupted: "interrupted",
	},
	origins: { human: "message", alarm: "alarm", heartbeat: "heartbeat", job: "background job" },
	by: { agent: "the agent", person: "a person", program: "the program", hand: "by hand" },
};

const chinese: Words = {
	day: "日报",
	turn: "回合",
	turns: "个回合",
	made: "生成于",
	tokens: "token",
	input: "输入",
	output: "输出",
	cached: "缓存",
	calls: "调用",
	cost: "费用",
	most: "最高",
	free: "免费",
	unknownPrice: "价格未知",
	unpriced: "token 价格未知",
	bySource: "按用途",
	byModel: "按模型",
	tasks: "任务",
	nothing: "没有发生任何事。",
	step: "步骤",
	round: "轮",
	arguments: "参数",
	result: "结果",
	plan: "计划",
	reply: "回答",
	master: "您",
	cut: "被保护机制结束",
	why: "缘由：提示词、记忆、失败的调用",
	recalled: "回忆",
	failedCall: "失败的调用",
	files: "提示词文件的改动",
	states: {
		done: "完成",
		failed: "失败",
		stopped: "已停止",
		running: "进行中",
		queued: "等待中",
		open: "未开始",
		started: "已开始",
		skipped: "已跳过",
		interrupted: "被中断",
	},
	origins: { human: "消息", alarm: "闹钟", heartbeat: "心跳", job: "后台任务" },
	by: { agent: "助手", person: "用户", program: "程序", hand: "手工" },
};

export function wordsOf(isChinese: boolean): Words {
	return isChinese ? chinese : english;
}
