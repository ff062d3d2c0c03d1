import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ModelError } from "../../../server/model/model.ts";
import { NO_ROLES } from "../../../server/model/settings.ts";
import { type Behaviour, type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, setUp, tool } from "./setup.ts";

let server: FakeOpenAI;
let other: FakeOpenAI;

beforeEach(async () => {
	server = await startFakeOpenAI();
	other = await startFakeOpenAI();
});
afterEach(async () => {
	await server.close();
	await other.close();
});

const status = (code: number, headers: Record<string, string> = {}, more: object = {}): Behaviour => ({
	status: code,
	headers,
	error: { message: `status ${code}`, ...more },
});
const always = (behaviour: Behaviour) => server.otherwise(behaviour);

describe("retries and fallback", () => {
	it.each([500, 502, 503, 529, 408])("%i is tried again with growing waits, then the next model answers", async (code) => {
		always(status(code));
		const setup = setUp([entry("main", server.url), entry("spare", other.url)]);
		const { reply, events } = await run(setup.models, ask("hi"));
		expect(reply).toMatchObject({ model: "spare", modelName: "spare-name" });
		expect(events[0]).toMatchObject({ type: "restart", model: "spare" });
		expect(server.chats.length).toBeLessThanOrEqual(3);
		expect(setup.waits.reduce((a, b) => a + b, 0)).toBeLessThan(30_000);
		expect(reply.callIds).toHaveLength(setup.calls.length);
		expect(setup.calls.map((call) => call.start.attempt)).toEqual(setup.calls.map((_, place) => place + 1));
	});

	it("one 500 is not the end", async () => {
		server.script(status(500), { text: "fine" });
		const setup = setUp([entry("main", server.url)]);
		expect((await run(setup.models, ask("hi"))).text).toBe("fine");
		expect(setup.waits).toEqual([375]);
	});

	it("500 for ten minutes makes a bounded number of calls", async () => {
		always(status(500));
		const setup = setUp([entry("main", server.url)]);
		for (let minute = 0; minute < 10; minute++) {
			for (let i = 0; i < 6; i++) {
				await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "server" });
				setup.clock.at += 10_000;
			}
		}
		expect(server.chats.length).toBeLessThan(40);
	});

	it("a refused connection counts as well", async () => {
		const setup = setUp([entry("main", "http://127.0.0.1:9/v1"), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
	});

	it.each([400, 422])("%i touches no key, no breaker and no other model", async (code) => {
		always(status(code));
		const setup = setUp([entry("main", server.url, { apiKeys: ["sk-1234567890ab"] }), entry("spare", other.url)]);
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "bad-request", status: code });
		expect(server.chats).toHaveLength(1);
		expect(other.chats).toHaveLength(0);
		expect(setup.models.breakers()).toMatchObject([{ state: "closed", failures: 0 }]);
		expect(setup.models.describe()[0]).toMatchObject({ usable: true, problem: null });
		server.script({ text: "fine" });
		expect((await run(setup.models, ask("hi"))).text).toBe("fine");
	});

	it("a model that does not exist is passed over", async () => {
		server.set({ models: ["something else"] });
		const setup = setUp([entry("main", server.url), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		await expect(run(setUp([entry("main", server.url)]).models, ask("hi"))).rejects.toMatchObject({ kind: "bad-request", status: 404 });
	});

	it.each([
		["a code", { code: "context_length_exceeded" }, "short"],
		["llama.cpp's type", { type: "exceed_context_size_error" }, "short"],
		["no code, but our own count", {}, "word ".repeat(2_000)],
	])("too long by %s: one call, no walk", async (_, error, text) => {
		always(status(400, {}, error));
		const setup = setUp([entry("main", server.url, { contextTokens: 1_000 }), entry("spare", other.url)]);
		await expect(run(setup.models, ask(text))).rejects.toMatchObject({ kind: "context-length" });
		expect(setup.calls).toHaveLength(1);
		expect(setup.calls[0]?.end?.usage).toBeNull();
	});

	it("a hanging model is left after its time; the next one answers within 30 s of the first refusal", async () => {
		always({ delayMs: 3_000, text: "late" });
		const setup = setUp([entry("main", server.url, { limits: { firstByteMs: 100 } }), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		expect(server.chats).toHaveLength(1);
	});

	it("a refusal, then silence: the wait for the first byte is cut so that the fallback is reached", async () => {
		server.script(status(500), { delayMs: 5_000, text: "late" });
		const setup = setUp([entry("main", server.url, { limits: { firstByteMs: 120_000 } }), entry("spare", other.url)], {
			sleep: async () => {
				setup.clock.at += 24_500;
			},
		});
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
	});

	it("the fuse stops everything: no call, no fallback", async () => {
		const setup = setUp([entry("main", server.url), entry("spare", other.url)], {
			meter: { open: () => Promise.reject(new ModelError("fuse", "daily limit")), close: async () => {} },
		});
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "fuse" });
		expect(server.requests).toHaveLength(0);
		expect(other.requests).toHaveLength(0);
	});

	it("stop ends a wait", async () => {
		always(status(500));
		const controller = new AbortController();
		const { sleep: _, ...real } = {} as { sleep?: undefined };
		const setup = setUp([entry("main", server.url)], { ...real, sleep: undefined });
		const running = run(setup.models, ask("hi"), controller.signal);
		await server.waitForChats(1);
		setTimeout(() => controller.abort(), 30);
		await expect(running).rejects.toMatchObject({ kind: "aborted" });
	});
});

describe("rate limits", () => {
	it("seconds are waited for", async () => {
		server.script(status(429, { "retry-after": "7" }), { text: "fine" });
		const setup = setUp([entry("main", server.url), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("main");
		expect(setup.waits).toEqual([7_000]);
	});

	it("hours are not", async () => {
		server.script(status(429, { "retry-after": "7200" }));
		const setup = setUp([entry("main", server.url), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		expect(setup.waits).toEqual([]);
		await run(setup.models, ask("hi"));
		expect(server.chats).toHaveLength(1);
		const alone = setUp([entry("main", server.url)]);
		server.script(status(429, { "retry-after": "7200" }));
		await expect(run(alone.models, ask("hi"))).rejects.toMatchObject({ kind: "rate-limited", retryAfterMs: 7_200_000 });
	});

	it("a date is understood", async () => {
		const setup = setUp([entry("main", server.url)]);
		server.script(status(429, { "retry-after": new Date(setup.clock.at + 5_000).toUTCString() }), { text: "fine" });
		await run(setup.models, ask("hi"));
		expect(setup.waits).toEqual([5_000]);
	});

	it("two models on one host share its back-off", async () => {
		const setup = setUp([entry("one", server.url), entry("two", server.url)]);
		server.script(status(429, { "retry-after": "9" }), { text: "a" }, { text: "b" });
		const first = setup.models.stream(ask("hi", { model: "one" }), new AbortController().signal);
		const running = (async () => {
			for await (const _ of first);
		})();
		await server.waitForChats(1);
		await running;
		setup.waits.length = 0;
		setup.clock.at -= 5_000;
		await run(setup.models, ask("hi", { model: "two" }));
		expect(setup.waits).toEqual([5_000]);
	});

	it("429 for ever ends, within a bounded wait", async () => {
		always(status(429));
		const setup = setUp([entry("main", server.url)]);
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "rate-limited" });
		expect(server.chats.length).toBeLessThanOrEqual(5);
		expect(setup.waits.reduce((a, b) => a + b, 0)).toBeLessThan(60_000);
		expect(setup.models.breakers()[0]).toMatchObject({ state: "closed", failures: 0 });
	});

	it("429 with insufficient_quota is a matter of payment", async () => {
		always(status(429, {}, { code: "insufficient_quota" }));
		await expect(run(setUp([entry("main", server.url, { apiKeys: ["sk-1234567890ab"] })]).models, ask("hi"))).rejects.toMatchObject({
			kind: "payment",
		});
		expect(server.chats).toHaveLength(1);
	});
});

describe("keys", () => {
	const keys = ["sk-aaaaaaaaaa11", "sk-bbbbbbbbbb22", "sk-cccccccccc33"];
	const turn = (id: string) => ({ context: { ...ask("").context, turnId: id } });

	it("rotate from turn to turn, and stay within one", async () => {
		const setup = setUp([entry("main", server.url, { apiKeys: keys })]);
		for (const id of ["t1", "t1", "t2", "t3", "t4"]) await run(setup.models, ask("hi", turn(id)));
		expect(server.chats.map((request) => request.key)).toEqual([keys[0], keys[0], keys[1], keys[2], keys[0]]);
	});

	it.each([401, 402, 403])("%i sets that key aside, with the reason, and the next one answers", async (code) => {
		const setup = setUp([entry("main", server.url, { apiKeys: keys })]);
		server.otherwise((request) => (request.key === keys[0] ? status(code) : { text: "fine" }));
		expect((await run(setup.models, ask("hi"))).text).toBe("fine");
		await run(setup.models, ask("hi", turn("t2")));
		await run(setup.models, ask("hi", turn("t3")));
		expect(server.chats.filter((request) => request.key === keys[0])).toHaveLength(1);
		const [model] = setup.models.describe();
		expect(model?.usable).toBe(true);
		expect(model?.keys[0]).toMatchObject({
			key: "sk-…aa11",
			state: "set-aside",
			reason: code === 402 ? "no credit (402)" : `refused with ${code}`,
		});
		expect(setup.models.breakers()[0]?.failures).toBe(0);
	});

	it("all refused: the next model; alone: an error that says auth, without calls for a while", async () => {
		server.set({ keys: ["sk-right"] });
		const setup = setUp([entry("main", server.url, { apiKeys: keys }), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		const alone = setUp([entry("main", server.url, { apiKeys: keys })]);
		await expect(run(alone.models, ask("hi"))).rejects.toMatchObject({ kind: "auth", status: 401 });
		const count = server.requests.length;
		await expect(run(alone.models, ask("hi"))).rejects.toMatchObject({ kind: "auth" });
		expect(server.requests).toHaveLength(count);
		expect(alone.models.usable()).toBe(false);
		alone.clock.at += 11 * 60_000;
		expect(alone.models.usable()).toBe(true);
	});

	it("rotated keys and edited models take effect without a restart", async () => {
		server.set({ keys: ["sk-right-0123456"] });
		const setup = setUp([entry("main", server.url, { apiKeys: ["sk-wrong-0123456"] })]);
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "auth" });
		setup.models.update({ models: [entry("main", server.url, { apiKeys: ["sk-right-0123456"] })] });
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("main");
		setup.models.update({ models: [entry("new", other.url)], roles: { ...NO_ROLES, chat: ["new"] } });
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("new");
	});

	it("no key where one is needed: said, and not called", async () => {
		const setup = setUp([entry("main", "", { provider: "openai", baseUrl: null, apiKeys: ["", "${OPENAI_API_KEY}"] })]);
		expect(setup.models.describe()[0]).toMatchObject({ usable: false, problem: "no API key" });
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "no-model" });
		expect(setup.calls).toHaveLength(0);
	});

	it("no secret in errors and records, even when the server repeats it", async () => {
		// Not one of the shapes that are known as keys.
		const key = "canary.abcdefgh.0123";
		server.otherwise((request) => status(400, {}, { message: `bad key ${request.key} at https://user:pass@host/x?token=canary` }));
		const setup = setUp([entry("main", server.url, { apiKeys: [key] })]);
		const error: unknown = await run(setup.models, ask("hi")).catch((thrown: unknown) => thrown);
		expect(String(error) + JSON.stringify(setup.calls)).not.toMatch(/canary/);
	});
});

describe("breaker", () => {
	it("opens after five failures, lets one call probe after 30 s, and closes when it is answered", async () => {
		always(status(500));
		const setup = setUp([entry("main", server.url)]);
		for (let i = 0; i < 2; i++) await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "server" });
		expect(server.chats).toHaveLength(5);
		expect(setup.models.breakers()[0]).toMatchObject({ key: server.origin, state: "open", failures: 5 });
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "server" });
		expect(server.chats).toHaveLength(5);
		setup.clock.at += 30_000;
		expect(setup.models.breakers()[0]).toMatchObject({ state: "half-open" });
		await expect(run(setup.models, ask("hi"))).rejects.toMatchObject({ kind: "server" });
		expect(server.chats).toHaveLength(6);
		expect(setup.models.breakers()[0]?.state).toBe("open");
		setup.clock.at += 30_000;
		always({ text: "back" });
		expect((await run(setup.models, ask("hi"))).text).toBe("back");
		expect(setup.models.breakers()[0]).toMatchObject({ state: "closed", failures: 0, retryAt: null });
	});

	it("honours Retry-After of a 503", async () => {
		always(status(503, { "retry-after": "120" }));
		const setup = setUp([entry("main", server.url)]);
		for (let i = 0; i < 6; i++) await run(setup.models, ask("hi")).catch(() => {});
		const before = server.chats.length;
		setup.clock.at += 60_000;
		await run(setup.models, ask("hi")).catch(() => {});
		expect(server.chats).toHaveLength(before);
	});

	it("is shared by models of one host and by nobody else", async () => {
		always(status(500));
		const setup = setUp([entry("one", server.url), entry("two", server.url), entry("spare", other.url)]);
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		expect((await run(setup.models, ask("hi"))).reply.model).toBe("spare");
		expect(server.chats.length).toBe(5);
	});
});

describe("which model", () => {
	it("goes by role, pick and kind", async () => {
		const setup = setUp([entry("a", server.url), entry("b", server.url), entry("eyes", server.url, { kind: "multimodal" })], {
			roles: { ...NO_ROLES, chat: ["a", "b"], small: "b", vision: "eyes" },
		});
		const asked = async (more: object) => (await run(setup.models, ask("hi", more))).reply.model;
		expect(await asked({})).toBe("a");
		expect(await asked({ model: "b" })).toBe("b");
		expect(await asked({ role: "small" })).toBe("b");
		expect(await asked({ role: "critique" })).toBe("a");
		expect(await asked({ role: "vision" })).toBe("eyes");
		expect(await asked({ model: "gone" })).toBe("a");
	});

	it("knows the context window of the first one", () => {
		const setup = setUp([entry("a", server.url, { contextTokens: 32_000 }), entry("b", server.url)]);
		expect(setup.models.contextTokens("chat", null)).toBe(32_000);
		expect(setup.models.contextTokens("chat", "b")).toBe(64_000);
	});

	it("without any configured, the demo model", async () => {
		const setup = setUp([]);
		expect(setup.models.demo()).toBe(true);
		const { reply } = await run(setup.models, ask("hello", { tools: [tool("now")] }));
		expect(reply).toMatchObject({ model: "demo", usage: { cost: 0, currency: "USD", estimated: true } });
		expect(setup.calls).toHaveLength(1);
		expect(setup.models.describe()).toMatchObject([{ id: "demo", usable: true }]);
	});
});
