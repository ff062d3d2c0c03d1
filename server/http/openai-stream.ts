/** One streamed completion: frames of the turn in, server-sent events out. */
import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import type { LiveFrame } from "./contract.ts";
import type { HttpDeps } from "./deps.ts";
import type { ConversationFeed } from "./feed.ts";
import { type Answer, finishReason, openaiError, textOf, usageOf } from "./openai-answer.ts";
import { type AnswerText, createAnswerText } from "./openai-text.ts";
import { HttpProblem, toProblem } from "./problem.ts";
import type { Wait } from "./wait.ts";

const HOLD_MS = 50;
const KEEP_ALIVE_MS = 15_000;

/** Reads the frames that belong to the answer. `begin` names the turn once it is known; frames before that are kept. */
function createTurnReader(text: AnswerText): { onFrame(frame: LiveFrame): void; begin(turn: string): void } {
	let turnId: string | null = null;
	let early: LiveFrame[] = [];
	/** A turn that we join is read from its next step on: what came before does not answer this message. */
	let reading = false;
	let over = false;

	function onFrame(frame: LiveFrame): void {
		if (turnId === null) {
			early.push(frame);
			return;
		}
		if (!("turnId" in frame)) return;
		if (over && frame.type === "turn" && frame.state === "running") {
			// The message was too late for the turn that it joined and began the next one.
			turnId = frame.turnId;
			over = false;
		}
		if (frame.turnId !== turnId) return;
		if (frame.type === "turn") {
			reading ||= frame.state === "running";
			over = frame.state === "done" || frame.state === "failed" || frame.state === "stopped";
		} else if (frame.type === "step" && frame.state === "started") {
			reading = true;
			text.stepStarted();
		} else if (reading && frame.type === "delta") text.delta(frame.text);
		else if (reading && frame.type === "restart") text.restart();
	}

	return {
		onFrame,
		begin(turn) {
			turnId = turn;
			for (const frame of early) onFrame(frame);
			early = [];
		},
	};
}

export interface StreamOptions {
	feed: ConversationFeed;
	reply: FastifyReply;
	wait: Wait;
	created: number;
	model: string;
	conversationId: string;
	includeUsage: boolean;
	log: HttpDeps["log"];
	/** Stores the message, then calls `work` with its turn and a way to wait for the answer. */
	run(work: (turnId: string, answer: () => Promise<Answer>) => Promise<void>): Promise<void>;
}

export async function streamAnswer(options: StreamOptions): Promise<FastifyReply> {
	const { feed, reply, created, model, conversationId, includeUsage, wait, log, run } = options;
	const body = new Readable({ read() {} });
	const write = (text: string) => {
		if (!wait.clientGone() && !body.destroyed) body.push(text);
	};
	let id = "";
	const chunk = (choices: unknown[], usage: unknown = null) =>
		write(
			`data: ${JSON.stringify({ id, object: "chat.completion.chunk", created, model, choices, ...(includeUsage ? { usage } : {}) })}\n\n`,
		);
	const choice = (delta: object, reason: string | null = null) => chunk([{ index: 0, delta, logprobs: null, finish_reason: reason }]);

	const text = createAnswerText({
		emit: (content) => choice({ content }),
		holdMs: HOLD_MS,
		setTimer(callback, ms) {
			const timer = setTimeout(callback, ms);
			return () => clearTimeout(timer);
		},
	});
	// Listening begins before the message is stored: its turn may begin at once.
	const reader = createTurnReader(text);
	const unlisten = feed.listen(conversationId, reader.onFrame);
	const keepAlive = setInterval(() => write(": waiting\n\n"), KEEP_ALIVE_MS);
	let begun: () => void = () => {};
	const beginning = new Promise<void>((resolve) => {
		begun = resolve;
	});

	const ending = run(async (turnId, answer) => {
		id = `chatcmpl-${turnId}`;
		begun();
		choice({ role: "assistant", content: "" });
		reader.begin(turnId);
		const result = await answer();
		feed.catchUp();
		if (!text.finish(textOf(result)))
			throw new HttpProblem(502, "stream-restarted", "The model began its answer anew; the whole answer is in the conversation.");
		choice({}, finishReason(result));
		if (includeUsage) chunk([], usageOf(result));
		write("data: [DONE]\n\n");
	}).finally(() => {
		clearInterval(keepAlive);
		unlisten();
		text.close();
	});

	// Before the message is stored, what goes wrong is an ordinary error answer.
	await Promise.race([beginning, ending]);
	ending.then(
		() => body.push(null),
		(error: unknown) => {
			const { problem, unexpected } = toProblem(error);
			if (unexpected) log.error("openai.failed", { message: (error as Error)?.message });
			write(`data: ${JSON.stringify(openaiError(problem))}\n\n`);
			body.push(null);
		},
	);
	return reply.type("text/event-stream; charset=utf-8").header("x-accel-buffering", "no").send(body);
}
