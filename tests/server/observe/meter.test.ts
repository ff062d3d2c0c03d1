import { describe, expect, it } from "vitest";
import type { CallEnd, CallStart, ModelError, Usage } from "../../../server/model/model.ts";
import { createPriceBook } from "../../../server/model/prices.ts";
import { createMeter, type MeteredCall, usageOf } from "../../../server/observe/meter.ts";
import { createFuse } from "../../../server/safety/fuse.ts";
import { createRedactor } from "../../../server/safety/redact.ts";
import { fakeClock, openLedger } from "../store/open-ledger.ts";

const start: CallStart = {
	context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "master" },
	model: "main",
	modelName: "some-model",
	key: "sk-…a1b2",
	attempt: 1,
	request: { messages: [{ role: "user", content: "my key is canary-secret-1" }] },
	estimatedInputTokens: 1_000,
	maxOutputTokens: 500,
	startedAt: Date.parse("2026-11-30T04:00:00Z"),
};
const usage: Usage = {
	inputTokens: 900,
	cachedTokens: 100,
	outputTokens: 50,
	reasoningTokens: 10,
	estimated: false,
	cost: null,
	currency: "USD",
};
const ended = (change: Partial<CallEnd>): CallEnd => ({ response: null, error: null, usage: null, ms: 10, firstByteMs: null, ...change });
const failed = (kind: ModelError["kind"], status: number | null = null): CallEnd["error"] => ({ kind, message: "x", status });

async function make() {
	const home = await openLedger();
	const clock = fakeClock();
	const fuse = createFuse({
		ledger: home.ledger,
		budget: () => ({
			dailyTokens: 100_000,
			dailyCost: null,
			warnAt: [],
			reserveForPeople: 0.2,
			dailyShare: { stranger: null, known: null, group: null },
		}),
		calendar: home.calendar,
		timezone: () => "Asia/Shanghai",
		clock,
	});
	const told: MeteredCall[] = [];
	let ids = 0;
	const meter = createMeter({
		ledger: home.ledger,
		fuse,
		prices: createPriceBook({ main: { input: 1000, cachedInput: 100, output: 2000 } }),
		modelOf: (id) => ({ id, provider: "custom", modelName: id }),
		redact: createRedactor(["canary-secret-1"]),
		clock,
		newId: () => `c-${++ids}`,
		onCall: (call) => told.push(call),
	});
	return { home, fuse, meter, told };
}

describe("what a call used when nobody said", () => {
	it("is nothing for a refusal, the input for an answer that broke off, never zero for an answer", () => {
		const tokens = (end: CallEnd) => usageOf(start, end).inputTokens;
		for (const kind of ["bad-request", "auth", "payment", "rate-limited", "server", "context-length"] as const)
			expect(tokens(ended({ error: failed(kind, 400) })), kind).toBe(0);
		expect(tokens(ended({ error: failed("network") })), "never reached").toBe(0);
		expect(tokens(ended({ error: failed("network"), firstByteMs: 5 })), "cut in the middle").toBe(1_000);
		expect(tokens(ended({ error: failed("timeout") })), "it may be working still").toBe(1_000);
		expect(tokens(ended({ error: failed("aborted"), firstByteMs: 5 }))).toBe(1_000);
		expect(usageOf(start, ended({})), "an answer without usage").toMatchObject({ inputTokens: 1_000, estimated: true, cost: null });
	});

	it("is made sane when a server reports nonsense", () => {
		expect(
			usageOf(start, ended({ usage: { ...usage, inputTokens: -5, cachedTokens: 1e9, outputTokens: Number.NaN, reasoningTokens: 3.2 } })),
		).toMatchObject({ inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 });
		expect(usageOf(start, ended({ usage: { ...usage, inputTokens: 10.2, cachedTokens: 100 } }))).toMatchObject({
			inputTokens: 11,
			cachedTokens: 11,
		});
	});
});

describe("the meter", () => {
	it("stores request and response without secrets, prices the call, and tells of it", async () => {
		const { home, meter, told } = await make();
		const id = await meter.open(start);
		expect(await home.ledger.get(id)).toMatchObject({ state: "open", request: { messages: [{ content: "my key is [redacted]" }] } });
		await meter.close(id, ended({ response: { text: "it is canary-secret-1" }, usage }));
		expect(await home.ledger.call(id)).toMatchObject({
			state: "done",
			response: { text: "it is [redacted]" },
			usage: { inputTokens: 900, cachedTokens: 100, outputTokens: 50, reasoningTokens: 10, cost: 0.91, currency: "USD" },
			price: "config",
			key: "sk-…a1b2",
		});
		expect(told).toMatchObject([{ id, usage: { cost: 0.91 }, error: null }]);
		await home.close();
	});

	it("keeps a head apart only while nothing secret is in it", async () => {
		const { home, meter } = await make();
		const headed = (tool: string, said: string) => {
			const head = `{"tools":["${tool} ${"x".repeat(1_000)}"],"messages":[`;
			return meter.open({ ...start, request: `${head}"${said}"]}`, requestHead: head.length });
		};
		const ids = [await headed("plain", "hello"), await headed("plain", "canary-secret-1"), await headed("canary-secret-1", "hello")];
		const requests = await Promise.all(ids.map(async (id) => (await home.ledger.get(id))?.request));
		expect(requests).toEqual([
			{ tools: [expect.stringMatching(/^plain x+$/)], messages: ["hello"] },
			{ tools: [expect.stringMatching(/^plain x+$/)], messages: ["[redacted]"] },
			{ tools: [expect.stringMatching(/^\[redacted\] x+$/)], messages: ["hello"] },
		]);
		expect(home.raw.prepare("select head from calls order by position").all()).toEqual([{ head: 1 }, { head: 1 }, { head: null }]);
		expect(JSON.stringify(home.raw.prepare("select text from call_heads").all())).not.toContain("canary");
		await home.close();
	});

	it("keeps the kind of an error, and a close without an open harms nothing", async () => {
		const { home, meter, told } = await make();
		const id = await meter.open(start);
		await meter.close(id, ended({ error: { kind: "auth", message: "key canary-secret-1 is bad", status: 401 } }));
		await meter.close("never-opened", ended({}));
		expect(await home.ledger.call(id)).toMatchObject({
			state: "failed",
			error: "auth: key [redacted] is bad",
			errorKind: "auth",
			errorStatus: 401,
			usage: { inputTokens: 0 },
		});
		expect(told).toHaveLength(1);
		await home.close();
	});

	it("reserves more for a model whose estimates were too small", async () => {
		const { home, meter, fuse } = await make();
		await meter.close(await meter.open(start), ended({ usage: { ...usage, inputTokens: 1_500 } }));
		await meter.open(start);
		expect((await fuse.state()).reservedTokens).toBe(2_000);
		const again = remake(home);
		await again.meter.ready();
		await again.meter.open({ ...start, context: { ...start.context, turnId: "t2" } });
		expect((await again.fuse.state()).reservedTokens, "also after a restart").toBe(4_000);
		await home.close();
	});
});

function remake(home: Awaited<ReturnType<typeof openLedger>>) {
	const clock = fakeClock();
	const fuse = createFuse({
		ledger: home.ledger,
		budget: () => ({
			dailyTokens: 100_000,
			dailyCost: null,
			warnAt: [],
			reserveForPeople: 0.2,
			dailyShare: { stranger: null, known: null, group: null },
		}),
		calendar: home.calendar,
		timezone: () => "Asia/Shanghai",
		clock,
	});
	let ids = 0;
	const meter = createMeter({
		ledger: home.ledger,
		fuse,
		prices: createPriceBook(),
		modelOf: () => null,
		redact: createRedactor(),
		clock,
		newId: () => `again-${++ids}`,
	});
	return { fuse, meter };
}
