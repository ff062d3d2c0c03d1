/** Models over the scripted server, a meter that records, and a clock that the test moves. */
import { randomUUID } from "node:crypto";
import type { CallEnd, CallStart, ModelEvent, ModelReply, ModelRequest, ToolSchema } from "../../../server/model/model.ts";
import { createModels, type Models, type ModelsOptions } from "../../../server/model/models.ts";
import { type ModelLimits, type ModelSettings, NO_ROLES, settingsFromEntry } from "../../../server/model/settings.ts";

export interface Recorded {
	start: CallStart;
	end: CallEnd | null;
}

export interface Setup {
	models: Models;
	calls: Recorded[];
	/** Ms that were waited between attempts, in order. */
	waits: number[];
	clock: { now(): number; at: number };
}

export function entry(
	id: string,
	baseUrl: string,
	more: Partial<Omit<ModelSettings, "limits">> & { limits?: Partial<ModelLimits> } = {},
): ModelSettings {
	return settingsFromEntry({ id, provider: "custom", model: `${id}-name`, baseUrl, ...more });
}

export function setUp(models: ModelSettings[], more: Partial<ModelsOptions> = {}): Setup {
	const calls: Recorded[] = [];
	const waits: number[] = [];
	const clock = { at: 1_700_000_000_000, now: () => clock.at };
	const made = createModels({
		models,
		roles: { ...NO_ROLES, chat: models.filter((model) => model.kind === "text" || model.kind === "multimodal").map((model) => model.id) },
		meter: {
			open: async (start) => {
				calls.push({ start, end: null });
				return `call-${calls.length}`;
			},
			close: async (id, end) => {
				const call = calls[Number(id.slice(5)) - 1];
				if (!call || call.end) throw new Error(`closed twice or never opened: ${id}`);
				call.end = end;
			},
		},
		prices: { cost: (_settings, usage) => ({ cost: usage.inputTokens / 1e6, currency: "USD" }) },
		readAsset: async () => Buffer.from("picture"),
		clock,
		newId: randomUUID,
		log: { info: () => {}, warn: () => {} },
		random: () => 0.5,
		demoPaceMs: 0,
		sleep: async (ms, signal) => {
			signal.throwIfAborted();
			waits.push(ms);
			clock.at += ms;
		},
		...more,
	});
	return { models: made, calls, waits, clock };
}

export function ask(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
	return {
		messages: [
			{ role: "system", text: "You are a test." },
			{ role: "user", content: [{ type: "text", text }] },
		],
		tools: [],
		context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "master" },
		model: null,
		role: "chat",
		...more,
	};
}

export const tool = (name: string, parameters: Record<string, unknown> = { type: "object", properties: {} }): ToolSchema => ({
	name,
	description: `does ${name}`,
	parameters,
});

/** All events, and the reply of the last one. */
export async function run(
	models: Models,
	request: ModelRequest,
	signal = new AbortController().signal,
): Promise<{ events: ModelEvent[]; reply: ModelReply; text: string }> {
	const events: ModelEvent[] = [];
	let text = "";
	for await (const event of models.stream(request, signal)) {
		events.push(event);
		if (event.type === "text") text += event.text;
		if (event.type === "restart") text = "";
	}
	const last = events.at(-1);
	if (last?.type !== "end") throw new Error("no end event");
	return { events, reply: last.reply, text };
}
