/** The registry: the tools of one turn, filtered by what the person may use. */
import type { ToolBox } from "../agent/types.ts";
import { createFileTools } from "./files.ts";
import { createFinish } from "./finish.ts";
import { createNow } from "./now.ts";
import { createSearchFiles } from "./search-files.ts";
import { createSendMessage, type SendMessageOptions } from "./send-message.ts";
import type { Capability, Tool } from "./tool.ts";
import { createWorkArea } from "./work-area.ts";
import { createWritePlan } from "./write-plan.ts";

/**
 * Tools in the order given, which is the order the model sees (it is part of the stable prefix). The first tool of a name wins, so
 * what is added later cannot shadow a built-in one. `gate` may refuse single calls.
 */
export function createToolBox(tools: Tool[], options: { allow: Capability[]; gate?: ToolBox["gate"] }): ToolBox {
	const allowed = new Set(options.allow);
	const byName = new Map<string, Tool>();
	for (const tool of tools) if (allowed.has(tool.capability) && !byName.has(tool.name)) byName.set(tool.name, tool);
	const list = [...byName.values()];
	return { list: () => list, get: (name) => byName.get(name), ...(options.gate ? { gate: options.gate } : {}) };
}

/** The tools that need no other room. `files` is the work area's directory. */
export function createBuiltinTools(options: Omit<SendMessageOptions, "area"> & { files: string }): Tool[] {
	const area = createWorkArea(options.files);
	return [
		createNow(),
		createWritePlan(),
		...createFileTools(area),
		createSearchFiles(area),
		createSendMessage({ ...options, area }),
		createFinish(),
	];
}
