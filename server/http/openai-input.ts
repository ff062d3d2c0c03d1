/** What an OpenAI client sends, read tolerantly, purely: the last user message is the input, everything else is history that we keep ourselves. */
import { z } from "zod";
import { maxMessageChars } from "./contract.ts";
import { HttpProblem } from "./problem.ts";

const Part = z.looseObject({
	type: z.string(),
	text: z.string().optional(),
	image_url: z.union([z.string(), z.looseObject({ url: z.string() })]).optional(),
	input_audio: z.looseObject({ data: z.string(), format: z.string().optional() }).optional(),
	file: z.looseObject({ file_data: z.string().optional(), filename: z.string().optional() }).optional(),
});

export const ChatRequest = z.looseObject({
	model: z.string().max(200).nullish(),
	messages: z.array(z.looseObject({ role: z.string(), content: z.union([z.string(), z.array(Part)]).nullish() })).min(1),
	stream: z.boolean().nullish(),
	stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});
export type ChatRequest = z.output<typeof ChatRequest>;

export interface InputFile {
	name: string;
	mimeType: string;
	data: Uint8Array;
}

function bad(code: string, detail: string): HttpProblem {
	return new HttpProblem(400, code, detail);
}

function decode(base64: string): Uint8Array {
	if (!/^[A-Za-z0-9+/_-]*={0,2}\s*$/.test(base64)) throw bad("bad-data-url", "The data is not valid base64.");
	const data = Buffer.from(base64, "base64");
	if (data.byteLength === 0) throw bad("bad-data-url", "The data is empty.");
	return data;
}

function fromDataUrl(url: string, name: string): InputFile {
	const match = /^data:([^;,]*)((?:;[^;,]*)*),/i.exec(url.slice(0, 400));
	if (!match) throw bad("remote-url", "Only data: URLs are accepted; nothing is fetched from elsewhere.");
	if (!/;base64$/i.test(match[2] ?? "")) throw bad("bad-data-url", "Only base64 data: URLs are accepted.");
	return { name, mimeType: match[1] || "application/octet-stream", data: decode(url.slice(match[0].length)) };
}

function fileOf(part: z.output<typeof Part>, index: number): InputFile | null {
	if (part.type === "image_url" && part.image_url !== undefined) {
		const url = typeof part.image_url === "string" ? part.image_url : part.image_url.url;
		return fromDataUrl(url, `image-${index + 1}`);
	}
	if (part.type === "input_audio" && part.input_audio) {
		const format = /^[a-z0-9]{1,8}$/.exec(part.input_audio.format ?? "wav")?.[0] ?? "wav";
		return {
			name: `audio-${index + 1}.${format}`,
			mimeType: `audio/${format === "mp3" ? "mpeg" : format}`,
			data: decode(part.input_audio.data),
		};
	}
	if (part.type === "file" && part.file?.file_data) return fromDataUrl(part.file.file_data, part.file.filename ?? `file-${index + 1}`);
	return null;
}

function checked(text: string): string {
	if (text.length > maxMessageChars)
		throw bad("context-length-exceeded", `The message has ${text.length} characters; at most ${maxMessageChars} are taken.`);
	return text;
}

/** Text and files of the last user message. Throws `HttpProblem` for what cannot be used. */
export function inputOf(request: ChatRequest): { text: string; files: InputFile[] } {
	const last = request.messages.findLast(({ role }) => role === "user");
	if (!last) throw bad("no-user-message", "`messages` holds no user message.");
	if (typeof last.content === "string") return { text: checked(last.content), files: [] };
	const parts = last.content ?? [];
	const text = parts.flatMap((part) => (part.type === "text" && part.text !== undefined ? [part.text] : [])).join("\n");
	const files = parts.flatMap((part, index) => fileOf(part, index) ?? []);
	if (files.length > 16) throw bad("too-many-files", "At most 16 files in one message.");
	return { text: checked(text), files };
}

/** The conversation's name from its header. Header bytes are UTF-8 where they can be. */
export function conversationName(header: string | string[] | undefined): string {
	const raw = Array.isArray(header) ? header[0] : header;
	const bytes = Buffer.from(raw ?? "", "latin1");
	const text = bytes.toString("utf8");
	const name = (text.includes("\ufffd") ? (raw ?? "") : text).trim();
	return Array.from(name === "" ? "api" : name)
		.slice(0, 100)
		.join("");
}
