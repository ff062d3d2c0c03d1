import { setMaxListeners } from "node:events";
import type { Channel, OutboundMessage, Receipt } from "../../channels/channel.ts";
import { anyOf } from "../agent/abort.ts";
import type { Filter, Verdict } from "../safety/filter.ts";
import type { OutboxRow, Store } from "../store/store.ts";
import { patient } from "./insist.ts";

export interface DeliveryOptions {
	store: Store;
	channel(id: string): Channel | undefined;
	filter: Filter;
	clock: { now(): number };
	/** What is sent in place of an answer that the filter blocks. */
	blockedText(): string;
	/** Told of every row whose state changed. */
	onSettled(row: OutboxRow): void;
	onError(error: unknown): void;
}

export interface Delivery {
	/** A row was added to this lane, or may be tried again. */
	kick(channel: string, account: string): void;
	/** Sends a row that is claimed already, beside the lane's others. */
	send(row: OutboxRow): void;
	/** Starts every lane that has rows. */
	start(): Promise<void>;
	/** Lets a send that is under way end, at most `graceMs`. */
	close(graceMs: number): Promise<void>;
}

const maxAttempts = 8;
/** Messages of different conversations that the page is shown at once. */
const shownTogether = 32;
const sendLimitMs = 60_000;

/** Wait before attempt n+1: 2 s, 4 s … at most 10 minutes; the platform's own word counts more. */
export function backoffMs(attempts: number, retryAfterMs?: number): number {
	return Math.max(retryAfterMs ?? 0, Math.min(600_000, 1000 * 2 ** attempts));
}

/** What a receipt makes of a row. Pure. */
export function decide(
	row: { attempts: number; error: string | null },
	receipt: Receipt,
	now: number,
): { state: OutboxRow["state"]; platformIds?: string[]; error?: string; notBefore?: number } {
	switch (receipt.state) {
		case "sent":
			return { state: "sent", platformIds: receipt.platformIds };
		case "unknown":
			// It may have arrived: once more at the most, and marked.
			return row.attempts <= 1
				? { state: "pending", error: receipt.reason, notBefore: now + backoffMs(row.attempts) }
				: { state: "unknown", error: receipt.reason };
		case "failed":
			if (receipt.permanent || row.attempts >= maxAttempts) return { state: "failed", error: receipt.reason };
			return { state: "pending", error: receipt.reason, notBefore: now + backoffMs(row.attempts, receipt.retryAfterMs) };
	}
}

/**
 * One sending lane per channel account. Sending starts from a row, passes the filter, and ends with a receipt in that row.
 */
export function createDelivery(options: DeliveryOptions): Delivery {
	const { store, clock } = options;
	/** `beside`: rows that are being sent without the lane; rows for the same places wait for them. */
	const lanes = new Map<string, { working: boolean; again: boolean; beside: number; heldUp: boolean; timer: NodeJS.Timeout | null }>();
	const closing = new AbortController();
	// Every message that is being sent listens to it.
	setMaxListeners(0, closing.signal);
	/** Showing on the page takes no time that could be limited. */
	const shown = { signal: closing.signal, end: () => undefined };
	const working = new Set<Promise<void>>();

	function outbound(row: OutboxRow, text: string): OutboundMessage {
		return {
			id: row.id,
			address: row.address,
			text,
			attachments: row.attachments,
			read: (attachment) => store.assets.read(attachment.sha256),
		};
	}

	async function settle(
		row: OutboxRow,
		change: { state: OutboxRow["state"]; platformIds?: string[]; error?: string; notBefore?: number; text?: string },
	): Promise<void> {
		// What became of a message is not known from anywhere else: a disk that is full for a while must not lose it.
		const receipt = {
			at: clock.now(),
			state: change.state,
			platformIds: change.platformIds,
			error: change.error,
			notBefore: change.notBefore,
			text: change.text,
		};
		await patient(
			() => store.outbox.settle(row.id, receipt),
			() => closing.signal,
			options.onError,
		)();
		row.state = change.state;
		row.platformIds = change.platformIds ?? row.platformIds;
		row.notBefore = change.notBefore ?? row.notBefore;
		row.error = change.error ?? null;
		row.text = change.text ?? row.text;
		options.onSettled(row);
	}

	async function attempt(row: OutboxRow): Promise<void> {
		// `released`: a person has looked at what the filter held and let it go.
		const verdict: Verdict =
			row.profile === "released" ? { verdict: "allow", text: row.text, matches: [] } : options.filter.check(row.text, row.profile);
		if (verdict.verdict === "hold") return settle(row, { state: "held", error: "held by the filter" });
		const text = verdict.verdict === "block" ? options.blockedText() : verdict.text;
		const channel = options.channel(row.channel);
		if (!channel) return settle(row, { state: "failed", error: `there is no channel "${row.channel}"` });
		// What leaves the machine must not be sent again because a power cut lost its row.
		if (channel.type !== "web") await store.durable();
		const limit = channel.type === "web" ? shown : anyOf([closing.signal], sendLimitMs);
		const receipt = await channel
			.send(outbound(row, text), limit.signal)
			.catch((error: unknown): Receipt => ({ state: "unknown", reason: (error as Error).message }))
			.finally(limit.end);
		await settle(row, { ...decide(row, receipt, clock.now()), ...(text === row.text ? {} : { text }) });
	}

	async function work(channel: string, account: string): Promise<void> {
		while (!closing.signal.aborted) {
			// A platform is spoken to one message after the other; showing on the page is not sending.
			const most = options.channel(channel)?.type === "web" ? shownTogether : 1;
			const rows = await store.outbox.claim(channel, account, clock.now(), most);
			if (rows.length === 0) break;
			await Promise.all(rows.map(attempt));
		}
		const lane = laneOf(channel, account);
		lane.heldUp = lane.beside > 0;
		const due = await store.outbox.nextDue(channel, account);
		if (due !== null && !closing.signal.aborted) wakeAt(channel, account, due);
	}

	function laneOf(channel: string, account: string) {
		const key = JSON.stringify([channel, account]);
		const lane = lanes.get(key) ?? { working: false, again: false, beside: 0, heldUp: false, timer: null };
		lanes.set(key, lane);
		return lane;
	}

	function wakeAt(channel: string, account: string, at: number): void {
		const lane = laneOf(channel, account);
		if (lane.timer) clearTimeout(lane.timer);
		lane.timer = setTimeout(() => kick(channel, account), Math.min(Math.max(at - clock.now(), 50), 60_000));
		lane.timer.unref();
	}

	function kick(channel: string, account: string): void {
		if (closing.signal.aborted) return;
		const lane = laneOf(channel, account);
		if (lane.working) {
			lane.again = true;
			return;
		}
		lane.working = true;
		const task = work(channel, account)
			.catch((error: unknown) => {
				options.onError(error);
				wakeAt(channel, account, clock.now() + 1000);
			})
			.finally(() => {
				lane.working = false;
				working.delete(task);
				if (lane.again) {
					lane.again = false;
					kick(channel, account);
				}
			});
		working.add(task);
	}

	function send(row: OutboxRow): void {
		const lane = laneOf(row.channel, row.account);
		lane.beside += 1;
		const task = attempt(row)
			.catch(options.onError)
			.finally(() => {
				working.delete(task);
				lane.beside -= 1;
				if (!lane.heldUp) return;
				lane.heldUp = false;
				kick(row.channel, row.account);
			});
		working.add(task);
	}

	return {
		kick,
		send,
		async start() {
			await store.outbox.recover(clock.now());
			for (const lane of await store.outbox.lanes()) kick(lane.channel, lane.account);
		},
		async close(graceMs) {
			const all = Promise.all(working);
			let timer: NodeJS.Timeout | undefined;
			await Promise.race([
				all,
				new Promise<void>((resolve) => {
					timer = setTimeout(resolve, graceMs);
				}),
			]);
			clearTimeout(timer);
			closing.abort();
			for (const lane of lanes.values()) if (lane.timer) clearTimeout(lane.timer);
			await Promise.all(working);
		},
	};
}
