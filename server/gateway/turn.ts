import type { Address } from "../../channels/channel.ts";
import type {
	Exchange,
	PromptBlock,
	ToolBox,
	TurnDeps,
	TurnEvent,
	TurnInput,
	TurnLimits,
	TurnMessage,
	TurnOutcome,
} from "../agent/types.ts";
import type { LiveBody, Message, ToolLine } from "../http/contract.ts";
import type { Memory, Recalled, Scope } from "../memory/memory.ts";
import type { Model } from "../model/model.ts";
import type { EventBus } from "../observe/bus.ts";
import type { Filter } from "../safety/filter.ts";
import type { Claim, MessageRow, NewOutbox, Store, TurnEnd } from "../store/store.ts";
import { createDeltas } from "./deltas.ts";
import { createJournal, type JournalOptions } from "./journal.ts";
import { leaseLost, type RunningLane } from "./lanes.ts";
import { sentence } from "./sentences.ts";

/** The settings that a turn reads when it begins. */
export interface TurnSettings {
	timezone: string;
	locale: string;
	limits: TurnLimits;
}

export interface TurnRunnerOptions {
	store: Store;
	bus: EventBus;
	filter: Filter;
	model: Model;
	memory: Memory;
	clock: { now(): number };
	newId(): string;
	/** The agent's loop. */
	runTurn(input: TurnInput, deps: TurnDeps, signal: AbortSignal): AsyncGenerator<TurnEvent, TurnOutcome>;
	settings(claim: Claim): TurnSettings;
	/** SOUL, Agent.md and the rules: stable from turn to turn. */
	blocks(claim: Claim): Promise<PromptBlock[]>;
	tools(claim: Claim): ToolBox;
	profile(claim: Claim): string;
	present: {
		message(row: MessageRow): Promise<Message>;
		tool(record: {
			recordId: string;
			step: number;
			call: { name: string; arguments: string };
			state: ToolLine["state"];
			result: string | null;
			ms: number | null;
		}): ToolLine;
	};
	journal: Pick<JournalOptions, "resolve" | "keepFullText">;
	/** Asked before a turn runs, and when the fuse stopped it on the way. Null: it may run. */
	admission(claim: Claim): Promise<Refusal | null>;
	kickDelivery(channel: string, account: string): void;
	/** The turn has ended and is stored; `outboxId` carries its reply, if it has one. */
	onEnded(ended: { turnId: string; messageIds: string[]; replyId: string | null; outboxId: string | null; channel: string }): void;
	log: {
		info(event: string, data?: Record<string, unknown>): void;
		warn(event: string, data?: Record<string, unknown>): void;
		error(event: string, data?: Record<string, unknown>): void;
	};
}

/** Why a turn may not run now: it waits until `until`, or is declined. `tell`: this person has not been told yet. */
export interface Refusal {
	policy: "wait" | "decline";
	until: number;
	sentence: string;
	tell: boolean;
}

/** How driving a turn ended; `why` is what its prompt was made of, when it came so far. */
interface Driven {
	outcome: TurnOutcome;
	why?: Record<string, unknown>;
}

const emptyUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };

/** Whose memory a claimed turn may use, and who reads along. */
export function scopeOf(claim: Claim): Scope {
	const { groupId } = claim.conversation;
	return {
		owner: groupId ? `group:${groupId}` : claim.turn.personId,
		conversationId: claim.conversation.id,
		audience: groupId ? "group" : "private",
	};
}

/** Waits until `work` succeeds: what a turn has done must be stored, however long the disk is full. Ends with the signal. */
async function insist<T>(work: () => Promise<T>, signal: AbortSignal, onError: (error: unknown) => void): Promise<T | null> {
	for (let delayMs = 200; ; delayMs = Math.min(delayMs * 2, 15_000)) {
		try {
			return await work();
		} catch (error) {
			onError(error);
			if (signal.aborted) return null;
			await new Promise<void>((resolve) => {
				const timer = setTimeout(done, delayMs);
				signal.addEventListener("abort", done, { once: true });
				function done() {
					clearTimeout(timer);
					signal.removeEventListener("abort", done);
					resolve();
				}
			});
		}
	}
}

/** Runs claimed turns: gathers what the agent needs, tells the bus what happens, writes the end in one transaction. */
export function createTurnRunner(options: TurnRunnerOptions): (claim: Claim, lane: RunningLane) => Promise<void> {
	const { store, bus, clock, newId, log } = options;
	/** Exchanges on their way into memory: the conversation's next turn must see them. */
	const remembering = new Map<string, Promise<void>>();

	async function input(claim: Claim, recalled: Recalled[], blocks: PromptBlock[], history: Exchange[]): Promise<TurnInput> {
		const { turn, conversation } = claim;
		const settings = options.settings(claim);
		const limits = { ...settings.limits };
		for (const row of claim.rows) {
			if (row.limits.maxSteps) limits.maxSteps = Math.min(limits.maxSteps, row.limits.maxSteps);
			if (row.limits.maxRounds) limits.maxRounds = Math.min(limits.maxRounds, row.limits.maxRounds);
		}
		return {
			turnId: turn.id,
			conversationId: conversation.id,
			channel: conversation.channel,
			personId: turn.personId,
			tier: turn.tier,
			groupId: conversation.groupId,
			origin: turn.origin,
			blocks,
			history,
			messages: claim.rows.map((row) => row.message),
			recalled: recalled.map((one) => one.text),
			steps: claim.steps,
			plan: turn.plan,
			model: claim.rows.findLast((row) => row.model)?.model ?? conversation.model,
			limits,
			timezone: settings.timezone,
			locale: settings.locale,
		};
	}

	async function gather(claim: Claim): Promise<{ made: TurnInput; why: Record<string, unknown> }> {
		const scope = scopeOf(claim);
		await remembering.get(claim.conversation.id);
		const said = claim.rows.map((row) => row.message.text).join("\n");
		const [base, remembered, history, recalled] = await Promise.all([
			options.blocks(claim),
			options.memory.blocks(scope),
			options.memory.history(scope),
			options.memory.recall(scope, said).catch((error: unknown) => {
				log.warn("memory.recall-failed", { error: (error as Error).message, turnId: claim.turn.id });
				return [];
			}),
		]);
		const made = await input(
			claim,
			recalled,
			[...base, ...remembered],
			history.filter((exchange) => exchange.id !== claim.turn.id),
		);
		const why = {
			blocks: [
				...made.blocks.map((block) => ({ name: block.name, chars: block.text.length })),
				{ name: "history", chars: history.reduce((sum, one) => sum + one.said.length + one.replied.length, 0) },
			],
			recalled: recalled.map((one) => ({
				text: one.text,
				score: one.score,
				at: new Date(one.at).toISOString(),
				source: one.source,
				by: one.by,
			})),
			picked: made.model,
		};
		return { made, why };
	}

	/** Tells the bus about one event of the turn. */
	function tell(claim: Claim, event: TurnEvent, deltas: ReturnType<typeof createDeltas>): void {
		const at = { conversation: claim.conversation.id, turnId: claim.turn.id };
		const tool = (
			step: number,
			recordId: string,
			call: { name: string; arguments: string },
			state: ToolLine["state"],
			result: string | null,
			ms: number | null,
		): LiveBody => ({
			type: "tool",
			...at,
			tool: options.present.tool({ recordId, step, call, state, result, ms }),
		});
		switch (event.type) {
			case "delta":
				deltas.push(event.text);
				return;
			case "restart":
				deltas.restart();
				bus.publish({ type: "restart", ...at, model: event.model, reason: event.reason });
				return;
			case "step-started":
				bus.publish({ type: "step", ...at, step: event.step, round: event.round, state: "started", text: null });
				return;
			case "thinking":
				bus.publish({ type: "step", ...at, step: event.step, round: 0, state: "thinking", text: null });
				return;
			case "step-finished": {
				deltas.end();
				const { record } = event;
				bus.publish({
					type: "step",
					...at,
					step: record.step,
					round: record.round,
					state: "finished",
					text: options.filter.check(record.text, options.profile(claim)).text,
				});
				bus.publish({ type: "usage", ...at, usage: { ...record.usage, calls: record.callIds.length } });
				return;
			}
			case "call-started":
				bus.publish(tool(event.step, event.recordId, event.call, "started", null, null));
				return;
			case "call-finished":
				bus.publish(tool(event.step, event.recordId, event.call, event.state, event.stored, event.ms));
				return;
			case "plan":
				bus.publish({ type: "plan", ...at, items: event.items });
				return;
			case "guard":
				log.warn("turn.guard", { ...at, kind: event.kind, detail: event.detail });
				return;
			case "folded":
				log.info("turn.folded", { ...at, steps: event.steps, chars: event.chars });
				return;
			case "prompt":
				if (event.repairs.length > 0) log.warn("turn.history-repaired", { ...at, repairs: event.repairs });
				return;
			case "round":
			case "joined":
			case "done":
				return;
		}
	}

	function replyRow(claim: Claim, outcome: TurnOutcome, text: string, role: "assistant" | "system"): NewOutbox {
		const { conversation, turn } = claim;
		const last = claim.rows.at(-1);
		const address: Address = last?.address ?? conversation.address;
		return {
			id: newId(),
			conversationId: conversation.id,
			turnId: turn.id,
			address,
			profile: options.profile(claim),
			text,
			attachments: outcome.attachments,
			at: clock.now(),
			message: {
				id: newId(),
				turnId: turn.id,
				role,
				model: outcome.fromUs ? null : outcome.model,
				modelName: outcome.fromUs ? null : outcome.modelName,
				usage: { ...outcome.usage, calls: outcome.steps },
			},
		};
	}

	async function directed(claim: Claim, outcome: TurnOutcome): Promise<NewOutbox | null> {
		if (outcome.silent || (outcome.reply === "" && outcome.attachments.length === 0)) return null;
		const row = replyRow(claim, outcome, outcome.reply, outcome.fromUs ? "system" : "assistant");
		if (!outcome.deliverTo) return row;
		const target = await options.journal.resolve(outcome.deliverTo.channel, outcome.deliverTo.to);
		if (!target || target.conversationId === claim.conversation.id) return row;
		return { ...row, address: target.address, profile: target.profile };
	}

	async function finish(
		claim: Claim,
		outcome: TurnOutcome,
		messageIds: string[],
		signal: AbortSignal,
		why?: Record<string, unknown>,
	): Promise<void> {
		const reply = await directed(claim, outcome);
		const end: TurnEnd = {
			state: outcome.state,
			rounds: outcome.rounds,
			usage: { ...outcome.usage, calls: outcome.steps },
			model: outcome.model,
			modelName: outcome.modelName,
			guard: outcome.guard,
			taint: outcome.taint,
			error: outcome.error ? `${outcome.error.kind}: ${outcome.error.message}` : null,
			at: clock.now(),
			...(why ? { why } : {}),
			reply,
		};
		const done = await insist(
			() => store.turns.end(claim.turn.id, end),
			signal,
			(error) => log.error("turn.not-stored", { turnId: claim.turn.id, error: (error as Error).message }),
		);
		if (!done) return;
		bus.publish({
			type: "turn",
			conversation: claim.conversation.id,
			turnId: claim.turn.id,
			state: outcome.state,
			origin: claim.turn.origin,
			model: outcome.model,
		});
		options.onEnded({
			turnId: claim.turn.id,
			messageIds,
			replyId: done.message?.id ?? null,
			outboxId: done.message ? (reply?.id ?? null) : null,
			channel: reply?.address.channel ?? claim.conversation.channel,
		});
		if (reply && done.message) options.kickDelivery(reply.address.channel, reply.address.account);
		if (outcome.state === "done" && !outcome.fromUs && done.message) keepExchange(claim, remember(claim, outcome, done.message));
	}

	function keepExchange(claim: Claim, work: Promise<void>): void {
		const mine = work.finally(() => {
			if (remembering.get(claim.conversation.id) === mine) remembering.delete(claim.conversation.id);
		});
		remembering.set(claim.conversation.id, mine);
	}

	async function remember(claim: Claim, outcome: TurnOutcome, reply: MessageRow): Promise<void> {
		const exchange = toExchange(
			claim.turn.id,
			claim.conversation.channel,
			claim.rows.map((row) => row.message),
			reply,
			outcome.toolDigest,
		);
		await options.memory
			.remember(scopeOf(claim), exchange)
			.catch((error: unknown) => log.error("memory.remember-failed", { turnId: claim.turn.id, error: (error as Error).message }));
	}

	/** The fuse stands in the way: the person is told once, and the turn waits where it is or ends with that sentence. */
	async function refuse(claim: Claim, refusal: Refusal, messageIds: string[], signal: AbortSignal): Promise<void> {
		if (refusal.policy === "decline")
			return finish(claim, failed(claim, refusal.sentence, "fuse", "the daily limit is reached"), messageIds, signal);
		if (refusal.tell && claim.turn.origin === "human") {
			const notice = replyRow(claim, failed(claim, refusal.sentence, "fuse", ""), refusal.sentence, "system");
			await store.outbox.add({ ...notice, turnId: null, message: notice.message && { ...notice.message, turnId: null, usage: null } });
			options.kickDelivery(notice.address.channel, notice.address.account);
		}
		await store.inbox.hold(claim.turn.id, refusal.until);
		log.info("turn.waits", { conversation: claim.conversation.id, turnId: claim.turn.id, until: new Date(refusal.until).toISOString() });
		bus.publish({
			type: "turn",
			conversation: claim.conversation.id,
			turnId: claim.turn.id,
			state: "queued",
			origin: claim.turn.origin,
			model: null,
		});
	}

	function failed(claim: Claim, reply: string, kind: "internal" | "fuse", error: string): TurnOutcome {
		return {
			state: "failed",
			reply,
			fromUs: true,
			silent: false,
			status: null,
			deliverTo: null,
			attachments: [],
			guard: null,
			error: { kind, message: error },
			rounds: claim.turn.rounds,
			steps: claim.steps.length,
			usage: emptyUsage,
			model: null,
			modelName: null,
			taint: [],
			toolDigest: null,
		};
	}

	/** Drives the loop; null when the turn left for a restart and goes on after it. */
	async function drive(claim: Claim, lane: RunningLane, messageIds: string[]): Promise<Driven | null> {
		const at = { conversation: claim.conversation.id, turnId: claim.turn.id };
		const deltas = createDeltas({
			filter: () => options.filter.stream(options.profile(claim)),
			send: (text) => bus.publish({ type: "delta", ...at, text }),
		});
		const journal = createJournal({
			store,
			turnId: claim.turn.id,
			clock,
			newId,
			...options.journal,
			onOutbox: options.kickDelivery,
			onJoined: (ids) => messageIds.push(...ids),
		});
		try {
			const { made, why } = await gather(claim);
			const deps: TurnDeps = { model: options.model, tools: options.tools(claim), journal, clock, newId };
			const events = options.runTurn(made, deps, lane.stop.signal);
			for await (const event of events) {
				tell(claim, event, deltas);
				// A turn of one step says why at its end; a longer one can be looked at while it runs.
				if (event.type === "step-finished" && event.record.step === 1 && event.record.calls.length > 0)
					await store.turns.setWhy(claim.turn.id, why);
				if (event.type === "done")
					return event.outcome.state === "stopped" && (lane.leave.aborted || lane.stop.signal.reason === leaseLost)
						? null
						: { outcome: event.outcome, why };
				// Everything up to here is stored: a turn that must leave does so now, and goes on from here.
				if (lane.leave.aborted && (event.type === "step-finished" || event.type === "call-finished")) return null;
			}
			throw new Error("the loop ended without an outcome");
		} catch (error) {
			if (lane.leave.aborted) return null;
			log.error("turn.failed", { ...at, error: (error as Error).stack ?? String(error) });
			return { outcome: failed(claim, sentence("internal", options.settings(claim).locale), "internal", (error as Error).message) };
		} finally {
			deltas.end();
		}
	}

	return async function run(claim, lane) {
		const { turn, conversation } = claim;
		const messageIds = claim.rows.map((row) => row.id);
		for (const step of claim.steps) messageIds.push(...step.joined.map((message) => message.id));
		bus.publish({ type: "turn", conversation: conversation.id, turnId: turn.id, state: "running", origin: turn.origin, model: null });
		const ending = lane.leave;
		if (claim.poisoned)
			return finish(
				claim,
				failed(claim, sentence("poisoned", options.settings(claim).locale), "internal", "the service stopped twice in this turn"),
				messageIds,
				ending,
			);
		const before = await options.admission(claim);
		if (before) return refuse(claim, before, messageIds, ending);
		const driven = await drive(claim, lane, messageIds);
		const onTheWay = driven?.outcome.error?.kind === "fuse" ? await options.admission(claim) : null;
		if (onTheWay) await refuse(claim, onTheWay, messageIds, ending);
		else if (driven) await finish(claim, driven.outcome, messageIds, ending, driven.why);
		else if (lane.stop.signal.reason !== leaseLost) await store.inbox.release(turn.id);
	};
}

/** The exchange that a finished turn was, as memory keeps it. */
export function toExchange(turnId: string, channel: string, said: TurnMessage[], reply: { text: string }, tools: string | null): Exchange {
	return {
		id: turnId,
		at: said[0]?.at ?? 0,
		channel,
		from: said[0]?.from ?? null,
		said: said.map((message) => message.text).join("\n\n"),
		replied: reply.text,
		...(tools ? { tools } : {}),
	};
}
