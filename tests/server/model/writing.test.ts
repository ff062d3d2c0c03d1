import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ModelMessage } from "../../../server/model/model.ts";
import { fitSchema } from "../../../server/model/openai/schema.ts";
import { fitNames } from "../../../server/model/openai/writer.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, type Setup, setUp, tool } from "./setup.ts";

let server: FakeOpenAI;
let setup: Setup;

beforeEach(async () => {
	server = await startFakeOpenAI();
	setup = setUp([entry("main", server.url), entry("eyes", server.url, { kind: "multimodal" })]);
});
afterEach(async () => {
	setup.models.close();
	await server.close();
});

const user = (text: string): ModelMessage => ({ role: "user", content: [{ type: "text", text }] });
const call = (id: string, name = "now", args = "{}") => ({ id, name, arguments: args });
const assistant = (calls: ReturnType<typeof call>[], text = "", reasoning?: string): ModelMessage => ({
	role: "assistant",
	text,
	calls,
	...(reasoning === undefined ? {} : { reasoning }),
});
const result = (callId: string, text = "ok"): ModelMessage => ({ role: "tool", callId, name: "now", text });
const send = (messages: ModelMessage[], more = {}) => run(setup.models, { ...ask(""), messages, ...more });
const sent = () => server.chats.at(-1)?.body;

describe("writing requests strictly", () => {
	it("puts messages last and keeps the prefix of the next request", async () => {
		const tools = Array.from({ length: 10 }, (_, i) => tool(`tool_${i}`));
		const first = [user("one"), assistant([call("a")]), result("a")];
		await send(first, { tools });
		await send([...first, assistant([call("b")]), result("b", "more")], { tools: tools.map((one) => ({ ...one })) });
		const [one, two] = server.chats.map((request) => request.raw) as [string, string];
		expect(Object.keys(sent()).at(-1)).toBe("messages");
		let same = 0;
		while (one[same] === two[same]) same++;
		expect(same).toBe(one.length - 2);
		expect(server.refused).toEqual([]);
	});

	it("never sends what strict servers refuse", async () => {
		await send(
			[
				{ role: "system", text: "" },
				user("  "),
				{ role: "assistant", text: "", calls: [] },
				user("lone \ud800 surrogate"),
				assistant([call("x"), call("x", "no way!", '{"cut'), call("long".repeat(30)), call("ü x")]),
				result("x", ""),
				result("x"),
				result("long".repeat(30)),
				result("ü x"),
				assistant([call("x")]),
				result("x"),
			],
			{
				tools: Array.from({ length: 140 }, (_, i) =>
					tool(`odd name ${i}`, {
						anyOf: [{ type: "object", properties: { a: { $ref: "#/$defs/A" } } }],
						$defs: { A: { type: "string" } },
					}),
				),
			},
		);
		expect(server.refused).toEqual([]);
		expect(sent().tools).toHaveLength(128);
		expect(sent().messages[3].content).toBe("lone \ufffd surrogate");
	});

	it("records the body as sent, and the masked key", async () => {
		const keyed = setUp([entry("main", server.url, { apiKeys: ["sk-canary-0123456789abcd"] })]);
		await run(keyed.models, ask("hi", { tools: [tool("now")] }));
		expect(JSON.parse(String(keyed.calls[0]?.start.request))).toEqual(sent());
		expect(keyed.calls[0]?.start).toMatchObject({
			key: "sk-…abcd",
			model: "main",
			modelName: "main-name",
			attempt: 1,
			maxOutputTokens: 8192,
		});
		expect(JSON.stringify(keyed.calls)).not.toContain("canary");
		expect(server.chats.at(-1)?.key).toBe("sk-canary-0123456789abcd");
	});

	it("says how much of the body comes before what was said", async () => {
		const keyed = setUp([entry("main", server.url)]);
		for (const text of ["one", "two and more"]) await run(keyed.models, ask(text, { tools: [tool("now"), tool("later")] }));
		const [one, two] = keyed.calls.map(({ start }) => String(start.request).slice(0, start.requestHead));
		expect(one).toBe(two);
		expect(JSON.parse(`${one}]}`)).toEqual({ ...sent(), messages: [] });
	});

	it("sends no key and no machine details where none is configured", async () => {
		await send([user("hi")]);
		const headers = server.chats[0]?.headers ?? {};
		expect(headers.authorization).toBeUndefined();
		expect(Object.keys(headers).filter((name) => name.startsWith("x-stainless"))).toEqual([]);
	});

	it("sends what the SDK would send, call after call", async () => {
		const plain = new OpenAI({ baseURL: server.url, apiKey: "sk-plain", organization: null, project: null, maxRetries: 0 });
		await plain.chat.completions.create({ model: "main-name", messages: [{ role: "user", content: "hi" }], stream: true });
		const keyed = setUp([entry("main", server.url, { apiKeys: ["sk-plain"] })]);
		for (const text of ["one", "two and more"]) await run(keyed.models, ask(text));
		const [expected, ...ours] = server.chats.map(({ method, path, headers, raw }) => ({
			method,
			path,
			length: Number(headers["content-length"]) - Buffer.byteLength(raw),
			headers: Object.fromEntries(
				["authorization", "content-type", "user-agent", "host", "connection"].map((name) => [name, headers[name]]),
			),
		}));
		expect(ours).toEqual([expected, expected]);
		expect(server.chats.slice(1).map((request) => request.headers.accept)).toEqual(["text/event-stream", "text/event-stream"]);
		keyed.models.close();
	});

	it("sends images only to models that see, and records them without bytes", async () => {
		const sha256 = "a".repeat(64);
		const message: ModelMessage = {
			role: "user",
			content: [
				{ type: "text", text: "look" },
				{ type: "image", attachment: { sha256, name: "cat.png", mimeType: "image/png", bytes: 7, kind: "image" } },
			],
		};
		await send([message]);
		expect(sent().model).toBe("eyes-name");
		expect(sent().messages[0].content[1].image_url.url).toBe(`data:image/png;base64,${Buffer.from("picture").toString("base64")}`);
		expect(JSON.stringify(setup.calls[0]?.start.request)).toContain(`<image ${sha256} 7>`);
		expect(JSON.stringify(setup.calls[0]?.start.request)).not.toContain("base64");
		const blind = setUp([entry("main", server.url)]);
		await run(blind.models, { ...ask(""), messages: [message] });
		expect(sent().messages[0].content).toBe("look\n[image: cat.png; this model cannot see images]");
		expect(server.refused).toEqual([]);
	});

	it("asks for one JSON object and bounds the answer", async () => {
		await send([user("json please")], { json: true, maxOutputTokens: 50, temperature: 0.2 });
		expect(sent()).toMatchObject({ response_format: { type: "json_object" }, max_tokens: 50, temperature: 0.2 });
	});
});

describe("what is learned from a refusal", () => {
	it("stream_options: retried without, and remembered", async () => {
		server.set({ refuseStreamOptions: true });
		await send([user("hi")]);
		await send([user("hi")]);
		expect(server.chats.map((request) => "stream_options" in request.body)).toEqual([true, false, false]);
		expect(setup.calls.map((one) => one.end?.usage === null)).toEqual([true, false, false]);
		expect(setup.models.breakers()[0]?.failures).toBe(0);
	});

	it.each(["max_tokens", "temperature", "response_format"])("%s: adapted once and remembered", async (name) => {
		server.set({ refuse: [name] });
		await send([user("hi")], { json: true, temperature: 0.5 });
		await send([user("hi")], { json: true, temperature: 0.5 });
		expect(server.chats.map((request) => name in request.body)).toEqual([true, false, false]);
		if (name === "max_tokens") expect(sent().max_completion_tokens).toBe(8192);
	});

	const history = [user("hi"), assistant([call("a")], "", "my thoughts"), result("a")];

	it("reasoning_content that is wanted", async () => {
		server.set({ reasoning: "required" });
		await send(history);
		await send(history);
		expect(server.chats.map((request) => request.body.messages[1].reasoning_content)).toEqual([undefined, "my thoughts", "my thoughts"]);
	});

	it("reasoning_content that is refused", async () => {
		setup = setUp([entry("main", server.url, { provider: "deepseek" })]);
		server.set({ reasoning: "forbidden" });
		await send(history);
		await send(history);
		expect(server.chats.map((request) => request.body.messages[1].reasoning_content)).toEqual(["my thoughts", undefined, undefined]);
	});

	it("a profile sends it at once, also when there was none", async () => {
		setup = setUp([entry("main", server.url, { provider: "deepseek" })]);
		server.set({ reasoning: "required" });
		await send([user("hi"), assistant([call("a")]), result("a")]);
		expect(server.chats).toHaveLength(1);
		expect(sent().messages[1].reasoning_content).toBe("");
	});

	it("a server that wants contradictory things does not loop", async () => {
		server.script(...Array(10).fill({ status: 400, error: { message: "reasoning_content is wrong somehow" } }));
		await expect(send(history)).rejects.toMatchObject({ kind: "bad-request", status: 400 });
		expect(server.chats.length).toBeLessThanOrEqual(3);
	});

	it("extra content of calls goes back with them, where a server needs it", async () => {
		setup = setUp([entry("main", server.url, { provider: "google" })]);
		server.set({ strict: false });
		const extra = { google: { thought_signature: "abc" } };
		server.script({
			chunks: [
				{
					choices: [
						{
							index: 0,
							delta: { tool_calls: [{ index: 0, id: "g1", function: { name: "now", arguments: "{}" }, extra_content: extra }] },
							finish_reason: "tool_calls",
						},
					],
				},
			],
		});
		const { reply } = await send([user("hi")], { tools: [tool("now")] });
		await send([user("hi"), assistant(reply.calls as never), result("g1")], { tools: [tool("now")] });
		expect(sent().messages[1].tool_calls[0].extra_content).toEqual(extra);
	});

	it("a model that thinks without an opening tag", async () => {
		server.script(
			{ text: ["secret ", "thoughts", "</think>", "one"] },
			{ text: ["secret ", "thoughts", "</think>", "two"] },
			{ text: ["plain ", "answer"] },
			{ text: ["three"] },
		);
		const first = await send([user("hi")]);
		expect(first.text).toBe("one");
		const second = await send([user("hi")]);
		expect(
			second.events
				.filter((event) => event.type === "text")
				.map((event) => event.text)
				.join(""),
		).toBe("two");
		expect((await send([user("hi")])).text).toBe("plain answer");
	});
});

describe("schemas and names", () => {
	it("resolves references, also ones that hold themselves", () => {
		const schema = {
			type: "object",
			properties: { node: { $ref: "#/$defs/Node" } },
			required: ["node"],
			$defs: { Node: { type: "object", properties: { next: { $ref: "#/$defs/Node" }, value: { type: "number" } } } },
		};
		expect(fitSchema(schema)).toEqual({
			type: "object",
			properties: { node: { type: "object", properties: { next: {}, value: { type: "number" } } } },
			required: ["node"],
		});
	});

	it("keeps properties named like keywords", () => {
		const schema = {
			type: "object",
			properties: { $id: { type: "string" }, definitions: { type: "array", items: {} }, anyOf: { type: "string" } },
		};
		expect(fitSchema(schema)).toEqual(schema);
	});

	it("makes one object of alternatives at the root", () => {
		const schema = {
			anyOf: [
				{ properties: { a: { type: "string" }, b: { type: "string" } }, required: ["a", "b"] },
				{ properties: { a: { type: "number" } }, required: ["a"] },
			],
		};
		expect(fitSchema(schema)).toEqual({
			type: "object",
			properties: { a: { anyOf: [{ type: "string" }, { type: "number" }] }, b: { type: "string" } },
			required: ["a"],
		});
		for (const odd of [undefined, null, "x", { type: "string" }, { type: ["object", "null"] }])
			expect(fitSchema(odd)).toMatchObject({ type: "object", properties: {} });
	});

	it("fits names, unique and stable", () => {
		const names = ["a b", "a_b", "a.b", "x".repeat(80), "x".repeat(81), "", "读"].map((name) => ({ name }));
		const fitted = fitNames(names);
		const wire = names.map(({ name }) => fitted.toWire(name));
		expect(new Set(wire).size).toBe(names.length);
		for (const name of wire) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
		expect(wire[1]).toBe("a_b");
		expect(wire.map((name) => fitted.fromWire(name))).toEqual(names.map(({ name }) => name));
	});
});
