/** send_message: a message to somebody else, as an outbox row that is written together with the tool's result. */
import type { Attachment } from "../../channels/channel.ts";
import { failure, withPathErrors } from "./result.ts";
import type { Tool } from "./tool.ts";
import type { WorkArea } from "./work-area.ts";

const MAX_ATTACHMENTS = 10;
const MAX_ATTACHMENT_BYTES = 50_000_000;
const MAX_TEXT_CHARS = 100_000;

export interface SendMessageOptions {
	area: WorkArea;
	/** Keeps a file's bytes as an attachment. */
	keep(data: Uint8Array, info: { name: string; mimeType: string }): Promise<Attachment>;
	/** Ids of the channels that can send now; left out: any name is taken. */
	channels?(): string[];
}

const TYPES: Record<string, string> = {
	png: "image/png",
	jpg: "image/jpeg",
	jpeg: "image/jpeg",
	gif: "image/gif",
	webp: "image/webp",
	svg: "image/svg+xml",
	pdf: "application/pdf",
	txt: "text/plain",
	md: "text/markdown",
	csv: "text/csv",
	json: "application/json",
	html: "text/html",
	zip: "application/zip",
	mp3: "audio/mpeg",
	ogg: "audio/ogg",
	wav: "audio/wav",
	mp4: "video/mp4",
};

export function createSendMessage(options: SendMessageOptions): Tool {
	return {
		name: "send_message",
		description: "Send a message to another person or place (not for your reply here). attachments: file paths.",
		parameters: {
			type: "object",
			properties: {
				channel: { type: "string" },
				to: { type: "string" },
				text: { type: "string" },
				attachments: { type: "array", items: { type: "string" } },
			},
			required: ["channel", "to", "text"],
		},
		capability: "send",
		readOnly: false,
		effect: "row",
		run: withPathErrors(async (args) => {
			const channel = String(args.channel).trim();
			const to = String(args.to).trim();
			const text = String(args.text);
			const paths = (args.attachments ?? []) as string[];
			const known = options.channels?.();
			if (known && !known.includes(channel)) return failure(`There is no channel "${channel}". Channels: ${known.join(", ") || "none"}.`);
			if (to === "") return failure("`to` is empty.");
			if (text.trim() === "" && paths.length === 0) return failure("The message is empty.");
			if (text.length > MAX_TEXT_CHARS) return failure(`The text is too long (at most ${MAX_TEXT_CHARS} characters).`);
			if (paths.length > MAX_ATTACHMENTS) return failure(`At most ${MAX_ATTACHMENTS} attachments.`);
			const attachments: Attachment[] = [];
			for (const path of paths) {
				const kept = await attach(options, path);
				if (typeof kept === "string") return failure(kept);
				attachments.push(kept);
			}
			return { text: `The message to ${to} on ${channel} is queued.`, effects: [{ type: "send", channel, to, text, attachments }] };
		}),
	};
}

async function attach(options: SendMessageOptions, path: string): Promise<Attachment | string> {
	const file = await options.area.open(path);
	try {
		if (file.bytes > MAX_ATTACHMENT_BYTES) return `${file.path} is too large to attach (${file.bytes} bytes).`;
		const name = file.path.split("/").at(-1) ?? file.path;
		const extension = name.split(".").at(-1)?.toLowerCase() ?? "";
		return await options.keep(await file.handle.readFile(), { name, mimeType: TYPES[extension] ?? "application/octet-stream" });
	} finally {
		await file.handle.close();
	}
}
