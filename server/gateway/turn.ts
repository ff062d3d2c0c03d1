import type { Address } from "../../channels/channel.ts";
import { anyOf } from "../agent/abort.ts";
import { addUsage } from "../agent/limits.ts";
import type { StepRecord, TurnDeps, TurnEvent, TurnInput, TurnMessage, TurnOutcome } from "../agent/types.ts";
import type { Message } from "../http/contract.ts";
import type { Model } from "../model/model.ts";
import type { EventBus } from "../observe/bus.ts";
import type { Filter } from "../safety/filter.ts";
import type { Claim, MessageRow, NewOutbox, OutboxRow, Store, TurnEnd } from "../store/store.ts";
import { createDeltas } from "./deltas.ts";
import { createGather, type GatherOptions, scopeOf, toExchange, type Why } from "./gather.ts";
import { insist, patient } from "./insist.ts";
import { createJournal, type JournalOptions } from "./journal.ts";
import { leaseLost, type RunningLane } from "./lanes.ts";
import { sentence } from "./sentences.ts";
import { createTell, type TellOptions } from "./tell.ts";

export interface TurnRunnerOptions extends GatherOptions, TellOptions {
	store: Store;
	bus: EventBus;
	filter: Filter;
	model: Model;
	clock: { now(): number };
	newId(): string;
	/** The agent's loop. */
	runTurn(input: TurnInput, deps: TurnDeps, signal: AbortSignal): AsyncGenerator<TurnEvent, TurnOutcome>;
	present: TellOptions["present"] & { message(row: MessageRow): Promise<Message> };
	journal: Pick<JournalOptions, "resolve" | "keepFullText" | "plan">;
	/** Asked before a turn runs, and when the fuse stopped it on the way. Null: it may run. */
	admission(claim: Claim): Promise<Refusal | null>;
	kickDelivery(channel: string, account: string): void;
	/** Whether whoever ends a turn may send its reply here without waiting in a lane. */
	sendsAtOnce(channel: string): boolean;
	/** Sends an outbox row that is claimed. */
	send(row: OutboxRow): void;
	/** The turn has ended and is stored; `outboxId` carries its reply, if it has one. */
	onEnded(ended: { turnId: string; messageIds: string[]; reply: MessageRow | null; outboxId: string | null; oneStep: boolean }): void;
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
	why?: Why;
	/** Its last step, when that has not been stored. */
	step: StepRecord | null;
}

const emptyUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" };

/** Calls of a turn that do not answer. */
const besides: ReadonlySet<string> = new Set(["memory", "embedding", "critique", "voice", "image"]);

/** Failures that may lie in what was said: kept, it would spoil the conversation's next requests too. */
const spoils: ReadonlySet<string> = new Set(["bad-request", "context-length", "protocol", "internal"]);

/**
 * Whether the conversation's next turn is to know of this one. What a person said stays said when they stop the answer, or when a
 * server is down; of what the agent does by itself only answers are kept.
 */
function isRemembered(claim: Claim, outcome: TurnOutcome): boolean {
	if (outcome.state === "done" && !outcome.fromUs) return true;
	return claim.turn.origin === "human" && !(outcome.error && spoils.has(outcome.error.kind));
}

/** Runs claimed turns: gathers what the agent needs, tells the bus what happens, writes the end in one transaction. */
export function createTurnRunner(options: TurnRunnerOptions): (claim: Claim, lane: RunningLane) => Promise<void> {
	const { store, bus, clock, newId, log } = options;
	/** Exchanges on their way into memory: the conversation's next turn must see them. */
	const remembering = new Map<string, Promise<void>>();
	const gather = createGather(options);
	const tell = createTell(options);

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

	/** A stopped call gave no reply to count: what the turn used, and of which model, is what its calls were settled with. */
	async function withSpent(turnId: string, outcome: TurnOutcome): Promise<TurnOutcome & { calls?: number }> {
		if (outcome.state !== "stopped") return outcome;
		const calls = (await store.calls.list({ turnId, limit: 500 })).filter((call) => !besides.has(call.source) && call.state !== "open");
		const last = calls[0];
		if (!last) return outcome;
		const used = calls.map((call) => call.usage).filter((usage) => usage.inputTokens + usage.outputTokens > 0);
		return {
			...outcome,
			usage: used.reduce<TurnOutcome["usage"] | null>(addUsage, null) ?? outcome.usage,
			model: last.model,
			modelName: last.modelName,
			calls: calls.length,
		};
	}

	async function finish(claim: Claim, { outcome: told, why, step }: Driven, said: TurnMessage[], signal: AbortSignal): Promise<void> {
		const outcome = await withSpent(claim.turn.id, told);
		const reply = await directed(claim, outcome);
		const end: TurnEnd = {
			state: outcome.state,
			rounds: outcome.rounds,
			usage: { ...outcome.usage, calls: Math.max(outcome.steps, outcome.calls ?? 0) },
			model: outcome.model,
			modelName: outcome.modelName,
			guard: outcome.guard,
			taint: outcome.taint,
			error: outcome.error ? `${outcome.error.kind}: ${outcome.error.message}` : null,
			at: clock.now(),
			...(why ? { why: { ...why } } : {}),
			step,
			reply,
			sendsReply: reply !== null && options.sendsAtOnce(reply.address.channel),
		};
		const stored = await insist(
			() => store.turns.end(claim.turn.id, end),
			() => signal,
			(error) => log.error("turn.not-stored", { turnId: claim.turn.id, error: (error as Error).message }),
		);
		if (!stored) return;
		const done = stored.value;
		bus.publish({
			type: "turn",
			conversation: claim.conversation.id,
			turnId: claim.turn.id,
			state: outcome.state,
			origin: claim.turn.origin,
			model: outcome.model,
			...(outcome.guard ? { guard: outcome.guard } : {}),
		});
		options.onEnded({
			turnId: claim.turn.id,
			messageIds: said.map((message) => message.id),
			reply: done.message,
			outboxId: done.message ? (reply?.id ?? null) : null,
			oneStep: outcome.state === "done" && outcome.steps <= 1 && outcome.toolDigest === null,
		});
		if (done.sending) options.send(done.sending);
		else if (reply && done.message) options.kickDelivery(reply.address.channel, reply.address.account);
		if (done.message && isRemembered(claim, outcome)) keepExchange(claim, remember(claim, outcome, said, done.message, signal));
	}

	function keepExchange(claim: Claim, work: Promise<void>): void {
		const mine = work.finally(() => {
			if (remembering.get(claim.conversation.id) === mine) remembering.delete(claim.conversation.id);
		});
		remembering.set(claim.conversation.id, mine);
	}

	async function remember(claim: Claim, outcome: TurnOutcome, said: TurnMessage[], reply: MessageRow, signal: AbortSignal): Promise<void> {
		// Our own sentences are not part of the talk; that there was no answer is.
		const replied = outcome.fromUs ? "" : reply.text;
		const exchange = toExchange(claim, options.saidOf(said), said[0], replied, outcome.toolDigest);
		const failed = (error: unknown) => log.error("memory.remember-failed", { turnId: claim.turn.id, error: (error as Error).message });
		// Only a restart would find it again: a disk that is full for a while must not make the next turns forget it.
		await patient(
			() => options.memory.remember(scopeOf(claim), exchange),
			() => signal,
			failed,
		)().catch(failed);
	}

	/** The fuse stands in the way: the person is told once, and the turn waits where it is or ends with that sentence. */
	async function refuse(claim: Claim, refusal: Refusal, said: TurnMessage[], signal: AbortSignal): Promise<void> {
		if (refusal.policy === "decline")
			return finish(claim, { outcome: failed(claim, refusal.sentence, "fuse", "the daily limit is reached"), step: null }, said, signal);
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
	async function drive(claim: Claim, lane: RunningLane, said: TurnMessage[]): Promise<Driven | null> {
		const at = { conversation: claim.conversation.id, turnId: claim.turn.id };
		const deltas = createDeltas({
			filter: () => options.filter.stream(options.profile(claim)),
			send: (text) => bus.publish({ type: "delta", ...at, text }),
		});
		let ended = null as ReturnType<typeof anyOf> | null;
		const journal = createJournal({
			store,
			turnId: claim.turn.id,
			conversationId: claim.conversation.id,
			onPlanFile: (error) => log.warn("turn.plan-file", { ...at, error: (error as Error).message }),
			clock,
			newId,
			resolve: options.journal.resolve,
			keepFullText: options.journal.keepFullText,
			plan: options.journal.plan,
			signal() {
				ended ??= anyOf([lane.stop.signal, lane.leave]);
				return ended.signal;
			},
			onWait: (error) => log.error("turn.step-not-stored", { ...at, error: (error as Error).message }),
			onOutbox: options.kickDelivery,
			onJoined: (messages) => said.push(...messages),
		});
		try {
			await remembering.get(claim.conversation.id);
			const { made, why } = await gather(claim);
			const deps: TurnDeps = { model: options.model, tools: options.tools(claim), journal, clock, newId };
			const events = options.runTurn(made, deps, lane.stop.signal);
			for await (const event of events) {
				tell(claim, event, deltas);
				if (event.type === "folded") why.folded = event.steps;
				if (event.type === "restart") why.model.reason = event.reason;
				// A turn of one step says why at its end; a longer one can be looked at while it runs.
				if (event.type === "step-finished" && event.record.step === 1 && event.record.calls.length > 0)
					await store.turns.setWhy(claim.turn.id, { ...why });
				if (event.type === "done") {
					const leaves = event.outcome.state === "stopped" && (lane.leave.aborted || lane.stop.signal.reason === leaseLost);
					if (!leaves) return { outcome: event.outcome, why, step: journal.lastWord() };
					if (lane.stop.signal.reason !== leaseLost) await journal.flush();
					return null;
				}
				// A turn that must leave does so when a step is stored, and goes on from there.
				if (lane.leave.aborted && (event.type === "step-finished" || event.type === "call-finished")) {
					await journal.flush();
					return null;
				}
			}
			throw new Error("the loop ended without an outcome");
		} catch (error) {
			if (lane.leave.aborted || lane.stop.signal.reason === leaseLost) return null;
			log.error("turn.failed", { ...at, error: (error as Error).stack ?? String(error) });
			const outcome = failed(claim, sentence("internal", options.settings(claim).locale), "internal", (error as Error).message);
			return { outcome, step: journal.lastWord() };
		} finally {
			deltas.end();
			ended?.end();
		}
	}

	return async function run(claim, lane) {
		const { turn, conversation } = claim;
		const said = [...claim.rows.map((row) => row.message), ...claim.steps.flatMap((step) => step.joined)];
		bus.publish({ type: "turn", conversation: conversation.id, turnId: turn.id, state: "running", origin: turn.origin, model: null });
		const ending = lane.leave;
		if (claim.poisoned)
			return finish(
				claim,
				{
					outcome: failed(
						claim,
						sentence("poisoned", options.settings(claim).locale),
						"internal",
						"the service stopped twice in this turn",
					),
					step: null,
				},
				said,
				ending,
			);
		const before = await options.admission(claim);
		if (before) return refuse(claim, before, said, ending);
		const driven = await drive(claim, lane, said);
		const onTheWay = driven?.outcome.error?.kind === "fuse" ? await options.admission(claim) : null;
		if (onTheWay) await refuse(claim, onTheWay, said, ending);
		else if (driven) await finish(claim, driven, said, ending);
		else if (lane.stop.signal.reason !== leaseLost) await store.inbox.release(turn.id);
	};
}
