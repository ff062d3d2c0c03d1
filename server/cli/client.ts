/** The HTTP and live contract as the command line uses it: the same towards a running daemon and one in this process. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { Attachment, Conversation, LiveFrame, Message, Status, Turn } from "../http/contract.ts";
import { CliError } from "./command.ts";

export interface ClientOptions {
	url: string;
	token: string;
}

/** The daemon refused; `code` is its stable word for it. */
export class ApiError extends CliError {
	readonly status: number;
	readonly code: string;
	constructor(status: number, code: string, message: string) {
		super(message);
		this.name = "ApiError";
		this.status = status;
		this.code = code;
	}
}

/** The daemon cannot be reached. */
export class Unreachable extends CliError {}

export interface SendOptions {
	text: string;
	attachments?: { sha256: string; name?: string }[];
	model?: string | null;
	clientId: string;
	maxSteps?: number;
	maxRounds?: number;
}

export interface Client {
	readonly url: string;
	status(signal: AbortSignal): Promise<Status>;
	conversations(signal: AbortSignal): Promise<Conversation[]>;
	conversation(id: string, signal: AbortSignal): Promise<Conversation>;
	createConversation(body: { title?: string; channel: "cli" | "api" }, signal: AbortSignal): Promise<Conversation>;
	updateConversation(id: string, change: { title?: string; model?: string | null }, signal: AbortSignal): Promise<Conversation>;
	messages(id: string, limit: number, signal: AbortSignal): Promise<Message[]>;
	/** Sends, and sends again under the same client id while the daemon does not answer: one message comes of it. */
	send(id: string, options: SendOptions, signal: AbortSignal): Promise<{ messageId: string; turnId: string }>;
	stop(id: string, signal: AbortSignal): Promise<boolean>;
	turn(id: string, signal: AbortSignal): Promise<Turn>;
	turns(
		limit: number,
		signal: AbortSignal,
	): Promise<{ id: string; state: string; origin: string; model: string | null; startedAt: string | null; error: string | null }[]>;
	models(signal: AbortSignal): Promise<{ id: string; name: string; provider: string; kind: string }[]>;
	testModel(id: string, signal: AbortSignal): Promise<{ ok: boolean; message: string; ms: number | null }>;
	upload(path: string, signal: AbortSignal): Promise<Attachment>;
	/** Every frame of a conversation from now on, across lost connections. `ready` resolves when nothing can be missed any more. */
	live(conversationId: string, onFrame: (frame: LiveFrame) => void): { ready: Promise<void>; close(): void };
}

const sendAttempts = 8;

export function createClient({ url, token }: ClientOptions): Client {
	const base = url.replace(/\/+$/, "");

	async function call<T>(
		method: string,
		path: string,
		body: unknown,
		signal: AbortSignal,
		headers: Record<string, string> = {},
	): Promise<T> {
		const raw = body instanceof Uint8Array;
		let response: Response;
		try {
			response = await fetch(base + path, {
				method,
				signal,
				headers: {
					authorization: `Bearer ${token}`,
					accept: "application/json",
					...(body === undefined || raw ? {} : { "content-type": "application/json" }),
					...headers,
				},
				...(body === undefined ? {} : { body: raw ? new Blob([new Uint8Array(body)]) : JSON.stringify(body) }),
			});
		} catch (error) {
			if (signal.aborted) throw signal.reason;
			throw new Unreachable(
				`${base} does not answer (${(error as { cause?: { code?: string } }).cause?.code ?? (error as Error).message})`,
			);
		}
		const text = await response.text();
		if (!response.ok) throw problem(response.status, text);
		return (text === "" ? null : JSON.parse(text)) as T;
	}
	const at = (id: string) => `/api/v1/conversations/${encodeURIComponent(id)}`;

	return {
		url: base,
		status: (signal) => call("GET", "/api/v1/status", undefined, signal),
		conversations: async (signal) =>
			(await call<{ conversations: Conversation[] }>("GET", "/api/v1/conversations", undefined, signal)).conversations,
		conversation: (id, signal) => call("GET", at(id), undefined, signal),
		createConversation: (body, signal) => call("POST", "/api/v1/conversations", body, signal),
		updateConversation: (id, change, signal) => call("PATCH", at(id), change, signal),
		messages: async (id, limit, signal) =>
			(await call<{ messages: Message[] }>("GET", `${at(id)}/messages?limit=${limit}`, undefined, signal)).messages,
		async send(id, options, signal) {
			for (let attempt = 1; ; attempt++) {
				try {
					return await call("POST", `${at(id)}/messages`, options, signal);
				} catch (error) {
					const passing = error instanceof Unreachable || (error instanceof ApiError && (error.status === 429 || error.status >= 500));
					if (!passing || attempt >= sendAttempts) throw error;
					await pause(Math.min(4000, 100 * 2 ** attempt), signal);
				}
			}
		},
		stop: async (id, signal) => (await call<{ stopped: boolean }>("POST", `${at(id)}/stop`, {}, signal)).stopped,
		turn: (id, signal) => call("GET", `/api/v1/turns/${encodeURIComponent(id)}`, undefined, signal),
		turns: async (limit, signal) =>
			(await call<{ turns: Awaited<ReturnType<Client["turns"]>> }>("GET", `/api/v1/turns?limit=${limit}`, undefined, signal)).turns,
		models: async (signal) =>
			(await call<{ models: Awaited<ReturnType<Client["models"]>> }>("GET", "/api/v1/models", undefined, signal)).models,
		testModel: (id, signal) => call("POST", "/api/v1/models/test", { id }, signal),
		async upload(path, signal) {
			const bytes = await readFile(path);
			return call("POST", `/api/v1/assets?name=${encodeURIComponent(basename(path))}`, bytes, signal, { "content-type": mimeTypeOf(path) });
		},
		live: (conversationId, onFrame) => openLive(base, token, conversationId, onFrame),
	};
}

function problem(status: number, text: string): ApiError {
	try {
		const body = JSON.parse(text) as { code?: string; title?: string; detail?: string; errors?: { path: string; message: string }[] };
		const where = (body.errors ?? []).map((error) => `${error.path}: ${error.message}`).join("; ");
		return new ApiError(status, body.code ?? "error", [body.detail ?? body.title ?? `HTTP ${status}`, where].filter(Boolean).join(" "));
	} catch {
		return new ApiError(status, "error", `the daemon answered with HTTP ${status}`);
	}
}

function openLive(
	base: string,
	token: string,
	conversationId: string,
	onFrame: (frame: LiveFrame) => void,
): { ready: Promise<void>; close(): void } {
	let closed = false;
	let socket: import("ws").WebSocket | null = null;
	let retry: NodeJS.Timeout | null = null;
	/** Larger than any number given out: nothing of the past is wanted. */
	let since = Number.MAX_SAFE_INTEGER;
	let failures = 0;
	let settle: { resolve(): void; reject(error: Error): void };
	const ready = new Promise<void>((resolve, reject) => {
		settle = { resolve, reject };
	});
	ready.catch(() => undefined);

	async function open(): Promise<void> {
		const { WebSocket } = await import("ws");
		if (closed) return;
		const current = new WebSocket(`${base.replace(/^http/i, "ws")}/api/v1/live`, {
			headers: { authorization: `Bearer ${token}` },
			handshakeTimeout: 10_000,
		});
		socket = current;
		current.on("open", () => {
			current.send(JSON.stringify({ type: "subscribe", topics: [conversationId] }));
			current.send(JSON.stringify({ type: "hello", since }));
		});
		current.on("message", (data) => {
			let frame: LiveFrame;
			try {
				frame = JSON.parse(String(data)) as LiveFrame;
			} catch {
				return;
			}
			since = frame.seq;
			if (frame.type === "hello") {
				failures = 0;
				settle.resolve();
			}
			onFrame(frame);
		});
		current.on("error", () => undefined);
		current.on("close", () => {
			if (closed) return;
			failures += 1;
			if (failures > 8) settle.reject(new Unreachable(`the live connection to ${base} cannot be opened`));
			retry = setTimeout(() => void open(), Math.min(3000, 50 * 2 ** failures));
		});
	}
	void open();
	return {
		ready,
		close() {
			closed = true;
			if (retry) clearTimeout(retry);
			socket?.terminate();
		},
	};
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal.aborted) return reject(signal.reason);
		const onAbort = () => {
			clearTimeout(timer);
			reject(signal.reason);
		};
		const timer = setTimeout(() => {
			signal.removeEventListener("abort", onAbort);
			resolve();
		}, ms);
		signal.addEventListener("abort", onAbort, { once: true });
	});
}

const imageTypes: Record<string, string> = {
	png: "image/png",
	jpg: "image/jpeg",
	jpeg: "image/jpeg",
	gif: "image/gif",
	webp: "image/webp",
	bmp: "image/bmp",
};

/** The image type that a file's name promises; anything else is plain bytes. */
export function mimeTypeOf(path: string): string {
	return imageTypes[path.split(".").at(-1)?.toLowerCase() ?? ""] ?? "application/octet-stream";
}
