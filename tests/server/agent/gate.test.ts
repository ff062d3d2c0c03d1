import { describe, expect, it } from "vitest";
import { gate } from "../../../server/agent/gate.ts";
import { requestChars } from "../../../server/agent/limits.ts";
import type { ContentPart, ModelMessage, ToolCall } from "../../../server/model/model.ts";
import { strictProblems } from "./strict.ts";

const image = (name: string): ContentPart => ({
	type: "image",
	attachment: { sha256: "ab", name, mimeType: "image/png", bytes: 3, kind: "image" },
});
const user = (text: string): ModelMessage => ({ role: "user", content: [{ type: "text", text }] });
const toolCall = (id: string, name = "now", args = "{}"): ToolCall => ({ id, name, arguments: args });
const assistant = (text: string, calls: ToolCall[] = []): ModelMessage => ({ role: "assistant", text, calls });
const result = (callId: string, text: string, name = "now"): ModelMessage => ({ role: "tool", callId, name, text });

/** Mulberry32: the same seed gives the same histories on every machine. */
function random(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let t = Math.imul(state ^ (state >>> 15), 1 | state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

const TEXTS = ["", " ", "\u200b\n", "hi", "你好 😀", "\ud83d", "a\udc00b", "long ".repeat(300), '<tool_call>{"name":"now"}</tool_call>'];
const IDS = ["", "a", "b", "call_1", "call_2", "x".repeat(60), "with space", "ü"];
const NAMES = ["now", "read_file", "bad name!", "", "n".repeat(90), "a\ud800"];
const ARGS = ["{}", "", '{"a":1}', '{"a":"cut', "[1]", "null", '"text"', '{"a":"\ud800"}'];

function randomHistory(next: () => number): ModelMessage[] {
	const pick = <T>(list: T[]): T => list[Math.floor(next() * list.length)] as T;
	const out: ModelMessage[] = [];
	const length = Math.floor(next() * 14);
	for (let index = 0; index < length; index++) {
		const kind = next();
		if (kind < 0.07) out.push({ role: "system", text: pick(TEXTS) });
		else if (kind < 0.35)
			out.push({
				role: "user",
				content: Array.from({ length: Math.floor(next() * 3) }, () =>
					next() < 0.25 ? image("p.png") : { type: "text", text: pick(TEXTS) },
				),
			});
		else if (kind < 0.65)
			out.push(
				assistant(
					pick(TEXTS),
					Array.from({ length: Math.floor(next() * 4) }, () => toolCall(pick(IDS), pick(NAMES), pick(ARGS))),
				),
			);
		else out.push(result(pick(IDS), pick(TEXTS), pick(NAMES)));
	}
	return out;
}

describe("history gate", () => {
	it("makes any history acceptable to the strictest server, deterministically, and leaves a clean one alone", () => {
		const next = random(20261130);
		let broken = 0;
		for (let round = 0; round < 2_500; round++) {
			const history = randomHistory(next);
			const before = JSON.stringify(history);
			const turnStart = Math.floor(next() * (history.length + 1));
			if (strictProblems(history).length > 0) broken++;
			const first = gate(history, { turnStart });
			const again = gate(first.messages, { turnStart: 0 });
			const held = [
				strictProblems(first.messages).length === 0,
				JSON.stringify(history) === before,
				JSON.stringify(gate(history, { turnStart })) === JSON.stringify(first),
				JSON.stringify(again.messages) === JSON.stringify(first.messages) && again.repairs.length === 0,
				strictProblems(gate(history, { turnStart, maxChars: 900 }).messages).length === 0,
			];
			if (held.includes(false)) expect({ held, problems: strictProblems(first.messages), again: again.repairs }, before).toBeNull();
		}
		expect(broken).toBeGreaterThan(1_200);
	});

	it("keeps two calls with one id apart, each with its own result", () => {
		const { messages } = gate([user("go"), assistant("", [toolCall("a"), toolCall("a")]), result("a", "first"), result("a", "second")], {
			turnStart: 0,
		});
		expect(messages.filter((message) => message.role === "tool").map((message) => message.text)).toEqual(["first", "second"]);
		expect(strictProblems(messages)).toEqual([]);
	});

	it("gives an id that comes again later its own result", () => {
		const { messages } = gate(
			[user("go"), assistant("", [toolCall("a")]), assistant("", [toolCall("a")]), result("a", "late"), user("next")],
			{ turnStart: 0 },
		);
		expect(messages.filter((message) => message.role === "tool").map((message) => message.text)).toEqual([
			expect.stringContaining("Cancelled"),
			"late",
		]);
	});

	it("answers open calls as cancelled, in order", () => {
		const { messages, repairs } = gate([user("go"), assistant("", [toolCall("a"), toolCall("b")]), result("b", "done"), user("next")], {
			turnStart: 0,
		});
		expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "tool", "user"]);
		expect(messages[2]).toMatchObject({ callId: "a", text: expect.stringContaining("Cancelled") });
		expect(messages[3]).toMatchObject({ callId: "b", text: "done" });
		expect(repairs).toContain("missing result");
	});

	it("sends images of the current turn only", () => {
		const { messages } = gate(
			[{ role: "user", content: [image("old.png")] }, assistant("seen"), { role: "user", content: [image("new.png")] }],
			{ turnStart: 2 },
		);
		expect(messages[0]).toEqual(user("[image: old.png]"));
		expect(messages[2]).toMatchObject({ content: [{ type: "image" }] });
	});

	it("cuts results before answers, and people's words and the system text never", () => {
		const big = "x".repeat(5_000);
		const history = [{ role: "system", text: big }, user(big), assistant(big, [toolCall("a")]), result("a", `😀${big}`)] as ModelMessage[];
		const { messages } = gate(history, { turnStart: 1, maxChars: 16_000 });
		expect(requestChars(messages, 0)).toBeLessThanOrEqual(16_100);
		expect(messages[0]).toEqual(history[0]);
		expect(messages[1]).toEqual(history[1]);
		expect((messages[2] as { text: string }).text).toBe(big);
		expect((messages[3] as { text: string }).text).toContain("left out");
	});
});
