import { describe, expect, it } from "vitest";
import type { Conversation, LiveBody, LiveFrame, Message, TurnState } from "../../server/http/contract.ts";
import { changeList, createLiveReads } from "../../web/src/features/chat/live-list.ts";

function conversation(part: Partial<Conversation> = {}): Conversation {
	const at = "2026-11-30T10:00:00.000Z";
	return {
		id: "c1",
		title: "Hello",
		channel: "web",
		pinned: false,
		createdAt: at,
		updatedAt: at,
		preview: null,
		model: null,
		busy: null,
		...part,
	};
}

function frame(seq: number, body: LiveBody): LiveFrame {
	return { seq, at: "2026-11-30T10:00:00.000Z", ...body };
}

function turn(seq: number, state: TurnState, id = "c1"): LiveFrame {
	return frame(seq, { type: "turn", conversation: id, turnId: "t1", state, origin: "human", model: null });
}

function said(seq: number, text: string, at: string): LiveFrame {
	const message = { text, at, superseded: false } as Message;
	return frame(seq, { type: "message", conversation: "c1", message });
}

/** A read that answers when the test says so. */
function heldRead(reads: ReturnType<typeof createLiveReads>) {
	let resolve: (page: { conversations: Conversation[] }) => void = () => {};
	const held = new Promise<{ conversations: Conversation[] }>((done) => {
		resolve = done;
	});
	return { page: reads.read(() => held), answer: (...conversations: Conversation[]) => resolve({ conversations }) };
}

describe("reading the conversation list while things happen", () => {
	it.each(["done", "failed", "stopped"] as const)(
		"does not undo that a turn is %s when the answer was made while it ran",
		async (state) => {
			const reads = createLiveReads();
			const { page, answer } = heldRead(reads);
			reads.frame(turn(1, "running"));
			reads.frame(turn(2, state));
			answer(conversation({ busy: "running" }));
			expect((await page).conversations[0]?.busy).toBeNull();
		},
	);

	it("leaves what an answer says of conversations that no frame spoke of", async () => {
		const reads = createLiveReads();
		reads.frame(turn(1, "done"));
		const { page, answer } = heldRead(reads);
		reads.frame(turn(2, "done", "c2"));
		answer(conversation({ busy: "running" }), conversation({ id: "c2", busy: "running" }));
		expect((await page).conversations.map((one) => one.busy)).toEqual(["running", null]);
	});

	it("keeps the latest words, the title that came with the answer, and what was deleted meanwhile deleted", async () => {
		const reads = createLiveReads();
		const { page, answer } = heldRead(reads);
		reads.frame(frame(1, { type: "conversation", conversation: "c1", change: "created", value: conversation({ title: "" }) }));
		reads.frame(said(2, "the answer", "2026-11-30T10:00:05.000Z"));
		reads.frame(frame(3, { type: "conversation", conversation: "c2", change: "deleted", value: null }));
		answer(conversation({ preview: "the question", updatedAt: "2026-11-30T10:00:04.000Z" }), conversation({ id: "c2" }));
		expect((await page).conversations).toEqual([conversation({ preview: "the answer", updatedAt: "2026-11-30T10:00:05.000Z" })]);
	});

	it("holds for two reads at once, and a failed one leaves nothing behind", async () => {
		const reads = createLiveReads();
		const first = heldRead(reads);
		reads.frame(turn(1, "running"));
		const second = heldRead(reads);
		await expect(reads.read(() => Promise.reject(new Error("no answer")))).rejects.toThrow("no answer");
		reads.frame(turn(2, "done"));
		first.answer(conversation({ busy: "queued" }));
		second.answer(conversation({ busy: "running" }));
		expect((await first.page).conversations[0]?.busy).toBeNull();
		expect((await second.page).conversations[0]?.busy).toBeNull();
	});
});

describe("a frame and the list", () => {
	it("does not let older words take the place of newer ones", () => {
		const list = [conversation({ preview: "new", updatedAt: "2026-11-30T10:00:05.000Z" })];
		expect(changeList(list, said(1, "old", "2026-11-30T10:00:01.000Z"))).toEqual(list);
	});
});
