/** Words and contracts of the agent room. Types only: the agent can run in a test with a scripted model and nothing else. */
import type { Attachment } from "../../channels/channel.ts";
import type { Model, ModelErrorKind, ToolCall, Usage } from "../model/model.ts";
import type { Tool, ToolEffect, ToolResult } from "../tools/tool.ts";

/** What woke the agent. Travels with the event as data. */
export type Origin = "human" | "alarm" | "heartbeat" | "job" | "bot" | "mail-robot" | "tool";

/** What a person is to the agent; decides what they may cause. */
export type Tier = "master" | "trusted" | "known" | "stranger" | "group";

export interface PlanItem {
	text: string;
	done: boolean;
}

/** A message of this turn, as a person wrote it. */
export interface TurnMessage {
	id: string;
	text: string;
	/** Name as the model should see it; null for the master in a private conversation. */
	from: string | null;
	at: number;
	attachments: Attachment[];
	notes: string[];
}

/** One finished exchange of the conversation: a record of Memory.json. */
export interface Exchange {
	id: string;
	at: number;
	channel: string;
	from: string | null;
	said: string;
	replied: string;
	/** Digest of the tools used, one short line; absent if none. */
	tools?: string;
}

/** A named piece of the system prompt, in order, stable first. */
export interface PromptBlock {
	name: string;
	text: string;
}

/** A tool call of a step with what became of it. */
export interface CallRecord {
	call: ToolCall;
	/** Unique in the database: a model may repeat ids. */
	recordId: string;
	state: "open" | "started" | "done" | "failed" | "skipped" | "interrupted";
	/** As the model reads it: capped. */
	result: string | null;
	startedAt: number | null;
	endedAt: number | null;
	taint?: string;
	/** Files that the result brought; images among them are shown to the model during this turn. */
	attachments?: Attachment[];
}

/** One model call and the tools it asked for, as stored. Enough to build the requests that follow it. */
export interface StepRecord {
	/** From 1, over the whole turn. */
	step: number;
	round: number;
	text: string;
	reasoning: string;
	calls: CallRecord[];
	usage: Usage;
	model: string;
	modelName: string;
	callIds: string[];
	/** Messages that joined the turn after this step, before the next model call. */
	joined: TurnMessage[];
	/** A note of ours to the model after this step (a nudge, a new round, a loop warning). */
	note: string | null;
	startedAt: number;
	endedAt: number;
}

export interface TurnLimits {
	/** Steps in one round. */
	maxSteps: number;
	/** Rounds in one turn. */
	maxRounds: number;
	/** Characters of one stored tool result, and of all results of one step. */
	toolResultChars: number;
	stepResultChars: number;
	/** Characters of the whole request before old steps are folded; derived from the context window. */
	requestChars: number;
	maxOutputTokens?: number;
	temperature?: number;
}

export interface TurnInput {
	turnId: string;
	conversationId: string;
	channel: string;
	personId: string;
	tier: Tier;
	groupId: string | null;
	origin: Origin;
	/** The system prompt's blocks, stable first. */
	blocks: PromptBlock[];
	/** At most 8, oldest first, already windowed. */
	history: Exchange[];
	/** What woke this turn; at least one. */
	messages: TurnMessage[];
	/** Recalled memories for this message, put after the last exchange. */
	recalled: string[];
	/** Steps that are stored already (the turn goes on after a crash); empty for a new turn. */
	steps: StepRecord[];
	plan: PlanItem[];
	/** Model id that the person picked, or null. */
	model: string | null;
	limits: TurnLimits;
	timezone: string;
	locale: string;
}

/**
 * Where a turn writes what must not be lost. Every promise resolves only when the row is committed.
 */
export interface Journal {
	/** The model answered: the step with its calls, all `open`, is stored before any of them runs. */
	stepStored(step: StepRecord): Promise<void>;
	/** A tool with an outside effect is about to run. Durable before it resolves. */
	callStarted(turnId: string, recordId: string, at: number): Promise<void>;
	/** Result and effects in one transaction. `full` is the uncapped text when it was capped; answers the path told to the model, or null. */
	callFinished(
		turnId: string,
		recordId: string,
		outcome: { state: CallRecord["state"]; result: string; at: number; taint?: string; attachments: Attachment[]; effects: ToolEffect[] },
	): Promise<void>;
	/** Keeps the full text of a result that is cut, and answers the path under which `read_file` finds it. */
	keepFullText(turnId: string, recordId: string, text: string): Promise<string>;
	/** Messages of the same person that arrived meanwhile; they now belong to this turn and to `step`. */
	takeJoining(turnId: string, step: number): Promise<TurnMessage[]>;
	/** The plan as a person changed it in Plan.md since the agent wrote it; null when nobody did. */
	editedPlan?(turnId: string): Promise<PlanItem[] | null>;
	/** A note or joined messages were added to a stored step. */
	stepAmended(turnId: string, step: number, change: { note: string }): Promise<void>;
}

/** The tools of one turn: already filtered by what this person may use. */
export interface ToolBox {
	list(): Tool[];
	get(name: string): Tool | undefined;
	/** Called before a call runs: policy, approvals and hooks answer with a refusal for the model, or null. The same call may be asked about again after a crash. */
	gate?(call: ToolCall, turn: GateTurn): Promise<string | null>;
}

/** Who asks for a call, and where. */
export interface GateTurn extends Pick<TurnInput, "turnId" | "conversationId" | "personId" | "tier" | "groupId" | "origin"> {
	/** Sources that the turn has read. */
	tainted: string[];
	/** The call's own id in the database: the same after a crash. */
	recordId: string;
	/** The checked arguments as canonical JSON: two writings of one call are equal. */
	arguments: string;
}

export interface TurnDeps {
	model: Model;
	tools: ToolBox;
	journal: Journal;
	clock: { now(): number };
	/** Reads a stored attachment, for images that go to the model. */
	newId(): string;
}

/** Why a turn was ended by a guard rather than by the model. */
export type GuardKind = "same-call" | "alternating" | "no-news" | "unknown-tool" | "failures" | "empty-calls" | "steps" | "length";

/** How a turn ended. `reply` is what people read; empty with `silent` for an intended silence. */
export interface TurnOutcome {
	state: "done" | "failed" | "stopped";
	reply: string;
	/** True when the reply is a sentence of ours (an error, a guard), not the model's. */
	fromUs: boolean;
	silent: boolean;
	status: "done" | "blocked" | null;
	/** Where `finish` wants the reply; null = where the message came from. */
	deliverTo: { channel: string; to: string } | null;
	attachments: Attachment[];
	guard: GuardKind | null;
	error: { kind: ModelErrorKind | "internal"; message: string } | null;
	rounds: number;
	steps: number;
	usage: Usage;
	model: string | null;
	modelName: string | null;
	taint: { source: string; step: number }[];
	/** One line on the tools used, for Memory.json; null if none. */
	toolDigest: string | null;
}

/** Everything that happens in a turn, in order. The last one is `done`. */
export type TurnEvent =
	| { type: "step-started"; step: number; round: number; chars: number }
	| { type: "delta"; step: number; text: string }
	| { type: "thinking"; step: number }
	| { type: "restart"; step: number; model: string; reason: string }
	| { type: "step-finished"; record: StepRecord }
	| { type: "call-started"; step: number; recordId: string; call: ToolCall }
	| {
			type: "call-finished";
			step: number;
			recordId: string;
			call: ToolCall;
			state: CallRecord["state"];
			result: ToolResult;
			stored: string;
			ms: number;
	  }
	| { type: "plan"; items: PlanItem[] }
	| { type: "joined"; step: number; messages: TurnMessage[] }
	| { type: "round"; round: number; note: string }
	| { type: "folded"; steps: number; chars: number }
	| { type: "guard"; kind: GuardKind; detail: string }
	| { type: "prompt"; blocks: { name: string; chars: number }[]; repairs: string[] }
	| { type: "done"; outcome: TurnOutcome };
