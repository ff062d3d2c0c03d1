import type { Tool, ToolContext, ToolResult } from "../../../server/tools/tool.ts";

export const NOW = Date.UTC(2026, 10, 30, 7, 4, 5);

export function context(more: Partial<ToolContext> = {}): ToolContext {
	return {
		turnId: "t",
		callId: "c",
		conversationId: "v",
		personId: "master",
		tier: "master",
		groupId: null,
		origin: "human",
		timezone: "Asia/Shanghai",
		locale: "en",
		now: () => NOW,
		signal: new AbortController().signal,
		plan: [],
		...more,
	};
}

/** Calls a tool by name. */
export function caller(tools: Tool[]): (name: string, args?: Record<string, unknown>, more?: Partial<ToolContext>) => Promise<ToolResult> {
	return (name, args = {}, more = {}) => {
		const tool = tools.find((item) => item.name === name);
		if (!tool) throw new Error(`no tool ${name}`);
		return tool.run(args, context(more));
	};
}
