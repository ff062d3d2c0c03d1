/**
 * Approvals: a call that needs the master's word is put aside as a row, and the decision comes back as a message that wakes the
 * agent. No turn waits in memory, so a restart at any instant changes nothing.
 */
import type { GateTurn, ToolBox } from "../agent/types.ts";
import type { LiveBody } from "../http/contract.ts";
import type { ApprovalRow, ApprovalScope, ApprovalStore } from "../store/approvals.ts";

/** What is to be done with a tool's calls. */
export type ApprovalPolicy = "allow" | "ask" | "deny";

/** A call that asks, as the rules see it. */
export interface AskedCall {
	tool: string;
	/** Canonical JSON. */
	arguments: string;
	callId: string;
	turnId: string;
	personId: string;
	origin: string;
	tainted: boolean;
}

export type Verdict = { do: "run" } | { do: "use"; id: string } | { do: "refuse" } | { do: "ask" };

const hourMs = 60 * 60_000;
const keptMs = 30 * 24 * hourMs;
/** Time is looked at this often; nothing is late by more. */
const tickMs = 15_000;
/** More than these wait in no conversation: whoever makes the agent ask cannot bury the master. */
export const mostPending = 20;

export const waitingText = "Waiting for the master's approval; tell the person so, do not call it again now.";
export const deniedText = "The master denied this call; it was not run. Tell the person so, do not call it again.";
export const automaticText =
	"Not run: this needs the master's approval, and work that starts by itself may not ask for it. Go on without it, and say that it was left out.";
export const crowdedText = "Not run: too many calls wait for the master's approval here. Tell the person so, do not call it again now.";

/** Woken by no person. */
export const isAutomatic = (origin: string): boolean =>
	origin === "heartbeat" || origin === "alarm" || origin === "job" || origin === "tool";

/** How long an allowance may be used: a single one at least an hour, so that a restart or a full day does not void it. */
export function validUntil(scope: ApprovalScope, decidedAt: number, expiresMs: number): number | null {
	if (scope === "conversation") return null;
	return decidedAt + (scope === "hour" ? hourMs : Math.max(hourMs, expiresMs));
}

/**
 * What the decisions made so far say to a call in their conversation. A decision counts for the person it was made for. A single
 * allowance is for exactly this call; one for the conversation or the hour is for the tool, but not for a call that is less to be
 * trusted than the one it was given for: one of a tainted turn, or of one that started by itself.
 */
export function judge(call: AskedCall, decisions: ApprovalRow[]): Verdict {
	const mine = decisions.filter((row) => row.tool === call.tool && row.personId === call.personId);
	const same = (row: ApprovalRow) => row.arguments === call.arguments;
	const allowed = mine.filter((row) => row.state === "allowed");
	if (allowed.some((row) => row.usedBy === call.callId)) return { do: "run" };
	const standing = allowed.some(
		(row) =>
			row.scope !== "once" && (same(row) || ((!call.tainted || row.tainted) && (!isAutomatic(call.origin) || isAutomatic(row.origin)))),
	);
	if (standing) return { do: "run" };
	const single = allowed.find((row) => row.scope === "once" && row.usedBy === null && same(row));
	if (single) return { do: "use", id: single.id };
	// In the turn that hears the denial, asking again would be nagging; later a person may want it again.
	if (mine.some((row) => row.state === "denied" && same(row) && (row.toldTurn === null || row.toldTurn === call.turnId)))
		return { do: "refuse" };
	return { do: "ask" };
}

const longest = 8_000;

/** The decision as the conversation hears it. */
export function decisionText(row: Pick<ApprovalRow, "tool" | "arguments" | "state">, locale: string): string {
	const call = `${row.tool} ${row.arguments.length > longest ? `${row.arguments.slice(0, longest).replace(/[\ud800-\udbff]$/, "")}…` : row.arguments}`;
	const zh = locale.startsWith("zh");
	if (row.state === "allowed") return zh ? `已批准：${call}。请继续。` : `Approved: ${call}. Go on.`;
	return zh ? `已拒绝：${call}。不要执行。` : `Denied: ${call}. Do not do it.`;
}

export interface Decision {
	allowed: boolean;
	tool: string;
	/** As they were asked for; cut when they are very long. */
	arguments: string;
}

const decisionForms: [RegExp, boolean][] = [
	[/^Approved: (\S+) (.*)\. Go on\.$/s, true],
	[/^已批准：(\S+) (.*)。请继续。$/s, true],
	[/^Denied: (\S+) (.*)\. Do not do it\.$/s, false],
	[/^已拒绝：(\S+) (.*)。不要执行。$/s, false],
];

/** What `decisionText` says; null for any other text. */
export function readDecision(text: string): Decision | null {
	for (const [form, allowed] of decisionForms) {
		const [, tool, args] = form.exec(text) ?? [];
		if (tool !== undefined && args !== undefined) return { allowed, tool, arguments: args };
	}
	return null;
}

export const decisionNote = "the master's decision on a call that waited for approval";

export interface Approvals {
	/** For `ToolBox.gate`. */
	gate: NonNullable<ToolBox["gate"]>;
	list(filter: { state: "pending" | "all"; limit: number; before?: string }): Promise<ApprovalRow[]>;
	get(id: string): Promise<ApprovalRow | null>;
	/** Stores the decision and wakes the conversation. Answers what it is instead when it cannot be decided any more; null when there is none. */
	decide(id: string, decision: "allow" | "deny", scope: ApprovalScope): Promise<{ decided: boolean; row: ApprovalRow } | null>;
	/** Tells what an earlier process decided and did not tell; then looks at the time now and then. */
	start(): Promise<void>;
	stop(): void;
	/** What is over is said to be; what could not be told is tried again. */
	tick(): Promise<void>;
}

export interface ApprovalOptions {
	store: ApprovalStore;
	/** Resolves when what was committed has reached the disk. */
	durable(): Promise<void>;
	publish(body: LiveBody): void;
	/** What is to be done with a tool's calls in this turn; "allow" for tools that ask nobody. */
	policy(tool: string, turn: GateTurn): ApprovalPolicy;
	settings(): { expiresS: number; automatic: "deny" | "ask" };
	/** The gateway's way in: stores the decision as a message of that conversation, once for each `externalId`. */
	resume(message: {
		conversationId: string;
		personId: string;
		tier: ApprovalRow["tier"];
		text: string;
		note: string;
		externalId: string;
	}): Promise<{
		turnId: string;
	}>;
	locale(): string;
	clock: { now(): number };
	newId(): string;
	log: {
		info(event: string, data?: Record<string, unknown>): void;
		error(event: string, data?: Record<string, unknown>): void;
	};
}

export function createApprovals(options: ApprovalOptions): Approvals {
	const { store, clock, newId, log } = options;
	let timer: ReturnType<typeof setInterval> | null = null;
	const telling = new Map<string, Promise<void>>();

	function show(row: ApprovalRow): void {
		options.publish({ type: "approval", id: row.id, state: row.state, conversation: row.conversationId, tool: row.tool });
	}

	async function expire(): Promise<void> {
		for (const row of await store.expire(clock.now())) show(row);
	}

	/** Told twice is stored once: the message's id is the decision's. */
	function tell(row: ApprovalRow): Promise<void> {
		const running = telling.get(row.id);
		if (running) return running;
		const mine = (async () => {
			try {
				const { turnId } = await options.resume({
					conversationId: row.conversationId,
					personId: row.personId,
					tier: row.tier,
					text: decisionText(row, options.locale()),
					note: decisionNote,
					externalId: `approval:${row.id}`,
				});
				await store.told(row.id, turnId);
			} catch (error) {
				// The decision stands; the next tick, or the next start, tells it.
				log.error("approval.not-told", { id: row.id, message: (error as Error).message });
			} finally {
				telling.delete(row.id);
			}
		})();
		telling.set(row.id, mine);
		return mine;
	}

	async function tick(): Promise<void> {
		await expire();
		for (const row of await store.untold()) await tell(row);
		await store.prune(clock.now() - keptMs);
	}

	return {
		async gate(call, turn) {
			const policy = options.policy(call.name, turn);
			if (policy === "allow") return null;
			if (policy === "deny") return "Not run: the settings do not allow this tool.";
			await expire();
			const asked: AskedCall = {
				tool: call.name,
				arguments: turn.arguments,
				callId: turn.recordId,
				turnId: turn.turnId,
				personId: turn.personId,
				origin: turn.origin,
				tainted: turn.tainted.length > 0,
			};
			const now = clock.now();
			const { conversationId } = turn;
			const verdict = judge(asked, await store.decided(conversationId, call.name, now, turn.recordId));
			if (verdict.do === "run") return null;
			if (verdict.do === "refuse") return deniedText;
			if (verdict.do === "use" && (await store.use(verdict.id, turn.recordId))) return null;
			const { expiresS, automatic } = options.settings();
			if (isAutomatic(turn.origin) && automatic === "deny") return automaticText;
			if ((await store.pending(conversationId)) >= mostPending) return crowdedText;
			const { row, asked: isNew } = await store.ask({
				id: newId(),
				tool: call.name,
				arguments: turn.arguments,
				conversationId,
				groupId: turn.groupId,
				turnId: turn.turnId,
				callId: turn.recordId,
				personId: turn.personId,
				tier: turn.tier,
				origin: turn.origin,
				tainted: asked.tainted,
				createdAt: now,
				expiresAt: now + expiresS * 1000,
			});
			if (isNew) {
				log.info("approval.asked", { id: row.id, tool: row.tool, conversation: conversationId, turnId: row.turnId });
				show(row);
			}
			return waitingText;
		},

		async list({ state, limit, before }) {
			await expire();
			return store.list({ limit, ...(state === "pending" ? { state } : {}), ...(before ? { before } : {}) });
		},

		get: (id) => store.get(id),

		async decide(id, decision, scope) {
			await expire();
			const at = clock.now();
			const expiresMs = options.settings().expiresS * 1000;
			const row = await store.decide(
				id,
				decision === "allow"
					? { state: "allowed", scope, validUntil: validUntil(scope, at, expiresMs), at }
					: { state: "denied", scope: null, validUntil: null, at },
			);
			if (!row) {
				const known = await store.get(id);
				return known && { decided: false, row: known };
			}
			await options.durable();
			log.info("approval.decided", { id, tool: row.tool, state: row.state, scope: row.scope, conversation: row.conversationId });
			show(row);
			await tell(row);
			return { decided: true, row };
		},

		async start() {
			await tick();
			timer = setInterval(() => {
				void tick().catch((error: unknown) => log.error("approval.tick-failed", { message: (error as Error).message }));
			}, tickMs);
			timer.unref();
		},

		stop() {
			if (timer) clearInterval(timer);
			timer = null;
		},

		tick,
	};
}
