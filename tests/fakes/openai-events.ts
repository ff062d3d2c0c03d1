/** How the scripted server puts an answer on the wire: events, pieces, pauses, cuts. */
import type { ServerResponse } from "node:http";
import type { Behaviour, FakeCall } from "./openai-server.ts";

export interface Shape {
	model: string;
	usage: Record<string, unknown>;
	calls: FakeCall[];
}

const argumentsText = (call: FakeCall) => (typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {}));
export const pieces = (value: string | string[] | undefined) =>
	value === undefined ? [] : typeof value === "string" ? (value.match(/\S+\s*|\s+/g) ?? []) : value;
const finishOf = (behaviour: Behaviour, calls: FakeCall[]) =>
	behaviour.finish === undefined ? (calls.length > 0 ? "tool_calls" : "stop") : behaviour.finish;

export function completion(behaviour: Behaviour, shape: Shape): unknown {
	const message: Record<string, unknown> = { role: "assistant", content: pieces(behaviour.text).join("") || null };
	if (behaviour.reasoning) message[behaviour.reasoningField ?? "reasoning_content"] = pieces(behaviour.reasoning).join("");
	if (shape.calls.length > 0) {
		message.tool_calls = shape.calls.map((call) => ({
			id: call.id ?? undefined,
			type: "function",
			function: { name: call.name, arguments: argumentsText(call) },
		}));
	}
	return {
		id: "chatcmpl-fake",
		object: "chat.completion",
		created: 1_700_000_000,
		model: shape.model,
		choices: [{ index: 0, message, finish_reason: finishOf(behaviour, shape.calls) }],
		...(behaviour.usage === "none" ? {} : { usage: shape.usage }),
	};
}

/** The events of a stream as text, each with its line ends. */
export function streamEvents(behaviour: Behaviour, shape: Shape, wantsUsage: boolean): string[] {
	const newline = behaviour.newline ?? "\n";
	const line = (data: string) => `data: ${data}${newline}${newline}`;
	const where = behaviour.usage ?? (wantsUsage ? "last" : "none");
	const base = { id: "chatcmpl-fake", object: "chat.completion.chunk", created: 1_700_000_000, model: shape.model };
	const chunk = (delta: unknown, finish: string | null = null) =>
		line(
			JSON.stringify({
				...base,
				choices: [{ index: 0, delta, finish_reason: finish }],
				...(where === "every" || (where === "finish" && finish) ? { usage: shape.usage } : {}),
			}),
		);
	const events: string[] = [];
	if (behaviour.chunks) for (const one of behaviour.chunks) events.push(line(typeof one === "string" ? one : JSON.stringify(one)));
	else {
		events.push(chunk({ role: "assistant", content: "" }));
		for (const text of pieces(behaviour.reasoning)) events.push(chunk({ [behaviour.reasoningField ?? "reasoning_content"]: text }));
		for (const text of pieces(behaviour.text)) events.push(chunk({ content: text }));
		for (const [place, call] of shape.calls.entries())
			events.push(...callChunks(call, place).map((delta) => chunk({ tool_calls: [delta] })));
		const finish = finishOf(behaviour, shape.calls);
		if (finish !== null) events.push(chunk({}, finish));
		if (where === "last") events.push(line(JSON.stringify({ ...base, choices: [], usage: shape.usage })));
	}
	if (behaviour.streamError) events.push(line(JSON.stringify({ error: behaviour.streamError })));
	if (behaviour.done !== false) events.push(line("[DONE]"));
	if (behaviour.comments)
		for (let i = events.length - 1; i >= 0; i--) events.splice(i, 0, `: keep-alive${newline}${newline}`, `data:${newline}${newline}`);
	if (behaviour.lastNewline === false) events[events.length - 1] = (events.at(-1) ?? "").trimEnd();
	return events;
}

function callChunks(call: FakeCall, place: number): unknown[] {
	const text = argumentsText(call);
	const count = Math.max(1, Math.min(call.pieces ?? 1, text.length || 1));
	const size = Math.ceil(text.length / count) || 1;
	const index = call.index === undefined ? { index: place } : call.index === -1 ? {} : { index: call.index };
	const id = call.id === null ? {} : { id: call.id };
	const deltas: unknown[] = [
		{ ...index, ...id, type: "function", function: { name: call.name, arguments: count === 1 ? text : text.slice(0, size) } },
	];
	for (let at = size; at < text.length && count > 1; at += size)
		deltas.push({ ...index, function: { arguments: text.slice(at, at + size) } });
	return deltas;
}

export async function writeBody(response: ServerResponse, events: string[], behaviour: Behaviour): Promise<void> {
	const paced = behaviour.betweenMs !== undefined || behaviour.gateAfter !== undefined || behaviour.chunkBytes !== undefined;
	const limit = behaviour.cutAfter ?? behaviour.endAfter ?? behaviour.stallAfter;
	const list = limit === undefined ? events : events.slice(0, limit);
	if (!paced) {
		for (const event of list) response.write(event);
	} else {
		for (const [place, event] of list.entries()) {
			if (response.destroyed) return;
			if (behaviour.gate && behaviour.gateAfter === place) {
				behaviour.gate.arrive();
				await behaviour.gate.opened;
			}
			if (behaviour.betweenMs && place > 0) await pause(behaviour.betweenMs, response);
			await writePieces(response, event, behaviour.chunkBytes);
		}
	}
	if (behaviour.stallAfter !== undefined) return;
	if (behaviour.cutAfter !== undefined) {
		// What was written must reach the client before the reset.
		await new Promise<void>((resolve) => response.write("", () => setTimeout(resolve, 5)));
		response.socket?.destroy();
		return;
	}
	response.end();
}

async function writePieces(response: ServerResponse, text: string, size: number | undefined): Promise<void> {
	if (!size) {
		response.write(text);
		return;
	}
	const bytes = Buffer.from(text, "utf8");
	for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
		await new Promise<void>((resolve) => response.write(bytes.subarray(at, at + size), () => setImmediate(resolve)));
	}
}

export function pause(ms: number, response: ServerResponse): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(done, ms);
		function done() {
			clearTimeout(timer);
			response.off("close", done);
			resolve();
		}
		response.on("close", done);
	});
}
