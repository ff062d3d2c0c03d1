import type { LiveBody, LiveFrame, Message } from "../http/contract.ts";
import type { EventRow, EventStore } from "../store/store.ts";
import type { EventBus } from "./bus.ts";

export interface BusOptions {
	events: EventStore;
	clock: { now(): number };
	/** Messages as they are now, for replay: a kept `message` event names its message and does not copy it. */
	messages(ids: string[]): Promise<Map<string, Message>>;
	/** Told when events could not be written (disk full), once until it works again; the bus goes on in memory. */
	onError(error: unknown): void;
}

const columns = new Set(["seq", "at", "type", "conversation", "turnId"]);

/** Numbers are taken from the store in blocks this large, so that a restart never gives one out twice. */
const block = 100_000;
/** How long events wait to be written together. */
const flushMs = 50;
/** Most frames that one replay brings; older ones mean a fresh start for the client. */
const replayLimit = 20_000;

/** Kept in memory until their turn has ended, then void: the message holds the whole text. */
type Delta = Extract<LiveFrame, { type: "delta" }>;

function levelOf(body: LiveBody): EventRow["level"] {
	if (body.type === "log") return body.level;
	if (body.type === "alert") return "warn";
	return body.type === "step" || body.type === "tool" || body.type === "plan" || body.type === "usage" ? "debug" : "info";
}

/** Frames that speak to one socket or of a passing state are not kept. */
function isKept(body: LiveBody): boolean {
	switch (body.type) {
		case "hello":
		case "ack":
		case "refused":
		case "delta":
		case "status":
			return false;
		case "log":
			return body.level !== "trace" && body.level !== "debug";
		default:
			return true;
	}
}

/** What has no column of its own. */
function bodyOf(frame: LiveFrame): Record<string, unknown> {
	if (frame.type === "message") return { message: frame.message.id };
	const body: Record<string, unknown> = {};
	for (const [name, value] of Object.entries(frame)) if (!columns.has(name)) body[name] = value;
	return body;
}

function toRow(frame: LiveFrame, at: number): EventRow {
	const { seq, type, conversation = null, turnId = null } = frame as LiveFrame & { conversation?: string | null; turnId?: string | null };
	return { seq, at, type, level: levelOf(frame), conversationId: conversation, turnId, body: bodyOf(frame) };
}

/** Opens the bus. Its numbers go on above all that were given out before. */
export async function createBus(options: BusOptions): Promise<EventBus> {
	const { events, clock } = options;
	/** Each with the last number before it came. */
	const listeners = new Map<(frame: LiveFrame) => void, number>();
	/** What was said in this round of the event loop. */
	let said: { frame: LiveFrame; at: number }[] = [];
	let delivering = false;
	const deltas = new Map<string, Delta[]>();
	let { from: next } = await events.reserve(block);
	const first = next;
	let reservedTo = next + block - 1;
	let reserving: Promise<void> | null = null;
	let waiting: EventRow[] = [];
	let timer: NodeJS.Timeout | null = null;
	let writing: Promise<void> = Promise.resolve();
	let isFailing = false;
	/** The moment of the last frame as it is written: many frames share one. */
	let moment = { at: Number.NaN, text: "" };

	/** To tell of it is an event of its own, and would fail next. */
	function failed(error: unknown): void {
		if (isFailing) return;
		isFailing = true;
		options.onError(error);
	}

	function reserveMore(): void {
		reserving ??= events
			.reserve(block)
			.then((more) => {
				reservedTo = more.from + block - 1;
			})
			.catch(failed)
			.finally(() => {
				reserving = null;
			});
	}

	function write(): Promise<void> {
		if (timer) clearTimeout(timer);
		timer = null;
		const rows = waiting;
		waiting = [];
		if (rows.length > 0) {
			writing = writing
				.then(async () => {
					for (let at = 0; at < rows.length; at += 200) await events.append(rows.slice(at, at + 200));
					isFailing = false;
				})
				.catch(failed);
		}
		return writing;
	}

	function keep(frame: LiveFrame, at: number): void {
		if (frame.type === "delta") {
			const list = deltas.get(frame.turnId);
			if (list) list.push(frame);
			else deltas.set(frame.turnId, [frame]);
			return;
		}
		if (frame.type === "restart" || (frame.type === "turn" && frame.state !== "running" && frame.state !== "queued"))
			deltas.delete(frame.turnId);
		if (!isKept(frame)) return;
		waiting.push(toRow(frame, at));
		timer ??= setTimeout(() => void write(), flushMs).unref();
	}

	function deliver(): void {
		// What a listener says comes after what the others have yet to hear.
		if (delivering) return;
		delivering = true;
		try {
			for (const { frame, at } of said) {
				keep(frame, at);
				for (const [listener, after] of listeners) {
					if (frame.seq <= after) continue;
					try {
						listener(frame);
					} catch (error) {
						options.onError(error);
					}
				}
			}
		} finally {
			said = [];
			delivering = false;
		}
	}

	async function hydrate(rows: EventRow[]): Promise<LiveFrame[]> {
		const ids = rows.filter((row) => row.type === "message").map((row) => String(row.body.message));
		const messages = ids.length > 0 ? await options.messages(ids) : new Map<string, Message>();
		return rows.flatMap((row) => {
			const base = { seq: row.seq, at: new Date(row.at).toISOString(), type: row.type };
			if (row.type === "message") {
				const message = messages.get(String(row.body.message));
				return message ? [{ ...base, conversation: row.conversationId, message } as LiveFrame] : [];
			}
			const named = row.type === "log" || row.type === "usage" || row.conversationId !== null ? { conversation: row.conversationId } : {};
			const turn = row.type === "log" || row.type === "usage" || row.turnId !== null ? { turnId: row.turnId } : {};
			return [{ ...base, ...named, ...turn, ...row.body } as unknown as LiveFrame];
		});
	}

	return {
		publish(body) {
			const at = clock.now();
			if (at !== moment.at) moment = { at, text: new Date(at).toISOString() };
			const frame = { seq: next, at: moment.text, ...body } as LiveFrame;
			next += 1;
			if (reservedTo - next < block / 2) reserveMore();
			if (said.length === 0) setImmediate(deliver);
			said.push({ frame, at });
			return frame;
		},
		deliver,
		seq: () => next - 1,
		subscribe(listener) {
			listeners.set(listener, next - 1);
			return () => listeners.delete(listener);
		},
		async replay(since) {
			deliver();
			await write();
			const upTo = next - 1;
			const rows = await events.list({ after: since, limit: replayLimit + 1 });
			const oldest = await events.oldest();
			const reset =
				since > upTo ||
				rows.length > replayLimit ||
				(since > 0 && since < first && oldest > since + 1 && rows.length > 0 && (rows[0]?.seq ?? 0) === oldest);
			if (reset) return { frames: [], reset: true };
			const live = [...deltas.values()].flat().filter((frame) => frame.seq > since);
			const frames = [...(await hydrate(rows)), ...live].sort((one, other) => one.seq - other.seq);
			return { frames, reset: false };
		},
		flush() {
			deliver();
			return write();
		},
		async close() {
			deliver();
			await write();
			await reserving;
			listeners.clear();
		},
	};
}
