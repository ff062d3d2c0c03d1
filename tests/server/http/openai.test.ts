import OpenAI, { APIError, AuthenticationError, BadRequestError } from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { createAnswerText } from "../../../server/http/openai-text.ts";
import { ended, type House, openHouse, outcome, pause, type Script, saying, TOKEN, until } from "./house.ts";

let house: House;
let client: OpenAI;
let url: string;
afterEach(() => house.close());

async function start(script?: Script): Promise<void> {
	house = await openHouse();
	({ url } = await house.listen());
	client = new OpenAI({ apiKey: TOKEN, baseURL: `${url}/v1` });
	if (script) house.setScript(script);
}

const ask = (content: OpenAI.ChatCompletionUserMessageParam["content"] = "hi") => ({
	model: "openlani",
	messages: [{ role: "user" as const, content }],
});

async function read(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
	const pieces: string[] = [];
	let finish: string | null = null;
	let usage: OpenAI.CompletionUsage | null = null;
	for await (const chunk of stream) {
		const choice = chunk.choices[0];
		if (choice?.delta.content) pieces.push(choice.delta.content);
		finish = choice?.finish_reason ?? finish;
		usage = chunk.usage ?? usage;
	}
	return { pieces, text: pieces.join(""), finish, usage };
}

const messagesOf = async (name = "api") => {
	const { id } = await house.gateway.namedConversation(name);
	return house.store.messages.list(id, { limit: 50 });
};

describe("the official client", () => {
	it("gets an answer with the turn's usage", async () => {
		await start();
		const answer = await client.chat.completions.create(ask());
		expect(answer).toMatchObject({
			object: "chat.completion",
			model: "openlani",
			choices: [{ index: 0, message: { role: "assistant", content: "Hello there." }, finish_reason: "stop" }],
			usage: {
				prompt_tokens: 120,
				completion_tokens: 7,
				total_tokens: 127,
				prompt_tokens_details: { cached_tokens: 100 },
				completion_tokens_details: { reasoning_tokens: 2 },
			},
		});
	});

	it("streams an answer piece by piece, with usage when asked for", async () => {
		const words = ["One ", "two ", "three ", "four ", "five."];
		await start(saying(words, { pauseMs: 60 }));
		const answer = await read(await client.chat.completions.create({ ...ask(), stream: true, stream_options: { include_usage: true } }));
		expect(answer).toMatchObject({
			text: words.join(""),
			finish: "stop",
			usage: { prompt_tokens: 120, completion_tokens: 7, total_tokens: 127 },
		});
		expect(answer.pieces.length).toBeGreaterThan(3);
		const without = await read(await client.chat.completions.create({ ...ask(), stream: true }));
		expect(without).toMatchObject({ text: words.join(""), usage: null });
		const helper = client.chat.completions.stream(ask());
		expect(await helper.finalContent()).toBe(words.join(""));
	});

	it("lists the models", async () => {
		await start();
		const models = [];
		for await (const model of client.models.list()) models.push(model.id);
		expect(models).toEqual(["openlani", "main"]);
		for (const id of models) expect(await client.models.retrieve(id)).toMatchObject({ id, object: "model", owned_by: "openlani" });
		expect(await client.models.retrieve("gpt-none").catch((error: unknown) => error)).toMatchObject({
			status: 404,
			code: "model_not_found",
		});
	});

	it("is told about errors in its own shape", async () => {
		await start();
		const stranger = new OpenAI({ apiKey: "wrong", baseURL: `${url}/v1`, maxRetries: 0 });
		const refused = await stranger.chat.completions.create(ask()).catch((error: unknown) => error);
		expect(refused).toBeInstanceOf(AuthenticationError);
		expect(refused).toMatchObject({ status: 401, code: "invalid_api_key", type: "invalid_request_error" });
		const empty = await client.chat.completions
			.create({ model: "openlani", messages: [{ role: "system", content: "x" }] })
			.catch((error: unknown) => error);
		expect(empty).toBeInstanceOf(BadRequestError);
		expect(empty).toMatchObject({ code: "no_user_message" });
		expect(await client.chat.completions.create({ model: "openlani", messages: [] }).catch((error: unknown) => error)).toMatchObject({
			status: 400,
			code: "invalid_request",
		});
		expect(await client.chat.completions.create({ ...ask("  "), stream: true }).catch((error: unknown) => error)).toMatchObject({
			status: 400,
			code: "empty_message",
		});
		// Longer than a message may be anywhere else.
		expect(await client.chat.completions.create(ask("word ".repeat(50_000))).catch((error: unknown) => error)).toMatchObject({
			status: 400,
			code: "context_length_exceeded",
		});
		expect(await messagesOf()).toEqual([]);
		expect(await client.get("/nothing").catch((error: unknown) => error)).toMatchObject({ status: 404, code: "not_found" });
	});

	it("gets a failed turn as an error, also when there is partial text, and does not send the message again", async () => {
		const failing: Script = async function* () {
			yield { type: "step-started", step: 1, round: 1, chars: 1 };
			yield { type: "delta", step: 1, text: "Half an ans" };
			await pause(100);
			return yield* ended(
				outcome({ reply: "The model did not answer.", fromUs: true, state: "failed", error: { kind: "server", message: "500" } }),
			);
		};
		await start(failing);
		const whole = await client.chat.completions.create(ask()).catch((error: unknown) => error);
		expect(whole).toMatchObject({ status: 502, code: "turn_failed", type: "server_error" });
		expect((whole as APIError).message).toContain("The model did not answer.");
		const streamed = await client.chat.completions
			.create({ ...ask(), stream: true })
			.then(read)
			.catch((error: unknown) => error);
		expect(streamed).toBeInstanceOf(APIError);
		expect(streamed).toMatchObject({ code: "turn_failed" });
		expect((await messagesOf()).filter(({ role }) => role === "user")).toHaveLength(2);
	});

	it("talks in the conversation that it names, made when it does not exist", async () => {
		await start();
		await client.chat.completions.create(ask("in api"));
		await client.chat.completions.create(ask("in other"), { headers: { "X-OpenLani-Conversation": "other" } });
		await client.chat.completions.create(ask("again"), { headers: { "X-OpenLani-Conversation": "other" } });
		await client.chat.completions.create(ask("名字"), { headers: { "X-OpenLani-Conversation": Buffer.from("周报").toString("latin1") } });
		const titles = (await house.store.conversations.list({})).map(({ title }) => title).sort();
		expect(titles).toEqual(["api", "other", "周报"]);
		expect((await messagesOf("other")).map(({ text }) => text)).toEqual(["in other", "Hello there.", "again", "Hello there."]);
	});

	it("sends only its last user message, with pictures, and fetches none", async () => {
		await start();
		const png = Buffer.from("89504e470d0a1a0a0000000d", "hex").toString("base64");
		await client.chat.completions.create({
			model: "openlani",
			messages: [
				{ role: "system", content: "be a pirate" },
				{ role: "user", content: "old" },
				{ role: "assistant", content: "older" },
				{
					role: "user",
					content: [
						{ type: "text", text: "what is" },
						{ type: "text", text: "this?" },
						{ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
					],
				},
			],
		});
		const [user] = await messagesOf();
		expect(user).toMatchObject({ text: "what is\nthis?", attachments: [{ kind: "image", mimeType: "image/png", bytes: 12 }] });
		const remote = await client.chat.completions
			.create(ask([{ type: "image_url", image_url: { url: "http://127.0.0.1:9/x.png" } }]))
			.catch((error: unknown) => error);
		expect(remote).toMatchObject({ status: 400, code: "remote_url" });
		const broken = await client.chat.completions
			.create(ask([{ type: "image_url", image_url: { url: "data:image/png;base64,@@@" } }]))
			.catch((error: unknown) => error);
		expect(broken).toMatchObject({ status: 400, code: "bad_data_url" });
	});

	it("stops its turn when it goes away", async () => {
		for (const stream of [true, false]) {
			await start(saying(["a", "b", "c"], { pauseMs: 3000 }));
			const controller = new AbortController();
			const asked = client.chat.completions.create({ ...ask(), stream }, { signal: controller.signal }).then(async (answer) => {
				if (Symbol.asyncIterator in answer) await read(answer);
			});
			const { id } = await house.gateway.namedConversation("api");
			await until(async () => (await house.store.turns.open(id)).some(({ state }) => state === "running"));
			controller.abort();
			await asked.catch(() => {});
			await until(async () => (await house.store.turns.list({ conversationId: id, limit: 1 }))[0]?.state === "stopped", "the stop");
			if (stream) await house.close();
		}
	});

	it.each(["Stopped.", "half an ans"])("is told when somebody else stopped the answer: %s", async (reply) => {
		await start(async function* () {
			return yield* ended(outcome({ reply, fromUs: reply === "Stopped.", state: "stopped" }));
		});
		const streamed = async () => read(await client.chat.completions.create({ ...ask(), stream: true }));
		for (const asking of [streamed, () => client.chat.completions.create(ask())])
			expect(await asking().catch((error: unknown) => error)).toMatchObject({ code: "turn_stopped" });
	});

	it("leaves the turn alone while somebody else waits for it", async () => {
		await start(saying(["slow ", "answer"], { pauseMs: 150 }));
		const controller = new AbortController();
		const leaving = client.chat.completions.create(ask("one"), { signal: controller.signal }).catch(() => {});
		const { id } = await house.gateway.namedConversation("api");
		await until(async () => (await house.store.turns.open(id)).length > 0);
		const staying = client.chat.completions.create(ask("two"));
		await until(async () => (await messagesOf()).length === 2);
		controller.abort();
		await leaving;
		expect((await staying).choices[0]?.message.content).toBe("slow answer");
	});

	it("gets the reply alone when a remark before a tool call is begun and given up at once, or an attempt is begun anew", async () => {
		await start(async function* () {
			yield { type: "step-started", step: 1, round: 1, chars: 1 };
			yield { type: "delta", step: 1, text: "Let me look." };
			yield { type: "step-started", step: 2, round: 1, chars: 1 };
			yield { type: "delta", step: 2, text: "The wrong st" };
			yield { type: "restart", step: 2, model: "spare", reason: "server" };
			yield { type: "delta", step: 2, text: "It is noon." };
			return yield* ended(outcome({ reply: "It is noon." }));
		});
		expect((await read(await client.chat.completions.create({ ...ask(), stream: true }))).text).toBe("It is noon.");
	});

	it("gets an error when what it has read is void", async () => {
		await start(async function* () {
			yield { type: "step-started", step: 1, round: 1, chars: 1 };
			yield { type: "delta", step: 1, text: "The wrong start" };
			await pause(150);
			yield { type: "restart", step: 1, model: "spare", reason: "server" };
			yield { type: "delta", step: 1, text: "It is noon." };
			return yield* ended(outcome({ reply: "It is noon." }));
		});
		expect(
			await client.chat.completions
				.create({ ...ask(), stream: true })
				.then(read)
				.catch((error: unknown) => error),
		).toMatchObject({ code: "stream_restarted" });
	});

	it("gets the answer of `finish`, which is never streamed, and the end of an intended silence", async () => {
		await start(async function* () {
			return yield* ended(outcome({ reply: "Said by finish." }));
		});
		expect((await read(await client.chat.completions.create({ ...ask(), stream: true }))).text).toBe("Said by finish.");
		house.setScript(async function* () {
			return yield* ended(outcome({ reply: "", silent: true }));
		});
		expect(await read(await client.chat.completions.create({ ...ask(), stream: true }))).toMatchObject({ text: "", finish: "stop" });
		expect((await client.chat.completions.create(ask())).choices[0]?.message.content).toBe("");
	});

	it("says when the answer was cut", async () => {
		await start(saying(["cut"], { end: { guard: "length" } }));
		expect((await client.chat.completions.create(ask())).choices[0]?.finish_reason).toBe("length");
	});
});

describe("streamed text", () => {
	function run(work: (text: ReturnType<typeof createAnswerText>, fire: () => void) => boolean | undefined): {
		said: string;
		good: boolean | undefined;
	} {
		let said = "";
		let callback: (() => void) | null = null;
		const text = createAnswerText({
			emit: (piece) => {
				said += piece;
			},
			holdMs: 50,
			setTimer(next) {
				callback = next;
				return () => {
					callback = null;
				};
			},
		});
		const good = work(text, () => {
			const due = callback;
			callback = null;
			due?.();
		});
		return { said, good };
	}

	it("goes on where a new attempt says the same", () => {
		expect(
			run((text, fire) => {
				text.stepStarted();
				text.delta("It is");
				fire();
				text.restart();
				text.delta("It ");
				text.delta("is noon.");
				return text.finish("It is noon.");
			}),
		).toEqual({ said: "It is noon.", good: true });
	});

	it("begins a paragraph after a remark that was read already", () => {
		expect(
			run((text, fire) => {
				text.stepStarted();
				text.delta("Let me look.");
				fire();
				text.stepStarted();
				text.delta("It is ");
				fire();
				text.delta("noon.");
				return text.finish("It is noon.");
			}),
		).toEqual({ said: "Let me look.\n\nIt is noon.", good: true });
	});

	it("adds what the reply has more, and does not mind trimmed ends", () => {
		expect(
			run((text, fire) => {
				text.stepStarted();
				text.delta("\nIt is");
				fire();
				text.delta(" noon. \n");
				return text.finish("It is noon.");
			}),
		).toEqual({ said: "\nIt is noon. \n", good: true });
		expect(
			run((text, fire) => {
				text.stepStarted();
				text.delta("It");
				fire();
				return text.finish("It is noon.");
			}),
		).toEqual({ said: "It is noon.", good: true });
	});

	it("does not call a void beginning a success, however the turn goes on", () => {
		expect(
			run((text, fire) => {
				text.stepStarted();
				text.delta("Wrong");
				fire();
				text.restart();
				text.delta("Right");
				text.stepStarted();
				text.delta("The end.");
				return text.finish("The end.");
			}),
		).toMatchObject({ good: false });
	});
});
