import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Call, CallDetail, EventItem, Message, OutboxItem, Turn, TurnSummary } from "../../../server/http/contract.ts";
import { cut, toMessage } from "../../../server/http/present.ts";
import { createThrottle } from "../../../server/http/throttle.ts";
import { type House, openHouse, statusOf } from "./house.ts";

let house: House;
let conversation: string;
beforeEach(async () => {
	house = await openHouse();
	conversation = await house.conversation();
});
afterEach(() => house.close());

const get = async (path: string) => (await house.call("GET", path)).json();
const send = async () => (await house.call("POST", `/api/v1/conversations/${conversation}/messages?wait=10`, { text: "hi" })).json();

describe("turns", () => {
	it("are listed and told in full, exactly as the contract says", async () => {
		const { turnId, messageId } = await send();
		await send();
		const { turns } = await get(`/api/v1/turns?conversation=${conversation}`);
		expect(turns.map((turn: unknown) => TurnSummary.strict().parse(turn).state)).toEqual(["done", "done"]);
		expect((await get(`/api/v1/turns?conversation=${conversation}&limit=1`)).turns).toHaveLength(1);
		expect((await get(`/api/v1/turns?before=${turns[0].id}`)).turns.map(({ id }: { id: string }) => id)).toEqual([turns[1].id]);
		const turn = Turn.strict().parse(await get(`/api/v1/turns/${turnId}`));
		expect(turn).toMatchObject({ id: turnId, origin: "human", state: "done", rounds: 1, messageIds: expect.arrayContaining([messageId]) });
		expect(turn.why.blocks[0]).toEqual({ name: "SOUL", chars: 13, tokens: expect.any(Number) });
		expect(await get("/api/v1/turns/none")).toMatchObject({ status: 404, code: "turn-not-found" });
		expect(await get("/api/v1/turns?before=none")).toMatchObject({ status: 400, code: "bad-before" });
	});
});

describe("calls", () => {
	it("are listed and told with request and response", async () => {
		const { turnId } = await send();
		const context = { source: "chat" as const, conversationId: conversation, turnId, personId: "master" };
		await house.store.calls.open("call-1", {
			context,
			model: "main",
			modelName: "scripted-1",
			key: "sk-…a1b2",
			attempt: 1,
			request: { model: "scripted-1" },
			estimatedInputTokens: 10,
			maxOutputTokens: 100,
			startedAt: house.clock.now(),
		});
		const usage = { inputTokens: 9, cachedTokens: 1, outputTokens: 2, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" };
		await house.store.calls.close("call-1", { response: { text: "hi" }, error: null, usage, ms: 12, firstByteMs: 5 });
		const { calls } = await get(`/api/v1/calls?turn=${turnId}`);
		expect(Call.strict().parse(calls[0])).toMatchObject({
			id: "call-1",
			source: "chat",
			inputTokens: 9,
			cost: null,
			attempts: 1,
			key: "sk-…a1b2",
			state: "done",
		});
		const detail = CallDetail.strict().parse(await get("/api/v1/calls/call-1"));
		expect([detail.request, detail.response]).toEqual([{ model: "scripted-1" }, { text: "hi" }]);
		const head = `{"model":"scripted-1","tools":["${"x".repeat(1_000)}"],"messages":[`;
		const bodies = ["one", "two"].map((text) => `${head}{"role":"user","content":"${text}"}]}`);
		for (const [n, request] of bodies.entries())
			await house.store.calls.open(`headed-${n}`, {
				context,
				model: "main",
				modelName: "scripted-1",
				key: null,
				attempt: 1,
				request,
				requestHead: head.length,
				estimatedInputTokens: 10,
				maxOutputTokens: 100,
				startedAt: house.clock.now(),
			});
		for (const [n, request] of bodies.entries()) expect(JSON.stringify((await get(`/api/v1/calls/headed-${n}`)).request)).toBe(request);
		expect(await get("/api/v1/calls/none")).toMatchObject({ status: 404, code: "call-not-found" });
	});
});

describe("events", () => {
	it("are the log as data, after a number, by level and type", async () => {
		house.bus.publish({ type: "log", level: "warn", event: "a", message: "first", conversation: null, turnId: null, data: { n: 1 } });
		house.bus.publish({ type: "log", level: "info", event: "b", message: "second", conversation, turnId: null, data: {} });
		const { events } = await get("/api/v1/events?type=log");
		for (const event of events) EventItem.strict().parse(event);
		expect(events.map(({ body }: { body: { message: string } }) => body.message)).toEqual(["first", "second"]);
		expect((await get("/api/v1/events?type=log&level=warn")).events).toHaveLength(1);
		expect((await get(`/api/v1/events?type=log&after=${events[0].seq}`)).events[0].conversation).toBe(conversation);
		expect(await get("/api/v1/events?level=loud")).toMatchObject({ status: 400, code: "invalid-request" });
		expect(await get("/api/v1/events?after=-1")).toMatchObject({ status: 400 });
	});
});

describe("the outbox", () => {
	it("shows receipts and takes a person's decision", async () => {
		const { reply } = await send();
		const { outbox } = await get("/api/v1/outbox?state=sent");
		expect(OutboxItem.strict().parse(outbox[0])).toMatchObject({ channel: "web", text: reply.text, state: "sent", attempts: 1 });
		const { id } = outbox[0];
		expect((await house.call("POST", `/api/v1/outbox/${id}/release`)).json()).toMatchObject({ status: 409, code: "wrong-state" });
		expect((await house.call("POST", "/api/v1/outbox/none/retry")).json()).toMatchObject({ status: 404 });
		await house.store.outbox.settle(id, { state: "failed", error: "no", at: house.clock.now() });
		expect((await house.call("POST", `/api/v1/outbox/${id}/retry`)).json()).toMatchObject({ id, state: "pending" });
		expect((await house.call("POST", `/api/v1/outbox/${id}/explode`)).statusCode).toBe(404);
		expect(await get("/api/v1/outbox?state=lost")).toMatchObject({ status: 400 });
	});
});

describe("the system", () => {
	it("tells its health to everybody and its status to the master", async () => {
		expect((await house.app.inject("/healthz")).json()).toEqual({ status: "ok", version: "1.2.3" });
		expect(await get("/api/v1/status")).toEqual(statusOf());
		expect(await get("/api/v1/models")).toEqual({ models: [{ id: "main", name: "Main", provider: "custom", kind: "text" }] });
	});

	it("does the work behind open health checks once a second at most", async () => {
		let asked = 0;
		const counted = await openHouse({
			status: async () => {
				asked += 1;
				return statusOf({ state: "safe-mode" });
			},
		});
		await Promise.all(Array.from({ length: 20 }, () => counted.app.inject("/healthz")));
		expect((await counted.app.inject("/healthz")).json().status).toBe("safe-mode");
		expect(asked).toBeLessThan(5);
		await counted.close();
	});

	it("tests models, saved or not, and filters", async () => {
		expect((await house.call("POST", "/api/v1/models/test", { id: "main" })).json()).toMatchObject({ ok: true, message: "tested main" });
		expect(
			(await house.call("POST", "/api/v1/models/test", { id: "new", provider: "custom", model: "m", baseUrl: "http://127.0.0.1:1" })).json()
				.message,
		).toBe("tested new");
		expect((await house.call("POST", "/api/v1/models/test", {})).statusCode).toBe(400);
		expect((await house.call("POST", "/api/v1/filter/test", { text: "hello" })).json()).toEqual({
			verdict: "allow",
			text: "hello",
			matches: [],
		});
	});

	it("describes itself as OpenAPI", async () => {
		const document = await get("/api/v1/openapi.json");
		expect(document.openapi).toBe("3.1.0");
		expect(Object.keys(document.paths)).toEqual(
			expect.arrayContaining([
				"/api/v1/conversations/{id}/messages",
				"/api/v1/turns/{id}",
				"/api/v1/assets",
				"/v1/chat/completions",
				"/healthz",
			]),
		);
		const { post } = document.paths["/api/v1/conversations/{id}/messages"];
		expect(post.requestBody.content["application/json"].schema.properties.text.type).toBe("string");
		expect(post.responses["202"].content["application/json"].schema.required).toEqual(["messageId", "turnId"]);
		expect(Object.keys(document.paths).join()).not.toContain("*");
	});
});

describe("presenting", () => {
	const row = {
		id: "m",
		conversationId: "c",
		role: "assistant" as const,
		text: "hi",
		at: 0,
		from: null,
		personId: null,
		origin: "human" as const,
		model: "main",
		modelName: "m-1",
		turnId: "t",
		attachments: [],
		notes: [],
		clientId: null,
		usage: null,
		outboxId: "o",
		delivery: "dropped" as const,
		superseded: false,
	};
	const call = {
		call: { id: "1", name: "now", arguments: `{"x":"${"😀".repeat(2000)}"}` },
		recordId: "r",
		state: "done" as const,
		result: "noon",
		startedAt: 5,
		endedAt: 9,
		step: 1,
	};

	it("shows tools and plan with answers, cut on whole characters", () => {
		const message = Message.strict().parse(toMessage(row, { tools: [call], plan: [{ text: "do", done: true }] }));
		expect(message).toMatchObject({ delivery: "failed", at: "1970-01-01T00:00:00.000Z", plan: [{ text: "do", done: true }] });
		expect(message.tools[0]).toMatchObject({ recordId: "r", step: 1, name: "now", result: "noon", ms: 4 });
		expect(message.tools[0]?.arguments.length).toBeLessThanOrEqual(2000);
		expect(message.tools[0]?.arguments).not.toMatch(/\p{Surrogate}/u);
		expect(toMessage({ ...row, role: "user" }, { tools: [call], plan: [] }).tools).toEqual([]);
		expect(cut("a😀", 2)).toBe("a");
	});
});

describe("slowing down", () => {
	it("is bounded in memory and forgets", () => {
		let now = 0;
		const throttle = createThrottle({ clock: { now: () => now }, free: 1, firstMs: 1000, maxMs: 4000, forgetMs: 10_000, entries: 3 });
		expect(throttle.take("a")).toBe(0);
		expect(throttle.take("a")).toBe(1000);
		now = 1000;
		expect(throttle.take("a")).toBe(0);
		expect(throttle.take("a")).toBe(2000);
		for (let step = 0; step < 10; step += 1) {
			now += 4000;
			throttle.take("a");
		}
		expect(throttle.take("a")).toBe(4000);
		now += 10_000;
		expect(throttle.take("a")).toBe(0);
		expect(throttle.take("a")).toBe(1000);
		for (const key of ["b", "c", "d"]) throttle.take(key);
		expect(throttle.take("a")).toBe(0);
	});
});
