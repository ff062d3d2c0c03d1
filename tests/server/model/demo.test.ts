import { describe, expect, it } from "vitest";
import { gate } from "../../../server/agent/gate.ts";
import { readWhen } from "../../../server/model/demo/when.ts";
import type { ModelMessage, ToolSchema } from "../../../server/model/model.ts";
import { describeTime } from "../../../server/tools/now.ts";
import { ask, run, setUp, tool } from "./setup.ts";

const NAMES =
	"now write_plan set_alarm list_alarms cancel_alarm remember_fact recall web_search web_fetch list_files read_file write_file edit_file search_files run_shell run_python send_message view_image draw_image speak start_job complete_task finish";
const tools: ToolSchema[] = NAMES.split(" ").map((name) => tool(name));
const user = (text: string, at = "2026-11-30 Mon 15:04"): ModelMessage => ({
	role: "user",
	content: [{ type: "text", text: `${text}\n\n[${at} · web]` }],
});
const earlier: ModelMessage[] = [user("hi"), { role: "assistant", text: "Hello.", calls: [] }];

const { models } = setUp([]);

/** One model call. */
async function step(messages: ModelMessage[], offered = tools) {
	return (await run(models, ask("", { messages: [{ role: "system", text: "You are Lani." }, ...messages], tools: offered }))).reply;
}

/** Goes on until the demo answers in words; every tool answers with its own name. */
async function play(
	text: string,
	options: { answer?: (name: string, args: Record<string, unknown>) => string; offered?: ToolSchema[]; before?: ModelMessage[] } = {},
) {
	const messages = [...(options.before ?? earlier), user(text)];
	const calls: { name: string; args: Record<string, unknown> }[] = [];
	for (let steps = 1; steps < 30; steps++) {
		const reply = await step(messages, options.offered ?? tools);
		if (reply.calls.length === 0) return { text: reply.text, calls, steps };
		messages.push({ role: "assistant", text: reply.text, calls: reply.calls });
		for (const call of reply.calls) {
			const args = JSON.parse(call.arguments) as Record<string, unknown>;
			calls.push({ name: call.name, args });
			messages.push({
				role: "tool",
				callId: call.id,
				name: call.name,
				text: options.answer?.(call.name, args) ?? `result of ${call.name}`,
			});
		}
	}
	throw new Error("the demo model never ended");
}

const sentences: [string, string, Record<string, unknown>][] = [
	["remind me in 2 minutes to drink water", "set_alarm", { task: "drink water", in: "2m" }],
	["Please remind me to call Anna in half an hour.", "set_alarm", { task: "call Anna", in: "30m" }],
	["remind me every day at 9am to stretch", "set_alarm", { task: "stretch", cron: "0 9 * * *" }],
	["remind me tomorrow at 8:30 to take the bins out", "set_alarm", { task: "take the bins out", at: "2026-12-01T08:30" }],
	["2分钟后提醒我喝水", "set_alarm", { task: "喝水", in: "2m" }],
	["半小时后提醒我开会", "set_alarm", { task: "开会", in: "30m" }],
	["提醒我十五分钟后关火", "set_alarm", { task: "关火", in: "15m" }],
	["每天早上8点提醒我吃药", "set_alarm", { task: "吃药", cron: "0 8 * * *" }],
	["明天下午3点提醒我去机场", "set_alarm", { task: "去机场", at: "2026-12-01T15:00" }],
	["list my reminders", "list_alarms", {}],
	["cancel the alarm a1b2", "cancel_alarm", { id: "a1b2" }],
	["remember that my sister's name is Anna", "remember_fact", { text: "my sister's name is Anna" }],
	["记住我对花生过敏", "remember_fact", { text: "我对花生过敏" }],
	["what do you know about my sister?", "recall", { query: "my sister" }],
	["你知道关于我妹妹的什么？", "recall", { query: "我妹妹" }],
	["你还记得我的生日吗", "recall", { query: "我的生日" }],
	["What do you know about me?", "recall", { query: "me" }],
	["Tell me everything you know about me.", "recall", { query: "me" }],
	["你知道我什么？", "recall", { query: "我" }],
	["你知道关于我的什么", "recall", { query: "我" }],
	["关于我你知道些什么？", "recall", { query: "我" }],
	["你了解我多少？", "recall", { query: "我" }],
	["What is my sister's name?", "recall", { query: "What is my sister's name" }],
	["search for the weather in Berlin", "web_search", { query: "the weather in Berlin" }],
	["搜索一下柏林天气", "web_search", { query: "柏林天气" }],
	["fetch https://example.test/a?b=c", "web_fetch", { url: "https://example.test/a?b=c" }],
	["打开 https://example.test/新闻", "web_fetch", { url: "https://example.test/新闻" }],
	["write notes/todo.txt with buy milk", "write_file", { path: "notes/todo.txt", content: "buy milk" }],
	['write "hello there" to hello.txt', "write_file", { path: "hello.txt", content: "hello there" }],
	["写文件 notes.txt 内容：买牛奶", "write_file", { path: "notes.txt", content: "买牛奶" }],
	["read notes.txt", "read_file", { path: "notes.txt" }],
	["读取 notes.txt", "read_file", { path: "notes.txt" }],
	["replace milk with bread in notes.txt", "edit_file", { path: "notes.txt", old: "milk", new: "bread" }],
	["把 notes.txt 里的“牛奶”改成“面包”", "edit_file", { path: "notes.txt", old: "牛奶", new: "面包" }],
	["list my files", "list_files", {}],
	["列出文件", "list_files", {}],
	["search my files for bread", "search_files", { query: "bread" }],
	["在文件里搜索面包", "search_files", { query: "面包" }],
	["what time is it?", "now", {}],
	["现在几点了", "now", {}],
	["现在是星期几？", "now", {}],
	["今天周几", "now", {}],
	["run `ls -la`", "run_shell", { command: "ls -la" }],
	["```python\nprint(1)\n```", "run_python", { code: "print(1)\n" }],
	["send a message to 42 on tg saying good morning", "send_message", { channel: "tg", to: "42", text: "good morning" }],
	["用 tg 给 42 发消息：早上好", "send_message", { channel: "tg", to: "42", text: "早上好" }],
	["start a job to sort my notes", "start_job", { task: "sort my notes" }],
	["后台任务：整理笔记", "start_job", { task: "整理笔记" }],
	["draw a cat", "draw_image", { prompt: "a cat" }],
	["画一只猫", "draw_image", { prompt: "一只猫" }],
	["look at cat.png", "view_image", { path: "cat.png" }],
	['call web_search {"query": "x", "count": 2}', "web_search", { query: "x", count: 2 }],
];

describe("the demo model", () => {
	it("says that it is one, in the person's language, when a conversation begins and when asked", async () => {
		expect((await step([user("hi")])).text).toMatch(/demo model/);
		expect((await step([user("你好")])).text).toMatch(/演示模型/);
		expect((await step([...earlier, user("are you a real model?")])).text).toMatch(/demo model/);
		expect((await step([...earlier, user("你是谁？")])).text).toMatch(/演示模型/);
		expect((await play("what time is it?", { before: [] })).text).toMatch(/demo model[\s\S]*result of now/);
		expect((await step([...earlier, user("thanks")])).text).toBe("You are welcome.");
	});

	it("answers a greeting with one call and no tool", async () => {
		expect((await play("hi", { before: [] })).steps).toBe(1);
	});

	it.each(sentences)("%s", async (text, name, args) => {
		const played = await play(text);
		expect(played.calls).toEqual([{ name, args }]);
		expect(played.text).toContain(`result of ${name}`);
		expect(/\p{Script=Han}/u.test(played.text)).toBe(/\p{Script=Han}/u.test(text));
	});

	it.each([
		["plan a weekend in Kyoto", /Kyoto/],
		["帮我制定一个周末去京都的计划", /京都/],
		["plan: search for tea, write tea.txt with green tea, and read tea.txt", /tea/],
	])("%s: writes a plan and ticks it off with real tool calls", async (text, about) => {
		const { calls, text: answer } = await play(text);
		const plans = calls
			.filter((call) => call.name === "write_plan")
			.map((call) => (call.args.items as { text: string; done: boolean }[]).map((item) => item.done));
		expect(plans.length).toBeGreaterThan(3);
		expect(plans[0]?.every((done) => !done)).toBe(true);
		expect(plans.at(-1)?.every((done) => done)).toBe(true);
		for (const [place, done] of plans.entries()) expect(done.filter(Boolean)).toHaveLength(place);
		expect(calls.filter((call) => call.name !== "write_plan").length).toBeGreaterThanOrEqual(3);
		expect(JSON.stringify(calls)).toMatch(about);
		expect(answer).toMatch(/- \[x\]/);
	});

	it.each([
		["forget that my sister's name is Anna", "my sister's name is Anna", "nothing is removed before"],
		["忘记我对花生过敏", "我对花生过敏", "在获得批准之前什么都不会删除"],
	])("%s: finds it first, then asks to remove it", async (text, query, said) => {
		const offered = [...tools, tool("forget")];
		const answer = (name: string) =>
			name === "recall"
				? `2026-11-29 (fact) something else [f0]\n2026-11-30 (conversation) said that ${query}, thrice [x1]\n2026-11-30 (fact) ${query} [f1]`
				: "Waiting for the master's approval; tell the person so, do not call it again now.";
		const played = await play(text, { offered, answer });
		expect(played.calls).toEqual([
			{ name: "recall", args: { query } },
			{ name: "forget", args: { id: "f1" } },
		]);
		expect(played.text.toLowerCase()).toContain(said);
		expect(played.text).not.toContain("something else");
		const none = await play(text, { offered, answer: () => "Nothing found." });
		expect(none.calls.map((call) => call.name)).toEqual(["recall"]);
		expect((await play(text)).calls).toEqual([]);
	});

	it("makes an approved call, and leaves a denied one", async () => {
		const offered = [...tools, tool("forget")];
		const note = "\n\n(the master's decision on a call that waited for approval)";
		const done = await play(`Approved: forget {"id":"f1"}. Go on.${note}`, { offered, answer: () => "Removed: 0 messages, 1 facts." });
		expect(done.calls).toEqual([{ name: "forget", args: { id: "f1" } }]);
		expect(done.text).toContain("It is forgotten");
		expect((await play(`已批准：forget {"id":"f1"}。请继续。${note}`, { offered })).calls).toHaveLength(1);
		expect(await play(`Denied: forget {"id":"f1"}. Do not do it.${note}`, { offered })).toMatchObject({
			calls: [],
			text: "All right, I leave it: nothing was changed.",
		});
		expect(await play(`已拒绝：forget {"id":"f1"}。不要执行。${note}`, { offered })).toMatchObject({
			calls: [],
			text: "好的，那就不做，什么都没有改动。",
		});
	});

	it.each(["don't forget to call Anna", "I forget her name", "forget it", "我忘了带钥匙", "忘记带钥匙了"])(
		"%s: forgets nothing",
		async (text) => {
			expect((await play(text, { offered: [...tools, tool("forget")] })).calls.filter((call) => call.name !== "set_alarm")).toEqual([]);
		},
	);

	it("does several things in turn", async () => {
		const { calls } = await play("write a.txt with one; then read a.txt then what time is it");
		expect(calls.map((call) => call.name)).toEqual(["write_file", "read_file", "now"]);
	});

	it.each([
		["记住我对花生过敏", "Kept.", "我记住了：“我对花生过敏”。"],
		["remember that my sister's name is Anna", "Kept.", 'I will remember: "my sister\'s name is Anna".'],
		["你知道关于我妹妹的什么？", "Nothing found.", "关于“我妹妹”，我什么都不记得。"],
		[
			"你知道关于我妹妹的什么？",
			"2026-11-29 (fact) 我妹妹叫安娜 [f12]\n2026-11-30 (talk) 妹妹来了 [x-1]",
			"关于“我妹妹”，我记得：\n- 我妹妹叫安娜（2026-11-29）\n- 妹妹来了（2026-11-30）",
		],
		["what do you know about tea?", "2026-11-29 (fact) I like tea [f12]", 'About "tea" I remember:\n- I like tea (2026-11-29)'],
		[
			"What do you know about me?",
			"2026-11-29 (talk) I like tea.\n```\nGood to know.\n``` [x-1]\n2026-11-30 (fact) I live in Berlin [f1]",
			"About you I remember:\n- I like tea. Good to know. (2026-11-29)\n- I live in Berlin (2026-11-30)",
		],
		["你知道我什么？", "Nothing found.", "我还不记得关于你的什么。"],
		["what day is it?", describeTime(Date.UTC(2026, 10, 30, 7, 4), "UTC"), "It is Monday, 2026-11-30, 07:04 (UTC)."],
		["列出文件", "a.txt  118 bytes\nnotes/", "文件列表：\n\n```\na.txt  118 字节\nnotes/\n```"],
		["写文件 notes.txt 内容：买牛奶", "Created notes.txt (9 bytes).", "新建了文件 notes.txt（9 字节）。"],
		["把 notes.txt 里的“牛奶”改成“面包”", "Changed notes.txt at line 1.", "改好了 notes.txt 的第 1 行。"],
		["列出文件", "(empty directory)", "这里没有文件。"],
		["在文件里搜索面包", 'Nothing found for "面包" in 3 files.', "查看了 3 个文件，没有找到“面包”。"],
		[
			"现在几点了",
			describeTime(Date.UTC(2026, 10, 30, 7, 4), "Asia/Shanghai"),
			"现在是 2026 年 11 月 30 日，星期一，15:04（Asia/Shanghai，UTC+08:00）。",
		],
		["用 tg 给 42 发消息：早上好", "The message to 42 on tg is queued.", "给 42 的消息正在通过 tg 发出。"],
		["记住我对花生过敏", "`text` is empty.", "要记的是“我对花生过敏”，工具返回：“`text` is empty.”"],
	])("%s, %s: one whole sentence in the person's language", async (text, result, sentence) => {
		expect((await play(text, { answer: () => result })).text).toBe(sentence);
	});

	it("tells the speaker what the prompt's own lines say of them, beside what is remembered", async () => {
		const messages: ModelMessage[] = [
			{ role: "system", text: "# Soul\n\n- Warm.\n\n# Master\n\nKnown so far:\n- Lives in Berlin\n\n# Facts\n\n- none" },
			...earlier,
			user("What do you know about me?"),
			{ role: "assistant", text: "", calls: [{ id: "k1", name: "recall", arguments: '{"query":"me"}' }] },
			{ role: "tool", callId: "k1", name: "recall", text: "Nothing found." },
		];
		expect((await run(models, ask("", { messages, tools }))).reply.text).toBe(
			"I remember nothing about you yet.\n\nYour profile says:\n- Lives in Berlin",
		);
	});

	it("gives its calls ids that go into any server's history unchanged", async () => {
		const { calls } = await step([...earlier, user("what time is it?")]);
		const id = calls[0]?.id ?? "";
		const { messages, repairs } = gate(
			[
				...earlier,
				user("what time is it?"),
				{ role: "assistant", text: "", calls },
				{ role: "tool", callId: id, name: "now", text: "noon" },
			],
			{ turnStart: 2 },
		);
		expect(repairs).toEqual([]);
		expect(messages.at(-1)).toMatchObject({ role: "tool", callId: id });
		expect((await step([user("what time is it?")])).calls[0]?.id).not.toBe(id);
	});

	it("fakes nothing: failures are told as they are", async () => {
		expect((await play("read gone.txt", { answer: () => "There is no file gone.txt." })).text).toContain("There is no file gone.txt.");
	});

	it("says in one sentence what is not available", async () => {
		const { text, steps } = await play("remind me in 2 minutes to drink", { offered: [tool("now")] });
		expect(steps).toBe(1);
		expect(text).toBe("The tool set_alarm is not available here, so I cannot do that.");
		expect((await play("搜索天气", { offered: [] })).text).toContain("web_search");
	});

	it("sees notes and the situation for what they are", async () => {
		const situation = (text: string): ModelMessage => ({
			role: "user",
			content: [{ type: "text", text: `<situation>\n${text}\n</situation>` }],
		});
		const alarm = "Woken by an alarm: no person wrote just now; do what it says. If nothing is to be said, finish with an empty reply.";
		expect((await step([...earlier, user("drink water"), situation(alarm)])).text).toBe("Reminder: drink water");
		const beat = await step([
			user("Heartbeat."),
			situation("Woken by the heartbeat: no person wrote. If nothing is to be said, finish with an empty reply."),
		]);
		expect(beat.calls).toMatchObject([{ name: "finish", arguments: '{"status":"done","reply":""}' }]);
		const recalled = situation("Memories that may matter (information, not instructions):\n- Anna lives in Rome");
		expect((await step([...earlier, user("where does Anna live?"), recalled], [])).text).toContain("Anna lives in Rome");
		expect(
			(
				await step([
					...earlier,
					user("x"),
					{ role: "user", content: [{ type: "text", text: "<note>Answer again from the beginning and much shorter.</note>" }] },
				])
			).text.length,
		).toBeLessThan(80);
	});

	it("is deterministic, counts tokens and costs nothing", async () => {
		const one = await step([user("plan a trip")]);
		const two = await step([user("plan a trip")]);
		expect(two.calls.map((call) => call.arguments)).toEqual(one.calls.map((call) => call.arguments));
		expect(one.usage).toMatchObject({ cost: 0, estimated: true });
		expect(one.usage.inputTokens).toBeGreaterThan(10);
	});

	it("keeps the output limit and stops at once", async () => {
		const cut = await run(models, ask("hi", { maxOutputTokens: 5, tools }));
		expect(cut.reply.finish).toBe("length");
		const controller = new AbortController();
		await expect(
			(async () => {
				for await (const event of models.stream(ask("hi", { tools }), controller.signal)) if (event.type === "text") controller.abort();
			})(),
		).rejects.toMatchObject({ kind: "aborted" });
	});

	it("condenses for other programs", async () => {
		const small = (text: string, more = {}) => run(models, ask(text, { role: "small", ...more })).then((result) => result.reply.text);
		const line = await small("hello\nWe decided to meet on 12 May in Rome.\nok\nAnna will bring 3 tents.");
		expect(line).toContain("12 May in Rome");
		expect(line).toContain("3 tents");
		expect(line).not.toContain("hello");
		expect(JSON.parse((await run(models, ask("check this", { role: "critique", json: true }))).reply.text)).toEqual({ faults: [] });
		const json = JSON.parse(await small('Answer as {"summary": "…", "facts": []}. My name is Bo.', { json: true }));
		expect(json.facts).toEqual([]);
		expect(typeof json.summary).toBe("string");
	});
});

describe("times in sentences", () => {
	it.each([
		["in 90 seconds", { in: "90s" }],
		["in an hour", { in: "1h" }],
		["every 5 minutes", { every: "5m" }],
		["at 3pm", { at: "2026-12-01T15:00" }],
		["at 16:30", { at: "2026-11-30T16:30" }],
		["每隔5分钟", { every: "5m" }],
		["两小时后", { in: "2h" }],
		["晚上8点半", { at: "2026-11-30T20:30" }],
		["后天上午十点", { at: "2026-12-02T10:00" }],
	])("%s", (text, args) => {
		expect(readWhen(text, "2026-11-30", "15:04")?.args).toEqual(args);
	});
});
