/** What the HTTP room is handed by the composition root. */
import type { Address, Channel } from "../../channels/channel.ts";
import type { EventBus } from "../observe/bus.ts";
import type { Filter } from "../safety/filter.ts";
import type { Store } from "../store/store.ts";
import type { Message, ModelEntry, ModelTestResult, SetupInfo, Status } from "./contract.ts";
import type { ApprovalRouteDeps } from "./routes/approvals.ts";
import type { LedgerRouteDeps } from "./routes/ledger.ts";
import type { MemoryRouteDeps } from "./routes/memory.ts";
import type { WorkspaceRouteDeps } from "./routes/workspace.ts";

/** A message of the master from the page, the API or the command line. */
export interface Submission {
	conversationId: string;
	text: string;
	attachments: { sha256: string; name?: string }[];
	model: string | null;
	clientId: string | null;
	limits: { maxSteps?: number; maxRounds?: number };
	replaces: string | null;
}

export interface GatewayDoor {
	/** Stores the message; resolves once it is durable. Throws `GatewayError` ("conversation-not-found", "empty-message", "attachment-not-found", "message-not-found", "stopping"). */
	submit(submission: Submission): Promise<{ messageId: string; turnId: string; duplicate: boolean }>;
	/** Resolves with the reply's message id and turn when the message's turn has ended; null on abort. */
	whenAnswered(messageId: string, signal: AbortSignal): Promise<{ replyId: string | null; turnId: string; reply?: Message } | null>;
	/** Ends the running and queued turns of a conversation. False when there was none. */
	stop(conversationId: string): Promise<boolean>;
	createConversation(title: string | null, channel: "web" | "api" | "cli"): Promise<{ id: string }>;
	/** The conversation of this name on the `api` channel, made when it does not exist. */
	namedConversation(name: string): Promise<{ id: string }>;
	removeConversation(id: string): Promise<boolean>;
	/** Wakes the delivery lane of an outbox row after a person's decision. */
	outboxChanged(row: { channel: string; account: string }): void;
	addressOf(conversationId: string): Promise<Address | null>;
}

export class GatewayError extends Error {
	readonly code: string;
	constructor(code: string, message: string) {
		super(message);
		this.name = "GatewayError";
		this.code = code;
	}
}

export interface ConfigDoor {
	/** The whole effective configuration as JSON, secrets masked. */
	read(): Record<string, unknown>;
	/** Checks and writes config.yaml (comments kept); a masked secret keeps the old value. Throws `ConfigInvalid`. Answers the keys that need a restart. */
	write(config: Record<string, unknown>): Promise<{ restartNeeded: string[] }>;
	/** Writes single keys (dotted path -> value), for the set-up. Same rules. */
	set(changes: Record<string, unknown>): Promise<{ restartNeeded: string[] }>;
}

export class ConfigInvalid extends Error {
	readonly errors: { key: string; line: number | null; message: string }[];
	constructor(errors: { key: string; line: number | null; message: string }[]) {
		super(errors.map((error) => `${error.key}: ${error.message}`).join("; "));
		this.name = "ConfigInvalid";
		this.errors = errors;
	}
}

export interface HttpDeps {
	store: Store;
	gateway: GatewayDoor;
	bus: EventBus;
	config: ConfigDoor;
	filter: Filter;
	channels(): Channel[];
	models: {
		/** Sends a small real request. Takes a configured id or an entry that is not saved. */
		test(input: { id: string } | ModelEntry, signal: AbortSignal): Promise<ModelTestResult>;
		/** What the API and the picker list: the configured chat models, or the demo model. */
		list(): { id: string; name: string; provider: string; kind: string }[];
	};
	setup: {
		info(): Promise<SetupInfo>;
		/** True and used up when the one-time code is right and no user exists yet. */
		redeem(code: string): Promise<boolean>;
		/** True when `redeem` would be; uses nothing up. Lets the wizard test a model before the account is made (header `X-OpenLani-Setup`). */
		check?(code: string): Promise<boolean>;
	};
	status(): Promise<Status>;
	/** The API token as it is now (environment, or the one in the home). */
	token(): string;
	clock: { now(): number };
	newId(): string;
	/** Directory of the built page, or null (API only). */
	pageDir: string | null;
	/** Origins and hosts that may talk to us besides loopback and what we listen on. */
	publicUrl(): string | null;
	/** The host that was configured to listen on, when it is a name: it is allowed in `Host` too. */
	listenHost?(): string | null;
	log: {
		info(event: string, data?: Record<string, unknown>): void;
		warn(event: string, data?: Record<string, unknown>): void;
		error(event: string, data?: Record<string, unknown>): void;
	};
	version: string;
	/** Usage, alerts, metrics and the fuse; without it those routes do not exist. */
	ledger?: LedgerRouteDeps;
	/** People's memories; without it those routes do not exist. */
	memory?: MemoryRouteDeps;
	/** Calls that wait for the master's word; without it those routes do not exist. */
	approvals?: ApprovalRouteDeps;
	/** The editor of the workspace's files; without it those routes do not exist. */
	workspace?: WorkspaceRouteDeps;
	/** Limits of live sockets; the defaults are for real use, tests make them small. */
	live?: { pingMs?: number; bufferBytes?: number; maxSockets?: number };
}
