/** write_plan: the turn's checklist, as a row effect. */
import type { PlanItem } from "../agent/types.ts";
import { failure } from "./result.ts";
import type { Tool } from "./tool.ts";

const MAX_ITEMS = 50;
const MAX_ITEM_CHARS = 300;

export function createWritePlan(): Tool {
	return {
		name: "write_plan",
		description: "Write or update the whole plan of this task, as a checklist people see.",
		parameters: {
			type: "object",
			properties: {
				items: {
					type: "array",
					items: { type: "object", properties: { text: { type: "string" }, done: { type: "boolean" } }, required: ["text", "done"] },
				},
			},
			required: ["items"],
		},
		capability: "chat",
		readOnly: false,
		effect: "row",
		run: async (args) => {
			const items = (args.items as PlanItem[]).map((item) => ({ text: item.text.replace(/\s+/g, " ").trim(), done: item.done }));
			if (items.length > MAX_ITEMS) return failure(`A plan has at most ${MAX_ITEMS} items; join small ones.`);
			const bad = items.findIndex((item) => item.text === "" || item.text.length > MAX_ITEM_CHARS);
			if (bad !== -1) return failure(`Item ${bad + 1} must have 1 to ${MAX_ITEM_CHARS} characters.`);
			const open = items.filter((item) => !item.done).length;
			return { text: `Plan stored: ${items.length - open} of ${items.length} done.`, effects: [{ type: "plan", items }] };
		},
	};
}
