/** Small helpers that the built-in tools share. */
import type { ToolContext, ToolResult } from "./tool.ts";
import { PathError } from "./work-area.ts";

/** A failure that the model can mend. */
export function failure(text: string): ToolResult {
	return { text, isError: true };
}

/** Turns path troubles into results for the model; other faults stay faults. */
export function withPathErrors(
	run: (args: Record<string, unknown>, context: ToolContext) => Promise<ToolResult>,
): (args: Record<string, unknown>, context: ToolContext) => Promise<ToolResult> {
	return async (args, context) => {
		try {
			return await run(args, context);
		} catch (error) {
			if (error instanceof PathError) return failure(error.message);
			throw error;
		}
	};
}
