import { setMaxListeners } from "node:events";
import type { Claim, Store } from "../store/store.ts";

export interface LaneOptions {
	store: Store;
	/** Names this process in leases. */
	owner: string;
	clock: { now(): number };
	/** Runs one claimed turn to its end. Never rejects. */
	run(claim: Claim, lane: RunningLane): Promise<void>;
	onError(error: unknown): void;
	/** Turns at once in all, and of those for background work. */
	maxTurns?: number;
	maxBackground?: number;
}

/** A turn in progress, as others may reach it. */
export interface RunningLane {
	readonly turnId: string;
	readonly conversationId: string;
	/** On whose behalf it runs. */
	readonly claim: Claim;
	/** Aborted by a person's stop, by the end of the service, and with `leaseLost` when somebody else has the conversation. */
	readonly stop: AbortController;
	/** Aborted when the service is told to end: the turn leaves at its next stored step and goes on after the restart. */
	readonly leave: AbortSignal;
}

/** `start` is for the store call that claims while it stores. */
export interface Room {
	start: { owner: string; leaseMs: number };
	begin(claim: Claim): void;
	giveBack(): void;
}

export interface Lanes {
	/** Something may be waiting: look soon. */
	kick(): void;
	/** Room for a turn that begins with its message; null when as many run as may. It is kept until one of the two is called. */
	room(): Room | null;
	running(): RunningLane[];
	of(conversationId: string): RunningLane | null;
	byTurn(turnId: string): RunningLane | null;
	/** Claims nothing more, lets running turns leave at a stored step, ends them after `graceMs`. */
	close(graceMs: number): Promise<void>;
}

/** Reason of an abort after which this process must not write to the turn any more. */
export const leaseLost = Object.assign(new Error("another process has taken the conversation over"), { name: "LeaveTurn" });

const leaseMs = 30_000;
/** How long turns that were told to end may take to do so. */
const endMs = 2_000;
/** Looks without being kicked: leases run out, and another process may have stored something. */
const idleLookMs = 5_000;

/**
 * One turn at a time per conversation, many conversations at once, people before background. What waits is in the
 * store; this only claims and runs.
 */
export function createLanes(options: LaneOptions): Lanes {
	const { store, owner, clock } = options;
	const maxTurns = options.maxTurns ?? 256;
	const maxBackground = options.maxBackground ?? 8;
	const running = new Map<string, { lane: RunningLane; background: boolean; done: Promise<void> }>();
	const leaving = new AbortController();
	// Every running turn listens to it, and there may be hundreds.
	setMaxListeners(0, leaving.signal);
	/** Turns that may be about to begin in `room`. */
	let promised = 0;
	let looking = false;
	let again = false;

	function start(claim: Claim): void {
		const lane: RunningLane = {
			turnId: claim.turn.id,
			conversationId: claim.conversation.id,
			claim,
			stop: new AbortController(),
			leave: leaving.signal,
		};
		const done = options
			.run(claim, lane)
			.catch(options.onError)
			.finally(() => {
				running.delete(lane.turnId);
				kick();
			});
		running.set(lane.turnId, { lane, background: claim.turn.origin !== "human", done });
	}

	async function look(): Promise<void> {
		while (running.size + promised < maxTurns && !leaving.signal.aborted) {
			const inBackground = [...running.values()].filter((one) => one.background).length;
			const claim = await store.inbox.claim({ owner, leaseMs, now: clock.now(), background: inBackground < maxBackground });
			if (!claim) return;
			start(claim);
		}
	}

	function kick(): void {
		if (leaving.signal.aborted) return;
		if (looking) {
			again = true;
			return;
		}
		looking = true;
		look()
			.catch(options.onError)
			.finally(() => {
				looking = false;
				if (again) {
					again = false;
					kick();
				}
			});
	}

	async function extend(): Promise<void> {
		for (const { lane } of running.values()) {
			const kept = await store.inbox.extend(lane.turnId, owner, clock.now() + leaseMs);
			// Somebody else has the conversation now: two must not answer it.
			if (!kept && running.has(lane.turnId)) lane.stop.abort(leaseLost);
		}
	}

	const extending = setInterval(() => void extend().catch(options.onError), leaseMs / 3);
	const idle = setInterval(kick, idleLookMs);
	extending.unref();
	idle.unref();

	return {
		kick,
		room() {
			if (leaving.signal.aborted || running.size + promised >= maxTurns) return null;
			promised += 1;
			return {
				start: { owner, leaseMs },
				begin(claim) {
					promised -= 1;
					if (leaving.signal.aborted) void store.inbox.release(claim.turn.id).catch(options.onError);
					else start(claim);
				},
				giveBack() {
					promised -= 1;
					kick();
				},
			};
		},
		running: () => [...running.values()].map((one) => one.lane),
		byTurn: (turnId) => running.get(turnId)?.lane ?? null,
		of: (conversationId) => [...running.values()].find((one) => one.lane.conversationId === conversationId)?.lane ?? null,
		async close(graceMs) {
			leaving.abort();
			clearInterval(idle);
			await within(
				graceMs,
				[...running.values()].map((one) => one.done),
			);
			for (const { lane } of running.values()) lane.stop.abort("shutdown");
			await within(
				endMs,
				[...running.values()].map((one) => one.done),
			);
			clearInterval(extending);
		},
	};
}

/** Waits for all of them, at most `ms`. */
async function within(ms: number, work: Promise<void>[]): Promise<void> {
	let timer: NodeJS.Timeout | undefined;
	const limit = new Promise<void>((resolve) => {
		timer = setTimeout(resolve, ms);
	});
	await Promise.race([Promise.all(work), limit]);
	clearTimeout(timer);
}
