/**
 * The model-neutral contract: what the agent asks of a model and what it gets back. No provider's
 * wire format appears here; `server/model/` translates.
 */
import type { Attachment } from "../../channels/channel.ts";

export type ContentPart = { type: "text"; text: string } | { type: "image"; attachment: Attachment };

/** A tool call as the model asked for it. `arguments` is the raw JSON text, never repaired. */
export interface ToolCall {
	id: string;
	name: string;
	arguments: string;
	/** True when the answer was cut inside the arguments: the call must be answered with an error and never run. */
	truncated?: boolean;
}

export type ModelMessage =
	| { role: "system"; text: string }
	| { role: "user"; content: ContentPart[] }
	| { role: "assistant"; text: string; reasoning?: string; calls: ToolCall[] }
	| { role: "tool"; callId: string; name: string; text: string };

/** A tool as a model sees it. `parameters` is a JSON schema whose root is `type: object`. */
export interface ToolSchema {
	name: string;
	description: string;
	parameters: Record<string, unknown>;
}

/** What a call was made for: the `source` of the usage table. */
export type CallSource = "chat" | "heartbeat" | "alarm" | "job" | "critique" | "memory" | "embedding" | "voice" | "image";

/** On whose behalf a call is made. Every call names it, so every cent can be explained. */
export interface CallContext {
	source: CallSource;
	conversationId: string | null;
	turnId: string | null;
	personId: string | null;
}

export interface ModelRequest {
	messages: ModelMessage[];
	tools: ToolSchema[];
	context: CallContext;
	/** A model id that the person picked; null = the role's fallback order. */
	model: string | null;
	role: "chat" | "small" | "critique" | "vision";
	maxOutputTokens?: number;
	temperature?: number;
	/** Ask for one JSON object where the provider can. */
	json?: boolean;
}

/** Token counts of one call. `inputTokens` includes `cachedTokens`; `outputTokens` includes `reasoningTokens`. */
export interface Usage {
	inputTokens: number;
	cachedTokens: number;
	outputTokens: number;
	reasoningTokens: number;
	/** True when the server reported nothing usable and the counts are our estimate. */
	estimated: boolean;
	/** In `currency`; null = price unknown (never zero for unknown). */
	cost: number | null;
	currency: string;
}

export interface ModelReply {
	text: string;
	reasoning: string;
	calls: ToolCall[];
	/** `length` = cut by the output limit. Decided by what is there, not by the server's word alone. */
	finish: "stop" | "calls" | "length" | "filtered";
	usage: Usage;
	/** Id of the configured model that really answered, and the name it goes by at its provider. */
	model: string;
	modelName: string;
	/** Ids of the recorded calls (one an attempt), the last one answered. */
	callIds: string[];
	ms: number;
	firstByteMs: number;
}

/**
 * Events of one request, in order. Text that comes fast is joined for some milliseconds after the first. `restart` says that what was streamed so far is void (a retry or another
 * model begins again). The last event of a successful request is `end`; a failed one throws a `ModelError`.
 */
export type ModelEvent =
	| { type: "text"; text: string }
	| { type: "reasoning"; text: string }
	| { type: "restart"; model: string; reason: string }
	| { type: "end"; reply: ModelReply };

export interface Model {
	/** Streams one answer. Retries, key rotation and fallback happen inside. Throws `ModelError`. */
	stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
	/** Context window in tokens of the model that `role`/`model` would use first; drives folding. */
	contextTokens(role: ModelRequest["role"], model: string | null): number;
}

/** Who failed? Decided by status and code at the wire, never by text. */
export type ModelErrorKind =
	| "bad-request"
	| "context-length"
	| "auth"
	| "payment"
	| "rate-limited"
	| "server"
	| "network"
	| "timeout"
	| "protocol"
	| "aborted"
	| "fuse"
	| "no-model";

/** A request that failed for good, after retries and fallbacks. `message` is for the log and holds no secrets. */
export class ModelError extends Error {
	readonly kind: ModelErrorKind;
	readonly status: number | null;
	readonly retryAfterMs: number | null;
	constructor(
		kind: ModelErrorKind,
		message: string,
		options: { status?: number | null; retryAfterMs?: number | null; cause?: unknown } = {},
	) {
		super(message, options.cause === undefined ? undefined : { cause: options.cause });
		this.name = "ModelError";
		this.kind = kind;
		this.status = options.status ?? null;
		this.retryAfterMs = options.retryAfterMs ?? null;
	}
}

/** What is known of a call before it is made. `request` is the body as it will be sent (JSON, or data), images replaced by `<image sha256 bytes>`. */
export interface CallStart {
	context: CallContext;
	/** Configured model id. */
	model: string;
	modelName: string;
	/** Masked key ("sk-…a1b2"), or null where none is needed. */
	key: string | null;
	attempt: number;
	request: unknown;
	/**
	 * How many characters of `request`, a text, come before what was said: the model's name, parameters, tools. They are the same from call to
	 * call and hold nothing of anybody: forgetting does not look into them. Left out: nothing is known to be so.
	 */
	requestHead?: number;
	estimatedInputTokens: number;
	maxOutputTokens: number;
	startedAt: number;
}

export interface CallEnd {
	/** The answer in our terms, or the error. */
	response: unknown;
	error: { kind: ModelErrorKind; message: string; status: number | null } | null;
	/** Null when nothing was used (the server refused). */
	usage: Usage | null;
	ms: number;
	firstByteMs: number | null;
}

/**
 * Every attempt of every model call goes through one meter: it reserves before and settles after.
 * `open` throws `ModelError("fuse")` when the call does not fit; then the call is not made.
 */
export interface Meter {
	/** May wait while calls in flight still hold room that this one could have; `signal` ends the wait. */
	open(call: CallStart, signal?: AbortSignal): Promise<string>;
	/** Resolves when the outcome is stored: before the result is used. */
	close(id: string, end: CallEnd): Promise<void>;
}
