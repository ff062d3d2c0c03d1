/** One turn as the command line sees it: told as it happens, over lost connections, with an end that is never missed. */
import type { LiveFrame, Message, PlanItem, ToolLine, Turn } from "../http/contract.ts";
import { type Client, pause } from "./client.ts";

export interface TurnView {
	text?(text: string): void;
	/** What was streamed of this step is void. */
	restart?(model: string, reason: string): void;
	stepEnded?(step: number): void;
	tool?(tool: ToolLine): void;
	plan?(items: PlanItem[]): void;
	round?(round: number): void;
	/** It was put aside until the daily limit is reset or raised. */
	held?(): void;
}

export interface EndedTurn {
	turn: Turn;
	/** Null for an intended silence. */
	reply: Message | null;
}

export interface Follower {
	/** Tells `view` what happens in a turn until it ends. */
	until(turnId: string, view: TurnView, signal: AbortSignal): Promise<EndedTurn>;
	close(): void;
}

/** How often a turn is asked for while nothing is heard of it: the live connection may be gone. */
const askEveryMs = 2000;

/** Begins to listen to a conversation; open before anything is sent, so that nothing is missed. */
export async function follow(client: Client, conversationId: string): Promise<Follower> {
	const listeners = new Set<(frame: LiveFrame) => void>();
	/** Frames of the last turns: a turn may begin before anybody asks for it. */
	let recent: LiveFrame[] = [];
	const live = client.live(conversationId, (frame) => {
		recent.push(frame);
		if (recent.length > 5000) recent = recent.slice(-2500);
		for (const listener of [...listeners]) listener(frame);
	});
	await live.ready;

	return {
		close: () => live.close(),
		async until(turnId, view, signal) {
			const ended = new AbortController();
			let round = 1;
			const seen = new Set<number>();
			const onFrame = (frame: LiveFrame) => {
				if (!("turnId" in frame) || frame.turnId !== turnId || seen.has(frame.seq)) return;
				seen.add(frame.seq);
				switch (frame.type) {
					case "delta":
						return view.text?.(frame.text);
					case "restart":
						return view.restart?.(frame.model, frame.reason);
					case "tool":
						return view.tool?.(frame.tool);
					case "plan":
						return view.plan?.(frame.items);
					case "step":
						if (frame.round > round) {
							round = frame.round;
							view.round?.(round);
						}
						if (frame.state === "finished") view.stepEnded?.(frame.step);
						return;
					case "turn":
						if (frame.state === "queued") view.held?.();
						if (frame.state === "done" || frame.state === "failed" || frame.state === "stopped") ended.abort();
						return;
					default:
						return;
				}
			};
			for (const frame of recent) onFrame(frame);
			listeners.add(onFrame);
			try {
				for (;;) {
					const waiting = AbortSignal.any([signal, ended.signal]);
					await pause(askEveryMs, waiting).catch(() => undefined);
					signal.throwIfAborted();
					const turn = await client.turn(turnId, signal);
					if (turn.state === "running" || turn.state === "queued") {
						// The frame may come a moment before the row says so.
						if (ended.signal.aborted) await pause(20, signal);
						continue;
					}
					const messages = await client.messages(conversationId, 50, signal);
					return { turn, reply: messages.findLast((message) => message.turnId === turnId && message.role !== "user") ?? null };
				}
			} finally {
				listeners.delete(onFrame);
				recent = recent.filter((frame) => !("turnId" in frame) || frame.turnId !== turnId);
			}
		},
	};
}

/** How a turn ended, for exit codes: 0 done, 1 failed, 2 not finished (stopped, ended by a guard, or said to be blocked). */
export function exitCodeOf(turn: Turn): number {
	if (turn.state === "failed") return 1;
	if (turn.state === "stopped" || turn.guard !== null) return 2;
	const finish = turn.steps.at(-1)?.calls.findLast((call) => call.name === "finish");
	if (!finish) return 0;
	try {
		return (JSON.parse(finish.arguments) as { status?: string }).status === "blocked" ? 2 : 0;
	} catch {
		return 0;
	}
}
