import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createCollector } from "../../../server/model/openai/collect.ts";
import { createBodyReader } from "../../../server/model/openai/sse.ts";
import { type Behaviour, type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, type Setup, setUp, tool } from "./setup.ts";

let server: FakeOpenAI;
let setup: Setup;

beforeEach(async () => {
	server = await startFakeOpenAI();
	setup = setUp([entry("main", server.url, { limits: { firstByteMs: 10_000, idleMs: 10_000, totalMs: 14_000 } })]);
});

afterEach(async () => {
	setup.models.close();
	await server.close();
});

const chunk = (delta: unknown, finish: string | null = null, more: object = {}) => ({
	choices: [{ index: 0, delta, finish_reason: finish }],
	...more,
});
const usage = { prompt_tokens: 100, completion_tokens: 7 };

async function answer(behaviour: Behaviour, request = ask("hi", { tools: [tool("now"), tool("web_search")] })) {
	server.script(behaviour);
	return run(setup.models, request);
}

describe("reading streams tolerantly", () => {
	it("streams text and reports usage of the last chunk", async () => {
		const { reply, text } = await answer({ text: "Hello there, you" });
		expect(text).toBe("Hello there, you");
		expect(reply).toMatchObject({ text, finish: "stop", calls: [], model: "main", modelName: "main-name", callIds: ["call-1"] });
		expect(reply.usage.estimated).toBe(false);
		expect(setup.calls[0]?.end).toMatchObject({ error: null, usage: reply.usage });
	});

	it.each([1, 2, 3, 7])("joins characters and lines cut every %i bytes", async (chunkBytes) => {
		const { text, reply } = await answer({
			text: "你好，世界 🌍 done",
			calls: [{ name: "now", arguments: { q: "猫🐱" }, pieces: 4 }],
			chunkBytes,
		});
		expect(text).toBe("你好，世界 🌍 done");
		expect(JSON.parse(reply.calls[0]?.arguments ?? "")).toEqual({ q: "猫🐱" });
	});

	it.each(["\n", "\r\n", "\r"] as const)("reads comments, empty data lines, line ends %j and a last line without one", async (newline) => {
		const { text } = await answer({ text: "one two", newline, comments: true, lastNewline: false });
		expect(text).toBe("one two");
	});

	it("reads events without blank lines between them and without a space after the colon", async () => {
		const body = [chunk({ content: "a" }), chunk({ content: "b" }), chunk({}, "stop")]
			.map((value) => `data:${JSON.stringify(value)}\n`)
			.join("");
		expect((await answer({ body: `${body}data:[DONE]`, contentType: "text/event-stream" })).text).toBe("ab");
	});

	it("reads JSON that one event spreads over several lines", async () => {
		const body = `data: {"choices":[{"index":0,\ndata: "delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
		expect((await answer({ body, contentType: "text/event-stream" })).text).toBe("x");
	});

	it("reads a line that comes in a great many pieces without going through it again at each", () => {
		const reader = createBodyReader();
		const word = Buffer.from("x".repeat(1_024));
		const frames = [...reader.push(Buffer.from('data: {"text":"'))];
		for (let n = 0; n < 6_000; n++) frames.push(...reader.push(word));
		frames.push(...reader.push(Buffer.from('"}\r')), ...reader.push(Buffer.from("\n\r\ndata: [DONE]\n")));
		expect(frames.map((frame) => frame.type)).toEqual(["data", "done"]);
		expect((frames[0] as { value: { text: string } }).value.text.length).toBe(1_024 * 6_000);
	});

	it("gives up an answer that has no end, in one line and in many", async () => {
		const reader = createBodyReader();
		const word = Buffer.from("x".repeat(1_000_000));
		const frames = Array.from({ length: 40 }, () => reader.push(word)).flat();
		expect(frames).toContainEqual({ type: "broken", what: "an answer that is too large" });

		const collector = createCollector({ has: () => true });
		const more = () =>
			collector.add(chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "now", arguments: "x".repeat(1_000_000) } }] }));
		expect(() => {
			for (let n = 0; n < 20; n++) more();
		}).toThrow("too large");
	});

	it("survives null and missing choices, deltas and contents", async () => {
		const chunks = [
			{ choices: null },
			{},
			{ choices: [] },
			{ choices: [null] },
			{ choices: [{ index: 0, delta: null }] },
			chunk({ content: null }),
			chunk({ content: "ok" }),
			chunk({ content: null }, "stop"),
		];
		expect((await answer({ chunks })).text).toBe("ok");
	});

	it("takes content given as parts", async () => {
		const { text, reply } = await answer({
			chunks: [
				chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
				chunk({ content: [{ type: "text", text: "yes" }] }, "stop"),
			],
		});
		expect(text).toBe("yes");
		expect(reply.reasoning).toBe("hm");
	});

	it("takes a plain JSON completion with status 200", async () => {
		const { text, reply } = await answer({ plain: true, text: "plain", calls: [{ name: "now", arguments: {} }] });
		expect(text).toBe("plain");
		expect(reply.finish).toBe("calls");
		expect(reply.calls).toHaveLength(1);
	});

	it.each([
		["every chunk", "every"],
		["the finish chunk", "finish"],
		["the last chunk", "last"],
	] as const)("finds usage on %s", async (_, where) => {
		const { reply } = await answer({
			text: "a b c",
			usage: where,
			usageNumbers: { ...usage, prompt_tokens_details: { cached_tokens: 60 }, completion_tokens_details: { reasoning_tokens: 3 } },
		});
		expect(reply.usage).toEqual({
			inputTokens: 100,
			cachedTokens: 60,
			outputTokens: 7,
			reasoningTokens: 3,
			estimated: false,
			cost: 0.0001,
			currency: "USD",
		});
	});

	it("reads DeepSeek's cache counts", async () => {
		const { reply } = await answer({
			text: "a",
			usageNumbers: { prompt_cache_hit_tokens: 80, prompt_cache_miss_tokens: 20, completion_tokens: 1 },
		});
		expect(reply.usage).toMatchObject({ inputTokens: 100, cachedTokens: 80 });
	});

	it.each([
		{ usage: "none" as const },
		{ usageNumbers: { prompt_tokens: 0, completion_tokens: 0 } },
		{ usageNumbers: { prompt_tokens: 1e15, completion_tokens: 1e15 } },
	])("estimates usage that is not told, never zero: %j", async (more) => {
		const { reply } = await answer({ text: "some words of an answer", ...more });
		expect(reply.usage.estimated).toBe(true);
		expect(reply.usage.inputTokens).toBeGreaterThan(5);
		expect(reply.usage.outputTokens).toBeGreaterThan(2);
	});

	it("never shows reasoning fields as text", async () => {
		for (const reasoningField of ["reasoning_content", "reasoning"]) {
			const { text, reply, events } = await answer({ reasoning: "secret thought", reasoningField, text: "shown" });
			expect(text).toBe("shown");
			expect(reply).toMatchObject({ text: "shown", reasoning: "secret thought" });
			expect(events.some((event) => event.type === "reasoning")).toBe(true);
		}
	});
});

describe("tool calls", () => {
	const names = (calls: { name: string; arguments: string }[]) => calls.map((call) => `${call.name} ${call.arguments}`);
	const part = (value: object) => chunk({ tool_calls: [value] });
	const end = chunk({}, "tool_calls");

	it("joins pieces by index", async () => {
		const { reply } = await answer({
			calls: [
				{ name: "now", arguments: { a: 1 }, pieces: 5 },
				{ name: "web_search", arguments: { query: "x" }, pieces: 3 },
			],
		});
		expect(names(reply.calls)).toEqual(['now {"a":1}', 'web_search {"query":"x"}']);
	});

	it.each([
		["no index", -1],
		["index null", null],
	])("joins pieces with %s", async (_, index) => {
		const { reply } = await answer({
			calls: [
				{ name: "now", arguments: { a: 1 }, pieces: 3, index },
				{ name: "now", arguments: { a: 2 }, pieces: 2, index },
			],
		});
		expect(names(reply.calls)).toEqual(['now {"a":1}', 'now {"a":2}']);
		expect(new Set(reply.calls.map((call) => call.id)).size).toBe(2);
	});

	it("keeps parallel calls apart that all have index 0", async () => {
		const { reply } = await answer({
			calls: [
				{ name: "now", arguments: {}, index: 0 },
				{ name: "web_search", arguments: { query: "x" }, index: 0 },
			],
		});
		expect(names(reply.calls)).toEqual(["now {}", 'web_search {"query":"x"}']);
	});

	it("makes missing, empty and repeated ids unique", async () => {
		const { reply } = await answer({
			calls: [
				{ name: "now", arguments: {}, id: "x" },
				{ name: "now", arguments: {}, id: "x" },
				{ name: "now", arguments: {}, id: "" },
				{ name: "now", arguments: {}, id: null },
			],
		});
		const ids = reply.calls.map((call) => call.id);
		expect(reply.calls).toHaveLength(4);
		expect(new Set(ids).size).toBe(4);
		expect(ids[0]).toBe("x");
		expect(ids.every((id) => id !== "")).toBe(true);
	});

	it("takes calls with any finish reason, and no calls with tool_calls", async () => {
		expect((await answer({ calls: [{ name: "now", arguments: {} }], finish: "stop" })).reply.finish).toBe("calls");
		expect((await answer({ text: "just text", finish: "tool_calls" })).reply).toMatchObject({ finish: "stop", calls: [] });
	});

	it("takes whole calls at once, arguments as an object, and none as {}", async () => {
		const { reply } = await answer({
			chunks: [
				part({ index: 0, id: "a", function: { name: "now", arguments: { x: 1 } } }),
				part({ index: 1, id: "b", function: { name: "now" } }),
				end,
			],
		});
		expect(names(reply.calls)).toEqual(['now {"x":1}', "now {}"]);
	});

	it("does not repeat a name that comes with every piece", async () => {
		const { reply } = await answer({
			chunks: [
				part({ index: 0, id: "a", function: { name: "now", arguments: '{"a"' } }),
				part({ index: 0, id: "a", function: { name: "now", arguments: ":1}" } }),
				end,
			],
		});
		expect(names(reply.calls)).toEqual(['now {"a":1}']);
	});

	it("marks arguments that the length limit cut, and never makes {} of them", async () => {
		for (const cut of ['{"path": "a', ""]) {
			const { reply } = await answer({
				calls: [
					{ name: "now", arguments: { ok: 1 } },
					{ name: "web_search", arguments: cut },
				],
				finish: "length",
			});
			expect(reply.calls[0]?.truncated).toBeUndefined();
			expect(reply.calls[1]).toMatchObject({ truncated: true, arguments: cut });
			expect(reply.finish).toBe("length");
		}
	});

	it("passes broken JSON on as it is", async () => {
		expect((await answer({ calls: [{ name: "now", arguments: '{"a":' }] })).reply.calls[0]).toMatchObject({ arguments: '{"a":' });
	});

	it("maps odd tool names there and back", async () => {
		server.script((request) => ({ calls: [{ name: request.body.tools[0].function.name, arguments: {} }] }));
		const { reply } = await run(setup.models, ask("go", { tools: [tool("files/read.it (now)")] }));
		expect(reply.calls[0]?.name).toBe("files/read.it (now)");
		expect(server.refused).toEqual([]);
	});

	it("does not make calls of text that looks like one", async () => {
		const text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>';
		const { reply } = await answer({ text: [text] });
		expect(reply.calls).toEqual([]);
		expect(reply.text).toBe(text);
	});
});

describe("answers that are none", () => {
	const failing: [string, Behaviour, string][] = [
		["a web page with status 200", { body: "<!DOCTYPE html><html><body>login</body></html>" }, "protocol"],
		[
			"an error object with status 200",
			{ body: '{"error":{"message":"boom","code":"server_error"}}', contentType: "application/json" },
			"server",
		],
		[
			"an error object in the stream after text",
			{ text: "partial", finish: null, streamError: { message: "overloaded", code: 503 } },
			"server",
		],
		["a stream without a finish reason", { text: "partial", finish: null, done: false }, "protocol"],
		["text, [DONE] and no finish reason", { text: "partial", finish: null }, "protocol"],
		["a stream that is cut", { text: "one two three", cutAfter: 3 }, "network"],
		["a body that ends early", { text: "one two three", endAfter: 3 }, "protocol"],
		["no body at all", { body: "", contentType: "text/event-stream" }, "protocol"],
		["an event that is not JSON", { body: "data: {nope}\n\ndata: [DONE]\n\n", contentType: "text/event-stream" }, "protocol"],
		["no answer", { hangUp: true }, "network"],
	];

	it.each(failing)("%s is an error", async (_, behaviour, kind) => {
		server.script(behaviour, behaviour, behaviour);
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind });
		expect(setup.calls).toHaveLength(3);
		for (const call of setup.calls) expect(call.end?.error).toMatchObject({ kind });
	});

	it("silence in the middle is an error", async () => {
		const impatient = setUp([entry("main", server.url, { limits: { idleMs: 150 } })]);
		const mute: Behaviour = { text: "one two three", stallAfter: 2 };
		server.script(mute, mute, mute);
		await expect(run(impatient.models, ask("hi"))).rejects.toMatchObject({ kind: "timeout" });
		expect(impatient.calls).toHaveLength(3);
		impatient.models.close();
	});

	it("a cut stream is begun again, what was streamed is void, and the lost part is estimated", async () => {
		server.script({ text: "wrong start", cutAfter: 3 }, { text: "right" });
		const { events, text, reply } = await run(setup.models, ask("hi"));
		expect(events.map((event) => event.type)).toContain("restart");
		expect(text).toBe("right");
		expect(reply.callIds).toHaveLength(2);
		expect(setup.calls[0]?.end?.usage).toMatchObject({ estimated: true });
		expect(setup.calls[0]?.end?.usage?.inputTokens).toBeGreaterThan(0);
	});

	it("complete tool calls and [DONE] are an answer without a finish reason; incomplete ones are not", async () => {
		expect((await answer({ calls: [{ name: "now", arguments: { a: 1 } }], finish: null })).reply.finish).toBe("calls");
		server.script(...Array(3).fill({ calls: [{ name: "now", arguments: '{"a":' }], finish: null }));
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "protocol" });
		server.script(...Array(3).fill({ calls: [{ name: "now", arguments: {} }], finish: null, done: false }));
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "protocol" });
	});

	it("a server that goes silent or cuts after the finish reason has answered", async () => {
		setup = setUp([entry("main", server.url, { limits: { idleMs: 500 } })]);
		expect((await answer({ text: "all", usage: "none", done: false, stallAfter: 3 })).text).toBe("all");
		expect((await answer({ text: "all", usage: "none", done: false, cutAfter: 3 })).text).toBe("all");
	});

	it("any byte re-arms the idle timer", async () => {
		const body =
			Array.from({ length: 8 }, () => ": wait\n").join("") +
			`data: ${JSON.stringify(chunk({ content: "slow" }, "stop"))}\n\ndata: [DONE]\n\n`;
		const slow = setUp([entry("main", server.url, { limits: { idleMs: 1_200 } })]);
		server.script(
			{ chunks: [], body, contentType: "text/event-stream", betweenMs: 1, chunkBytes: 2 },
			{ text: "a b c d e f", betweenMs: 300 },
		);
		expect((await run(slow.models, ask("hi"))).text).toBe("slow");
		expect((await run(slow.models, ask("hi"))).text).toBe("a b c d e f");
		expect(slow.calls).toHaveLength(2);
		slow.models.close();
	});

	it("stop closes the connection at once and is recorded", async () => {
		server.script({ text: "one two three four", betweenMs: 50 });
		const controller = new AbortController();
		const seen: string[] = [];
		await expect(
			(async () => {
				for await (const event of setup.models.stream(ask("hi"), controller.signal)) {
					seen.push(event.type);
					controller.abort();
				}
			})(),
		).rejects.toMatchObject({ kind: "aborted" });
		expect(seen).toEqual(["text"]);
		await server.chats[0]?.finished;
		expect(server.chats[0]?.aborted).toBe(true);
		expect(setup.calls).toHaveLength(1);
		expect(setup.calls[0]?.end?.error?.kind).toBe("aborted");
		expect(setup.calls[0]?.end?.usage).toMatchObject({ estimated: true });
	});

	it("a reader that goes away closes the connection and the record", async () => {
		server.script({ text: "one two three four", betweenMs: 50 });
		for await (const _ of setup.models.stream(ask("hi"), new AbortController().signal)) break;
		await server.chats[0]?.finished;
		expect(server.chats[0]?.aborted).toBe(true);
		expect(setup.calls[0]?.end?.error?.kind).toBe("aborted");
	});

	it("connections are used again", async () => {
		server.rule(/hi/, { text: "a" });
		for (let i = 0; i < 20; i++) await run(setup.models, ask("hi"));
		// A call that begins in the very moment when the one before ends may open a second one.
		expect(server.connections).toBeLessThanOrEqual(2);
	});
});

describe("time limits", () => {
	it("first byte and total", async () => {
		const quick = setUp([entry("main", server.url, { limits: { firstByteMs: 60, idleMs: 1_000, totalMs: 400 } })]);
		const slow: Behaviour = { delayMs: 1_000, text: "late" };
		server.script(slow, slow, slow);
		await expect(run(quick.models, ask("hi"))).rejects.toMatchObject({ kind: "timeout" });
		const long: Behaviour = { text: "word ".repeat(50), betweenMs: 40 };
		server.script(long, long, long);
		await expect(run(setUp([entry("main", server.url, { limits: { totalMs: 300 } })]).models, ask("hi"))).rejects.toMatchObject({
			kind: "timeout",
		});
	});

	it("connecting", async () => {
		// A port of the discard range that nothing listens on refuses at once: never reached, nothing used.
		const refused = setUp([entry("main", "http://127.0.0.1:9/v1")]);
		await expect(run(refused.models, ask("hi"))).rejects.toMatchObject({ kind: "network" });
		expect(refused.calls).toHaveLength(3);
		expect(refused.calls[0]?.end?.usage).toBeNull();
	});
});
