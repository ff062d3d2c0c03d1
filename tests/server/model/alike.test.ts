import { describe, expect, it } from "vitest";
import { onlyWords } from "../../../server/model/openai/alike.ts";
import { createCollector } from "../../../server/model/openai/collect.ts";
import { createBodyReader, type Frame } from "../../../server/model/openai/sse.ts";

const WORDS = [
	"Hello",
	" there",
	"",
	' "quoted" ',
	"\\",
	'\\\\"',
	"line\nend\t",
	"你好",
	"🐱",
	"\ud83d",
	'{"content":"x"}',
	'","finish_reason":"stop',
	"\u2063words\u2063",
	"data: [DONE]",
	"\u2028",
];
const base = { id: "c1", object: "chat.completion.chunk", created: 1, model: "m" };

/** How servers write an event with some words. */
const STYLES: Record<string, (words: string, n: number) => string> = {
	plain: (words) => JSON.stringify({ ...base, choices: [{ index: 0, delta: { content: words }, finish_reason: null }] }),
	"with its role and nothing else": (words) =>
		JSON.stringify({
			...base,
			choices: [
				{ index: 0, delta: { role: "assistant", content: words, tool_calls: [], refusal: null }, logprobs: null, finish_reason: null },
			],
			usage: null,
		}),
	"ASCII with spaces": (words) =>
		`{"choices": [{"delta": {"content": ${JSON.stringify(words).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}}, "index": 0}]}`,
	"with the field elsewhere too": (words) =>
		JSON.stringify({ note: { content: words, "content ": words }, choices: [{ delta: { content: words } }], last: { content: words } }),
	"with the field twice": (words) => `{"choices":[{"delta":{"content":"first","content":${JSON.stringify(words)}}}]}`,
	"each with something of its own": (words, n) =>
		JSON.stringify({ ...base, choices: [{ index: 0, delta: { content: words } }], obfuscation: "x".repeat(n) }),
	"with usage from time to time": (words, n) =>
		JSON.stringify({ choices: [{ delta: { content: words } }], usage: n % 3 === 2 ? { prompt_tokens: 9, completion_tokens: n } : null }),
	"thinking from time to time": (words, n) =>
		JSON.stringify({ choices: [{ delta: n % 4 === 3 ? { content: null, reasoning_content: words } : { content: words } }] }),
	"calling from time to time": (words, n) =>
		JSON.stringify({
			choices: [
				{
					delta: {
						content: words,
						...(n % 5 === 4 ? { tool_calls: [{ index: n, id: `c${n}`, function: { name: "now", arguments: "{}" } }] } : {}),
					},
				},
			],
		}),
};

/** What a collector makes of frames, or of the events one by one. */
function collect(frames: Frame[]) {
	const collector = createCollector({ has: () => true });
	let text = "";
	let reasoning = "";
	for (const frame of frames) {
		if (frame.type === "data") {
			const delta = collector.add(frame.value);
			text += delta.text;
			reasoning += delta.reasoning;
		} else if (frame.type === "words") {
			collector.words(frame.text);
			text += frame.text;
		} else if (frame.type === "done") collector.done();
		else throw new Error(frame.what);
	}
	return { text, reasoning, result: collector.result(() => "id") };
}

describe("events that are alike but for their words", () => {
	for (const [style, write] of Object.entries(STYLES))
		for (const newline of ["\n", "\r\n", "\r"])
			it(`bring what they bring alone: ${style}, lines end with ${JSON.stringify(newline)}`, () => {
				const events = [...WORDS, ...WORDS.toReversed()].map(write);
				events.push('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}');
				const expected = collect([...events.map((event): Frame => ({ type: "data", value: JSON.parse(event) })), { type: "done" }]);
				const body = Buffer.from([...events, "[DONE]"].map((event) => `data: ${event}${newline}${newline}`).join(""));
				for (const size of [1, 7, 100, 1_000, body.length]) {
					const reader = createBodyReader();
					const frames: Frame[] = [];
					for (let at = 0; at < body.length; at += size) frames.push(...reader.push(body.subarray(at, at + size)));
					frames.push(...reader.end());
					expect(collect(frames)).toEqual(expected);
				}
			});

	it("are parsed once, and so is what ends them", () => {
		const reader = createBodyReader();
		const line = (words: string) => `data: ${STYLES.plain?.(words, 0)}\n\n`;
		const frames = reader.push(Buffer.from(`${line("a")}${line("b")}${line("c\\n")}data: {"choices":[]}\n\n${line("d")}data: [DONE]\n\n`));
		expect(frames.map((frame) => (frame.type === "words" ? frame.text : frame.type))).toEqual(["data", "bc\\n", "data", "d", "done"]);
	});

	it("are none where a line only begins like one", () => {
		const reader = createBodyReader();
		const alike = '{"choices":[{"delta":{"content":"a"}}]}';
		const frames = reader.push(
			Buffer.from(`data: ${alike}\n\ndata: ${alike.slice(0, -2)}\ndata: ]}\n\ndata: {"choices":[{"delta":{"content":"b\nc"}}]}\n\n`),
		);
		expect(frames.map((frame) => frame.type)).toEqual(["data", "data", "broken"]);
	});

	it.each([
		["an error", { error: { message: "no" }, choices: [{ delta: { content: "a" } }] }],
		["usage", { choices: [{ delta: { content: "a" } }], usage: { prompt_tokens: 1 } }],
		["an end", { choices: [{ delta: { content: "a" }, finish_reason: "stop" }] }],
		["a call", { choices: [{ delta: { content: "a", tool_calls: [{}] } }] }],
		["an old call", { choices: [{ delta: { content: "a", function_call: { name: "x" } } }] }],
		["thinking", { choices: [{ delta: { content: "a", reasoning: "b" } }] }],
		["a refusal", { choices: [{ delta: { content: "a", refusal: "b" } }] }],
		["another choice", { choices: [{ delta: { content: "a" } }, { index: 1, delta: {} }] }],
		["the other choice", { choices: [{ index: 1, delta: { content: "a" } }] }],
		["parts", { choices: [{ delta: { content: [{ text: "a" }] } }] }],
		["no delta", { choices: [{ message: { content: "a" } }] }],
		["nothing", null],
	])("do not bring %s", (_, event) => {
		expect(onlyWords(event)).toBeNull();
	});
});
