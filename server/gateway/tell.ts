/** Tells the bus and the log what happens in a turn. */
import type { TurnEvent } from "../agent/types.ts";
import type { LiveBody, ToolLine } from "../http/contract.ts";
import type { EventBus } from "../observe/bus.ts";
import type { Filter } from "../safety/filter.ts";
import type { Claim } from "../store/store.ts";
import type { Deltas } from "./deltas.ts";

export interface TellOptions {
	bus: EventBus;
	filter: Filter;
	profile(claim: Claim): string;
	present: {
		tool(record: {
			recordId: string;
			step: number;
			call: { name: string; arguments: string };
			state: ToolLine["state"];
			result: string | null;
			ms: number | null;
		}): ToolLine;
	};
	log: { info(event: string, data?: Record<string, unknown>): void; warn(event: string, data?: Record<string, unknown>): void };
}

export function createTell(options: TellOptions) {
	const { bus, log } = options;

	/** Tells the bus about one event of the turn. */
	return function tell(claim: Claim, event: TurnEvent, deltas: Deltas): void {
		const conversation = claim.conversation.id;
		const turnId = claim.turn.id;
		const tool = (
			step: number,
			recordId: string,
			call: { name: string; arguments: string },
			state: ToolLine["state"],
			result: string | null,
			ms: number | null,
		): LiveBody => ({
			type: "tool",
			conversation,
			turnId,
			tool: options.present.tool({ recordId, step, call, state, result, ms }),
		});
		switch (event.type) {
			case "delta":
				deltas.push(event.text);
				return;
			case "restart":
				deltas.restart();
				bus.publish({ type: "restart", conversation, turnId, model: event.model, reason: event.reason });
				return;
			case "step-started":
				bus.publish({ type: "step", conversation, turnId, step: event.step, round: event.round, state: "started", text: null });
				return;
			case "thinking":
				bus.publish({ type: "step", conversation, turnId, step: event.step, round: 0, state: "thinking", text: null });
				return;
			case "step-finished": {
				deltas.end();
				const { record } = event;
				bus.publish({
					type: "step",
					conversation,
					turnId,
					step: record.step,
					round: record.round,
					state: "finished",
					text: options.filter.check(record.text, options.profile(claim)).text,
				});
				bus.publish({ type: "usage", conversation, turnId, usage: Object.assign({}, record.usage, { calls: record.callIds.length }) });
				return;
			}
			case "call-started":
				bus.publish(tool(event.step, event.recordId, event.call, "started", null, null));
				return;
			case "call-finished":
				bus.publish(tool(event.step, event.recordId, event.call, event.state, event.stored, event.ms));
				return;
			case "plan":
				bus.publish({ type: "plan", conversation, turnId, items: event.items });
				return;
			case "guard":
				log.warn("turn.guard", { conversation, turnId, kind: event.kind, detail: event.detail });
				return;
			case "folded":
				log.info("turn.folded", { conversation, turnId, steps: event.steps, chars: event.chars });
				return;
			case "prompt":
				if (event.repairs.length > 0) log.warn("turn.history-repaired", { conversation, turnId, repairs: event.repairs });
				return;
			case "round":
			case "joined":
			case "done":
				return;
		}
	};
}
