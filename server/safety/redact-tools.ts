/** Keeps secrets out of what tools answer, and so out of every prompt, frame and row that is made of it. */
import type { ToolBox } from "../agent/types.ts";
import type { Tool } from "../tools/tool.ts";
import type { Redactor } from "./redact.ts";

/** The same tools; their result texts hold no known secret. Effects are left alone: what the agent sends or stores was in a prompt before, and that was clean. */
export function redactTools(box: ToolBox, redact: Pick<Redactor, "text">): ToolBox {
	const wrapped = new Map<Tool, Tool>();
	const wrap = (tool: Tool): Tool => {
		const known = wrapped.get(tool);
		if (known) return known;
		const made: Tool = {
			...tool,
			async run(args, context) {
				const result = await tool.run(args, context);
				return { ...result, text: redact.text(result.text) };
			},
		};
		wrapped.set(tool, made);
		return made;
	};
	return {
		list: () => box.list().map(wrap),
		get(name) {
			const tool = box.get(name);
			return tool && wrap(tool);
		},
		...(box.gate ? { gate: box.gate.bind(box) } : {}),
	};
}
