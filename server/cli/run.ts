/** `openlani run "task"`: one task to its end. Progress goes to stderr, the answer to stdout. */
import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { parseDuration } from "../config/units.ts";
import { CliError, type Command, type Io, note, say } from "./command.ts";
import { connect } from "./connect.ts";
import { exitCodeOf, follow, type TurnView } from "./follow.ts";
import { realPath } from "./images.ts";
import { createPaint, formatDuration, oneLine, plainText } from "./terminal.ts";

export const command: Command = {
	name: "run",
	usage: '"TASK"',
	about: { en: "do one task and print the answer", zh: "完成一项任务并输出答案" },
	details: {
		en: "TASK may be - to read it from stdin. Progress goes to stderr, the answer to stdout.\nExit code: 0 done, 1 failed, 2 not finished (blocked, stopped, out of steps or time).",
		zh: "TASK 写成 - 时从标准输入读取。进度写到 stderr，答案写到 stdout。\n退出码：0 完成，1 失败，2 没做完（受阻、被停止、步数或时间用完）。",
	},
	flags: {
		json: { type: "switch", about: { en: "print one JSON object instead of the text", zh: "输出一个 JSON 对象而不是文本" } },
		model: { type: "text", value: "ID", about: { en: "a model of the configuration", zh: "使用配置中的某个模型" } },
		image: {
			type: "text",
			value: "FILE",
			many: true,
			about: { en: "an image to go with the task; may be repeated", zh: "随任务附上的图片，可重复" },
		},
		"max-steps": {
			type: "number",
			value: "N",
			about: { en: "steps in one round; never above the configured limit", zh: "每轮的步数上限（不超过配置）" },
		},
		"max-rounds": { type: "number", value: "N", about: { en: "rounds; never above the configured limit", zh: "轮数上限（不超过配置）" } },
		timeout: { type: "text", value: "TIME", about: { en: "give up after this long (90s, 10m)", zh: "超时放弃（90s、10m）" } },
		quiet: { type: "switch", short: "q", about: { en: "no progress on stderr", zh: "不显示进度" } },
	},
	words: [0, 100],
	async run(io, input) {
		const task = await readTask(io, input.words);
		const timeoutText = input.text("timeout");
		const timeoutMs = timeoutText === null ? null : parseDuration(/^\d+(\.\d+)?$/.test(timeoutText) ? `${timeoutText}s` : timeoutText);
		if (timeoutText !== null && !timeoutMs)
			throw new CliError(
				say(io, {
					en: `--timeout must be a time such as 90s or 10m, not "${timeoutText}"`,
					zh: `--timeout 应写成 90s 或 10m，不能是“${timeoutText}”`,
				}),
			);
		const images = input.list("image").map(realPath);
		for (const path of images)
			if (!(await stat(path).catch(() => null))?.isFile())
				throw new CliError(say(io, { en: `There is no file ${path}.`, zh: `没有这个文件：${path}` }));
		const limits = {
			...wholeLimit(io, "max-steps", input.number("max-steps"), "maxSteps"),
			...wholeLimit(io, "max-rounds", input.number("max-rounds"), "maxRounds"),
		};

		const connection = await connect(io);
		const { client } = connection;
		try {
			const model = input.text("model");
			if (model !== null) await checkModel(io, client, model);
			const conversation = await client.createConversation({ title: oneLine(task, 60) || "run", channel: "api" }, io.signal);
			const attachments = [];
			for (const path of images) attachments.push(await client.upload(path, io.signal).then(({ sha256, name }) => ({ sha256, name })));
			const follower = await follow(client, conversation.id);
			try {
				const startedAt = Date.now();
				const { turnId } = await client.send(
					conversation.id,
					{ text: task, attachments, model, clientId: randomUUID(), ...limits },
					io.signal,
				);
				const timeUp = timeoutMs === null ? null : AbortSignal.timeout(timeoutMs);
				let stopped: "time" | "signal" | "limit" | null = null;
				// Nobody at a terminal waits until midnight.
				const held = new AbortController();
				const view = { ...(input.on("quiet") ? {} : progress(io)), held: () => held.abort() };
				let ended = await follower
					.until(turnId, view, AbortSignal.any([io.signal, held.signal, ...(timeUp ? [timeUp] : [])]))
					.catch(async (error: unknown) => {
						stopped = timeUp?.aborted ? "time" : io.signal.aborted ? "signal" : held.signal.aborted ? "limit" : null;
						if (stopped === null) throw error;
						await client.stop(conversation.id, AbortSignal.timeout(5000));
						return null;
					});
				ended ??= await follower.until(turnId, view, AbortSignal.timeout(15_000));
				const code = stopped === null ? exitCodeOf(ended.turn) : 2;
				const text = plainText(ended.reply?.text ?? "");
				if (input.on("json")) {
					const { turn, reply } = ended;
					const result = {
						status: ["done", "failed", "unfinished"][code],
						reply: reply?.text ?? "",
						conversationId: conversation.id,
						turnId,
						state: turn.state,
						guard: turn.guard,
						error: turn.error,
						model: turn.model,
						steps: turn.steps.length,
						rounds: turn.rounds,
						usage: turn.usage,
						plan: turn.plan,
						attachments: reply?.attachments ?? [],
						ms: Date.now() - startedAt,
					};
					io.stdout.write(`${JSON.stringify(result)}\n`);
				} else if (text !== "") (code === 1 ? io.stderr : io.stdout).write(`${text}\n`);
				if (stopped === "limit")
					note(
						io,
						say(io, {
							en: "The daily limit is reached: not done. Raise it in the console, or run it again after the reset.",
							zh: "已达到每日上限，任务没有执行。可以在控制台提高上限，或等重置后再运行。",
						}),
					);
				if (stopped === "time")
					note(
						io,
						say(io, {
							en: `Not finished after ${formatDuration(timeoutMs ?? 0)}: stopped.`,
							zh: `${formatDuration(timeoutMs ?? 0)} 内没做完，已停止。`,
						}),
					);
				return code;
			} finally {
				follower.close();
			}
		} finally {
			await connection.close();
		}
	},
};

async function readTask(io: Io, words: string[]): Promise<string> {
	let task = words.join(" ");
	if (task === "-" || (task === "" && !io.stdin.isTTY)) {
		const parts: Buffer[] = [];
		for await (const part of io.stdin) parts.push(Buffer.from(part as Buffer));
		task = Buffer.concat(parts).toString("utf8");
	}
	if (task.trim() === "")
		throw new CliError(say(io, { en: 'There is no task: openlani run "what is to be done"', zh: '没有任务：openlani run "要做的事"' }));
	return task.trim();
}

function wholeLimit(io: Io, flag: string, value: number | null, name: "maxSteps" | "maxRounds"): Record<string, number> {
	if (value === null) return {};
	if (!Number.isInteger(value) || value < 1)
		throw new CliError(say(io, { en: `--${flag} must be a whole number from 1`, zh: `--${flag} 必须是从 1 开始的整数` }));
	return { [name]: value };
}

export async function checkModel(io: Io, client: { models(signal: AbortSignal): Promise<{ id: string }[]> }, id: string): Promise<void> {
	const ids = (await client.models(io.signal)).map((model) => model.id);
	if (!ids.includes(id))
		throw new CliError(
			say(io, { en: `There is no model "${id}"; there is: ${ids.join(", ")}`, zh: `没有模型“${id}”；可用的有：${ids.join("、")}` }),
		);
}

function progress(io: Io): TurnView {
	const paint = createPaint(io.environment.terminal.color && io.stderr.isTTY === true);
	return {
		tool(tool) {
			if (tool.state === "started") note(io, `${paint.accent("·")} ${tool.name} ${paint.dim(oneLine(tool.arguments, 100))}`);
			else if (tool.state === "failed") note(io, paint.warn(`  ✗ ${tool.name}: ${oneLine(tool.result ?? "", 120)}`));
			else if (tool.state === "done") note(io, paint.dim(`  ✓ ${tool.name}${tool.ms === null ? "" : ` ${formatDuration(tool.ms)}`}`));
		},
		plan(items) {
			for (const item of items) note(io, paint.dim(`  [${item.done ? "x" : " "}] ${oneLine(item.text, 100)}`));
		},
		restart(model, reason) {
			note(
				io,
				paint.warn(
					say(io, { en: `  begins again with ${model}: ${oneLine(reason, 100)}`, zh: `  改用 ${model} 重新开始：${oneLine(reason, 100)}` }),
				),
			);
		},
		round(round) {
			note(io, paint.dim(say(io, { en: `  round ${round}`, zh: `  第 ${round} 轮` })));
		},
	};
}
