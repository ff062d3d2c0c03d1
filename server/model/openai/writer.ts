/** Builds the body of a chat request: as the strictest server wants it, always the same bytes for the same request, `messages` last. */
import { createHash } from "node:crypto";
import type { ContentPart, ModelMessage, ModelRequest, ToolCall, ToolSchema } from "../model.ts";
import type { Quirks } from "../providers.ts";
import { fitSchema, wellFormed } from "./schema.ts";

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const MOST_TOOLS = 128;
/** Longer ids are refused by some servers. */
const ID_LENGTH = 40;
/** What stands where a server insists on text and there is none. */
const NO_TEXT = "(no text)";
const NO_OUTPUT = "(no output)";

/** Our tool names and the ones on the wire, both ways. */
export interface ToolNames {
	toWire(name: string): string;
	/** Unknown names come back unchanged: the loop answers them. */
	fromWire(name: string): string;
	/** True for names on the wire. */
	has(name: string): boolean;
}

export interface Written {
	/** As it is sent. */
	json: string;
	/** The same as data, with image bytes replaced by `<image sha256 bytes>`. */
	shown: Record<string, unknown>;
	/** Text that counts as input, and how many images. */
	images: number;
	names: ToolNames;
}

export interface WriteOptions {
	modelName: string;
	quirks: Quirks;
	/** False: images are named in the text instead of being sent. */
	sendsImages: boolean;
	maxOutputTokens: number;
	readAsset(sha256: string): Promise<Uint8Array>;
	/** What came with an earlier call and must go back with it. */
	extraOf(callId: string): unknown;
}

export async function writeChat(request: ModelRequest, options: WriteOptions): Promise<Written> {
	const { quirks } = options;
	const tools = request.tools.slice(0, MOST_TOOLS);
	const names = fitNames(tools);
	const head: Record<string, unknown> = { model: options.modelName, stream: true };
	if (quirks.streamOptions) head.stream_options = { include_usage: true };
	head[quirks.maxTokens] = options.maxOutputTokens;
	if (request.temperature !== undefined && quirks.temperature) head.temperature = request.temperature;
	if (request.json && quirks.jsonMode) head.response_format = { type: "json_object" };
	const ids = createIds();
	const images = new Map<string, string>();
	const messages: unknown[] = [];
	for (const message of request.messages) messages.push(await writeMessage(message, options, names, ids, images));
	const wireTools = tools.map((tool) => wireTool(tool, names.toWire(tool.name)));
	if (wireTools.length > 0) head.tools = wireTools.map((tool) => tool.value);
	const shown = { ...head, messages };
	// Tools are the longest part that never changes: their text is made once. Everything before `messages` is the same from call to call.
	let json = head.tools
		? `${JSON.stringify({ ...head, tools: undefined }).slice(0, -1)},"tools":[${wireTools.map((tool) => tool.json).join(",")}],"messages":${JSON.stringify(messages)}}`
		: `${JSON.stringify(head).slice(0, -1)},"messages":${JSON.stringify(messages)}}`;
	for (const [mark, url] of images) json = json.replaceAll(JSON.stringify(mark), () => JSON.stringify(url));
	return { json, shown, images: images.size, names };
}

async function writeMessage(
	message: ModelMessage,
	options: WriteOptions,
	names: ToolNames,
	ids: Ids,
	images: Map<string, string>,
): Promise<unknown> {
	switch (message.role) {
		case "system":
			return { role: "system", content: textOr(message.text, NO_TEXT) };
		case "user":
			return { role: "user", content: await writeParts(message.content, options, images) };
		case "assistant": {
			const text = wellFormed(message.text);
			if (message.calls.length === 0) return { role: "assistant", content: textOr(text, NO_TEXT) };
			const calls = message.calls.map((call) => writeCall(call, options, names, ids));
			const reasoning = options.quirks.reasoning === "send" ? { reasoning_content: wellFormed(message.reasoning ?? "") } : {};
			return { role: "assistant", content: text.trim() === "" ? null : text, ...reasoning, tool_calls: calls };
		}
		case "tool":
			return { role: "tool", tool_call_id: ids.answer(message.callId), content: textOr(message.text, NO_OUTPUT) };
	}
}

function writeCall(call: ToolCall, options: WriteOptions, names: ToolNames, ids: Ids): unknown {
	const extra = options.quirks.extraContent ? (options.extraOf(call.id) ?? LOST_SIGNATURE) : undefined;
	return {
		id: ids.call(call.id),
		type: "function",
		function: { name: names.toWire(call.name), arguments: jsonArguments(call.arguments) },
		...(extra === undefined ? {} : { extra_content: extra }),
	};
}

/** Gemini's documented stand-in for a signature that is not at hand any more (a restart). */
const LOST_SIGNATURE = { google: { thought_signature: "skip_thought_signature_validator" } };

/** Servers parse what they get back: arguments that are no JSON are sent as the text they were. */
function jsonArguments(text: string): string {
	const clean = wellFormed(text);
	try {
		JSON.parse(clean);
		return clean;
	} catch {
		return JSON.stringify({ invalid_json: clean });
	}
}

async function writeParts(content: ContentPart[], options: WriteOptions, images: Map<string, string>): Promise<unknown> {
	const parts: Record<string, unknown>[] = [];
	let pictures = 0;
	for (const part of content) {
		if (part.type === "text") {
			if (part.text.trim() !== "") parts.push({ type: "text", text: wellFormed(part.text) });
			continue;
		}
		const { sha256, mimeType, name, bytes } = part.attachment;
		if (!options.sendsImages) {
			parts.push({ type: "text", text: `[image: ${wellFormed(name)}; this model cannot see images]` });
			continue;
		}
		const mark = `<image ${sha256} ${bytes}>`;
		if (!images.has(mark)) images.set(mark, `data:${mimeType};base64,${Buffer.from(await options.readAsset(sha256)).toString("base64")}`);
		parts.push({ type: "image_url", image_url: { url: mark } });
		pictures++;
	}
	if (parts.length === 0) return NO_TEXT;
	return pictures > 0 ? parts : parts.map((part) => part.text).join("\n");
}

function textOr(text: string, instead: string): string {
	return text.trim() === "" ? instead : wellFormed(text);
}

interface Ids {
	call(id: string): string;
	answer(id: string): string;
}

/** Ids are unique over a request and answered in pairs; odd or long ones are replaced by a hash of themselves. */
function createIds(): Ids {
	const used = new Map<string, number>();
	const open = new Map<string, string[]>();
	const plain = (id: string) =>
		/^[\x21-\x7e]+$/.test(id) && id.length <= ID_LENGTH ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`;
	return {
		call(id) {
			const base = plain(id);
			const count = (used.get(base) ?? 0) + 1;
			used.set(base, count);
			const unique = count === 1 ? base : `${base.slice(0, ID_LENGTH - 6)}_r${count}`;
			open.set(id, [...(open.get(id) ?? []), unique]);
			return unique;
		},
		answer: (id) => open.get(id)?.shift() ?? plain(id),
	};
}

const wireTools = new WeakMap<ToolSchema, { wireName: string; value: unknown; json: string }>();

function wireTool(tool: ToolSchema, wireName: string): { value: unknown; json: string } {
	const known = wireTools.get(tool);
	if (known && known.wireName === wireName) return known;
	const value = {
		type: "function",
		function: { name: wireName, description: wellFormed(tool.description), parameters: fitSchema(tool.parameters) },
	};
	const made = { wireName, value, json: JSON.stringify(value) };
	wireTools.set(tool, made);
	return made;
}

/** Names that do not fit are changed, kept unique, and the same every time. */
export function fitNames(tools: { name: string }[]): ToolNames {
	const to = new Map<string, string>();
	const from = new Map<string, string>();
	// Names that fit keep themselves, whatever the others become.
	for (const { name } of tools) if (NAME.test(name)) from.set(name, name);
	for (const { name } of tools) {
		if (to.has(name)) continue;
		let wire = name;
		if (!NAME.test(name)) {
			wire = fitName(name, "");
			for (let again = 2; from.has(wire); again++) wire = fitName(name, `_${again}`);
		}
		to.set(name, wire);
		from.set(wire, name);
	}
	return {
		toWire: (name) => to.get(name) ?? (NAME.test(name) ? name : fitName(name, "")),
		fromWire: (name) => from.get(name) ?? name,
		has: (name) => from.has(name),
	};
}

function fitName(name: string, suffix: string): string {
	const clean = name.replace(/[^A-Za-z0-9_-]/g, "_") || "tool";
	if (clean.length + suffix.length <= 64) return clean + suffix;
	return `${clean.slice(0, 64 - 9 - suffix.length)}_${createHash("sha256").update(name).digest("hex").slice(0, 8)}${suffix}`;
}
