/** Builds the body of a chat request: as the strictest server wants it, always the same bytes for the same request, `messages` last. */
import { createHash } from "node:crypto";
import type { Attachment } from "../../../channels/channel.ts";
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
	/** All names on the wire. */
	wire: ReadonlySet<string>;
}

export interface Written {
	/** As it is sent. */
	json: string;
	/** The same with image bytes replaced by `<image sha256 bytes>`, and in parts: long ones are the same strings from call to call. */
	shown: string;
	parts: string[];
	/** How many characters of `shown` come before the first message: the same from call to call, and nothing that anybody said. */
	head: number;
	/** Its parameters. */
	keys: string[];
	/** How many images it holds. */
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
	/** JSON of a text. */
	quote(text: string): string;
}

export async function writeChat(request: ModelRequest, options: WriteOptions): Promise<Written> {
	const { quirks } = options;
	const { names, json: tools } = wireTools(request.tools);
	const head: Record<string, unknown> = { model: options.modelName, stream: true };
	if (quirks.streamOptions) head.stream_options = { include_usage: true };
	head[quirks.maxTokens] = options.maxOutputTokens;
	if (request.temperature !== undefined && quirks.temperature) head.temperature = request.temperature;
	if (request.json && quirks.jsonMode) head.response_format = { type: "json_object" };
	const keys = [...Object.keys(head), ...(tools === "" ? [] : ["tools"]), "messages"];
	const images = options.sendsImages ? await readImages(request, options) : NO_IMAGES;
	// Everything before `messages` is the same from call to call.
	const parts = [JSON.stringify(head).slice(0, -1)];
	if (tools !== "") parts.push(',"tools":[', tools, "]");
	parts.push(',"messages":[');
	const headLength = parts.reduce((sum, part) => sum + part.length, 0);
	const ids = createIds();
	for (const [place, message] of request.messages.entries()) {
		if (place > 0) parts.push(",");
		for (const part of writeMessage(message, options, names, ids)) parts.push(part);
	}
	parts.push("]}");
	const shown = parts.join("");
	let json = shown;
	for (const [mark, url] of images) json = json.replaceAll(JSON.stringify(mark), () => JSON.stringify(url));
	return { json, shown, parts, head: headLength, keys, images: images.size, names };
}

/** In pieces, as in `Written.parts`. */
function writeMessage(message: ModelMessage, options: WriteOptions, names: ToolNames, ids: Ids): string[] {
	const text = (role: string, content: string) => [`{"role":"${role}","content":`, options.quote(content), "}"];
	switch (message.role) {
		case "system":
			return text("system", textOr(message.text, NO_TEXT));
		case "user": {
			const content = writeContent(message.content, options);
			return typeof content === "string" ? text("user", content) : [JSON.stringify({ role: "user", content })];
		}
		case "assistant": {
			const said = wellFormed(message.text);
			if (message.calls.length === 0) return text("assistant", textOr(said, NO_TEXT));
			const calls = message.calls.map((call) => writeCall(call, options, names, ids));
			const reasoning = options.quirks.reasoning === "send" ? { reasoning_content: wellFormed(message.reasoning ?? "") } : {};
			return [JSON.stringify({ role: "assistant", content: said.trim() === "" ? null : said, ...reasoning, tool_calls: calls })];
		}
		case "tool": {
			const answered = JSON.stringify(ids.answer(message.callId));
			return [`{"role":"tool","tool_call_id":${answered},"content":`, options.quote(textOr(message.text, NO_OUTPUT)), "}"];
		}
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

/** What stands for an image until the body is sent. */
const markOf = ({ sha256, bytes }: Attachment) => `<image ${sha256} ${bytes}>`;

const NO_IMAGES: ReadonlyMap<string, string> = new Map();

/** Data URLs of all images, by their marks. */
async function readImages(request: ModelRequest, options: WriteOptions): Promise<ReadonlyMap<string, string>> {
	const images = new Map<string, string>();
	for (const message of request.messages) {
		if (message.role !== "user") continue;
		for (const part of message.content) {
			if (part.type !== "image" || images.has(markOf(part.attachment))) continue;
			const { sha256, mimeType } = part.attachment;
			const bytes = Buffer.from(await options.readAsset(sha256));
			images.set(markOf(part.attachment), `data:${mimeType};base64,${bytes.toString("base64")}`);
		}
	}
	return images;
}

function writeContent(content: ContentPart[], options: WriteOptions): string | unknown[] {
	const parts: Record<string, unknown>[] = [];
	let pictures = 0;
	for (const part of content) {
		if (part.type === "text") {
			if (part.text.trim() !== "") parts.push({ type: "text", text: wellFormed(part.text) });
			continue;
		}
		if (!options.sendsImages) {
			parts.push({ type: "text", text: `[image: ${wellFormed(part.attachment.name)}; this model cannot see images]` });
			continue;
		}
		parts.push({ type: "image_url", image_url: { url: markOf(part.attachment) } });
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

interface WireTools {
	tools: ToolSchema[];
	names: ToolNames;
	/** The list's elements as JSON. */
	json: string;
}

const lists = new WeakMap<ToolSchema, WireTools>();

/** The longest part of a request that never changes: made once for the same tools. */
function wireTools(all: ToolSchema[]): WireTools {
	const tools = all.slice(0, MOST_TOOLS);
	const first = tools[0];
	const known = first && lists.get(first);
	if (known && known.tools.length === tools.length && known.tools.every((tool, place) => tool === tools[place])) return known;
	const names = fitNames(tools);
	const json = tools.map((tool) =>
		JSON.stringify({
			type: "function",
			function: { name: names.toWire(tool.name), description: wellFormed(tool.description), parameters: fitSchema(tool.parameters) },
		}),
	);
	const made = { tools, names, json: json.join(",") };
	if (first) lists.set(first, made);
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
		wire: new Set(from.keys()),
	};
}

function fitName(name: string, suffix: string): string {
	const clean = name.replace(/[^A-Za-z0-9_-]/g, "_") || "tool";
	if (clean.length + suffix.length <= 64) return clean + suffix;
	return `${clean.slice(0, 64 - 9 - suffix.length)}_${createHash("sha256").update(name).digest("hex").slice(0, 8)}${suffix}`;
}
