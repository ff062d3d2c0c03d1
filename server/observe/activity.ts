/** Turns, steps and tools as log lines: what somebody at the terminal wants to see, and a sign of life while a long wait lasts. */
import type { LiveFrame } from "../http/contract.ts";
import type { EventBus } from "./bus.ts";
import type { Log } from "./log.ts";
import { shorten } from "./log-line.ts";

export interface ActivityOptions {
	bus: Pick<EventBus, "subscribe">;
	/** Lines of this log must not go back to the bus: the frames they tell of are there already. */
	log: Pick<Log, "debug" | "info" | "warn">;
	clock: { now(): number };
	/** Silence after which a running turn gives a sign of life, ms. Default 15,000. */
	signMs?: number;
	/** How often silence is looked for, ms. Default 1,000. */
	everyMs?: number;
}

interface Running {
	conversation: string;
	startedAt: number;
	quietSince: number;
	/** What it is waiting for. */
	doing: string;
	step: number;
	saidThinking: boolean;
}

/** Follows the bus until the answered function is called. */
export function createActivityLog(options: ActivityOptions): { tick(): void; stop(): void } {
	const { log, clock, signMs = 15_000 } = options;
	const turns = new Map<string, Running>();

	function follow(turnId: string, conversation: string): Running {
		const known = turns.get(turnId);
		if (known) return known;
		const now = clock.now();
		const made: Running = { conversation, startedAt: now, quietSince: now, doing: "start", step: 0, saidThinking: false };
		turns.set(turnId, made);
		return made;
	}

	function onFrame(frame: LiveFrame): void {
		const now = clock.now();
		switch (frame.type) {
			case "turn": {
				const { conversation, turnId } = frame;
				if (frame.state === "running") {
					follow(turnId, conversation);
					// Not at level info: each message would cost a line before its model call, and its end is told.
					log.debug("turn.started", { conversation, turnId, origin: frame.origin });
				} else if (frame.state !== "queued") {
					const turn = turns.get(turnId);
					turns.delete(turnId);
					log.info(`turn.${frame.state}`, { conversation, turnId, model: frame.model, ms: turn ? now - turn.startedAt : undefined });
				}
				return;
			}
			case "step": {
				const { conversation, turnId, step } = frame;
				const turn = follow(turnId, conversation);
				turn.quietSince = now;
				if (frame.state === "started") {
					turn.step = step;
					turn.saidThinking = false;
					turn.doing = "model";
					log.debug("step.started", { conversation, turnId, step, round: frame.round });
				} else if (frame.state === "thinking") {
					if (turn.saidThinking) return;
					turn.saidThinking = true;
					turn.doing = "thinking";
					log.info("step.thinking", { conversation, turnId, step });
				} else {
					turn.doing = "next step";
					log.debug("step.finished", { conversation, turnId, step, text: frame.text ? shorten(frame.text, 120) : undefined });
				}
				return;
			}
			case "tool": {
				const { tool } = frame;
				const turn = follow(frame.turnId, frame.conversation);
				const at = { conversation: frame.conversation, turnId: frame.turnId, tool: tool.name };
				turn.quietSince = now;
				if (tool.state === "started" || tool.state === "open") {
					turn.doing = `tool ${tool.name}`;
					if (tool.state === "started") log.info("tool.started", { ...at, arguments: shorten(tool.arguments, 160) });
				} else
					log[tool.state === "failed" ? "warn" : "info"](`tool.${tool.state}`, {
						...at,
						resultChars: tool.result?.length ?? 0,
						ms: tool.ms ?? undefined,
					});
				return;
			}
			case "plan":
				log.info("plan.changed", {
					conversation: frame.conversation,
					turnId: frame.turnId,
					done: frame.items.filter((item) => item.done).length,
					items: frame.items.length,
				});
				return;
			case "restart":
				log.warn("model.restart", { conversation: frame.conversation, turnId: frame.turnId, model: frame.model, reason: frame.reason });
				return;
			case "delta": {
				const turn = turns.get(frame.turnId);
				if (turn) {
					turn.quietSince = now;
					turn.doing = "answer";
				}
				return;
			}
			default:
		}
	}

	function tick(): void {
		const now = clock.now();
		for (const [turnId, turn] of turns) {
			if (now - turn.quietSince < signMs) continue;
			turn.quietSince = now;
			log.info("turn.still-running", {
				conversation: turn.conversation,
				turnId,
				step: turn.step,
				waitsFor: turn.doing,
				seconds: Math.round((now - turn.startedAt) / 1000),
			});
		}
	}

	const end = options.bus.subscribe(onFrame);
	const timer = setInterval(tick, options.everyMs ?? 1_000);
	timer.unref();
	return {
		tick,
		stop() {
			clearInterval(timer);
			end();
		},
	};
}
