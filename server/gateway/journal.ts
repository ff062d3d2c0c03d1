import type { Address } from "../../channels/channel.ts";
import type { Journal, PlanItem, StepRecord, TurnMessage } from "../agent/types.ts";
import type { NewOutbox, Store } from "../store/store.ts";
import type { ToolEffect } from "../tools/tool.ts";
import { patient } from "./insist.ts";

export interface JournalOptions {
	store: Store;
	turnId: string;
	clock: { now(): number };
	newId(): string;
	/** Where `send_message` to this channel and place goes; null when there is no such channel. */
	resolve(channel: string, to: string): Promise<{ address: Address; conversationId: string | null; profile: string } | null>;
	/** Writes the uncapped text of a result into the work area and answers its path there. */
	keepFullText(recordId: string, text: string): Promise<string>;
	conversationId: string;
	/** `Plan.md` of a conversation. */
	plan: { write(conversationId: string, items: PlanItem[]): Promise<void>; edited(conversationId: string): Promise<PlanItem[] | null> };
	/** The plan's file could not be written or read; the plan itself is in the store. */
	onPlanFile(error: unknown): void;
	/** A row was added to this lane. */
	onOutbox(channel: string, account: string): void;
	/** Ends the waiting for a full disk. Asked for when there is such a wait: most turns never have one. */
	signal(): AbortSignal;
	/** A step could not be stored yet. */
	onWait(error: unknown): void;
	/** Called when messages joined the turn. */
	onJoined(messages: TurnMessage[]): void;
}

/** The journal of one turn, on the store. The turn's last word is stored with the turn's end, in one transaction. */
export interface TurnJournal extends Journal {
	/** The last word, when it has not been stored: whoever ends the turn stores it. */
	lastWord(): StepRecord | null;
	/** Stores the last word: the turn leaves without its end. */
	flush(): Promise<void>;
}

export function createJournal(options: JournalOptions): TurnJournal {
	const { store, turnId, clock, newId } = options;
	let lastWord: StepRecord | null = null;

	async function outboxRow(effect: Extract<ToolEffect, { type: "send" }>): Promise<NewOutbox> {
		const target = await options.resolve(effect.channel, effect.to);
		if (!target) throw new Error(`there is no channel "${effect.channel}"`);
		return {
			id: newId(),
			conversationId: target.conversationId,
			turnId,
			address: target.address,
			profile: target.profile,
			text: effect.text,
			attachments: effect.attachments,
			at: clock.now(),
			message: target.conversationId ? { id: newId(), turnId: null, role: "assistant", model: null, modelName: null, usage: null } : null,
		};
	}

	/** A step was paid for, and a tool may have run: a disk that is full for a while must not make them undone. */
	const stored = <T>(work: () => Promise<T>): Promise<T> => patient(work, options.signal, options.onWait)();

	async function flush(): Promise<void> {
		const step = lastWord;
		lastWord = null;
		if (step) await stored(() => store.turns.stepStored(turnId, step));
	}

	return {
		lastWord: () => lastWord,
		flush,
		async stepStored(step) {
			await flush();
			lastWord = step;
			// An answer without calls and without a note of ours is what the turn ends with.
			if (step.calls.length > 0 || step.note !== null) await flush();
		},
		async callStarted(_turnId, recordId, at) {
			await stored(() => store.turns.callStarted(recordId, at));
			await store.durable();
		},
		async callFinished(_turnId, recordId, outcome) {
			const sends = outcome.effects.filter((effect) => effect.type === "send");
			const outbox: NewOutbox[] = [];
			for (const effect of sends) outbox.push(await outboxRow(effect));
			const first = await stored(() => store.turns.callFinished(turnId, recordId, { ...outcome, outbox }));
			if (first) for (const row of outbox) options.onOutbox(row.address.channel, row.address.account);
			for (const effect of outcome.effects)
				if (effect.type === "plan") await options.plan.write(options.conversationId, effect.items).catch(options.onPlanFile);
		},
		async editedPlan() {
			try {
				const edited = await options.plan.edited(options.conversationId);
				if (edited) await store.turns.setPlan(turnId, edited);
				return edited;
			} catch (error) {
				options.onPlanFile(error);
				return null;
			}
		},
		keepFullText: (_turnId, recordId, text) => options.keepFullText(recordId, text),
		async takeJoining(_turnId, step) {
			await flush();
			const messages = await stored(() => store.turns.takeJoining(turnId, step, clock.now()));
			if (messages.length > 0) options.onJoined(messages);
			return messages;
		},
		async stepAmended(_turnId, step, change) {
			await flush();
			await stored(() => store.turns.stepAmended(turnId, step, change));
		},
	};
}
