import SQLite from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { InboundMessage } from "../../../channels/channel.ts";
import type { Exchange } from "../../../server/agent/types.ts";
import type { Memory } from "../../../server/memory/memory.ts";
import type { Model, ModelRequest } from "../../../server/model/model.ts";
import { gate, recordingChannel, type TestGateway, testGateway } from "../../helpers/gateway.ts";
import { type TestHome, testHome } from "../../helpers/store.ts";
import { call, type Say, scripted } from "../agent/scripted.ts";

let home: TestHome;
let up: TestGateway | null = null;
beforeEach(async () => {
	home = await testHome();
});
afterEach(async () => {
	await up?.close();
	up = null;
	await home.remove();
});

async function start(options: Parameters<typeof testGateway>[1]): Promise<TestGateway> {
	up = await testGateway(home, options);
	await up.gateway.start();
	return up;
}

/** The scripted model, held at a gate before each answer that has one. */
function gated(script: (Say & { gate?: ReturnType<typeof gate> })[]): Model & { requests: ModelRequest[] } {
	const inner = scripted(script);
	let n = 0;
	return {
		...inner,
		requests: inner.requests,
		async *stream(request, signal) {
			await script[Math.min(n++, script.length - 1)]?.gate?.wait();
			yield* inner.stream(request, signal);
		},
	};
}

const submit = (to: TestGateway, conversationId: string, text: string, clientId: string | null = null) =>
	to.gateway.submit({ conversationId, text, attachments: [], model: null, clientId, limits: {}, replaces: null });
const answer = (to: TestGateway, messageId: string) => to.gateway.whenAnswered(messageId, AbortSignal.timeout(10_000));
const lastUser = (request: ModelRequest) => JSON.stringify(request.messages.filter((message) => message.role === "user"));

function inbound(
	place: string,
	text: string,
	change: { externalId?: string; account?: string; name?: string; group?: string; verified?: boolean } = {},
): InboundMessage {
	return {
		externalId: change.externalId ?? `${place}-${text}`,
		address: { channel: "tg", account: "default", conversation: place },
		sender: { account: change.account ?? "boss", name: change.name ?? "Boss", isBot: false, verified: change.verified ?? true },
		group: change.group ? { id: change.group, title: "Riders", addressed: "mention" } : null,
		text,
		attachments: [],
		sentAt: Date.now(),
		notes: [],
	};
}

describe("a message from the page", () => {
	it("is answered, shown, and delivered with a receipt", async () => {
		const to = await start({ model: scripted([{ text: "hello there" }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		expect(await to.ask(id, "hi")).toBe("hello there");
		const [row] = await to.store.outbox.list({ limit: 5 });
		expect(row).toMatchObject({ state: "sent", channel: "web" });
		const shown = to.frames.filter((frame) => frame.type === "message");
		expect(shown.map((frame) => frame.message.text)).toEqual(["hi", "hello there"]);
		expect(shown[1]?.message).toMatchObject({ delivery: "sent", model: "main", usage: { inputTokens: 10 } });
		expect(
			to.frames
				.filter((frame) => frame.type === "delta")
				.map((frame) => frame.text)
				.join(""),
		).toBe("hello there");
	});

	it("says with the end of its turn whether a guard ended it", async () => {
		const to = await start({ model: scripted([{ text: "fine" }, { text: "cut", finish: "length" }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		await to.ask(id, "hi");
		await to.ask(id, "tell me all");
		await to.seen(() => to.frames.filter((frame) => frame.type === "turn" && frame.state === "done").length === 2);
		const ends = to.frames.filter((frame) => frame.type === "turn").filter((frame) => frame.state === "done");
		expect(ends.map((frame) => frame.guard)).toEqual([undefined, "length"]);
	});

	it("with the same client id twice is one message and one answer", async () => {
		const to = await start({ model: scripted([{ text: "once" }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		const [one, two] = await Promise.all([submit(to, id, "hi", "c-1"), submit(to, id, "hi", "c-1")]);
		expect(two?.messageId).toBe(one?.messageId);
		await answer(to, one?.messageId as string);
		expect(await submit(to, id, "hi", "c-1")).toMatchObject({ messageId: one?.messageId, duplicate: true });
		expect((await to.store.messages.list(id, { limit: 10 })).map((row) => row.text)).toEqual(["hi", "once"]);
	});

	it("that has no text is refused by name", async () => {
		const to = await start({ model: scripted([{ text: "x" }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		await expect(submit(to, id, "  ")).rejects.toMatchObject({ code: "empty-message" });
		await expect(submit(to, "nowhere", "hi")).rejects.toMatchObject({ code: "conversation-not-found" });
		await expect(
			to.gateway.submit({
				conversationId: id,
				text: "",
				attachments: [{ sha256: "a".repeat(64) }],
				model: null,
				clientId: null,
				limits: {},
				replaces: null,
			}),
		).rejects.toMatchObject({ code: "attachment-not-found" });
	});
});

describe("a message to a conversation that was deleted meanwhile", () => {
	it("is refused, stores nothing, and takes no place from others", async () => {
		const to = await start({ model: scripted([{ text: "here" }]), maxTurns: 1 });
		const { id } = await to.gateway.createConversation("Boat", "web");
		await answer(to, (await submit(to, id, "hi")).messageId);
		// By somebody else: nobody here was told.
		await to.store.conversations.remove(id);
		for (let n = 0; n < 2; n++) await expect(submit(to, id, "still there?")).rejects.toMatchObject({ code: "conversation-not-found" });
		expect(await to.store.messages.list(id, { limit: 10 })).toEqual([]);
		expect(await to.store.turns.open(id)).toEqual([]);
		const other = await to.gateway.createConversation("Shed", "web");
		expect(await answer(to, (await submit(to, other.id, "hi")).messageId)).toMatchObject({ replyId: expect.any(String) });
	});
});

describe("messages that come together", () => {
	it("join the running turn at its next step", async () => {
		const hold = gate();
		const model = gated([{ calls: [call("now")], gate: hold }, { text: "both" }]);
		const to = await start({ model });
		const { id } = await to.gateway.createConversation(null, "web");
		const first = await submit(to, id, "one");
		await hold.reached;
		const second = await submit(to, id, "two");
		expect(second.turnId).toBe(first.turnId);
		hold.open();
		const [a, b] = await Promise.all([answer(to, first.messageId), answer(to, second.messageId)]);
		expect(a).toEqual(b);
		expect(model.requests).toHaveLength(2);
		expect(lastUser(model.requests[1] as ModelRequest)).toContain("two");
	});

	it("start the next turn together when no step follows", async () => {
		const hold = gate();
		const model = gated([{ text: "first", gate: hold }, { text: "second" }]);
		const to = await start({ model });
		const { id } = await to.gateway.createConversation(null, "web");
		const one = await submit(to, id, "one");
		await hold.reached;
		const two = await submit(to, id, "two");
		const three = await submit(to, id, "three");
		hold.open();
		const answers = await Promise.all([one, two, three].map((sent) => answer(to, sent.messageId)));
		expect(answers[1]).toEqual(answers[2]);
		expect(answers[0]?.turnId).not.toBe(answers[1]?.turnId);
		expect((await to.store.messages.list(id, { limit: 10 })).filter((row) => row.role === "assistant").map((row) => row.text)).toEqual([
			"first",
			"second",
		]);
	});

	it("of another person wait for the next turn, with that person's own rights", async () => {
		const hold = gate();
		const model = gated([{ calls: [call("now")], gate: hold }, { text: "to the boss" }, { text: "to the guest" }]);
		const tg = recordingChannel("tg");
		const to = await start({ model, channels: [tg.channel] });
		await to.gateway.accept("tg", inbound("g1", "mine", { group: "g1" }));
		await hold.reached;
		await to.gateway.accept("tg", inbound("g1", "theirs", { group: "g1", account: "guest", name: "Guest" }));
		hold.open();
		await to.seen(
			(frame) =>
				frame.type === "turn" &&
				frame.state === "done" &&
				to.frames.filter((one) => one.type === "turn" && one.state === "done").length === 2,
		);
		expect(lastUser(model.requests[1] as ModelRequest)).not.toContain("theirs");
		const turns = await to.store.turns.list({ limit: 5 });
		expect(turns.map((turn) => [turn.tier, turn.personId]).reverse()).toEqual([
			["master", "master"],
			["group", "tg-guest"],
		]);
	});

	it("in fifty conversations at once get one turn and one answer each, without a warning of the runtime", async () => {
		const warnings: string[] = [];
		const warned = (warning: Error) => void warnings.push(warning.message);
		process.on("warning", warned);
		const to = await start({ model: scripted([(request) => ({ text: `echo ${/n\d+/.exec(lastUser(request))?.[0]}` })]) });
		const all = await Promise.all(
			Array.from({ length: 50 }, async (_, n) => {
				const { id } = await to.gateway.createConversation(null, "web");
				return { n, id, text: await to.ask(id, `n${n}`) };
			}),
		);
		for (const { n, text } of all) expect(text).toBe(`echo n${n}`);
		expect(await to.store.turns.list({ limit: 200 })).toHaveLength(50);
		process.off("warning", warned);
		expect(warnings).toEqual([]);
	});
});

describe("stop", () => {
	it("ends a running turn at once, keeps what happened, and the next message works", async () => {
		const to = await start({ model: scripted([{ text: "partial", hang: true }, { text: "fine" }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		const sent = await submit(to, id, "go");
		await to.seen((frame) => frame.type === "delta");
		const began = performance.now();
		expect(await to.gateway.stop(id)).toBe(true);
		expect(performance.now() - began).toBeLessThan(1500);
		expect((await to.store.turns.get(sent.turnId))?.state).toBe("stopped");
		expect(await to.ask(id, "again")).toBe("fine");
		expect(await to.gateway.stop(id)).toBe(false);
	});

	it("gives the stopped answer the model and the tokens its call was settled with, and no bare bullet", async () => {
		const usage = { inputTokens: 40, cachedTokens: 0, outputTokens: 5, reasoningTokens: 0, estimated: true, cost: 0.5, currency: "USD" };
		const to = await start({
			model: {
				contextTokens: () => 100_000,
				async *stream(request, signal) {
					const begun = { model: "main", modelName: "my-model", key: null, attempt: 1, request: {}, maxOutputTokens: 9, startedAt: 1 };
					await to.store.calls.open("call-1", { ...begun, context: request.context, estimatedInputTokens: 40 });
					try {
						yield { type: "text", text: "Try this:\n\n- one\n- " };
						await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
						throw new Error("stopped");
					} finally {
						const error = { kind: "aborted" as const, message: "stopped", status: null };
						await to.store.calls.close("call-1", { response: null, error, usage, ms: 5, firstByteMs: 1 });
					}
				},
			},
		});
		const { id } = await to.gateway.createConversation(null, "web");
		const { turnId } = await submit(to, id, "go");
		await to.seen((frame) => frame.type === "delta");
		await to.gateway.stop(id);
		const shown = await to.seen((frame) => frame.type === "message" && frame.message.role === "assistant");
		expect(shown).toMatchObject({
			message: {
				text: "Try this:\n\n- one",
				model: "main",
				modelName: "my-model",
				stopped: true,
				usage: { inputTokens: 40, outputTokens: 5, cost: 0.5 },
			},
		});
		expect(await to.store.turns.get(turnId)).toMatchObject({ model: "main", usage: { inputTokens: 40, calls: 1, estimated: true } });
	});

	it("cancels what was only queued", async () => {
		const hold = gate();
		const to = await start({ model: gated([{ text: "first", gate: hold }]), maxTurns: 1 });
		const one = await to.gateway.createConversation(null, "web");
		const two = await to.gateway.createConversation(null, "web");
		await submit(to, one.id, "one");
		await hold.reached;
		const queued = await submit(to, two.id, "two");
		expect(await to.gateway.stop(two.id)).toBe(true);
		expect((await to.store.turns.get(queued.turnId))?.state).toBe("stopped");
		expect(await answer(to, queued.messageId)).toMatchObject({ replyId: null });
		hold.open();
	});
});

describe("edit and resend", () => {
	it("supersedes the message and all after it, and the model does not see them", async () => {
		const model = scripted([{ text: "old answer" }, { text: "new answer" }]);
		const to = await start({ model });
		const { id } = await to.gateway.createConversation(null, "web");
		const first = await submit(to, id, "old question");
		await answer(to, first.messageId);
		const again = await to.gateway.submit({
			conversationId: id,
			text: "new question",
			attachments: [],
			model: null,
			clientId: null,
			limits: {},
			replaces: first.messageId,
		});
		await answer(to, again.messageId);
		expect(JSON.stringify(model.requests[1]?.messages)).not.toContain("old");
		expect((await to.store.messages.list(id, { limit: 10 })).map((row) => row.text)).toEqual(["new question", "new answer"]);
	});

	it("sent once more with the same client id does not stop its own answer, however the two overlap", async () => {
		const hold = gate();
		const to = await start({ model: gated([{ text: "old answer" }, { text: "new answer", gate: hold }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		const first = await submit(to, id, "old question");
		await answer(to, first.messageId);
		const edit = () =>
			to.gateway.submit({
				conversationId: id,
				text: "new question",
				attachments: [],
				model: null,
				clientId: "edit",
				limits: {},
				replaces: first.messageId,
			});
		const [one, two] = await Promise.all([edit(), edit()]);
		await hold.reached;
		const three = await edit();
		expect([two, three]).toEqual([one, one].map((sent) => ({ ...sent, duplicate: true })));
		hold.open();
		await answer(to, one.messageId);
		expect((await to.store.messages.list(id, { limit: 10 })).map((row) => row.text)).toEqual(["new question", "new answer"]);
	});
});

describe("a crash", () => {
	it("in the model call: the same turn runs again, one answer", async () => {
		const hold = gate();
		const first = await testGateway(home, { model: gated([{ text: "never", gate: hold }]) });
		await first.gateway.start();
		const { id } = await first.gateway.createConversation(null, "web");
		const sent = await submit(first, id, "question");
		await hold.reached;
		await first.crash();
		hold.open();
		const to = await start({ model: scripted([{ text: "answer" }]) });
		expect(await answer(to, sent.messageId)).toMatchObject({ turnId: sent.turnId });
		expect((await to.store.messages.list(id, { limit: 10 })).map((row) => row.text)).toEqual(["question", "answer"]);
	});

	it("between a tool's result and the next step: the tool is not run again", async () => {
		const hold = gate();
		const tg = recordingChannel("tg");
		const model = gated([{ calls: [call("send_message", { channel: "tg", to: "42", text: "ping" })] }, { text: "never", gate: hold }]);
		const first = await testGateway(home, { model, channels: [tg.channel] });
		await first.gateway.start();
		const { id } = await first.gateway.createConversation(null, "web");
		const sent = await submit(first, id, "send it");
		await hold.reached;
		await first.crash();
		hold.open();
		const after = scripted([{ text: "sent" }]);
		const to = await start({ model: after, channels: [tg.channel] });
		await answer(to, sent.messageId);
		expect(tg.sent.map((message) => message.text)).toEqual(["ping"]);
		expect(JSON.stringify(after.requests[0])).toContain("send_message");
	});

	it("before frames were written: they are said again after the restart", async () => {
		const first = await testGateway(home, { model: scripted([{ text: "answer" }]) });
		await first.gateway.start();
		const { id } = await first.gateway.createConversation(null, "web");
		await first.ask(id, "question");
		await first.store.close();
		const to = await start({ model: scripted([{ text: "x" }]) });
		const { frames, reset } = await to.bus.replay(1);
		const told = frames.filter((frame) => frame.type === "message").map((frame) => frame.message.text);
		expect(reset || (told.includes("question") && told.includes("answer"))).toBe(true);
	});
});

describe("delivery", () => {
	it("waits as long as the platform says and neither loses nor doubles", async () => {
		let refusals = 0;
		const tg = recordingChannel("tg", (message) =>
			refusals++ === 0
				? { state: "failed", reason: "429", permanent: false, retryAfterMs: 10 }
				: { state: "sent", platformIds: [message.id] },
		);
		const to = await start({ model: scripted([{ text: "answer" }]), channels: [tg.channel] });
		await to.gateway.accept("tg", inbound("42", "hi"));
		await to.seen((frame) => frame.type === "message" && frame.message.role === "assistant" && frame.message.delivery === "sent");
		expect(tg.sent).toHaveLength(2);
		expect(new Set(tg.sent.map((message) => message.id)).size).toBe(1);
	});

	it("passes the filter: masked text is what is sent and what is shown; held text waits for a person", async () => {
		const tg = recordingChannel("tg");
		const to = await start({
			model: scripted([{ text: "the word is swordfish" }, { text: "hold this" }]),
			channels: [tg.channel],
			filter: {
				check: (text) =>
					text.includes("hold")
						? { verdict: "hold", text: "", matches: [] }
						: { verdict: "mask", text: text.replace("swordfish", "****"), matches: [] },
				stream: () => ({ push: () => "", end: () => "" }),
			},
		});
		await to.gateway.accept("tg", inbound("42", "one"));
		await to.seen((frame) => frame.type === "message" && frame.message.delivery === "sent");
		expect(tg.sent.map((message) => message.text)).toEqual(["the word is ****"]);
		expect((await to.store.outbox.list({ limit: 1 }))[0]?.text).toBe("the word is ****");
		await to.gateway.accept("tg", inbound("42", "two"));
		await to.seen((frame) => frame.type === "message" && frame.message.delivery === "held");
		const [held] = await to.store.outbox.list({ state: "held", limit: 1 });
		expect(tg.sent).toHaveLength(1);
		const released = await to.store.outbox.decide(held?.id as string, "release", Date.now());
		to.gateway.outboxChanged(released as never);
		await to.seen((frame) => frame.type === "message" && frame.message.text === "hold this" && frame.message.delivery === "sent");
	});
});

describe("a turn that brought no answer", () => {
	/** Keeps exchanges as it is told, and shows them to the next turn. */
	function keeping(): Memory & { kept: Exchange[] } {
		const kept: Exchange[] = [];
		return {
			kept,
			history: async () => [...kept],
			blocks: async () => [],
			recall: async () => [],
			takenBack: () => undefined,
			remember: async (_scope, exchange) => void kept.push(exchange),
			stop: async () => undefined,
		};
	}

	it("is known to the next one: stopped before or in the middle of the answer, or with a server down", async () => {
		const memory = keeping();
		const model = scripted([{ hang: true }, { text: "My name is La", hang: true }, { error: "server" }, { text: "here I am" }]);
		const to = await start({ model, memory });
		const { id } = await to.gateway.createConversation(null, "web");
		for (const text of ["first", "second"]) {
			const { messageId } = await submit(to, id, text);
			await to.seen((frame) => frame.type === (text === "first" ? "step" : "delta"));
			expect(await to.gateway.stop(id)).toBe(true);
			await answer(to, messageId);
		}
		await to.ask(id, "third");
		expect(await to.ask(id, "fourth")).toBe("here I am");
		const request = model.requests.at(-1)?.messages.filter((message) => message.role !== "system");
		const texts = request?.map((message) =>
			message.role === "user" ? JSON.stringify(message.content) : (message as { text: string }).text,
		);
		expect(texts?.map((text) => /first|second|third|fourth|no reply|My name is La/.exec(text)?.[0])).toEqual([
			"first",
			"no reply",
			"second",
			"My name is La",
			"third",
			"no reply",
			"fourth",
		]);
	});

	it("waits in its memory for a disk that is full: the next turn knows it all the same", async () => {
		const memory = keeping();
		let full = 2;
		const model = scripted([{ text: "nice to meet you" }, { text: "you are Lani" }]);
		const to = await start({
			model,
			memory: {
				...memory,
				async remember(scope, exchange) {
					if (full-- > 0) throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
					await memory.remember(scope, exchange);
				},
			},
		});
		const { id } = await to.gateway.createConversation(null, "web");
		await to.ask(id, "I am Lani");
		await to.ask(id, "who am I?");
		expect(JSON.stringify(model.requests[1]?.messages)).toContain("I am Lani");
	});

	it("because of what was said is not: it would spoil every later request", async () => {
		const memory = keeping();
		const to = await start({
			model: scripted([{ error: "bad-request" }, { error: "context-length" }, { error: "context-length" }, { text: "fine" }]),
			memory,
		});
		const { id } = await to.gateway.createConversation(null, "web");
		for (const text of ["poison", "flood", "hello"]) await to.ask(id, text);
		expect(memory.kept.map((exchange) => exchange.said)).toEqual(["hello"]);
	});
});

describe("a conversation that is deleted during a turn", () => {
	it("keeps nobody waiting for its answer", async () => {
		const to = await start({ model: scripted([{ text: "half an answer", hang: true }]) });
		const { id } = await to.gateway.createConversation(null, "web");
		const { messageId } = await submit(to, id, "hi");
		const answered = to.gateway.whenAnswered(messageId, AbortSignal.timeout(8_000));
		await to.seen((frame) => frame.type === "delta");
		expect(await to.gateway.removeConversation(id)).toBe(true);
		expect(await answered).not.toBeNull();
		expect(await to.store.conversations.get(id)).toBeNull();
	});

	it("is there to be deleted once more where what was made of it could not go", async () => {
		const asked: string[] = [];
		const onRemoving = async (id: string) => {
			asked.push(id);
			if (asked.length === 1) throw new Error("the disk went away");
		};
		const to = await start({ model: scripted([{ text: "hello" }]), onRemoving });
		const { id } = await to.gateway.createConversation(null, "web");
		await to.ask(id, "hi");
		await expect(to.gateway.removeConversation(id)).rejects.toThrow("disk went away");
		expect((await to.store.messages.list(id, { limit: 9 })).map(({ text }) => text)).toEqual(["hi", "hello"]);
		expect(await to.gateway.removeConversation(id)).toBe(true);
		expect(await to.gateway.removeConversation(id)).toBe(false);
		expect(await to.gateway.removeConversation("another")).toBe(false);
		expect(asked).toEqual([id, id]);
	});

	it("begins anew with a channel's message that comes before it is gone", async () => {
		const { channel, sent } = recordingChannel("tg");
		const to = await start({ model: scripted([{ text: "one" }, { text: "two" }]), channels: [channel] });
		await to.gateway.accept("tg", inbound("42", "hi"));
		await expect.poll(() => sent.length).toBe(1);
		const [{ id } = { id: "" }] = await to.store.conversations.list({});
		const flush = to.bus.flush;
		let late: Promise<unknown> = Promise.resolve();
		to.bus.flush = async () => {
			late = to.gateway.accept("tg", inbound("42", "again"));
			await flush();
		};
		expect(await to.gateway.removeConversation(id)).toBe(true);
		to.bus.flush = flush;
		await late;
		await expect.poll(() => sent.map(({ text }) => text)).toEqual(["one", "two"]);
		const kept = await to.store.conversations.list({});
		expect(kept).toHaveLength(1);
		expect(kept[0]?.id).not.toBe(id);
	});

	it("lets no message in that comes before it is gone", async () => {
		const removed = gate();
		const to = await start({ model: gated([{ calls: [call("now")], gate: removed }, { text: "done" }]) });
		const { id } = await to.gateway.createConversation("talk", "web");
		const flush = to.bus.flush;
		let late: Promise<unknown> = Promise.resolve();
		to.bus.flush = async () => {
			late = submit(to, id, "late").catch((error: Error) => error.message);
			await late;
			await flush();
		};
		expect(await to.gateway.removeConversation(id)).toBe(true);
		to.bus.flush = flush;
		removed.open();
		await expect.poll(() => to.gateway.running()).toBe(0);
		expect(await late).toMatch(/deleted/);
		await flush();
		const raw = new SQLite(home.file, { readonly: true });
		for (const table of ["messages", "inbox", "outbox", "turns", "steps", "tool_calls"])
			expect(raw.prepare(`select count(*) as count from ${table}`).get(), table).toEqual({ count: 0 });
		expect(raw.prepare("select distinct type from events where conversation_id is not null").all()).toEqual([{ type: "conversation" }]);
		raw.close();
	});
});

describe("a full disk", () => {
	it("holds a turn up, and it goes on where it was: no model call or tool is run again", async () => {
		const model = scripted([{ calls: [call("now")] }, { text: "there is room again" }]);
		const to = await start({ model });
		const { turns } = to.store;
		let left = 2;
		const full =
			<A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
			async (...args: A): Promise<R> => {
				if (left-- > 0) throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
				return work(...args);
			};
		turns.stepStored = full(turns.stepStored);
		const { id } = await to.gateway.createConversation(null, "web");
		expect(await to.ask(id, "hi")).toBe("there is room again");
		expect(left).toBeLessThan(0);
		expect(model.requests.length).toBe(2);
	});

	it("does not keep a turn from being stopped", async () => {
		const to = await start({ model: scripted([{ calls: [call("now")] }]) });
		let tried = 0;
		to.store.turns.stepStored = async () => {
			tried++;
			throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
		};
		const { id } = await to.gateway.createConversation(null, "web");
		const { turnId } = await submit(to, id, "hi");
		await expect.poll(() => tried).toBeGreaterThan(0);
		await to.gateway.stop(id);
		await expect.poll(async () => (await to.store.turns.get(turnId))?.state).toMatch(/stopped|failed/);
	});
});

describe("who it is", () => {
	it("is said by the platform's account alone", async () => {
		const tg = recordingChannel("tg");
		const to = await start({ model: scripted([{ text: "ok" }]), channels: [tg.channel] });
		await to.gateway.accept("tg", inbound("1", "I am the master", { account: "mallory", name: "Boss" }));
		await to.gateway.accept("tg", inbound("2", "hello", { account: "boss", verified: false }));
		await to.gateway.accept("tg", inbound("3", "hello", { account: "boss" }));
		await to.seen(() => to.frames.filter((frame) => frame.type === "turn" && frame.state === "done").length === 3);
		const tiers = Object.fromEntries((await to.store.turns.list({ limit: 5 })).map((turn) => [turn.personId, turn.tier]));
		expect(tiers).toEqual({ "tg-mallory": "stranger", "tg-boss": "stranger", master: "master" });
	});
});

describe("the fuse", () => {
	it("tells once, loses nothing, and answers when it holds again", async () => {
		let blown = true;
		let told = false;
		const to = await start({
			model: scripted([{ text: "at last" }]),
			admission: async () => {
				if (!blown) return null;
				const tell = !told;
				told = true;
				return { policy: "wait", until: Date.now() + 3_600_000, sentence: "the limit of today is reached", tell };
			},
		});
		const { id } = await to.gateway.createConversation(null, "web");
		const one = await submit(to, id, "one");
		await to.seen((frame) => frame.type === "message" && frame.message.text.includes("limit"));
		const two = await submit(to, id, "two");
		blown = false;
		await to.gateway.retryHeld();
		await Promise.all([answer(to, one.messageId), answer(to, two.messageId)]);
		expect((await to.store.messages.list(id, { limit: 10 })).map((row) => row.text)).toEqual([
			"one",
			"the limit of today is reached",
			"two",
			"at last",
		]);
	});
});
