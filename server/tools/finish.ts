/** finish: ends the turn after this step. */
import { failure } from "./result.ts";
import type { Tool } from "./tool.ts";

export function createFinish(): Tool {
	return {
		name: "finish",
		description: "End the turn with a reply. channel and to: only to send it elsewhere.",
		parameters: {
			type: "object",
			properties: {
				status: { type: "string", enum: ["done", "blocked"] },
				reply: { type: "string" },
				channel: { type: "string" },
				to: { type: "string" },
			},
			required: ["status", "reply"],
		},
		capability: "chat",
		readOnly: false,
		effect: "none",
		run: async (args) => {
			const channel = typeof args.channel === "string" && args.channel.trim() !== "" ? args.channel.trim() : undefined;
			const to = typeof args.to === "string" && args.to.trim() !== "" ? args.to.trim() : undefined;
			if ((channel === undefined) !== (to === undefined)) return failure("Give both channel and to, or neither.");
			return {
				text: "The turn ends.",
				finish: { status: args.status as "done" | "blocked", reply: String(args.reply), ...(channel && to ? { channel, to } : {}) },
			};
		},
	};
}
