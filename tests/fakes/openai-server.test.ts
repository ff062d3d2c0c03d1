import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { OpenAI } from "openai";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createGate, type FakeOpenAI, startFakeOpenAI } from "./openai-server.ts";

let server: FakeOpenAI;
let client: OpenAI;

beforeEach(async () => {
	server = await startFakeOpenAI();
	client = new OpenAI({ baseURL: server.url, apiKey: "sk-test", maxRetries: 0 });
});
afterEach(() => server.close());

const say = (content: string) => client.chat.completions.create({ model: "m", messages: [{ role: "user", content }] });

async function refusal(body: object): Promise<string> {
	const response = await fetch(`${server.url}/chat/completions`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify(body),
	});
	const value = (await response.json()) as { error?: { message: string } };
	return response.status === 400 ? (value.error?.message ?? "") : `status ${response.status}`;
}

const user = { role: "user", content: "hi" };
const call = (id: string, name = "f", args = "{}") => ({ id, type: "function", function: { name, arguments: args } });
const schema = { type: "object", properties: {} };
const fn = (name: string, parameters: object = schema) => ({ type: "function", function: { name, parameters } });

describe("the scripted server", () => {
	it("serves the official client: chat, stream, models, embeddings", async () => {
		server.script({ text: "plain" }, { text: "streamed words", reasoning: "hm", calls: [{ name: "f", arguments: { a: 1 }, pieces: 3 }] });
		expect((await say("x")).choices[0]?.message.content).toBe("plain");
		let text = "";
		let args = "";
		let total = 0;
		for await (const chunk of await client.chat.completions.create({
			model: "m",
			stream: true,
			stream_options: { include_usage: true },
			messages: [{ role: "user", content: "x" }],
		})) {
			text += chunk.choices[0]?.delta.content ?? "";
			args += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
			total = chunk.usage?.total_tokens ?? total;
		}
		expect({ text, args }).toEqual({ text: "streamed words", args: '{"a":1}' });
		expect(total).toBeGreaterThan(0);
		expect((await client.models.list()).data[0]?.id).toBe("fake-model");
		const { data } = await client.embeddings.create({ model: "e", input: ["a cat", "a cat", "the moon"], encoding_format: "float" });
		expect(data[0]?.embedding).toEqual(data[1]?.embedding);
		expect(data[0]?.embedding).not.toEqual(data[2]?.embedding);
	});

	it("answers by rule, by message and by default", async () => {
		server.rule(/weather/, { text: "Sunny." });
		expect((await say("the weather?")).choices[0]?.message.content).toBe("Sunny.");
		expect((await say("hello")).choices[0]?.message.content).toBe("You said: hello");
		expect((await say('hello [[fake:{"text":"own"}]]')).choices[0]?.message.content).toBe("own");
		await expect(say('[[fake:{"status":503,"headers":{"retry-after":"3"}}]]')).rejects.toMatchObject({ status: 503 });
	});

	it("keeps what the memory asks apart from everything that is meant for a turn", async () => {
		const gate = createGate();
		server.script({ text: "for the turn", gate });
		server.rule(/weather/, { text: "Sunny." });
		const order = "You compress a conversation for an agent's memory. Answer with exactly one sentence.";
		const sumUp = async () =>
			(
				await client.chat.completions.create({
					model: "m",
					messages: [
						{ role: "system", content: order },
						{ role: "user", content: 'Person: the weather? [[fake:{"status":503}]]' },
					],
				})
			).choices[0]?.message.content;
		expect(await sumUp()).toBe("They spoke.");
		server.memory((request) => ({ text: `of ${request.lastUser.slice(8, 19)}` }));
		expect(await sumUp()).toBe("of the weather");
		expect([server.scripted(), server.chats.length]).toEqual([1, 0]);
		const waiting = say("the weather?");
		await gate.reached;
		gate.open();
		expect((await waiting).choices[0]?.message.content).toBe("for the turn");
		expect(server.requests.map((request) => request.ofMemory)).toEqual([true, true, false]);
		expect(server.chats).toHaveLength(1);
	});

	it("checks keys and keeps what was sent", async () => {
		server.set({ keys: ["sk-right"] });
		await expect(say("x")).rejects.toMatchObject({ status: 401 });
		expect(server.requests[0]).toMatchObject({ key: "sk-test", status: 401, lastUser: "x" });
	});

	it("holds an answer at a gate", async () => {
		const gate = createGate();
		server.script({ text: "at last", gate });
		const waiting = say("x");
		await gate.reached;
		expect(server.load.open).toBe(1);
		gate.open();
		expect((await waiting).choices[0]?.message.content).toBe("at last");
	});

	it.each([
		["no messages", { messages: [] }],
		["an unknown role", { messages: [{ role: "robot", content: "x" }] }],
		["empty content", { messages: [{ role: "user", content: "  " }] }],
		["an assistant turn with nothing", { messages: [user, { role: "assistant", content: null }] }],
		["a call without an answer", { messages: [user, { role: "assistant", tool_calls: [call("a")] }, user] }],
		["a call without an answer at the end", { messages: [user, { role: "assistant", tool_calls: [call("a")] }] }],
		["an answer without a call", { messages: [user, { role: "tool", tool_call_id: "a", content: "x" }] }],
		[
			"two calls with one id",
			{ messages: [user, { role: "assistant", tool_calls: [call("a"), call("a")] }, { role: "tool", tool_call_id: "a", content: "x" }] },
		],
		[
			"arguments that are no JSON",
			{ messages: [user, { role: "assistant", tool_calls: [call("a", "f", "{")] }, { role: "tool", tool_call_id: "a", content: "x" }] },
		],
		["a lone surrogate", { messages: [{ role: "user", content: "\ud800" }] }],
		["129 tools", { messages: [user], tools: Array.from({ length: 129 }, (_, i) => fn(`f${i}`)) }],
		["a bad tool name", { messages: [user], tools: [fn("a b")] }],
		["a repeated tool name", { messages: [user], tools: [fn("a"), fn("a")] }],
		["a root that is no object", { messages: [user], tools: [fn("a", { type: "string" })] }],
		["a root anyOf", { messages: [user], tools: [fn("a", { ...schema, anyOf: [] })] }],
		["a reference", { messages: [user], tools: [fn("a", { type: "object", properties: { x: { $ref: "#/x" } } })] }],
		["stream_options without stream", { messages: [user], stream_options: {} }],
		["an unknown parameter", { messages: [user], whatever: 1 }],
	])("refuses %s", async (_, body) => {
		expect(await refusal({ model: "m", ...body })).not.toMatch(/^status/);
		expect(server.refused).toHaveLength(1);
	});

	it("takes a right request with tools", async () => {
		const messages = [
			{ role: "system", content: "s" },
			user,
			{ role: "assistant", content: null, tool_calls: [call("a"), call("b")] },
			{ role: "tool", tool_call_id: "b", content: "x" },
			{ role: "tool", tool_call_id: "a", content: "y" },
		];
		expect(await refusal({ model: "m", messages, tools: [fn("f")] })).toBe("status 200");
	});

	it("runs as its own process with a script file", async () => {
		const dir = await mkdtemp(join(tmpdir(), "fake-openai-"));
		await writeFile(
			join(dir, "script.json"),
			JSON.stringify({ script: [{ text: "first" }], rules: [{ match: "two", answer: { text: "second" } }], otherwise: { text: "rest" } }),
		);
		const child = spawn(process.execPath, ["--import", "tsx", "tests/fakes/openai-server.main.ts", "--script", join(dir, "script.json")], {
			stdio: ["ignore", "pipe", "inherit"],
		});
		try {
			const line = await new Promise<string>((resolve, reject) => {
				createInterface({ input: child.stdout }).once("line", resolve);
				child.once("exit", (code) => reject(new Error(`ended with ${code}`)));
			});
			const other = new OpenAI({ baseURL: line.replace(/.* at /, ""), apiKey: "x", maxRetries: 0 });
			const answers: unknown[] = [];
			for (const content of ["one", "two", "three"])
				answers.push(
					(await other.chat.completions.create({ model: "m", messages: [{ role: "user", content }] })).choices[0]?.message.content,
				);
			expect(answers).toEqual(["first", "second", "rest"]);
		} finally {
			child.removeAllListeners("exit");
			child.kill();
			await rm(dir, { recursive: true });
		}
	});
});
