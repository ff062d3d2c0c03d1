/**
 * A scripted OpenAI-compatible server over real HTTP on loopback: chat completions (stream or not), models, embeddings.
 * It checks what it is sent as strictly as the strictest real server, answers as it is told, and keeps every request.
 *
 *     const server = await startFakeOpenAI();
 *     server.script({ text: "Hello there" }, { calls: [{ name: "now", arguments: {} }] });  // one a request, in order
 *     server.rule(/weather/, { text: "Sunny." });                                         // used when the script is empty
 *     server.otherwise((request) => ({ text: `You said: ${request.lastUser}` }));            // used when no rule fits
 *     ... new OpenAI({ baseURL: server.url }) ...
 *     server.requests[0].body.messages;  server.requests[0].raw;  server.refused            // what was sent, what was 400
 *     await server.close();
 *
 * Without any script it answers `You said: …`, or `The tool answered: …` after a tool result. A user message may carry its own
 * behaviour as JSON between `[[fake:` and `]]`, so tests over other channels (and other processes) can script it as well:
 * `please [[fake:{"calls":[{"name":"now","arguments":{}}]}]]`. It applies while that message is the last one of a person and no
 * tool result follows it; an array gives one behaviour for each model call after that message.
 *
 * What the agent's memory asks in the background, whenever it likes and with the texts of many messages in it, is kept apart: nothing of
 * the above answers it, and `chats` and `waitForChats` do not count it. `server.memory(…)` says what it is told.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { embeddingOf } from "./openai-embedding.ts";
import { completion, pause, streamEvents, writeBody } from "./openai-events.ts";
import { type Refusal, validateChat } from "./openai-validate.ts";

export interface FakeCall {
	name: string;
	/** An object is sent as JSON; a string is sent as it stands (broken JSON, cut arguments). */
	arguments: unknown;
	/** Default `call_1`, `call_2`, … counted over the server's life. null or "" leaves it out or empty. */
	id?: string | null;
	/** Default its place. null is sent as null; -1 leaves the key out. */
	index?: number | null;
	/** Over how many chunks the arguments are spread. Default 1. */
	pieces?: number;
}

/** What one chat request is answered with. All of it but `gate` is plain JSON. */
export interface Behaviour {
	/** A string is streamed word by word, a list piece by piece. */
	text?: string | string[];
	reasoning?: string | string[];
	/** The field that carries `reasoning`. Default `reasoning_content`. */
	reasoningField?: string;
	calls?: FakeCall[];
	/** Default: `tool_calls` with calls, else `stop`. null sends none. */
	finish?: string | null;
	/** Where usage goes: a last chunk with empty `choices` (default, when asked for by stream_options), the finish chunk, every chunk, nowhere. */
	usage?: "last" | "finish" | "every" | "none";
	/** The numbers; default counted from the text. */
	usageNumbers?: Record<string, unknown>;
	/** Ends with `data: [DONE]`. Default true. */
	done?: boolean;

	/** Answers with this status and `error` (OpenAI's shape), or with `body`. */
	status?: number;
	headers?: Record<string, string>;
	error?: { message: string; type?: string; code?: string | number | null; param?: string | null };
	/** A raw body instead of everything else (HTML page, plain JSON, hand-made SSE), with `contentType`. */
	body?: string;
	contentType?: string;
	/** Chunk objects, sent as `data:` lines as they stand instead of those made from text and calls. */
	chunks?: unknown[];
	/** An error object sent inside the stream after everything else. */
	streamError?: Record<string, unknown>;

	/** After that many events: the socket is destroyed / the body is ended cleanly / nothing more ever comes. */
	cutAfter?: number;
	endAfter?: number;
	stallAfter?: number;
	/** Writes the body in pieces of this many bytes, each its own packet: cuts lines and characters anywhere. */
	chunkBytes?: number;
	/** Line ends, comments between events, empty `data:` lines, no newline after the last line. */
	newline?: "\n" | "\r\n" | "\r";
	comments?: boolean;
	lastNewline?: boolean;
	/** Answers a streaming request with one plain JSON completion. */
	plain?: boolean;

	/** Before the first byte; between two events. */
	delayMs?: number;
	betweenMs?: number;
	/** Waits here before the first byte, or after `gateAfter` events. */
	gate?: Gate;
	gateAfter?: number;
	/** Closes the connection without any answer. */
	hangUp?: boolean;
}

/** Holds answers back until the test opens it. */
export interface Gate {
	open(): void;
	readonly opened: Promise<void>;
	/** Resolves when the first request stands at the gate. */
	readonly reached: Promise<void>;
	arrive(): void;
}

export interface RecordedRequest {
	method: string;
	path: string;
	headers: Record<string, string | string[] | undefined>;
	/** The body as it came. */
	raw: string;
	// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
	body: any;
	/** The bearer key, or null. */
	key: string | null;
	/** Text of the last user message. */
	lastUser: string;
	/** Text of the last message when it is a tool's, else null. */
	lastTool: string | null;
	/** Asked by the memory in the background: nobody's turn. */
	ofMemory: boolean;
	at: number;
	/** The status that was answered; 0 while open. */
	status: number;
	/** True when the client went away before the end. */
	aborted: boolean;
	/** Resolves when the exchange is over, either way. */
	finished: Promise<void>;
}

export interface FakeOpenAIOptions {
	port?: number;
	/** Keys that are accepted; without it every request is, with or without a key. */
	keys?: string[];
	/** Names that `GET /v1/models` lists, and the only ones that chat accepts when given. */
	models?: string[];
	/** `required`: an assistant message with tool calls must bring `reasoning_content`, else 400; `forbidden`: 400 when present. */
	reasoning?: "any" | "required" | "forbidden";
	refuseStreamOptions?: boolean;
	/** Other top-level parameters that are refused with 400 (`max_tokens`, `temperature`, `response_format`). */
	refuse?: string[];
	/** False: nothing is checked. */
	strict?: boolean;
	/** More than this many tokens (4 characters each) is a 400 `context_length_exceeded`. */
	contextTokens?: number;
	/** Length of embedding vectors. Default 64. */
	dimensions?: number;
	/** Keep requests. Default true; a benchmark turns it off. */
	record?: boolean;
}

export type Answer = Behaviour | ((request: RecordedRequest) => Behaviour);

export interface FakeOpenAI {
	/** `http://127.0.0.1:PORT/v1` */
	readonly url: string;
	readonly origin: string;
	readonly port: number;
	/** Every request to any path, in order. */
	readonly requests: RecordedRequest[];
	/** Chat requests but the memory's. */
	readonly chats: RecordedRequest[];
	/** Reasons of every 400 that validation gave: empty at the end of a good test. */
	readonly refused: string[];
	/** Open answers at this moment, and the most there were. */
	readonly load: { open: number; peak: number; total: number };
	/** Connections that were opened so far. */
	readonly connections: number;
	/** Queues answers: one for each chat request that is neither refused nor the memory's. */
	script(...answers: Answer[]): void;
	/** How many queued answers are left. */
	scripted(): number;
	rule(match: string | RegExp | ((request: RecordedRequest) => boolean), answer: Answer): void;
	otherwise(answer: Answer): void;
	/** What the memory is told when it has something summed up. Default `They spoke.` */
	memory(answer: Answer): void;
	/** Forgets script, rules and records. */
	reset(): void;
	/** Changes options while running (keys, reasoning, …). */
	set(options: FakeOpenAIOptions): void;
	/** Resolves when that many chat requests have come; rejects after `timeoutMs` (10,000). */
	waitForChats(count: number, timeoutMs?: number): Promise<RecordedRequest[]>;
	/** Closes connections that carry no request at the moment. */
	dropIdle(): void;
	close(): Promise<void>;
}

/** Beginnings of the memory's orders; a test of the memory holds them against what it sends. */
const memoryOrder = /^You (compress a conversation for an agent's memory|write one paragraph for a diary page of an agent)/;

export const isMemoryOrder = (system: string): boolean => memoryOrder.test(system);

export function createGate(): Gate {
	let open = () => {};
	let arrive = () => {};
	const opened = new Promise<void>((resolve) => {
		open = resolve;
	});
	const reached = new Promise<void>((resolve) => {
		arrive = resolve;
	});
	return { open: () => open(), opened, reached, arrive: () => arrive() };
}

/** Starts the server on a free loopback port (or `options.port`). */
export async function startFakeOpenAI(initial: FakeOpenAIOptions = {}): Promise<FakeOpenAI> {
	let options: FakeOpenAIOptions = { ...initial };
	const requests: RecordedRequest[] = [];
	const chats: RecordedRequest[] = [];
	const refused: string[] = [];
	const load = { open: 0, peak: 0, total: 0 };
	let queue: Answer[] = [];
	let rules: { match: string | RegExp | ((request: RecordedRequest) => boolean); answer: Answer }[] = [];
	let fallback: Answer = (request) => ({
		text: request.lastTool === null ? `You said: ${request.lastUser}` : `The tool answered: ${request.lastTool}`,
	});
	let remembering: Answer = { text: "They spoke." };
	let callCount = 0;
	let connections = 0;
	const sockets = new Set<Socket>();
	const waiters = new Set<() => void>();

	const choose = (request: RecordedRequest): Behaviour => {
		const own = request.ofMemory ? null : behaviourInMessage(request);
		if (own) return own;
		const next = request.ofMemory ? remembering : (queue.shift() ?? rules.find((rule) => fits(rule.match, request))?.answer ?? fallback);
		return typeof next === "function" ? next(request) : next;
	};

	const server = createServer((incoming, response) => {
		void handle(incoming, response).catch((error: unknown) => {
			refused.push(`fake server failed: ${String(error)}`);
			response.destroy();
		});
	});
	server.keepAliveTimeout = 60_000;
	server.on("connection", (socket) => {
		connections++;
		sockets.add(socket);
		socket.setNoDelay(true);
		socket.on("close", () => sockets.delete(socket));
	});

	async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
		const raw = await readAll(incoming);
		const request = record(incoming, response, raw);
		load.total++;
		load.open++;
		load.peak = Math.max(load.peak, load.open);
		response.on("close", () => {
			load.open--;
		});
		const path = request.path;
		if (options.keys && !(request.key && options.keys.includes(request.key))) {
			return fail(response, request, 401, {
				message: `Incorrect API key provided: ${request.key ?? "none"}.`,
				type: "invalid_request_error",
				code: "invalid_api_key",
			});
		}
		if (path === "/v1/models" && request.method === "GET") {
			return sendJson(response, request, {
				object: "list",
				data: (options.models ?? ["fake-model"]).map((id) => ({ id, object: "model", created: 0, owned_by: "fake" })),
			});
		}
		if (path === "/v1/embeddings" && request.method === "POST") return embeddings(response, request);
		if (path !== "/v1/chat/completions" || request.method !== "POST") {
			return fail(response, request, 404, {
				message: `Unknown request URL: ${request.method} ${path}.`,
				type: "invalid_request_error",
				code: "unknown_url",
			});
		}
		const refusal = check(request);
		if (options.record !== false && !request.ofMemory) chats.push(request);
		for (const waiter of waiters) waiter();
		if (refusal) {
			refused.push(refusal.message);
			return fail(response, request, refusal.status ?? 400, {
				message: refusal.message,
				type: "invalid_request_error",
				code: refusal.code ?? null,
				param: refusal.param ?? null,
			});
		}
		await answer(response, request, choose(request));
	}

	function check(request: RecordedRequest): Refusal | null {
		if (options.strict === false) return null;
		const refusal = validateChat(request.body);
		if (refusal) return refusal;
		if (options.models && !options.models.includes(request.body.model)) {
			return { status: 404, code: "model_not_found", message: `The model \`${request.body.model}\` does not exist` };
		}
		if (options.contextTokens && request.raw.length / 4 > options.contextTokens) {
			return {
				code: "context_length_exceeded",
				param: "messages",
				message: `This model's maximum context length is ${options.contextTokens} tokens.`,
			};
		}
		if (options.refuseStreamOptions && "stream_options" in request.body) {
			return { code: "unknown_parameter", message: "Unrecognized request argument supplied: stream_options" };
		}
		for (const name of options.refuse ?? []) {
			if (name in request.body)
				return {
					code: "unsupported_parameter",
					param: name,
					message: `Unsupported parameter: '${name}' is not supported with this model.`,
				};
		}
		for (const message of request.body.messages) {
			if (message.role !== "assistant") continue;
			if (options.reasoning === "required" && message.tool_calls && typeof message.reasoning_content !== "string") {
				return { code: "invalid_request_error", message: "The `reasoning_content` in the thinking mode must be passed back to the API." };
			}
			if (options.reasoning === "forbidden" && "reasoning_content" in message) {
				return { code: "invalid_request_error", message: "Unknown field `reasoning_content` in an assistant message." };
			}
		}
		return null;
	}

	function record(incoming: IncomingMessage, response: ServerResponse, raw: string): RecordedRequest {
		let body: unknown = null;
		try {
			body = raw === "" ? null : JSON.parse(raw);
		} catch {
			body = undefined;
		}
		const auth = incoming.headers.authorization;
		let finish = () => {};
		const request: RecordedRequest = {
			method: incoming.method ?? "GET",
			path: (incoming.url ?? "/").split("?")[0] ?? "/",
			headers: incoming.headers,
			raw,
			body,
			key: auth?.startsWith("Bearer ") ? auth.slice(7) : null,
			...lastTexts(body),
			at: Date.now(),
			status: 0,
			aborted: false,
			finished: new Promise<void>((resolve) => {
				finish = resolve;
			}),
		};
		response.on("close", () => {
			request.aborted = !response.writableFinished;
			finish();
		});
		if (options.record !== false) requests.push(request);
		return request;
	}

	function embeddings(response: ServerResponse, request: RecordedRequest): void {
		const input: unknown = request.body?.input;
		const texts = typeof input === "string" ? [input] : Array.isArray(input) ? input : null;
		if (!texts || texts.length === 0 || !texts.every((text) => typeof text === "string" && text !== "")) {
			fail(response, request, 400, {
				message: "'input' must be a non-empty string or a list of them.",
				type: "invalid_request_error",
				param: "input",
			});
			return;
		}
		const dimensions = typeof request.body.dimensions === "number" ? request.body.dimensions : (options.dimensions ?? 64);
		const data = texts.map((text: string, index: number) => ({ object: "embedding", index, embedding: embeddingOf(text, dimensions) }));
		const tokens = texts.reduce((sum: number, text: string) => sum + Math.ceil(text.length / 4), 0);
		sendJson(response, request, {
			object: "list",
			data,
			model: request.body.model,
			usage: { prompt_tokens: tokens, total_tokens: tokens },
		});
	}

	async function answer(response: ServerResponse, request: RecordedRequest, behaviour: Behaviour): Promise<void> {
		if (behaviour.delayMs) await pause(behaviour.delayMs, response);
		if (behaviour.gate && behaviour.gateAfter === undefined) {
			behaviour.gate.arrive();
			await behaviour.gate.opened;
		}
		if (response.destroyed) return;
		if (behaviour.hangUp) {
			response.destroy();
			return;
		}
		for (const [name, value] of Object.entries(behaviour.headers ?? {})) response.setHeader(name, value);
		if (behaviour.body !== undefined) {
			request.status = behaviour.status ?? 200;
			response.writeHead(request.status, { "content-type": behaviour.contentType ?? "text/html" });
			return writeBody(response, [behaviour.body], behaviour);
		}
		if (behaviour.error || (behaviour.status ?? 200) >= 400) {
			return fail(
				response,
				request,
				behaviour.status ?? 500,
				behaviour.error ?? { message: `Status ${behaviour.status}`, type: "server_error" },
			);
		}
		const calls = (behaviour.calls ?? []).map((call) => ({ ...call, id: call.id === undefined ? `call_${++callCount}` : call.id }));
		const shape = { model: String(request.body.model), usage: usageOf(request, behaviour), calls };
		if (behaviour.plain || request.body.stream !== true) return sendJson(response, request, completion(behaviour, shape));
		request.status = 200;
		response.writeHead(200, { "content-type": behaviour.contentType ?? "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
		const wantsUsage = request.body.stream_options?.include_usage === true;
		await writeBody(response, streamEvents(behaviour, shape, wantsUsage), behaviour);
	}

	await new Promise<void>((resolve, reject) => {
		server.once("error", reject);
		server.listen(options.port ?? 0, "127.0.0.1", resolve);
	});
	const port = (server.address() as AddressInfo).port;
	const origin = `http://127.0.0.1:${port}`;

	return {
		url: `${origin}/v1`,
		origin,
		port,
		requests,
		chats,
		refused,
		load,
		get connections() {
			return connections;
		},
		script: (...answers) => void queue.push(...answers),
		scripted: () => queue.length,
		rule: (match, then) => void rules.push({ match, answer: then }),
		otherwise: (then) => {
			fallback = then;
		},
		memory: (then) => {
			remembering = then;
		},
		reset: () => {
			queue = [];
			rules = [];
			requests.length = 0;
			chats.length = 0;
			refused.length = 0;
		},
		set: (change) => {
			options = { ...options, ...change };
		},
		waitForChats: (count, timeoutMs = 10_000) =>
			new Promise((resolve, reject) => {
				const done = () => {
					if (chats.length < count) return;
					clearTimeout(timer);
					waiters.delete(done);
					resolve(chats);
				};
				const timer = setTimeout(() => {
					waiters.delete(done);
					reject(new Error(`only ${chats.length} of ${count} chat requests came within ${timeoutMs} ms`));
				}, timeoutMs);
				waiters.add(done);
				done();
			}),
		dropIdle: () => server.closeIdleConnections(),
		close: () =>
			new Promise((resolve) => {
				server.close(() => resolve());
				for (const socket of sockets) socket.destroy();
			}),
	};
}

function fits(match: string | RegExp | ((request: RecordedRequest) => boolean), request: RecordedRequest): boolean {
	if (typeof match === "function") return match(request);
	return typeof match === "string" ? request.lastUser.includes(match) : match.test(request.lastUser);
}

async function readAll(incoming: IncomingMessage): Promise<string> {
	const parts: Buffer[] = [];
	for await (const part of incoming) parts.push(part as Buffer);
	return Buffer.concat(parts).toString("utf8");
}

function textOf(content: unknown): string {
	if (typeof content === "string") return content;
	if (!Array.isArray(content)) return "";
	return content.map((part: { type?: string; text?: string }) => (part?.type === "text" ? (part.text ?? "") : "")).join("\n");
}

function lastTexts(body: unknown): Pick<RecordedRequest, "lastUser" | "lastTool" | "ofMemory"> {
	const messages = (body as { messages?: { role?: string; content?: unknown }[] } | null | undefined)?.messages;
	if (!Array.isArray(messages)) return { lastUser: "", lastTool: null, ofMemory: false };
	const user = messages.findLast((message) => message?.role === "user");
	const last = messages.findLast((message) => message?.role !== "system");
	return {
		lastUser: textOf(user?.content),
		lastTool: last?.role === "tool" ? textOf(last.content) : null,
		ofMemory: messages[0]?.role === "system" && isMemoryOrder(textOf(messages[0]?.content)),
	};
}

/** The behaviour that the last user message carries for the model call at hand, if it does. */
function behaviourInMessage(request: RecordedRequest): Behaviour | null {
	const messages: { role: string; content: unknown }[] = request.body.messages;
	const at = messages.findLastIndex((message) => message.role === "user" && textOf(message.content).includes("[[fake:"));
	if (at < 0) return null;
	const found = /\[\[fake:([\s\S]*?)\]\](?!\])/.exec(textOf(messages[at]?.content));
	if (!found) return null;
	const later = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
	const parsed = JSON.parse(found[1] ?? "{}") as Behaviour | Behaviour[];
	if (Array.isArray(parsed)) return parsed[later] ?? null;
	return later === 0 ? parsed : null;
}

function usageOf(request: RecordedRequest, behaviour: Behaviour): Record<string, unknown> {
	if (behaviour.usageNumbers) return behaviour.usageNumbers;
	const length = (value: string | string[] | undefined) => (typeof value === "string" ? value : (value ?? []).join("")).length;
	const out = Math.max(
		1,
		Math.ceil((length(behaviour.text) + length(behaviour.reasoning) + JSON.stringify(behaviour.calls ?? "").length - 2) / 4),
	);
	const input = Math.ceil(request.raw.length / 4);
	return { prompt_tokens: input, completion_tokens: out, total_tokens: input + out };
}

function sendJson(response: ServerResponse, request: RecordedRequest, value: unknown): void {
	request.status = 200;
	response.writeHead(200, { "content-type": "application/json" });
	response.end(JSON.stringify(value));
}

function fail(
	response: ServerResponse,
	request: RecordedRequest,
	status: number,
	error: Behaviour["error"] | Record<string, unknown>,
): void {
	request.status = status;
	response.writeHead(status, { "content-type": "application/json" });
	response.end(JSON.stringify({ error: { param: null, code: null, ...error } }));
}
