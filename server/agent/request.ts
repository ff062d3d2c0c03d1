/** Builds one model request within its budget. The only place where the loop's messages are made; all of them pass the gate. */
import type { ModelMessage } from "../model/model.ts";
import { chooseFold, foldText } from "./fold.ts";
import { gate } from "./gate.ts";
import { messageChars, requestChars } from "./limits.ts";
import { type Assembled, assemble, stepMessages, systemText } from "./prompt.ts";
import type { PlanItem, StepRecord, TurnInput } from "./types.ts";

export interface RequestState {
	input: TurnInput;
	steps: StepRecord[];
	plan: PlanItem[];
	opening: string[];
	/** How many of the oldest steps are folded, and of the oldest exchanges left out. Only grow within a turn, so the prefix changes seldom. */
	folded: number;
	dropped: number;
	/** Part of the budget that may be used; made smaller after a refusal for length. */
	squeeze: number;
}

export interface BuiltRequest {
	messages: ModelMessage[];
	chars: number;
	folded: number;
	dropped: number;
	repairs: string[];
	/** Set when even the parts that may not be cut are far too large: no call is worth its price. */
	tooLarge: { chars: number; room: number; largest: string } | null;
}

/** `toolChars` is the size of the tool list; `notes` are volatile. */
export function buildRequest(state: RequestState, toolChars: number, notes: string[]): BuiltRequest {
	const { input } = state;
	const budget = Math.floor(input.limits.requestChars * state.squeeze);
	const stepChars = state.steps.map((step) => stepMessages(step, input).reduce((sum, message) => sum + messageChars(message), 0));
	let { folded, dropped } = state;
	const build = (): Assembled =>
		assemble({
			input,
			opening: state.opening,
			steps: state.steps,
			plan: state.plan,
			history: input.history.slice(dropped),
			folded,
			foldText: folded > 0 ? foldText(state.steps.slice(0, folded), Math.floor(budget / 10)) : "",
			notes,
		});
	let built = build();
	const size = () => requestChars(built.messages, toolChars);
	const fold = (keep: number) => {
		const open = stepChars.slice(folded).reduce((sum, chars) => sum + chars, 0);
		folded = chooseFold(stepChars, size() - open, budget, folded, keep);
		built = build();
	};
	if (size() > budget) fold(2);
	while (size() > budget && dropped < input.history.length) {
		dropped = Math.min(input.history.length, dropped + 4);
		built = build();
	}
	if (size() > budget) fold(1);
	const gated = gate(built.messages, { turnStart: built.turnStart, maxChars: Math.max(0, budget - toolChars) });
	return {
		messages: gated.messages,
		chars: requestChars(gated.messages, toolChars),
		folded,
		dropped,
		repairs: gated.repairs,
		tooLarge: tooLarge(gated.messages, input, toolChars),
	};
}

function tooLarge(messages: ModelMessage[], input: TurnInput, toolChars: number): BuiltRequest["tooLarge"] {
	const room = input.limits.requestChars * 2;
	const fixed = requestChars(
		messages.filter((message) => message.role === "system" || message.role === "user"),
		toolChars,
	);
	if (fixed <= room) return null;
	const parts = [
		...input.blocks.map((block) => ({ name: block.name, chars: block.text.length })),
		{ name: "message", chars: fixed - systemText(input.blocks).length - toolChars },
	];
	const largest = parts.reduce((most, part) => (part.chars > most.chars ? part : most));
	return { chars: fixed, room, largest: `${largest.name} (${largest.chars})` };
}
