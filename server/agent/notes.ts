/** Notes of ours that the model reads. */
import { toolCounts } from "./fold.ts";
import type { PlanItem, StepRecord } from "./types.ts";

export const EMPTY_NOTE = "Your last answer was empty. Answer the person now, or make the tool calls that are still needed.";
export const TEXT_CALL_NOTE =
	"You wrote a tool call as text, so nothing was run. Call the tool through the tool interface, or answer in plain words.";
export const SHORTER_NOTE = "Your answer was cut by the output limit. Answer again from the beginning and much shorter.";
export const CLOSING_NOTE =
	"The work ends here. Without calling tools, tell the person in a few sentences what is done, what you found and what is still open.";

/** Between two rounds: what was done, what is left, and the fresh budget. The same steps give the same note. */
export function roundNote(round: number, maxRounds: number, maxSteps: number, steps: StepRecord[], plan: PlanItem[]): string {
	const used = toolCounts(steps.filter((step) => step.round === round - 1));
	const open = plan.filter((item) => !item.done);
	const planLine =
		plan.length === 0 ? "" : ` Plan: ${plan.length - open.length} of ${plan.length} done${open[0] ? `, next: ${open[0].text}` : ""}.`;
	return `Round ${round} of ${maxRounds} begins with ${maxSteps} steps. Last round used ${used ?? "no tools"}.${planLine} Go on with what is left, and finish in this round if you can.`;
}

const TEXT_CALL = /^(?:<tool_call>|<function[=_]|<invoke\b|<\|?tool_calls?|\[TOOL_CALLS\]|<｜tool)/;

/**
 * True when the whole answer is a call of a known tool written as text. Such text is never run. What stands in `quotable`
 * (messages and results of this turn) is a quotation and an ordinary answer.
 */
export function isTextCall(text: string, toolNames: string[], quotable: string[]): boolean {
	const whole = text.trim();
	if (!TEXT_CALL.test(whole) || !/[>\]}]$/.test(whole)) return false;
	if (!toolNames.some((name) => /^[\w-]+$/.test(name) && new RegExp(`["'=\\s:>]${name}["'>\\s:{(]`).test(whole))) return false;
	return !quotable.some((source) => source.includes(whole));
}

/** What a model may write instead of an intended silence. Never shown to anybody. */
const SILENCE = /^[\s"'`*_[(<]*(?:HEARTBEAT_OK|NO_REPLY|SILENT|SILENCE|NOTHING_TO_REPORT|NO_REPLY_NEEDED)[\s"'`*_\])>.!]*$/i;

export function isSilenceMarker(text: string): boolean {
	return SILENCE.test(text);
}
