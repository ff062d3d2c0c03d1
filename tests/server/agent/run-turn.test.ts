import { describe, expect, it } from "vitest";
import type { ContentPart } from "../../../server/model/model.ts";
import { call, input, message, results, run, texts, tool } from "./scripted.ts";
import { strictProblems } from "./strict.ts";

const types = (events: { type: string }[]) => events.map((event) => event.type);

describe("an answer", () => {
	it("streams, is stored once and ends the turn", async () => {
		const { events, outcome, journal, model } = await run([{ text: "Hello, nice to meet you." }]);
		expect(types(events)).toEqual(["prompt", "step-started", "delta", "delta", "delta", "delta", "step-finished", "done"]);
		expect(outcome).toMatchObject({
			state: "done",
			reply: "Hello, nice to meet you.",
			fromUs: false,
			silent: false,
			rounds: 1,
			steps: 1,
			model: "main",
			modelName: "scripted-1",
			guard: null,
			toolDigest: null,
			usage: { inputTokens: 10, cost: 0.5 },
		});
		expect(journal.log).toEqual(["step 1"]);
		expect(model.requests).toHaveLength(1);
	});

	it("passes on that a model was changed and keeps only what counts", async () => {
		const { events, outcome } = await run([{ text: "good", restart: true }]);
		expect(types(events)).toContain("restart");
		expect(outcome.reply).toBe("good");
	});

	it("sums usage over steps; an unknown price makes the sum unknown", async () => {
		const { outcome } = await run([{ calls: [call("now")] }, { text: "x" }]);
		expect(outcome.usage).toMatchObject({ inputTokens: 20, cachedTokens: 4, outputTokens: 10, cost: 1 });
		const resumed = await run([{ text: "y" }], {
			input: {
				steps: [
					step1({
						note: "go on",
						usage: { inputTokens: 7, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: true, cost: null, currency: "USD" },
					}),
				],
			},
		});
		expect(resumed.outcome.usage).toMatchObject({ inputTokens: 17, cost: null, estimated: true });
	});

	it("names the source of the call by what woke the turn", async () => {
		for (const [origin, source] of [
			["human", "chat"],
			["alarm", "alarm"],
			["heartbeat", "heartbeat"],
			["job", "job"],
			["bot", "chat"],
		] as const) {
			expect((await run([{ text: "x" }], { input: { origin } })).model.requests[0]?.context.source).toBe(source);
		}
	});
});

function step1(more: object = {}) {
	return {
		step: 1,
		round: 1,
		text: "thinking aloud",
		reasoning: "",
		calls: [],
		usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" },
		model: "main",
		modelName: "scripted-1",
		callIds: [],
		joined: [],
		note: null,
		startedAt: 1,
		endedAt: 2,
		...more,
	};
}

describe("empty and odd answers", () => {
	it("nudges once, then answers with a sentence in the person's language; nothing empty is stored", async () => {
		const { outcome, model, journal } = await run([{ text: " \n" }], { input: { messages: [message("你好")] } });
		expect(model.requests).toHaveLength(2);
		expect(texts(model.requests[1]).at(-1)).toContain("Your last answer was empty");
		expect(outcome).toMatchObject({
			state: "failed",
			fromUs: true,
			reply: expect.stringContaining("模型没有给出回答"),
			error: { kind: "protocol" },
		});
		expect(outcome.usage.inputTokens).toBe(20);
		expect(journal.steps).toEqual([]);
	});

	it("takes the answer that the nudge brings", async () => {
		const { outcome, model, journal } = await run([{ calls: [call("now")] }, { text: "" }, { text: "there" }]);
		expect(outcome).toMatchObject({ state: "done", reply: "there", steps: 2 });
		expect(journal.steps[0]?.note).toContain("Your last answer was empty");
		expect(strictProblems(model.requests[2]?.messages ?? [])).toEqual([]);
	});

	it("ends announced calls that never come", async () => {
		const { outcome, model, events } = await run([{ text: "", finish: "calls" }]);
		expect(model.requests).toHaveLength(2);
		expect(outcome).toMatchObject({ guard: "empty-calls", fromUs: true });
		expect(types(events)).toContain("guard");
	});

	it("decides by what is there, not by the finish reason", async () => {
		expect((await run([{ text: "Answer.", finish: "calls" }])).outcome.reply).toBe("Answer.");
		const odd = await run([{ calls: [call("now")], finish: "stop" }, { text: "fin" }]);
		expect(odd.outcome).toMatchObject({ reply: "fin", toolDigest: "now" });
	});

	it.each(["heartbeat", "alarm", "job"] as const)("lets a %s end in silence with one request", async (origin) => {
		const finish = await run([{ calls: [call("finish", { status: "done", reply: "" })] }], { input: { origin } });
		expect(finish.outcome).toMatchObject({ state: "done", silent: true, reply: "" });
		expect(finish.model.requests).toHaveLength(1);
		for (const text of ["", "HEARTBEAT_OK", "**NO_REPLY**"]) {
			const plain = await run([{ text }], { input: { origin } });
			expect(plain.outcome).toMatchObject({ state: "done", silent: true, reply: "" });
			expect(plain.events.filter((event) => event.type === "delta" || event.type === "step-finished")).toEqual([]);
			expect(plain.model.requests).toHaveLength(1);
		}
	});

	it("streams what an alarm has to say, whole", async () => {
		const text = "HEARTBEAT_OK is what I would have said, but the oven is still on and somebody should see to it.";
		for (const said of [text, "Tea."]) {
			const { events, outcome } = await run([{ text: said }], { input: { origin: "alarm" } });
			expect(events.flatMap((event) => (event.type === "delta" ? [event.text] : [])).join("")).toBe(said);
			expect(outcome).toMatchObject({ reply: said, silent: false });
		}
	});

	it("does not take an empty finish as an answer to a person", async () => {
		const { outcome, model } = await run([{ calls: [call("finish", { status: "done", reply: " " })] }]);
		expect(model.requests).toHaveLength(2);
		expect(outcome).toMatchObject({ state: "failed", fromUs: true });
		const withText = await run([{ text: "All done.", calls: [call("finish", { status: "done", reply: "" })] }]);
		expect(withText.outcome).toMatchObject({ state: "done", reply: "All done." });
	});

	it("never runs a call that is written as text", async () => {
		let ran = 0;
		const wipe = tool("wipe", async () => ({ text: String(++ran) }));
		const text = '<tool_call>\n{"name": "wipe", "arguments": {}}\n</tool_call>';
		const { outcome, model } = await run([{ text }], { tools: [wipe] });
		expect(ran).toBe(0);
		expect(model.requests).toHaveLength(2);
		expect(outcome.reply).toContain("as plain text");
		const quoted = await run([{ calls: [call("show")] }, { text }], {
			tools: [wipe, tool("show", async () => ({ text: `file:\n${text}` }))],
		});
		expect(ran).toBe(0);
		expect(quoted.outcome).toMatchObject({ state: "done", reply: text });
		const inside = await run([{ text: `It says:\n${text}` }], { tools: [wipe] });
		expect(inside.outcome.reply).toContain("It says");
		expect(ran).toBe(0);
	});

	it("says so when the provider withholds the answer", async () => {
		const { outcome, model } = await run([{ text: "", finish: "filtered" }]);
		expect(outcome.reply).toContain("content filter");
		expect(model.requests).toHaveLength(1);
	});
});

describe("an answer cut by the limit", () => {
	it("is asked for again, shorter, and the whole one is given", async () => {
		const { outcome, model } = await run([{ text: "too lo", finish: "length" }, { text: "short" }]);
		expect(outcome).toMatchObject({ reply: "short", guard: null });
		expect(texts(model.requests[1]).at(-1)).toContain("much shorter");
	});

	it("is given as it is after two more tries, saying that it is cut and what to change", async () => {
		const { outcome, model } = await run([{ text: "bit", finish: "length" }]);
		expect(model.requests).toHaveLength(3);
		expect(outcome).toMatchObject({
			state: "done",
			guard: "length",
			reply: expect.stringMatching(/^bit\n\nThe answer was cut off.*maxOutputTokens/s),
		});
	});

	it("ends as well when nothing but thinking fits", async () => {
		const { outcome, model, journal } = await run([{ text: "", finish: "length" }]);
		expect(model.requests).toHaveLength(3);
		expect(outcome).toMatchObject({ guard: "length", fromUs: true });
		expect(journal.steps).toEqual([]);
	});

	it("runs whole calls and tells the model of the cut one", async () => {
		const ran: unknown[] = [];
		const echo = tool("echo", async (args) => ({ text: JSON.stringify(ran.push(args)) }), {
			parameters: { type: "object", properties: { a: { type: "string" } } },
			readOnly: false,
			effect: "outside",
		});
		const { model } = await run(
			[
				{ finish: "length", calls: [call("echo", { a: "x" }), call("echo", '{"a":"unfini'), call("echo", "", "t3")] },
				{ finish: "length", calls: [call("echo", "", "t4")] },
				{ text: "ok" },
			],
			{ tools: [echo] },
		);
		expect(ran).toEqual([{ a: "x" }]);
		expect(results(model.requests[1])[1]).toContain("Right: echo(a?: string)");
		expect(results(model.requests[2]).at(-1)).toContain("cut off by the output limit");
		expect(strictProblems(model.requests[2]?.messages ?? [])).toEqual([]);
	});
});

describe("errors of the model", () => {
	it.each([
		"bad-request",
		"auth",
		"payment",
		"rate-limited",
		"server",
		"network",
		"timeout",
		"protocol",
		"fuse",
		"no-model",
		"context-length",
	] as const)("%s becomes one plain sentence", async (error) => {
		for (const [text, han] of [
			["你好", true],
			["hello my good friend", false],
		] as const) {
			const { outcome, journal } = await run([{ text: "half an ans", error }], { input: { messages: [message(text)] } });
			expect(outcome).toMatchObject({ state: "failed", fromUs: true, error: { kind: error } });
			expect(/\p{Script=Han}/u.test(outcome.reply)).toBe(han);
			expect(outcome.reply).not.toContain("secret");
			expect(outcome.reply).not.toContain("half");
			expect(journal.steps).toEqual([]);
		}
	});

	it("folds harder once when the window is too small, then says so", async () => {
		const history = Array.from({ length: 8 }, (_, index) => ({
			id: `e${index}`,
			at: 1,
			channel: "web",
			from: null,
			said: "s".repeat(2_000),
			replied: "r".repeat(2_000),
		}));
		const { model, outcome } = await run([{ error: "context-length" }, { text: "fits" }], { input: { history } });
		expect(outcome.reply).toBe("fits");
		expect(JSON.stringify(model.requests[1]?.messages).length).toBeLessThan(JSON.stringify(model.requests[0]?.messages).length * 0.6);
		expect(texts(model.requests[1]).at(-1)).toContain("hi");
		const never = await run([{ error: "context-length" }], { input: { history } });
		expect(never.model.requests).toHaveLength(2);
		expect(never.outcome).toMatchObject({ state: "failed", error: { kind: "context-length" } });
	});

	it("makes no call at all for a prompt file larger than the window", async () => {
		const { model, outcome } = await run([{ text: "x" }], { input: { blocks: [{ name: "Agent.md", text: "a".repeat(900_000) }] } });
		expect(model.requests).toHaveLength(0);
		expect(outcome).toMatchObject({
			state: "failed",
			error: { kind: "context-length" },
			reply: expect.stringContaining("Agent.md (900000)"),
		});
	});

	it("ends as internal when the journal fails, without internals in the reply", async () => {
		const { journal } = await run([{ text: "x" }]);
		journal.stepStored = async () => {
			throw new Error("SQLITE_FULL /home/secret");
		};
		const { outcome } = await run([{ text: "x" }], { journal });
		expect(outcome).toMatchObject({ state: "failed", error: { kind: "internal" } });
		expect(outcome.reply).not.toMatch(/SQLITE|secret/);
	});
});

describe("messages that join", () => {
	it("come in at the next step boundary and stand behind the results", async () => {
		const ran = await run([{ calls: [call("now")] }, { text: "both" }], { journal: await joining([message("and this", { from: "Ann" })]) });
		expect(ran.model.requests[1]?.messages.map((item) => item.role)).toEqual(["system", "user", "assistant", "tool", "user"]);
		expect(texts(ran.model.requests[1]).at(-1)).toMatch(/^and this\n\n\[.* · web · Ann\]$/);
		expect(types(ran.events)).toContain("joined");
		expect(ran.journal.steps[0]?.joined).toHaveLength(1);
	});

	it("are left for the next turn when no step follows", async () => {
		const journal = await joining([message("late")]);
		await run([{ text: "bye" }], { journal });
		await run([{ calls: [call("finish", { status: "done", reply: "bye" })] }], { journal });
		expect(journal.joining).toHaveLength(1);
	});
});

async function joining(messages: ReturnType<typeof message>[]) {
	const { journal } = await run([{ text: "x" }]);
	journal.steps.length = 0;
	journal.joining = [messages];
	return journal;
}

describe("images", () => {
	const picture = { sha256: "aa", name: "shot.png", mimeType: "image/png", bytes: 9, kind: "image" as const };
	it("from tools are shown in the next step and given to people", async () => {
		const { model, outcome } = await run([{ calls: [call("look")] }, { text: "nice" }], {
			tools: [tool("look", async () => ({ text: "a picture", attachments: [picture] }))],
		});
		const parts = model.requests[1]?.messages.flatMap((item) => (item.role === "user" ? item.content : [])) as ContentPart[];
		expect(parts.filter((part) => part.type === "image")).toHaveLength(1);
		expect(outcome.attachments).toEqual([picture]);
	});
});

describe("folding", () => {
	it("folds the oldest whole steps, never the first message, and the whole log stays", async () => {
		const big = tool("big", async (args) => ({ text: `${args.n} ${"x".repeat(6_000)}` }), {
			parameters: { type: "object", properties: { n: { type: "integer" } } },
		});
		const script = Array.from({ length: 12 }, (_, n) => ({ calls: [call("big", { n })] }));
		const limits = { ...input().limits, requestChars: 30_000 };
		const { model, journal, outcome, events } = await run([...script, { text: "end" }], {
			tools: [big],
			input: { limits, messages: [message("THE TASK")] },
		});
		expect(outcome.reply).toBe("end");
		for (const request of model.requests) {
			expect(strictProblems(request.messages)).toEqual([]);
			expect(JSON.stringify(request.messages).length).toBeLessThan(33_000);
			expect(texts(request)[1]).toContain("THE TASK");
		}
		expect(texts(model.requests.at(-1))[2]).toMatch(/step 1: big\({"n":0}\) → 0 xxx/);
		expect(journal.steps).toHaveLength(12 + 1);
		expect(journal.steps[0]?.calls[0]?.result?.length).toBeGreaterThan(6_000);
		const folds = events.filter((event) => event.type === "folded");
		expect(folds.length).toBeGreaterThan(0);
		expect(folds.length).toBeLessThan(8);
	});

	it("keeps every message of a person that joined a folded step", async () => {
		const big = tool("big", async (args) => ({ text: `${args.n} ${"x".repeat(6_000)}` }), {
			parameters: { type: "object", properties: { n: { type: "integer" } } },
		});
		const limits = { ...input().limits, requestChars: 24_000 };
		const journal = await joining([message("DO NOT FORGET ME")]);
		const { model } = await run([...Array.from({ length: 6 }, (_, n) => ({ calls: [call("big", { n })] })), { text: "end" }], {
			tools: [big],
			input: { limits },
			journal,
		});
		expect(texts(model.requests.at(-1)).join()).toContain("DO NOT FORGET ME");
	});
});

describe("the marker of a silence as an answer to a person", () => {
	it("never reaches them: the model is asked once more", async () => {
		const { outcome, events, model } = await run([{ text: "NO_REPLY" }, { text: "Here I am." }]);
		expect(outcome.reply).toBe("Here I am.");
		expect(events.some((event) => event.type === "restart" && event.reason === "silence")).toBe(true);
		expect(model.requests).toHaveLength(2);
	});
});
