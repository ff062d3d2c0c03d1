/** `openlani chat`: talking in a terminal. Lines from a pipe are messages too, one after the other. */
import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { nearest } from "../config/nearest.ts";
import type { Conversation, Message, PlanItem } from "../http/contract.ts";
import { ApiError, type Client } from "./client.ts";
import { CliError, type Command, type Io, print, say } from "./command.ts";
import { connect } from "./connect.ts";
import { type EndedTurn, type Follower, follow } from "./follow.ts";
import { keepHistory, readHistory } from "./history.ts";
import { realPath, takeImages } from "./images.ts";
import { checkModel } from "./run.ts";
import { counted, createPaint, formatDuration, localTime, oneLine, plainText } from "./terminal.ts";

export const command: Command = {
	name: "chat",
	usage: "",
	about: { en: "talk in the terminal", zh: "在终端里聊天" },
	details: {
		en: "Goes on with the last conversation. In the chat: /new /resume /model /plan /stop /image /exit /help.\nA path to an image in a message sends the image along. A line that ends with \\ goes on in the next.",
		zh: "默认接着上一次的对话。聊天中可用：/new /resume /model /plan /stop /image /exit /help。\n消息里写图片路径就会附上图片；行末加 \\ 可以换行继续写。",
	},
	flags: {
		new: { type: "switch", about: { en: "begin a new conversation", zh: "开始新的对话" } },
		conversation: { type: "text", value: "ID", about: { en: "go on with this conversation", zh: "继续指定的对话" } },
		model: { type: "text", value: "ID", about: { en: "use this model in the conversation", zh: "在这个对话里使用的模型" } },
	},
	words: [0, 0],
	async run(io, input) {
		const connection = await connect(io);
		const chat = createChat(io, connection.client);
		try {
			await chat.open(input.text("conversation"), input.on("new"));
			if (input.text("model") !== null) await chat.setModel(input.text("model") ?? "");
			return await chat.talk();
		} finally {
			chat.close();
			await connection.close();
		}
	},
};

const help = {
	en: "/new            a new conversation\n/resume [N]     list earlier conversations, or go on with one\n/model [ID]     show the models, or choose one (default: the configured order)\n/plan           the plan of the last task\n/image FILE     send a file with the next message\n/stop           stop what is running (also Ctrl-C)\n/exit           leave (also Ctrl-D)",
	zh: "/new            开始新的对话\n/resume [N]     列出以前的对话，或继续其中一个\n/model [ID]     查看模型，或选一个（default：按配置的顺序）\n/plan           上一项任务的计划\n/image 文件     随下一条消息发送文件\n/stop           停止正在做的事（也可按 Ctrl-C）\n/exit           离开（也可按 Ctrl-D）",
};
const commands = ["new", "resume", "model", "plan", "image", "stop", "exit", "quit", "help"];

function createChat(io: Io, client: Client) {
	const { environment } = io;
	const paint = createPaint(environment.terminal.color && io.stdout.isTTY === true);
	let conversation: Conversation;
	let follower: Follower | null = null;
	let listed: Conversation[] = [];
	let plan: PlanItem[] = [];
	let waitingFiles: string[] = [];
	/** The turn that is being shown; a message during it joins it, or is shown after it. */
	let running: { turnId: string; shown: Promise<void> } | null = null;
	let reader: Interface | null = null;

	async function enter(next: Conversation): Promise<void> {
		follower?.close();
		conversation = next;
		plan = [];
		follower = await follow(client, next.id);
		const about = next.title || say(io, { en: "new conversation", zh: "新的对话" });
		print(io, paint.dim(`— ${oneLine(about, 60)}${next.model ? ` · ${next.model}` : ""}`));
		const messages = await client.messages(next.id, 4, io.signal);
		plan = messages.findLast((message) => message.plan.length > 0)?.plan ?? [];
		for (const message of messages)
			print(
				io,
				message.decision
					? paint.dim(`— ${say(io, decided(message.decision))}`)
					: message.role === "user"
						? `${paint.accent("›")} ${oneLine(message.text, 200)}`
						: paint.dim(oneLine(message.text, 400)),
			);
	}

	async function begin(): Promise<void> {
		await enter(await client.createConversation({ channel: "cli" }, io.signal));
	}

	async function earlier(): Promise<Conversation[]> {
		const all = await client.conversations(io.signal);
		return all.filter(({ channel }) => channel === "cli" || channel === "web").sort((a, b) => b.updatedAt.localeCompare(a.updatedAt));
	}

	async function open(id: string | null, fresh: boolean): Promise<void> {
		if (id !== null) return enter(await client.conversation(id, io.signal));
		const [last] = fresh ? [] : await earlier();
		await (last ? enter(last) : begin());
	}

	async function resume(which: string): Promise<void> {
		if (which === "") {
			listed = (await earlier()).slice(0, 20);
			const { timezone } = await client.status(io.signal);
			for (const [index, one] of listed.entries()) {
				print(
					io,
					`${String(index + 1).padStart(3)}  ${paint.dim(localTime(Date.parse(one.updatedAt), timezone).slice(0, 16))}  ${oneLine(one.title || one.preview || one.id, 60)}${one.id === conversation.id ? paint.accent(" ←") : ""}`,
				);
			}
			print(io, paint.dim(say(io, { en: "/resume N goes on with one of them", zh: "/resume N 继续其中一个" })));
			return;
		}
		if (listed.length === 0) listed = (await earlier()).slice(0, 20);
		const chosen = /^\d{1,3}$/.test(which) ? listed[Number(which) - 1] : await client.conversation(which, io.signal);
		if (!chosen)
			throw new CliError(say(io, { en: `There is no conversation ${which} in the list.`, zh: `列表里没有第 ${which} 个对话。` }));
		await enter(chosen);
	}

	async function setModel(id: string): Promise<void> {
		if (id === "") {
			for (const model of await client.models(io.signal))
				print(
					io,
					`${model.id === conversation.model ? paint.accent("→") : " "} ${model.id}  ${paint.dim(`${model.name} · ${model.provider}`)}`,
				);
			return;
		}
		if (id !== "default") await checkModel(io, client, id);
		conversation = await client.updateConversation(conversation.id, { model: id === "default" ? null : id }, io.signal);
		print(io, paint.dim(say(io, { en: `Model: ${id}`, zh: `模型：${id}` })));
	}

	function showPlan(items: PlanItem[]): void {
		if (items.length === 0) print(io, paint.dim(say(io, { en: "There is no plan.", zh: "没有计划。" })));
		for (const item of items) print(io, `  [${item.done ? "x" : " "}] ${plainText(item.text)}`);
	}

	async function stop(): Promise<void> {
		const stopped = await client.stop(conversation.id, io.signal);
		print(
			io,
			paint.dim(stopped ? say(io, { en: "Stopped.", zh: "已停止。" }) : say(io, { en: "Nothing is running.", zh: "没有正在做的事。" })),
		);
	}

	/** Answers false for "leave". */
	async function obey(line: string): Promise<boolean> {
		const [, name = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
		switch (name) {
			case "new":
				await begin();
				return true;
			case "resume":
				await resume(rest.trim());
				return true;
			case "model":
				await setModel(rest.trim());
				return true;
			case "plan":
				showPlan(plan);
				return true;
			case "image":
				if (rest.trim() === "") throw new CliError(say(io, { en: "/image needs a path", zh: "/image 后面要写路径" }));
				waitingFiles.push(realPath(rest));
				return true;
			case "stop":
				await stop();
				return true;
			case "exit":
			case "quit":
				return false;
			case "help":
				print(io, say(io, help));
				return true;
			default: {
				const meant = nearest(name, commands);
				throw new CliError(
					say(io, {
						en: `There is no /${name}${meant ? `; did you mean /${meant}?` : ""} (/help)`,
						zh: `没有 /${name} 这个命令${meant ? `，是不是 /${meant}？` : ""}（/help）`,
					}),
				);
			}
		}
	}

	async function send(line: string): Promise<void> {
		const { text, paths } = await takeImages(line);
		const attachments = [];
		const files = [...waitingFiles, ...paths];
		// A file that cannot be read must not spoil every message after this one.
		waitingFiles = [];
		for (const path of files) {
			const { sha256, name, bytes } = await client.upload(path, io.signal).catch((error: NodeJS.ErrnoException) => {
				if (error instanceof CliError) throw error;
				throw new CliError(
					say(io, {
						en: `${path} cannot be read (${error.code ?? error.message})`,
						zh: `读不了 ${path}（${error.code ?? error.message}）`,
					}),
				);
			});
			attachments.push({ sha256, name });
			print(io, paint.dim(`  + ${basename(path)} (${bytes} bytes)`));
		}
		const { turnId } = await client.send(conversation.id, { text, attachments, clientId: randomUUID() }, io.signal);
		if (running?.turnId === turnId) {
			print(io, paint.dim(say(io, { en: "  (joins the running turn)", zh: "  （并入正在进行的回合）" })));
			return;
		}
		const shown = show(turnId, follower as Follower).finally(() => {
			if (running?.shown === shown) running = null;
		});
		running = { turnId, shown };
	}

	/** Shows a turn as it happens; resolves when it has ended. */
	async function show(turnId: string, from: Follower): Promise<void> {
		let streamed = "";
		let lineOpen = false;
		const endLine = () => {
			if (lineOpen) io.stdout.write("\n");
			lineOpen = false;
		};
		/** Model text may bring half an escape sequence in one piece and the rest in the next: every control character is left out. */
		const write = (text: string) => {
			const clean = plainText(text);
			if (clean === "") return;
			streamed += clean;
			io.stdout.write(clean);
			lineOpen = !clean.endsWith("\n");
		};
		let ended: EndedTurn;
		try {
			ended = await from.until(
				turnId,
				{
					text: write,
					restart(model, reason) {
						endLine();
						streamed = "";
						print(
							io,
							paint.warn(
								say(io, {
									en: `(begins again with ${model}: ${oneLine(reason, 80)})`,
									zh: `（改用 ${model} 重新回答：${oneLine(reason, 80)}）`,
								}),
							),
						);
					},
					stepEnded: endLine,
					tool(tool) {
						endLine();
						if (tool.state === "started") print(io, `${paint.accent("·")} ${tool.name} ${paint.dim(oneLine(tool.arguments, 90))}`);
						else if (tool.state === "failed") print(io, paint.warn(`  ✗ ${oneLine(tool.result ?? tool.name, 100)}`));
						else if (tool.state === "done")
							print(io, paint.dim(`  ✓ ${oneLine(tool.result ?? "", 80)}${tool.ms === null ? "" : ` (${formatDuration(tool.ms)})`}`));
					},
					plan(items) {
						endLine();
						plan = items;
						showPlan(items);
					},
				},
				io.signal,
			);
		} catch (error) {
			endLine();
			if (!io.signal.aborted) print(io, paint.warn(error instanceof Error ? error.message : String(error)));
			return;
		}
		endLine();
		plan = ended.turn.plan.length > 0 ? ended.turn.plan : plan;
		const reply = plainText(ended.reply?.text ?? "").trim();
		if (reply !== "" && !streamed.trim().endsWith(reply)) print(io, ended.reply?.role === "system" ? paint.warn(reply) : reply);
		for (const attachment of ended.reply?.attachments ?? []) print(io, paint.dim(`  + ${attachment.name} (${attachment.bytes} bytes)`));
		print(io, paint.dim(footer(ended)));
	}

	/** A line of the terminal, whole: "\" at its end goes on in the next. Null at the end of the input. */
	async function talk(): Promise<number> {
		const terminal = io.stdin.isTTY === true && io.stdout.isTTY === true;
		const historyFile = environment.home;
		const rl = createInterface({
			input: io.stdin,
			output: terminal ? io.stdout : undefined,
			terminal,
			history: terminal ? await readHistory(historyFile) : [],
			historySize: 1000,
			prompt: terminal ? paint.accent("› ") : "",
		});
		reader = rl;
		if (terminal) print(io, paint.dim(say(io, { en: "/help shows the commands", zh: "/help 查看命令" })));
		let leaving = false;
		rl.on("SIGINT", () => {
			if (running) return void stop().catch((error: Error) => print(io, paint.warn(error.message)));
			if (leaving) return rl.close();
			leaving = true;
			print(io, say(io, { en: "\n(Ctrl-C once more leaves)", zh: "\n（再按一次 Ctrl-C 离开）" }));
			rl.prompt();
		});
		const onAbort = () => rl.close();
		io.signal.addEventListener("abort", onAbort, { once: true });
		let begun = "";
		rl.prompt();
		try {
			for await (const raw of rl) {
				leaving = false;
				if (raw.endsWith("\\") && !raw.endsWith("\\\\")) {
					begun += `${raw.slice(0, -1)}\n`;
					continue;
				}
				const line = (begun + raw).trim();
				begun = "";
				if (line === "") {
					rl.prompt();
					continue;
				}
				if (terminal) await keepHistory(historyFile, line);
				try {
					if (/^\/[a-z]*(\s|$)/i.test(line)) {
						if (!(await obey(line))) break;
					} else await send(line);
				} catch (error) {
					if (io.signal.aborted) break;
					if (!(error instanceof CliError) && !(error instanceof ApiError)) throw error;
					print(io, paint.warn(error.message));
				}
				const current = running as { shown: Promise<void> } | null;
				if (!terminal) await current?.shown;
				else if (current) void current.shown.then(() => rl.prompt());
				else rl.prompt();
			}
			const last = running as { shown: Promise<void> } | null;
			if (!terminal) await last?.shown;
		} finally {
			io.signal.removeEventListener("abort", onAbort);
			rl.close();
		}
		if (terminal) print(io);
		return 0;
	}

	function footer({ turn }: EndedTurn): string {
		const tokens = turn.usage.inputTokens + turn.usage.outputTokens;
		const { estimated } = turn.usage;
		const parts = [
			turn.model ?? "",
			say(io, {
				en: `${estimated ? "about " : ""}${counted(tokens, "token")}`,
				zh: `${estimated ? "约 " : ""}${tokens.toLocaleString("en")} 个 token`,
			}),
		];
		if (turn.usage.cost !== null && turn.usage.cost > 0) parts.push(`${turn.usage.cost.toFixed(4)} ${turn.usage.currency}`);
		if (turn.startedAt && turn.endedAt) parts.push(formatDuration(Date.parse(turn.endedAt) - Date.parse(turn.startedAt)));
		return `  ${parts.filter(Boolean).join(" · ")}`;
	}

	return {
		open,
		setModel,
		talk,
		close() {
			follower?.close();
			reader?.close();
		},
	};
}

/** A decision on an approval as a person says it. */
function decided({ allowed, tool }: NonNullable<Message["decision"]>): { en: string; zh: string } {
	if (tool === "forget")
		return allowed
			? { en: "You approved: it is forgotten for good.", zh: "你已批准：永久忘记这件事。" }
			: { en: "You denied it: nothing is forgotten.", zh: "你已拒绝：什么也没有忘记。" };
	return allowed
		? { en: `You approved the use of ${tool}.`, zh: `你已批准使用 ${tool}。` }
		: { en: `You denied the use of ${tool}.`, zh: `你已拒绝使用 ${tool}。` };
}
