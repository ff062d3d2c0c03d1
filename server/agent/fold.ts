/** Folding: when a request grows past its budget, the oldest whole steps (calls with their results) become a short digest. Pure. */
import { oneLine } from "./text.ts";
import type { StepRecord } from "./types.ts";

/** After folding the request is this part of its budget, so that the next steps need no folding and the prefix stays. */
const TARGET = 0.6;

/**
 * How many steps from the beginning to fold. `stepChars` is the size of each step, `fixedChars` all the rest, `already` what is
 * folded now (never less again), `keep` how many of the newest stay whole.
 */
export function chooseFold(stepChars: number[], fixedChars: number, budget: number, already: number, keep: number): number {
	let total = fixedChars + stepChars.slice(already).reduce((sum, chars) => sum + chars, 0);
	if (total <= budget) return already;
	let folded = already;
	while (folded < stepChars.length - keep && total > budget * TARGET) {
		total -= stepChars[folded] as number;
		folded++;
	}
	return folded;
}

/** The digest that stands for folded steps: one line a step, the newest kept when there is no room for all. */
export function foldText(steps: StepRecord[], maxChars: number): string {
	const lines = steps.map(stepLine);
	let from = 0;
	let size = lines.reduce((sum, line) => sum + line.length + 1, 0);
	while (from < lines.length - 1 && size > maxChars) {
		size -= (lines[from] as string).length + 1;
		from++;
	}
	const left = from === 0 ? [] : [`steps 1-${steps[from - 1]?.step ?? from}: ${toolCounts(steps.slice(0, from)) ?? "text"}`];
	return `Earlier steps of this task, shortened:\n${[...left, ...lines.slice(from)].join("\n")}`;
}

function stepLine(step: StepRecord): string {
	const calls = step.calls.map(
		(record) =>
			`${record.call.name}(${oneLine(record.call.arguments, 80)}) → ${record.state === "done" ? "" : `${record.state}: `}${oneLine(record.result ?? "", 100)}`,
	);
	const said = oneLine(step.text, 160);
	return `step ${step.step}: ${[said, ...calls]
		.filter((part) => part !== "")
		.slice(0, 9)
		.join(" | ")}`;
}

/** `read_file ×3, now`: one line on the tools that ran, null if none did. */
export function toolCounts(steps: StepRecord[]): string | null {
	const counts = new Map<string, number>();
	for (const step of steps) {
		for (const record of step.calls) {
			if (record.state === "skipped" || record.call.name === "finish") continue;
			const key = record.state === "done" ? record.call.name : `${record.call.name} (${record.state})`;
			counts.set(key, (counts.get(key) ?? 0) + 1);
		}
	}
	if (counts.size === 0) return null;
	return oneLine([...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", "), 240);
}
