/** The contract of a tool: what the model sees, what it may do, and how its effect is committed. */
import type { Attachment } from "../../channels/channel.ts";
import type { Origin, PlanItem, Tier } from "../agent/types.ts";
import type { ToolSchema } from "../model/model.ts";

export type Capability = "chat" | "memory" | "web" | "files" | "send" | "code" | "schedules" | "jobs" | "settings";

/** A row that a tool wants written. It is committed together with the tool's result, in one transaction. */
export type ToolEffect =
	| { type: "send"; channel: string; to: string; text: string; attachments: Attachment[] }
	| { type: "plan"; items: PlanItem[] }
	| { type: "schedule"; action: "create" | "cancel"; row: Record<string, unknown> }
	| { type: "fact"; action: "remember" | "update" | "forget"; row: Record<string, unknown> };

export interface ToolResult {
	/** What the model reads. Capped when stored. */
	text: string;
	isError?: boolean;
	effects?: ToolEffect[];
	/** Set when the result holds text from others (web page, mail, file): names the source and taints the turn. */
	taint?: string;
	/** Files the result shows to people (and images that the model sees in the next step). */
	attachments?: Attachment[];
	/** Ends the turn after this step (only `finish`). */
	finish?: { status: "done" | "blocked"; reply: string; channel?: string; to?: string };
}

export interface ToolContext {
	turnId: string;
	callId: string;
	conversationId: string;
	personId: string;
	tier: Tier;
	/** Null in a private conversation. */
	groupId: string | null;
	origin: Origin;
	timezone: string;
	locale: string;
	/** Ms since the epoch, from the one clock. */
	now(): number;
	/** Aborted by stop, time limit or shutdown. Every wait in a tool listens to it. */
	signal: AbortSignal;
	/** The turn's plan as it stands. */
	plan: PlanItem[];
}

export interface Tool extends ToolSchema {
	capability: Capability;
	/** Read-only tools of one step run in parallel and may run again after a crash. */
	readOnly: boolean;
	/**
	 * `row`: everything it does is in `effects`, so it is repeated safely after a crash.
	 * `outside`: recorded as started before it runs and never run again when found without a result.
	 */
	effect: "none" | "row" | "outside";
	/** `ask`: no call runs before the master has approved it. */
	approval?: "ask";
	/** What a call would touch, in its own words ("the memory with this text"), for the person who approves it. Null when there is no such thing. */
	about?(args: Record<string, unknown>, owner: { personId: string; groupId: string | null }): Promise<string | null>;
	/** Time limit of one run, ms. Default 60,000. */
	timeoutMs?: number;
	/**
	 * Runs one call. `args` has been parsed and checked against `parameters`. Bad input and failures that the model can mend
	 * are results with `isError`; throwing means a fault of ours and is told to the model without internals.
	 */
	run(args: Record<string, unknown>, context: ToolContext): Promise<ToolResult>;
}
