import { describe, expect, it } from "vitest";
import type { Conversation, Message, ToolLine } from "../../server/http/contract.ts";
import { groupConversations, searchConversations } from "../../web/src/features/chat/groups.ts";
import type { LiveTurn } from "../../web/src/features/chat/state.ts";
import { createChatStore, keepUnsent, readUnsent } from "../../web/src/features/chat/store.ts";
import { isForgotten, plainLine, prettyJson, speakable, summarizeArguments, traceOf } from "../../web/src/features/chat/trace.ts";

const tool = (recordId: string, step: number, name = "read_file", state: ToolLine["state"] = "done"): ToolLine => ({
	recordId,
	step,
	name,
	arguments: "{}",
	state,
	result: "",
	ms: 1,
});
const turn = (part: Partial<LiveTurn> = {}): LiveTurn => ({
	turnId: "t1",
	state: "running",
	model: null,
	text: "",
	step: 1,
	round: 1,
	thinking: false,
	said: [],
	tools: [],
	plan: [],
	usage: null,
	restarted: null,
	answered: false,
	...part,
});
const answer = (text: string, tools: ToolLine[] = []) => ({ text, tools, role: "assistant" }) as unknown as Message;

describe("how a turn reads", () => {
	it("shows streaming words as the answer until tools of the same step follow", () => {
		const gone = { text: "[removed]", tools: [tool("r1", 1)] } as unknown as Message;
		const seen = { ...turn({ tools: [{ ...tool("r1", 1), arguments: '{"query":"secret"}' }] }), said: [{ step: 1, text: "a secret" }] };
		expect(JSON.stringify(traceOf(seen, gone))).not.toContain("secret");
		expect([isForgotten("[removed]"), isForgotten("it was [removed]")]).toEqual([true, false]);
		expect(traceOf(turn({ text: "Let me look" }), null)).toEqual({ parts: [], body: "Let me look" });
		const before = turn({ text: "Let me look", said: [{ step: 1, text: "Let me look" }], tools: [tool("r1", 1)] });
		expect(traceOf(before, null)).toMatchObject({ parts: [{ step: 1, text: "Let me look", tools: [{ recordId: "r1" }] }], body: "" });
		expect(traceOf({ ...before, step: 2, text: "Found" }, null)).toMatchObject({
			parts: [{ step: 1, text: "Let me look" }],
			body: "Found",
		});
	});

	it("keeps streamed words above a tool that starts before their step is said to be finished", () => {
		expect(traceOf(turn({ text: "Let me look", tools: [tool("r1", 1)] }), null)).toMatchObject({
			parts: [{ text: "Let me look" }],
			body: "",
		});
	});

	it("keeps its order when the stored answer takes over", () => {
		const live = turn({
			state: "done",
			said: [
				{ step: 1, text: "Let me look" },
				{ step: 2, text: "Found" },
			],
			step: 2,
			tools: [tool("r1", 1)],
		});
		expect(traceOf(live, answer("Found", [tool("r1", 1)]))).toMatchObject({ parts: [{ step: 1, text: "Let me look" }], body: "Found" });
		expect(traceOf(null, answer("Found", [tool("r1", 1)]))).toMatchObject({ parts: [{ step: 1, text: "" }], body: "Found" });
	});

	it("leaves out the tools that show themselves elsewhere, unless they failed", () => {
		const tools = [tool("r1", 1, "write_plan"), tool("r2", 2, "finish"), tool("r3", 2, "write_plan", "failed")];
		expect(traceOf(null, answer("x", tools)).parts.map((part) => part.tools.map((one) => one.recordId))).toEqual([["r3"]]);
	});

	it("does not say an answer twice that was given through a tool", () => {
		const live = turn({ said: [{ step: 1, text: "Done." }], tools: [tool("r1", 1, "finish")] });
		expect(traceOf(live, answer("Done."))).toEqual({ parts: [], body: "Done." });
	});
});

describe("one line about a call", () => {
	it("is what it was called with", () => {
		expect(summarizeArguments('{"path":"files/a.csv","limit":3,"deep":{"x":1}}')).toBe("files/a.csv · 3");
		expect(summarizeArguments("not json")).toBe("not json");
		expect(summarizeArguments("{}")).toBe("");
	});

	it("is cut between characters", () => {
		const line = summarizeArguments(JSON.stringify({ text: "😀".repeat(200) }));
		expect(line.isWellFormed()).toBe(true);
		expect([...line]).toHaveLength(80);
	});

	it("opens into readable JSON", () => {
		expect(prettyJson('{"a":1}')).toBe('{\n  "a": 1\n}');
		expect(prettyJson("plain")).toBe("plain");
	});
});

it("is spoken without marks", () => {
	expect(speakable("**Done**: see [the file](http://x.test) `a`\n\n```js\nx\n```\n| a | b |")).toBe("Done : see the file a a b");
	expect([...speakable("字".repeat(1000))]).toHaveLength(601);
});

describe("the list", () => {
	const one = (id: string, updatedAt: Date, part: Partial<Conversation> = {}): Conversation => ({
		id,
		title: id,
		channel: "web",
		pinned: false,
		createdAt: "",
		updatedAt: updatedAt.toISOString(),
		preview: null,
		model: null,
		busy: null,
		...part,
	});
	const now = new Date(2026, 10, 30, 12);
	const list = [
		one("old", new Date(2026, 8, 1)),
		one("today", new Date(2026, 10, 30, 9)),
		one("pin", new Date(2026, 1, 1), { pinned: true }),
		one("earlier today", new Date(2026, 10, 30, 8)),
	];

	it("has the pinned first, then day by day", () => {
		expect(groupConversations(list, now, "en").map(({ key, conversations }) => [key, conversations.map(({ id }) => id)])).toEqual([
			["pinned", ["pin"]],
			["today", ["today", "earlier today"]],
			["September 2026", ["old"]],
		]);
	});

	it("finds words in any order, case and width, two Chinese characters too", () => {
		const chats = [one("Trip to ＫＹＯＴＯ", now, { preview: "发票已经整理好了" }), one("Other", now)];
		expect(searchConversations(chats, "kyoto trip")).toHaveLength(1);
		expect(searchConversations(chats, "发票")).toHaveLength(1);
		expect(searchConversations(chats, "发票 nothing")).toHaveLength(0);
		expect(searchConversations(chats, "  ")).toHaveLength(2);
	});
});

describe("the store", () => {
	it("applies frames together, and before anything of our own", () => {
		let run = () => {};
		const store = createChatStore((later) => {
			run = later;
		});
		let told = 0;
		store.subscribe(() => {
			told += 1;
		});
		const delta = (seq: number) => store.frame({ seq, at: "", type: "delta", conversation: "c1", turnId: "t1", text: "x" });
		delta(1);
		delta(2);
		expect(told).toBe(0);
		run();
		expect(told).toBe(1);
		expect(store.get().threads.c1?.turns.t1?.text).toBe("xx");
		delta(3);
		store.dispatch({ type: "page", conversation: "c1", messages: [], hasMore: false, older: false });
		expect(store.get().threads.c1?.turns.t1?.text).toBe("xxx");
	});
});

describe("unsent messages", () => {
	it("survive a reload of the tab until they are confirmed, and damaged storage harms nothing", () => {
		const kept = new Map<string, string>();
		const storage = {
			getItem: (key: string) => kept.get(key) ?? null,
			setItem: (key: string, value: string) => void kept.set(key, value),
			removeItem: (key: string) => void kept.delete(key),
		};
		const store = createChatStore((run) => run());
		keepUnsent(store, storage);
		const pending = {
			clientId: "k1",
			conversation: "c1",
			text: "hi",
			attachments: [],
			model: null,
			replaces: null,
			at: "",
			messageId: null,
			refused: null,
		};
		store.dispatch({ type: "send", pending });
		expect(readUnsent(storage)).toEqual([pending]);
		store.frame({ seq: 1, at: "", type: "refused", clientId: "k1", problem: { type: "x", title: "no", status: 400, code: "no" } });
		expect(readUnsent(storage)).toEqual([]);
		expect(kept.size).toBe(0);
		kept.set("openlani.unsent", "{broken");
		expect(readUnsent(storage)).toEqual([]);
	});
});

describe("a line of a list", () => {
	it.each([
		["``` plan\n- [ ] look", "[ ] look"],
		["**粗**体和 `code`", "粗体和 code"],
		["# Title\n\n> said *so*\n- one\n- two", "Title said so one two"],
		["see [the file](http://x.test/a_b)", "see the file"],
		["__all__ of snake_case_name and 2 * 3 * 4, a_b_", "all of snake_case_name and 2 * 3 * 4, a_b_"],
		["``` plan: buy milk", "plan: buy milk"],
		["", ""],
	])("says %j as %j", (text, line) => {
		expect(plainLine(text)).toBe(line);
	});
});
