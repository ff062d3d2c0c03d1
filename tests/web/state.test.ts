import { describe, expect, it } from "vitest";
import type { LiveBody, LiveFrame, Message, Problem, ToolLine } from "../../server/http/contract.ts";
import {
	activeTurn,
	type ChatAction,
	type ChatState,
	chatReducer,
	emptyChat,
	emptyThread,
	entriesOf,
	type Pending,
	type Thread,
	toSendFrame,
} from "../../web/src/features/chat/state.ts";

const conversation = "c1";

function message(id: string, part: Partial<Message> = {}): Message {
	return {
		id,
		conversationId: conversation,
		role: "user",
		text: `text of ${id}`,
		at: `2026-11-30T10:00:0${id.at(-1)}.000Z`,
		from: null,
		model: null,
		modelName: null,
		turnId: null,
		attachments: [],
		delivery: null,
		clientId: null,
		usage: null,
		tools: [],
		plan: [],
		superseded: false,
		...part,
	};
}

function pending(clientId: string, part: Partial<Pending> = {}): Pending {
	return {
		clientId,
		conversation,
		text: "hello",
		attachments: [],
		model: null,
		replaces: null,
		at: "2026-11-30T10:00:09.000Z",
		messageId: null,
		refused: null,
		...part,
	};
}

/** Numbers the bodies from `first` on, as the server does. */
function frames(first: number, ...bodies: LiveBody[]): LiveFrame[] {
	return bodies.map((body, index) => ({ seq: first + index, at: "2026-11-30T10:00:00.000Z", ...body }));
}

function apply(state: ChatState, ...actions: ChatAction[]): ChatState {
	return actions.reduce(chatReducer, state);
}

function feed(state: ChatState, list: LiveFrame[]): ChatState {
	return apply(state, { type: "frames", frames: list });
}

const page = (messages: Message[], part: { hasMore?: boolean; older?: boolean } = {}): ChatAction => ({
	type: "page",
	conversation,
	messages,
	hasMore: false,
	older: false,
	...part,
});
const delta = (text: string, turnId = "t1"): LiveBody => ({ type: "delta", conversation, turnId, text });
const turn = (state: "queued" | "running" | "done" | "failed" | "stopped", turnId = "t1"): LiveBody => ({
	type: "turn",
	conversation,
	turnId,
	state,
	origin: "human",
	model: null,
});
const step = (number: number, state: "started" | "thinking" | "finished", text: string | null = null): LiveBody => ({
	type: "step",
	conversation,
	turnId: "t1",
	step: number,
	round: 1,
	state,
	text,
});
const arrives = (one: Message): LiveBody => ({ type: "message", conversation, message: one });
const tool = (recordId: string, number: number, state: ToolLine["state"]): LiveBody => ({
	type: "tool",
	conversation,
	turnId: "t1",
	tool: { recordId, step: number, name: "read_file", arguments: "{}", state, result: null, ms: null },
});
const thread = (state: ChatState): Thread => state.threads[conversation] ?? emptyThread;
const shown = (state: ChatState) => entriesOf(thread(state)).map((entry) => entry.key);
const problem: Problem = { type: "about:blank", title: "No", status: 400, code: "empty-message" };

describe("messages", () => {
	it("keeps one of each id, in order of time then id, whatever order they come in", () => {
		const state = feed(
			emptyChat,
			frames(1, arrives(message("m3")), arrives(message("m1")), arrives(message("m2")), arrives(message("m1", { text: "changed" }))),
		);
		expect(thread(state).messages.map(({ id, text }) => [id, text])).toEqual([
			["m1", "changed"],
			["m2", "text of m2"],
			["m3", "text of m3"],
		]);
	});

	it("applies a frame once: what is replayed after a reconnect changes nothing", () => {
		const list = frames(1, turn("running"), step(1, "started"), delta("Hel"), delta("lo"));
		const once = feed(emptyChat, list);
		expect(thread(once).turns.t1?.text).toBe("Hello");
		expect(feed(once, list)).toBe(once);
		expect(thread(feed(once, [...list, ...frames(5, delta("!"))])).turns.t1?.text).toBe("Hello!");
	});

	it("does not let a late page undo a fresher frame or bring back what was superseded", () => {
		const state = apply(
			feed(
				emptyChat,
				frames(1, arrives(message("m1", { delivery: "sent", role: "assistant" })), {
					type: "superseded",
					conversation,
					messageIds: ["m2"],
				}),
			),
			page([message("m1", { delivery: "pending", role: "assistant" }), message("m2")]),
		);
		expect(thread(state).messages.map(({ id, delivery }) => [id, delivery])).toEqual([["m1", "sent"]]);
	});

	it("puts earlier pages in front and knows when there are no more", () => {
		let state = apply(emptyChat, page([message("m5"), message("m6")], { hasMore: true }));
		expect(thread(state).hasMore).toBe(true);
		state = apply(state, page([message("m3"), message("m4")], { older: true, hasMore: false }));
		expect(thread(state).messages.map(({ id }) => id)).toEqual(["m3", "m4", "m5", "m6"]);
		expect(thread(state).hasMore).toBe(false);
	});

	it("takes superseded messages out, with what their turn showed", () => {
		let state = feed(
			emptyChat,
			frames(
				1,
				arrives(message("m1", { turnId: "t1" })),
				turn("running"),
				step(1, "started"),
				tool("r1", 1, "done"),
				delta("old"),
				turn("stopped"),
			),
		);
		expect(shown(state)).toEqual(["m1", "turn-t1"]);
		state = feed(state, frames(20, { type: "superseded", conversation, messageIds: ["m1"] }));
		expect(shown(state)).toEqual([]);
	});

	it("shows nothing of an answer that a replay brings as taken back already", () => {
		const state = feed(
			emptyChat,
			frames(
				1,
				turn("running"),
				step(1, "started"),
				tool("r1", 1, "done"),
				turn("done"),
				arrives(message("m2", { role: "assistant", turnId: "t1", superseded: true })),
			),
		);
		expect(shown(state)).toEqual([]);
	});

	it("forgets a deleted conversation", () => {
		const state = feed(
			emptyChat,
			frames(1, arrives(message("m1")), { type: "conversation", conversation, change: "deleted", value: null }),
		);
		expect(state.threads).toEqual({});
	});
});

describe("a turn", () => {
	it("joins deltas in the order of their numbers and replaces them by the stored message", () => {
		let state = feed(
			emptyChat,
			frames(1, arrives(message("m1", { turnId: "t1" })), turn("running"), step(1, "started"), delta("The "), delta("answer")),
		);
		expect(entriesOf(thread(state)).at(-1)).toMatchObject({ kind: "turn", turn: { text: "The answer" } });
		state = feed(
			state,
			frames(
				6,
				step(1, "finished", "The answer"),
				arrives(message("m2", { role: "assistant", text: "The answer.", turnId: "t1" })),
				turn("done"),
			),
		);
		expect(thread(state).turns.t1?.text).toBe("");
		expect(entriesOf(thread(state)).map((entry) => [entry.kind, entry.key])).toEqual([
			["message", "m1"],
			// The same key as the streaming turn had: the element stays.
			["message", "turn-t1"],
		]);
		expect(activeTurn(thread(state))).toBeNull();
	});

	it("shows the answer once when the end of the turn comes before its message", () => {
		let state = feed(emptyChat, frames(1, turn("running"), step(1, "started"), delta("Hi"), step(1, "finished", "Hi"), turn("done")));
		expect(shown(state)).toEqual(["turn-t1"]);
		state = feed(state, frames(6, arrives(message("m2", { role: "assistant", text: "Hi", turnId: "t1" }))));
		expect(shown(state)).toEqual(["turn-t1"]);
		expect(entriesOf(thread(state))[0]?.kind).toBe("message");
	});

	it("voids what was streamed of a step that is begun anew", () => {
		const state = feed(
			emptyChat,
			frames(
				1,
				turn("running"),
				step(1, "started"),
				delta("half a sen"),
				{ type: "restart", conversation, turnId: "t1", model: "backup", reason: "the first model broke off" },
				delta("A whole sentence"),
			),
		);
		expect(thread(state).turns.t1).toMatchObject({ text: "A whole sentence", model: "backup", restarted: "the first model broke off" });
	});

	it("keeps what was said before the tools and starts the next step empty", () => {
		const state = feed(
			emptyChat,
			frames(
				1,
				turn("running"),
				step(1, "started"),
				delta("Let me look."),
				step(1, "finished", "Let me look."),
				tool("r1", 1, "started"),
				tool("r1", 1, "done"),
				tool("r2", 1, "done"),
				step(2, "started"),
				delta("Found."),
			),
		);
		expect(thread(state).turns.t1).toMatchObject({ said: [{ step: 1, text: "Let me look." }], text: "Found.", step: 2 });
		expect(thread(state).turns.t1?.tools.map(({ recordId, state: of }) => [recordId, of])).toEqual([
			["r1", "done"],
			["r2", "done"],
		]);
	});

	it("goes on streaming below a message that the agent sent on its way", () => {
		const state = feed(
			emptyChat,
			frames(
				1,
				turn("running"),
				step(1, "started"),
				arrives(message("m2", { role: "assistant", turnId: "t1" })),
				step(2, "started"),
				delta("And now"),
			),
		);
		expect(entriesOf(thread(state)).map((entry) => [entry.kind, entry.key])).toEqual([
			["message", "m2"],
			["turn", "turn-t1"],
		]);
	});

	it("takes no more words after its end", () => {
		const state = feed(emptyChat, frames(1, turn("running"), delta("a"), turn("stopped"), delta("b")));
		expect(thread(state).turns.t1?.text).toBe("a");
	});

	it("follows the plan and is active until it is over", () => {
		let state = feed(
			emptyChat,
			frames(1, turn("queued"), { type: "plan", conversation, turnId: "t1", items: [{ text: "one", done: false }] }),
		);
		expect(activeTurn(thread(state))?.state).toBe("queued");
		state = feed(state, frames(3, turn("running"), { type: "plan", conversation, turnId: "t1", items: [{ text: "one", done: true }] }));
		expect(thread(state).turns.t1?.plan).toEqual([{ text: "one", done: true }]);
		state = feed(state, frames(5, turn("failed")));
		expect(activeTurn(thread(state))).toBeNull();
	});
});

describe("our own messages", () => {
	it("stand at the end until their row arrives, by ack or by client id, and are never doubled", () => {
		let state = apply(emptyChat, { type: "send", pending: pending("k1") });
		expect(shown(state)).toEqual(["k1"]);
		state = feed(state, frames(1, { type: "ack", clientId: "k1", messageId: "m1", turnId: "t1" }));
		expect(shown(state)).toEqual(["k1"]);
		state = feed(state, frames(2, arrives(message("m1", { clientId: "k1" }))));
		expect(entriesOf(thread(state)).map((entry) => [entry.kind, entry.key])).toEqual([["message", "k1"]]);
		// The ack of a second, repeated send.
		state = feed(
			apply(state, { type: "send", pending: pending("k1") }),
			frames(3, { type: "ack", clientId: "k1", messageId: "m1", turnId: "t1" }),
		);
		expect(shown(state)).toEqual(["k1"]);
	});

	it("are found in a page after a reconnect that lost the ack", () => {
		const state = apply(emptyChat, { type: "send", pending: pending("k1") }, page([message("m1", { clientId: "k1" })]));
		expect(entriesOf(thread(state)).map((entry) => entry.kind)).toEqual(["message"]);
	});

	it("can be refused, sent again under the same id, and discarded", () => {
		let state = feed(apply(emptyChat, { type: "send", pending: pending("k1") }), frames(1, { type: "refused", clientId: "k1", problem }));
		expect(thread(state).pending[0]?.refused?.code).toBe("empty-message");
		state = apply(state, { type: "send", pending: pending("k1") });
		expect(thread(state).pending).toHaveLength(1);
		expect(thread(state).pending[0]?.refused).toBeNull();
		state = apply(state, { type: "discard", conversation, clientId: "k1" });
		expect(shown(state)).toEqual([]);
	});

	it("hide what they replace at once, and give it back when they are refused", () => {
		let state = apply(
			emptyChat,
			page([message("m1"), message("m2", { role: "assistant" }), message("m3"), message("m4", { role: "assistant" })]),
			{ type: "send", pending: pending("k1", { replaces: "m3" }) },
		);
		expect(shown(state)).toEqual(["m1", "m2", "k1"]);
		state = feed(state, frames(1, { type: "refused", clientId: "k1", problem }));
		expect(shown(state)).toEqual(["m1", "m2", "m3", "m4", "k1"]);
	});

	it("become the frame that sends them", () => {
		const file = { sha256: "a".repeat(64), name: "a.png", mimeType: "image/png", kind: "image" as const, bytes: 3 };
		expect(toSendFrame(pending("k1", { attachments: [file], replaces: "m3", model: "main" }))).toEqual({
			type: "send",
			clientId: "k1",
			conversation,
			text: "hello",
			attachments: [{ sha256: "a".repeat(64), name: "a.png" }],
			model: "main",
			replaces: "m3",
		});
	});
});

describe("a turn that was taken back", () => {
	it("does not run again because its usage is told late", () => {
		const turn = (state: "running" | "done"): LiveBody => ({
			type: "turn",
			conversation,
			turnId: "t1",
			state,
			origin: "human",
			model: null,
		});
		const usage = {
			inputTokens: 1,
			cachedTokens: 0,
			outputTokens: 1,
			reasoningTokens: 0,
			estimated: false,
			cost: 0,
			currency: "USD",
			calls: 1,
		};
		const state = apply(emptyChat, {
			type: "frames",
			frames: frames(
				1,
				turn("running"),
				{ type: "message", conversation, message: message("m1", { role: "assistant", turnId: "t1" }) },
				turn("done"),
				{ type: "superseded", conversation, messageIds: ["m1"] },
				{ type: "usage", conversation, turnId: "t1", usage },
			),
		});
		expect(activeTurn(state.threads[conversation] ?? emptyThread)).toBeNull();
	});
});

describe("a reconnect", () => {
	it("goes on in the middle of a stream when nothing was lost", () => {
		let state = feed(emptyChat, frames(1, turn("running"), step(1, "started"), delta("one ")));
		// The socket broke; the server replays from what we knew, here one frame too many.
		state = feed(state, [
			{ seq: 9, at: "", type: "hello", version: "1", reset: false },
			...frames(3, delta("one "), delta("two "), delta("three")),
		]);
		expect(thread(state).turns.t1?.text).toBe("one two three");
	});

	it("starts over after a reset: smaller numbers count, the next page replaces what was held", () => {
		let state = apply(
			feed(emptyChat, frames(500, turn("running"), delta("stale"))),
			page([message("m1"), message("m2", { text: "before" })]),
		);
		state = feed(state, [{ seq: 7, at: "", type: "hello", version: "2", reset: true }, ...frames(3, arrives(message("m4")))]);
		expect(thread(state).turns).toEqual({});
		expect(state.seq).toBe(3);
		state = apply(state, page([message("m2", { text: "after" }), message("m3")]));
		expect(thread(state).messages.map(({ id, text }) => [id, text])).toEqual([
			["m2", "after"],
			["m3", "text of m3"],
			["m4", "text of m4"],
		]);
	});

	it("keeps unsent messages over a reset", () => {
		const state = feed(apply(emptyChat, { type: "send", pending: pending("k1") }), [
			{ seq: 7, at: "", type: "hello", version: "2", reset: true },
		]);
		expect(shown(state)).toEqual(["k1"]);
	});
});
