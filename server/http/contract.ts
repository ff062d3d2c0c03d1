/**
 * The HTTP and live contract as schemas. The page takes its types from here (types only); routes validate with it;
 * OpenAPI is made from it. Times are ISO 8601 strings in UTC.
 */
import { z } from "zod";

export const Problem = z.object({
	type: z.string(),
	title: z.string(),
	status: z.number().int(),
	/** Stable, kebab-case: what a program may switch on. */
	code: z.string(),
	detail: z.string().optional(),
	/** Where in the input: [{path, message}]. */
	errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});
export type Problem = z.infer<typeof Problem>;

export const Attachment = z.object({
	sha256: z.string(),
	name: z.string(),
	mimeType: z.string(),
	bytes: z.number().int(),
	kind: z.enum(["image", "audio", "video", "file"]),
});
export type Attachment = z.infer<typeof Attachment>;

export const Conversation = z.object({
	id: z.string(),
	title: z.string(),
	channel: z.string(),
	pinned: z.boolean(),
	createdAt: z.string(),
	updatedAt: z.string(),
	/** The last message's beginning, for lists; null in an empty conversation. */
	preview: z.string().nullable(),
	/** Model picked for this conversation, or null for the default. */
	model: z.string().nullable(),
	/** State of the running or queued turn, or null when idle. */
	busy: z.enum(["queued", "running"]).nullable(),
});
export type Conversation = z.infer<typeof Conversation>;

export const PlanItem = z.object({ text: z.string(), done: z.boolean() });
export type PlanItem = z.infer<typeof PlanItem>;

export const Usage = z.object({
	inputTokens: z.number(),
	cachedTokens: z.number(),
	outputTokens: z.number(),
	reasoningTokens: z.number(),
	estimated: z.boolean(),
	/** null = price unknown. */
	cost: z.number().nullable(),
	currency: z.string(),
	/** How many model calls. */
	calls: z.number().int(),
});
export type Usage = z.infer<typeof Usage>;

export const Delivery = z.enum(["pending", "sending", "sent", "failed", "unknown", "held"]);

/** A tool call as a message shows it: short; the whole is in the turn. */
export const ToolLine = z.object({
	recordId: z.string(),
	step: z.number().int(),
	name: z.string(),
	/** Arguments as JSON text, cut to 2,000 characters. */
	arguments: z.string(),
	state: z.enum(["open", "started", "done", "failed", "skipped", "interrupted"]),
	/** True when the call was put aside for the master's approval. */
	asked: z.boolean().optional(),
	/** Beginning of the result, cut to 2,000 characters; null while open. */
	result: z.string().nullable(),
	ms: z.number().nullable(),
});
export type ToolLine = z.infer<typeof ToolLine>;

export const Message = z.object({
	id: z.string(),
	conversationId: z.string(),
	role: z.enum(["user", "assistant", "system"]),
	text: z.string(),
	at: z.string(),
	from: z.string().nullable(),
	/** Model that wrote it (configured id and provider's name), null for people and for our own sentences. */
	model: z.string().nullable(),
	modelName: z.string().nullable(),
	turnId: z.string().nullable(),
	attachments: z.array(Attachment),
	/** Null for messages from people. */
	delivery: Delivery.nullable(),
	/** The client's own id, if it sent one. */
	clientId: z.string().nullable(),
	/** Only on answers. */
	usage: Usage.nullable(),
	tools: z.array(ToolLine),
	plan: z.array(PlanItem),
	/** On a message that no person typed: the decision on an approval, said to the agent. */
	decision: z.object({ allowed: z.boolean(), tool: z.string(), arguments: z.string() }).optional(),
	/** True on an answer that was stopped before its end. */
	stopped: z.boolean().optional(),
	/** True when the message was superseded by edit-and-resend or regenerate; such messages are left out unless asked for. */
	superseded: z.boolean(),
});
export type Message = z.infer<typeof Message>;

/** The longest message, in characters. */
export const maxMessageChars = 200_000;

export const SendMessage = z.object({
	text: z.string().max(maxMessageChars).default(""),
	/** Ids from `POST /api/v1/assets`. */
	attachments: z
		.array(z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), name: z.string().max(255).optional() }))
		.max(16)
		.default([]),
	model: z.string().nullable().default(null),
	clientId: z.string().min(1).max(100).optional(),
	/** Run limits of this message alone; never above the configured ones. */
	maxSteps: z.number().int().min(1).optional(),
	maxRounds: z.number().int().min(1).optional(),
	/** Edit-and-resend or regenerate: this message and everything after it are superseded first. */
	replaces: z.string().optional(),
});
export type SendMessage = z.input<typeof SendMessage>;

export const SendAccepted = z.object({ messageId: z.string(), turnId: z.string() });
export const SendAnswered = z.object({ reply: Message, turnId: z.string(), messageId: z.string() });

export const TurnState = z.enum(["queued", "running", "done", "failed", "stopped"]);
export type TurnState = z.infer<typeof TurnState>;

export const TurnSummary = z.object({
	id: z.string(),
	conversationId: z.string(),
	origin: z.string(),
	state: TurnState,
	rounds: z.number().int(),
	startedAt: z.string().nullable(),
	endedAt: z.string().nullable(),
	model: z.string().nullable(),
	usage: Usage,
	error: z.string().nullable(),
});
export type TurnSummary = z.infer<typeof TurnSummary>;

export const Step = z.object({
	step: z.number().int(),
	round: z.number().int(),
	text: z.string(),
	model: z.string(),
	modelName: z.string(),
	usage: Usage,
	startedAt: z.string(),
	endedAt: z.string(),
	note: z.string().nullable(),
	calls: z.array(
		z.object({
			recordId: z.string(),
			id: z.string(),
			name: z.string(),
			arguments: z.string(),
			state: ToolLine.shape.state,
			result: z.string().nullable(),
			startedAt: z.string().nullable(),
			endedAt: z.string().nullable(),
			ms: z.number().nullable(),
		}),
	),
});
export type Step = z.infer<typeof Step>;

export const Turn = TurnSummary.extend({
	messageIds: z.array(z.string()),
	plan: z.array(PlanItem),
	steps: z.array(Step),
	why: z.object({
		blocks: z.array(z.object({ name: z.string(), chars: z.number(), tokens: z.number() })),
		recalled: z.array(z.object({ text: z.string(), score: z.number(), at: z.string(), source: z.string(), by: z.string() })),
		lessons: z.array(z.object({ name: z.string() })),
		model: z.object({ picked: z.string().nullable(), answered: z.string().nullable(), reason: z.string().nullable() }),
		folded: z.number().int(),
		/** By source, failed attempts included; cost null = no call of it has a known price. */
		cost: z.array(
			z.object({
				source: z.string(),
				calls: z.number().int(),
				inputTokens: z.number(),
				outputTokens: z.number(),
				cost: z.number().nullable(),
				unpricedTokens: z.number(),
			}),
		),
	}),
	guard: z.string().nullable(),
	taint: z.array(z.object({ source: z.string(), step: z.number() })),
	critique: z.array(z.object({ round: z.number(), faults: z.array(z.unknown()), changed: z.boolean(), usage: Usage })),
});
export type Turn = z.infer<typeof Turn>;

export const Call = z.object({
	id: z.string(),
	turnId: z.string().nullable(),
	conversationId: z.string().nullable(),
	source: z.string(),
	model: z.string(),
	modelName: z.string(),
	at: z.string(),
	inputTokens: z.number(),
	cachedTokens: z.number(),
	outputTokens: z.number(),
	reasoningTokens: z.number(),
	estimated: z.boolean(),
	cost: z.number().nullable(),
	currency: z.string(),
	ms: z.number().nullable(),
	firstByteMs: z.number().nullable(),
	/** Which attempt of its request this was, from 1. */
	attempts: z.number().int(),
	key: z.string().nullable(),
	state: z.enum(["open", "done", "failed"]),
	error: z.string().nullable(),
});
export type Call = z.infer<typeof Call>;
export const CallDetail = Call.extend({ request: z.unknown(), response: z.unknown() });
export type CallDetail = z.infer<typeof CallDetail>;

/** Sums of one day, source, model or conversation; `key` says which ("none" = of no conversation). */
export const UsageRow = z.object({
	key: z.string(),
	calls: z.number().int(),
	inputTokens: z.number(),
	cachedTokens: z.number(),
	outputTokens: z.number(),
	reasoningTokens: z.number(),
	/** In `currency`, the one of most calls; null = no call of this row has a known price. */
	cost: z.number().nullable(),
	currency: z.string(),
	/** By currency. */
	costs: z.record(z.string(), z.number()),
	unpricedTokens: z.number(),
	estimatedTokens: z.number(),
});
export type UsageRow = z.infer<typeof UsageRow>;

export const AlertItem = z.object({
	id: z.string(),
	kind: z.string(),
	severity: z.enum(["info", "warn", "error"]),
	state: z.enum(["open", "resolved"]),
	message: z.object({ en: z.string(), zh: z.string() }),
	conversation: z.string().nullable(),
	turnId: z.string().nullable(),
	openedAt: z.string(),
	lastAt: z.string(),
	resolvedAt: z.string().nullable(),
	ackedAt: z.string().nullable(),
	count: z.number().int(),
});
export type AlertItem = z.infer<typeof AlertItem>;

/** Today's fuse, with the raises of today. */
export const FuseDay = z.object({
	limitTokens: z.number().nullable(),
	usedTokens: z.number(),
	reservedTokens: z.number(),
	limitCost: z.number().nullable(),
	usedCost: z.number(),
	currency: z.string(),
	/** The money limit does not see these. */
	unpricedTokens: z.number(),
	state: z.enum(["ok", "warn", "blown"]),
	blownBy: z.string().nullable(),
	resetsAt: z.string(),
	raises: z.array(z.object({ at: z.string(), tokens: z.number(), cost: z.number(), by: z.string() })),
});
export type FuseDay = z.infer<typeof FuseDay>;

/** What a model costs per million tokens; null = unknown. */
export const PriceItem = z.object({
	model: z.string(),
	price: z
		.object({
			input: z.number(),
			cachedInput: z.number(),
			output: z.number(),
			currency: z.string(),
			source: z.enum(["config", "table", "demo"]),
			/** Day of the source; null when it has none. */
			asOf: z.string().nullable(),
			url: z.string().nullable(),
			varies: z.boolean(),
		})
		.nullable(),
});
export type PriceItem = z.infer<typeof PriceItem>;

export const OutboxItem = z.object({
	id: z.string(),
	conversationId: z.string().nullable(),
	channel: z.string(),
	to: z.string(),
	text: z.string(),
	state: Delivery.or(z.literal("dropped")),
	attempts: z.number().int(),
	platformIds: z.array(z.string()),
	error: z.string().nullable(),
	createdAt: z.string(),
	sentAt: z.string().nullable(),
});
export type OutboxItem = z.infer<typeof OutboxItem>;

/** One line of the log as data. */
export const EventItem = z.object({
	seq: z.number().int(),
	at: z.string(),
	type: z.string(),
	level: z.enum(["trace", "debug", "info", "warn", "error"]),
	conversation: z.string().nullable(),
	turnId: z.string().nullable(),
	body: z.record(z.string(), z.unknown()),
});
export type EventItem = z.infer<typeof EventItem>;

export const FilterResult = z.object({
	verdict: z.enum(["allow", "mask", "replace", "block", "hold"]),
	text: z.string(),
	matches: z.array(z.object({ rule: z.string(), start: z.number().int(), end: z.number().int() })),
});
export type FilterResult = z.infer<typeof FilterResult>;

/** A model that a person can pick. */
export const ModelChoice = z.object({ id: z.string(), name: z.string(), provider: z.string(), kind: z.string() });
export type ModelChoice = z.infer<typeof ModelChoice>;

export const ConfigError = z.object({ key: z.string(), line: z.number().nullable(), message: z.string() });
export type ConfigError = z.infer<typeof ConfigError>;

export const Status = z.object({
	version: z.string(),
	startedAt: z.string(),
	state: z.enum(["ok", "degraded", "safe-mode"]),
	fuse: z.object({
		limitTokens: z.number().nullable(),
		usedTokens: z.number(),
		reservedTokens: z.number(),
		limitCost: z.number().nullable(),
		usedCost: z.number(),
		state: z.enum(["ok", "warn", "blown"]),
		resetsAt: z.string(),
	}),
	config: z.object({
		errors: z.array(ConfigError),
		/** Right, and without effect in this version. */
		withoutEffect: z.array(ConfigError),
		restartNeeded: z.array(z.string()),
	}),
	heartbeat: z.object({
		enabled: z.boolean(),
		nextAt: z.string().nullable(),
		lastAt: z.string().nullable(),
		beats: z.number().int(),
		savedCalls: z.number().int(),
		savedTokens: z.number().int(),
	}),
	channels: z.array(
		z.object({ id: z.string(), type: z.string(), state: z.enum(["up", "connecting", "down", "off"]), error: z.string().nullable() }),
	),
	sandbox: z.object({ backend: z.string() }),
	breakers: z.array(
		z.object({ key: z.string(), state: z.enum(["closed", "open", "half-open"]), failures: z.number(), retryAt: z.string().nullable() }),
	),
	embeddings: z.object({ model: z.string(), state: z.string(), indexed: z.number(), total: z.number() }),
	models: z.array(
		z.object({
			id: z.string(),
			provider: z.string(),
			model: z.string(),
			kind: z.string(),
			usable: z.boolean(),
			/** Why it is not usable ("no API key"), or what is wrong with a key. */
			problem: z.string().nullable(),
			keys: z.array(
				z.object({ key: z.string(), state: z.enum(["ok", "set-aside"]), reason: z.string().nullable(), until: z.string().nullable() }),
			),
		}),
	),
	/** True when the demo model answers because no other is configured. */
	demo: z.boolean(),
	turns: z.object({ running: z.number(), queued: z.number() }),
	locale: z.string().nullable(),
	timezone: z.string(),
	agentName: z.string(),
});
export type Status = z.infer<typeof Status>;

export const SetupInfo = z.object({
	/** True until a username and password exist. */
	needed: z.boolean(),
	locale: z.string().nullable(),
	timezone: z.string(),
	providers: z.array(
		z.object({
			id: z.string(),
			name: z.string(),
			baseUrl: z.string(),
			keyVariable: z.string().nullable(),
			models: z.array(z.string()),
			local: z.boolean(),
			keyUrl: z.string().nullable(),
		}),
	),
	/** The model that answers when none is picked here: from the environment or the configuration file; null = the demo model. */
	answering: z.object({ provider: z.string(), model: z.string() }).nullable(),
	/** Local servers that answered on their usual port just now, with the models they list. */
	detected: z.array(z.object({ provider: z.string(), baseUrl: z.string(), models: z.array(z.string()) })),
});
export type SetupInfo = z.infer<typeof SetupInfo>;

/** An entry of `models` as the config file has it, and as the wizard and `models/test` send it. */
export const ModelEntry = z.object({
	id: z.string().min(1),
	provider: z.string(),
	model: z.string(),
	baseUrl: z.string().nullable().optional(),
	apiKeys: z.array(z.string()).optional(),
});
export type ModelEntry = z.infer<typeof ModelEntry>;

export const Setup = z.object({
	/** The one-time code from the link's fragment. */
	code: z.string(),
	username: z.string().min(1).max(64),
	password: z.string().min(8).max(256),
	locale: z.enum(["zh-CN", "en"]).optional(),
	timezone: z.string().optional(),
	dailyTokens: z.number().int().min(0).optional(),
	/** Null = go on with the demo model. */
	model: ModelEntry.nullable().optional(),
});
export type Setup = z.input<typeof Setup>;

export const ModelTestResult = z.object({
	ok: z.boolean(),
	/** One sentence for people; the reason on failure. */
	message: z.string(),
	kind: z.string().nullable(),
	ms: z.number().nullable(),
	reply: z.string().nullable(),
});
export type ModelTestResult = z.infer<typeof ModelTestResult>;

export const Login = z.object({ username: z.string().min(1).max(64), password: z.string().min(1).max(256) });

/** One memory that a search found; `score` is comparable within one answer. */
export const MemoryHit = z.object({ id: z.string(), text: z.string(), score: z.number(), at: z.string(), source: z.string() });
export type MemoryHit = z.infer<typeof MemoryHit>;

export const Fact = z.object({
	id: z.string(),
	text: z.string(),
	source: z.string(),
	/** When it was said last. */
	at: z.string(),
	/** Person id or `group:<id>`. */
	scope: z.string(),
	messageId: z.string().nullable(),
	expiresAt: z.string().nullable(),
});
export type Fact = z.infer<typeof Fact>;
/** A fact of the history; `state` is active, superseded, expired or gone. */
export const FactHistory = Fact.extend({ state: z.string(), supersededBy: z.string().nullable() });
export type FactHistory = z.infer<typeof FactHistory>;

/** A call that waits for the master's word, or what became of it. */
export const Approval = z.object({
	id: z.string(),
	tool: z.string(),
	arguments: z.record(z.string(), z.unknown()),
	/** What the call would touch, in its own words (the memory that would go); null when that is not known. */
	about: z.string().nullable(),
	conversation: z.string(),
	turnId: z.string(),
	origin: z.string(),
	/** The turn had read what others wrote: pages, mail, files. */
	tainted: z.boolean(),
	person: z.string(),
	state: z.enum(["pending", "allowed", "denied", "expired"]),
	scope: z.enum(["once", "conversation", "hour"]).nullable(),
	createdAt: z.string(),
	expiresAt: z.string(),
	decidedAt: z.string().nullable(),
});
export type Approval = z.infer<typeof Approval>;

/** How much was removed, of each kind. */
export const Forgotten = z.object({
	messages: z.number().int(),
	exchanges: z.number().int(),
	summaryLines: z.number().int(),
	diaryLines: z.number().int(),
	memories: z.number().int(),
	facts: z.number().int(),
});
export type Forgotten = z.infer<typeof Forgotten>;

/** One person's memory as Markdown and JSON files, by path. */
export const MemoryExport = z.object({ person: z.string(), exportedAt: z.string(), files: z.record(z.string(), z.string()) });
export type MemoryExport = z.infer<typeof MemoryExport>;

export const MemoryImportReport = z.object({
	taken: z.array(z.object({ from: z.string(), to: z.string(), items: z.number().int() })),
	skipped: z.array(z.object({ from: z.string(), why: z.string() })),
});
export type MemoryImportReport = z.infer<typeof MemoryImportReport>;

export const WorkspaceFile = z.object({
	/** Below `workspace/`, with slashes. */
	path: z.string(),
	content: z.string(),
	/** To be sent back as `base`; null when the file cannot be read. */
	version: z.string().nullable(),
	changedAt: z.string().nullable(),
	/** One sentence when the file is not what it should be. */
	problem: z.string().nullable(),
});
export type WorkspaceFile = z.infer<typeof WorkspaceFile>;

/** A folder's files and those of its folders, sorted by path. */
export const WorkspaceFolder = z.object({
	path: z.string(),
	files: z.array(z.object({ path: z.string(), bytes: z.number(), changedAt: z.string() })),
	/** There are more than were listed. */
	more: z.boolean(),
});
export type WorkspaceFolder = z.infer<typeof WorkspaceFolder>;

export const WorkspaceVersion = z.object({
	version: z.string(),
	at: z.string(),
	by: z.enum(["person", "agent", "program", "hand"]),
	reason: z.string(),
	before: z.string().nullable(),
});
export type WorkspaceVersion = z.infer<typeof WorkspaceVersion>;
export const WorkspaceVersionText = WorkspaceVersion.extend({ content: z.string() });
export type WorkspaceVersionText = z.infer<typeof WorkspaceVersionText>;

/**
 * Every server frame has `seq`, growing, never repeated. Only these types exist. After the client's `hello` the server first
 * replays what is retained after `since`, then says its own `hello` ("you are up to date"), then sends live frames. `reset` means
 * that something after `since` is not retained any more: what the client holds is to be read again through REST.
 */
export type LiveFrame = { seq: number; at: string } & LiveBody;
export type LiveBody =
	| { type: "hello"; version: string; reset: boolean }
	| { type: "ack"; clientId: string; messageId: string; turnId: string }
	| { type: "refused"; clientId: string | null; problem: Problem }
	| { type: "message"; conversation: string; message: Message }
	| { type: "superseded"; conversation: string; messageIds: string[] }
	| { type: "conversation"; conversation: string; change: "created" | "changed" | "deleted"; value: Conversation | null }
	| { type: "delta"; conversation: string; turnId: string; text: string }
	/** What was streamed of the current step is void. */
	| { type: "restart"; conversation: string; turnId: string; model: string; reason: string }
	/** `guard`: why it was ended by a guard rather than by the model. */
	| { type: "turn"; conversation: string; turnId: string; state: TurnState; origin: string; model: string | null; guard?: string }
	| {
			type: "step";
			conversation: string;
			turnId: string;
			step: number;
			round: number;
			state: "started" | "thinking" | "finished";
			text: string | null;
	  }
	| { type: "tool"; conversation: string; turnId: string; tool: ToolLine }
	| { type: "plan"; conversation: string; turnId: string; items: PlanItem[] }
	| { type: "usage"; conversation: string | null; turnId: string | null; usage: Usage }
	| {
			type: "log";
			level: "trace" | "debug" | "info" | "warn" | "error";
			event: string;
			message: string;
			conversation: string | null;
			turnId: string | null;
			data: Record<string, unknown>;
	  }
	| { type: "alert"; id: string; state: "open" | "resolved"; kind: string; message: string }
	| { type: "approval"; id: string; state: "pending" | "allowed" | "denied" | "expired"; conversation: string; tool: string }
	| { type: "status"; status: Partial<Status> };

/**
 * `subscribe` topics are conversation ids, or frame types prefixed with `type:`; a frame comes when any topic names it, and an empty
 * list means everything again. `hello`, `ack` and `refused` always come.
 */
export const ClientFrame = z.discriminatedUnion("type", [
	z.object({ type: z.literal("hello"), since: z.number().int().min(0) }),
	SendMessage.extend({ type: z.literal("send"), conversation: z.string(), clientId: z.string().min(1).max(100) }),
	z.object({ type: z.literal("stop"), conversation: z.string() }),
	z.object({ type: z.literal("subscribe"), topics: z.array(z.string()).max(200) }),
]);
export type ClientFrame = z.input<typeof ClientFrame>;
