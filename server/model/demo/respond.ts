/** The demo model's mind: a fixed script for each message, gone through step by step, told from the tools' own results. */
import { type Intent, intentsOf } from "./intents.ts";
import { isOneself, memoryRows } from "./known.ts";
import type { Done, Language, Reading } from "./read.ts";
import { fallback, introduction, notOffered, tell } from "./say.ts";

export interface Response {
	text: string;
	calls: { name: string; args: Record<string, unknown> }[];
}

/** A step of a script: calls, made when it is its turn. */
type Step = { name: string; args: Record<string, unknown> }[];

export function respond(reading: Reading): Response {
	if (reading.shorter)
		return say(
			reading,
			reading.language === "zh" ? "说得更短：我是演示模型，以上就是要点。" : "In short: I am the demo model, and that was the gist.",
		);
	if (reading.woken === "heartbeat") return quietEnd(reading);
	const intents = intentsOf(reading).filter((intent) => reading.woken !== "alarm" || intent.tool !== "set_alarm");
	if (reading.woken === "alarm" && intents.length === 0)
		return say(reading, (reading.language === "zh" ? "提醒：" : "Reminder: ") + reading.said);
	if (intents.length === 0) return reading.steps.length > 0 ? say(reading, results(reading)) : say(reading, fallback(reading));
	const missing = intents.find((intent) => !reading.tools.has(intent.tool) || (isSearched(intent) && !reading.tools.has("recall")));
	if (missing && reading.steps.length === 0) {
		const also = missing.tool === "recall" ? remembered(reading) : null;
		return say(reading, also ?? notOffered(missing.tool, reading.language));
	}
	const script = intents.filter((intent) => reading.tools.has(intent.tool)).flatMap((intent) => steps(intent, reading));
	const next = reading.closing ? undefined : script[reading.steps.length];
	if (next) return { text: "", calls: next.filter((call) => reading.tools.has(call.name)) };
	return say(reading, results(reading));
}

/** Nothing to report in a heartbeat: the intended silence, where it can be said. */
function quietEnd(reading: Reading): Response {
	if (reading.tools.has("finish") && reading.steps.length === 0)
		return { text: "", calls: [{ name: "finish", args: { status: "done", reply: "" } }] };
	return { text: "HEARTBEAT_OK", calls: [] };
}

function say(reading: Reading, text: string): Response {
	const opening =
		reading.first && reading.woken === null && !text.startsWith(introduction(reading.language).slice(0, 12))
			? `${introduction(reading.language)}\n\n`
			: "";
	return { text: opening + text, calls: [] };
}

function steps(intent: Intent, reading: Reading): Step[] {
	if (intent.tool === "write_plan") return planSteps(String(intent.args.goal ?? ""), reading);
	if (isSearched(intent)) return forgetSteps(String(intent.args.query), reading);
	return [[{ name: intent.tool, args: intent.args }]];
}

/** "Forget that …" names what is meant by words: its id is looked up first. */
const isSearched = (intent: Intent): boolean => intent.tool === "forget" && intent.args.query !== undefined;

function forgetSteps(query: string, reading: Reading): Step[] {
	const search: Step = [{ name: "recall", args: { query } }];
	const found = reading.steps.flat().find((done) => done.name === "recall" && done.args.query === query);
	const rows = memoryRows(found?.result ?? "");
	// The shortest that says it: a fact is a sentence, an exchange a talk around it.
	const saying = rows.filter((one) => one.text.toLowerCase().includes(query.toLowerCase())).sort((x, y) => x.text.length - y.text.length);
	const { id } = saying[0] ?? rows[0] ?? {};
	return id ? [search, [{ name: "forget", args: { id } }]] : [search];
}

interface PlanStep {
	text: string;
	call: { name: string; args: Record<string, unknown> } | null;
}

/** A plan is written first, then worked off: each item's own tool call goes with the tick of the item before it. */
function planSteps(goal: string, reading: Reading): Step[] {
	const plan = planFor(goal, reading);
	const write = (done: number) => ({
		name: "write_plan",
		args: { items: plan.map((item, place) => ({ text: item.text, done: place < done })) },
	});
	const script: Step[] = [[write(0)]];
	for (const [place, item] of plan.entries()) {
		const calls = place === 0 ? [] : [write(place)];
		if (item.call) calls.push(item.call as never);
		if (calls.length > 0) script.push(calls);
	}
	script.push([write(plan.length)]);
	return script;
}

function planFor(goal: string, reading: Reading): PlanStep[] {
	const zh = reading.language === "zh";
	const about = goal || (zh ? "这件事" : "this");
	const listed = goal
		.split(/\n|[;；]|(?:^|\s)\d+[.)、]\s*|，(?=.*，)|,\s+(?=.*,)|、/)
		.map((part) => part.trim().replace(/^(?:[-*]|and\b)\s*/, ""))
		.filter((part) => part !== "");
	if (listed.length > 1) {
		const tail = listed.at(-1) ?? "";
		const [last, also] = tail.split(/\s+and\s+|和/).map((part) => part.trim());
		const items = last && also ? [...listed.slice(0, -1), last, also] : listed;
		return items.slice(0, 12).map((text) => ({ text, call: callFor(text, reading) }));
	}
	const file = `plan-${slug(about)}.md`;
	const note = zh
		? `# 计划：${about}\n\n1. 目标：${about}\n2. 需要的东西\n3. 下一步\n`
		: `# Plan: ${about}\n\n1. Goal: ${about}\n2. What is needed\n3. Next step\n`;
	const all: (PlanStep & { needs: string | null })[] = [
		{ text: zh ? "确认现在的时间" : "Check the date", needs: "now", call: { name: "now", args: {} } },
		{
			text: zh ? `回忆关于“${about}”的已知信息` : `Recall what is known about ${about}`,
			needs: "recall",
			call: { name: "recall", args: { query: about } },
		},
		{
			text: zh ? `把目标写进 ${file}` : `Write the goal down in ${file}`,
			needs: "write_file",
			call: { name: "write_file", args: { path: file, content: note } },
		},
		{
			text: zh ? `再读一遍 ${file} 检查` : `Read ${file} again to check it`,
			needs: "write_file",
			call: { name: "read_file", args: { path: file } },
		},
		{ text: zh ? "总结并说出下一步" : "Sum up and name the next step", needs: null, call: null },
	];
	return all.filter(
		(item) => item.needs === null || (reading.tools.has(item.needs) && (item.call === null || reading.tools.has(item.call.name))),
	);
}

/** An item that is itself a wish we understand is done for real. */
function callFor(text: string, reading: Reading): PlanStep["call"] {
	const intent = intentsOf({ ...reading, said: text })[0];
	return intent && intent.tool !== "write_plan" && intent.tool !== "set_alarm" && reading.tools.has(intent.tool)
		? { name: intent.tool, args: intent.args }
		: null;
}

function slug(text: string): string {
	const plain = text
		.toLowerCase()
		.replace(/[^a-z0-9\u4e00-\u9fff]+/g, "-")
		.replace(/^-+|-+$/g, "");
	return Array.from(plain).slice(0, 24).join("").replace(/-+$/, "") || "task";
}

/** The answer after tools: what each of them said, in the order they ran. Ticks of a plan are told once. */
function results(reading: Reading): string {
	const all = reading.steps.flat();
	const lines: string[] = [];
	const forgets = all.some((done) => done.name === "forget");
	for (const done of all) if (done.name !== "write_plan" && !(forgets && done.name === "recall")) lines.push(tell(done, reading.language));
	if (reading.profile.length > 0 && all.some((done) => done.name === "recall" && isOneself(String(done.args.query))))
		lines.push(`${reading.language === "zh" ? "你的资料里写着：" : "Your profile says:"}\n${reading.profile.join("\n")}`);
	const plan = all.findLast((done) => done.name === "write_plan");
	if (plan) lines.push(planLine(plan, reading.language));
	return lines.join("\n\n");
}

function planLine(plan: Done, language: Language): string {
	const items = (Array.isArray(plan.args.items) ? plan.args.items : []) as { text?: string; done?: boolean }[];
	const ticked = items.filter((item) => item.done).length;
	const list = items.map((item) => `- [${item.done ? "x" : " "}] ${item.text ?? ""}`).join("\n");
	const head = language === "zh" ? `计划完成了 ${ticked}/${items.length} 项：` : `The plan: ${ticked} of ${items.length} items done.`;
	return `${head}\n${list}`;
}

/** Without a recall tool, what the situation brought along still answers. */
function remembered(reading: Reading): string | null {
	if (reading.recalled.length === 0) return null;
	return `${reading.language === "zh" ? "我记得：" : "I remember:"}\n${reading.recalled.map((text) => `- ${text}`).join("\n")}`;
}
