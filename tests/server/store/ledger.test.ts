import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallContext, CallStart, Usage } from "../../../server/model/model.ts";
import { createConversations } from "../../../server/store/conversations.ts";
import { openLedger } from "./open-ledger.ts";

let home: Awaited<ReturnType<typeof openLedger>>;
beforeEach(async () => {
	home = await openLedger();
});
afterEach(() => home.close());

let ids = 0;
async function call(
	at: string,
	used: Partial<Usage>,
	change: { context?: Partial<CallContext>; model?: string; request?: string } = {},
): Promise<string> {
	const id = `call-${++ids}`;
	const start: CallStart = {
		context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "master", ...change.context },
		model: change.model ?? "main",
		modelName: "m",
		key: null,
		attempt: 1,
		request: change.request ?? { messages: [] },
		estimatedInputTokens: 10,
		maxOutputTokens: 10,
		startedAt: Date.parse(at),
	};
	await home.ledger.open(id, start);
	await home.ledger.close(id, {
		response: { text: "x" },
		error: null,
		usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: false, cost: null, currency: "USD", ...used },
		ms: 5,
		firstByteMs: 2,
	});
	return id;
}

const usage = (from: string, to: string, by: "day" | "source" | "model" | "conversation" = "day") =>
	home.ledger.usage({ from: Date.parse(from), to: Date.parse(to), by, dayOf: home.calendar.dayOf, startOfDay: home.calendar.startOf });

describe("a call whose conversation is deleted before it is answered", () => {
	it("is counted, and nothing of what it sent or was answered is kept", async () => {
		const { db, ledger, raw } = home;
		const conversations = createConversations(db);
		const address = { channel: "web", account: "default", conversation: "c1" };
		await conversations.create({ id: "c1", title: "", titled: false, channel: "web", address, personId: "master", groupId: null, at: 1 });
		const context = { source: "memory", conversationId: "c1", turnId: null, personId: "master" } as const;
		const start = { context, model: "main", modelName: "m", key: null, attempt: 1, estimatedInputTokens: 10, maxOutputTokens: 10 };
		await ledger.open("open", { ...start, request: { text: "a secret" }, startedAt: 1 });
		expect(await conversations.remove("c1")).toBe(true);
		const nothing = { cachedTokens: 0, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" };
		const used = { ...nothing, inputTokens: 7, outputTokens: 3 };
		await ledger.close("open", { response: { text: "the secret" }, error: null, usage: used, ms: 5, firstByteMs: 2 });
		expect(await ledger.get("open")).toMatchObject({
			state: "done",
			usage: { inputTokens: 7, outputTokens: 3 },
			request: null,
			response: null,
		});
		expect(raw.prepare("select bytes from calls").get()).toEqual({ bytes: 0 });
	});
});

describe("usage", () => {
	it("sums by day in the configured zone, with unknown prices apart", async () => {
		await call("2026-11-29T15:59:00Z", { inputTokens: 100, outputTokens: 10, cost: 1 });
		await call("2026-11-29T16:01:00Z", { inputTokens: 200, cachedTokens: 50, outputTokens: 20, cost: null });
		await call("2026-11-30T01:00:00Z", { inputTokens: 300, outputTokens: 30, cost: 2, estimated: true });
		expect(await usage("2026-11-28T16:00:00Z", "2026-11-30T16:00:00Z")).toMatchObject([
			{ key: "2026-11-29", calls: 1, inputTokens: 100, outputTokens: 10, cost: 1, unpricedTokens: 0 },
			{
				key: "2026-11-30",
				calls: 2,
				inputTokens: 500,
				cachedTokens: 50,
				outputTokens: 50,
				cost: 2,
				unpricedTokens: 220,
				estimatedTokens: 330,
			},
		]);
	});

	it("gives no cost, never zero, where no price is known, and zero where it is", async () => {
		await call("2026-11-30T01:00:00Z", { inputTokens: 10, cost: null }, { model: "unknown" });
		await call("2026-11-30T01:00:00Z", { inputTokens: 10, cost: 0 }, { model: "demo" });
		const rows = await usage("2026-11-29T16:00:00Z", "2026-11-30T16:00:00Z", "model");
		expect(Object.fromEntries(rows.map((row) => [row.key, row.cost]))).toEqual({ unknown: null, demo: 0 });
	});

	it("groups by source, model and conversation, and cuts days that a span begins or ends in", async () => {
		await call("2026-11-28T10:00:00Z", { inputTokens: 1 }, { context: { source: "heartbeat", conversationId: null } });
		await call("2026-11-28T20:00:00Z", { inputTokens: 2 }, { context: { source: "memory" } });
		await call("2026-11-29T20:00:00Z", { inputTokens: 4 });
		await call("2026-11-30T20:00:00Z", { inputTokens: 8 });
		const sums = async (from: string, to: string) => (await usage(from, to, "source")).map((row) => [row.key, row.inputTokens]);
		expect(await sums("2026-11-28T09:00:00Z", "2026-11-30T21:00:00Z")).toEqual([
			["chat", 12],
			["memory", 2],
			["heartbeat", 1],
		]);
		expect(await sums("2026-11-28T11:00:00Z", "2026-11-30T19:00:00Z")).toEqual([
			["chat", 4],
			["memory", 2],
		]);
		expect(await sums("2026-11-28T19:00:00Z", "2026-11-28T21:00:00Z")).toEqual([["memory", 2]]);
		expect((await usage("2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z", "conversation")).map((row) => row.key).sort()).toEqual([
			"c1",
			"none",
		]);
	});

	it("keeps currencies apart", async () => {
		await call("2026-11-30T01:00:00Z", { inputTokens: 10, cost: 7, currency: "CNY" });
		await call("2026-11-30T01:00:00Z", { inputTokens: 10, cost: 7, currency: "CNY" });
		await call("2026-11-30T01:00:00Z", { inputTokens: 10, cost: 1, currency: "USD" });
		expect(await usage("2026-11-29T16:00:00Z", "2026-11-30T16:00:00Z")).toMatchObject([
			{ cost: 14, currency: "CNY", costs: { CNY: 14, USD: 1 } },
		]);
	});
});

describe("what is kept", () => {
	it("drops bodies and then rows by age, oldest first, and keeps the daily totals for ever", async () => {
		const old = await call("2026-01-01T00:00:00Z", { inputTokens: 5 });
		const recent = await call("2026-11-29T00:00:00Z", { inputTokens: 7 });
		const now = Date.parse("2026-11-30T00:00:00Z");
		await home.ledger.pruneCalls(now, { days: 200, bytes: 1e9 });
		expect(await home.ledger.get(old)).toMatchObject({ request: null, response: null, usage: { inputTokens: 5 } });
		expect((await home.ledger.get(recent))?.response).toEqual({ text: "x" });
		await home.ledger.pruneCalls(now, { days: 30, bytes: 1e9 });
		expect(await home.ledger.get(old)).toBeNull();
		expect(await usage("2025-12-31T16:00:00Z", "2026-01-02T16:00:00Z")).toMatchObject([{ key: "2026-01-01", inputTokens: 5 }]);
	});

	it("drops bodies by size, oldest first", async () => {
		const calls: string[] = [];
		for (let day = 1; day <= 5; day += 1)
			calls.push(await call(`2026-11-0${day}T00:00:00Z`, { inputTokens: 1 }, { request: JSON.stringify("x".repeat(1_000)) }));
		await home.ledger.pruneCalls(Date.parse("2026-11-30T00:00:00Z"), { days: 300, bytes: 2_500 });
		const kept = await Promise.all(calls.map(async (id) => (await home.ledger.get(id))?.request !== null));
		expect(kept).toEqual([false, false, false, true, true]);
	});
});

describe("reservations", () => {
	const limits = { tokens: 10_000, cost: 5, reserveForPeople: 0.2, shareTokens: null };
	const reservation = { day: "2026-11-30", share: "p1", background: false, tokens: 100, cost: 0.5 };
	const start = (input: number): CallStart => ({
		context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "p1" },
		model: "main",
		modelName: "m",
		key: null,
		attempt: 1,
		request: {},
		estimatedInputTokens: input,
		maxOutputTokens: 40,
		startedAt: Date.parse("2026-11-30T01:00:00Z"),
	});

	it("that were open when the process ended all count as spent, for day, share, money and usage, once", async () => {
		for (const id of ["a", "b", "c"]) await home.ledger.reserve(id, start(60), reservation, limits);
		expect(await home.ledger.recover(0)).toBe(3);
		expect(await home.ledger.recover(0)).toBe(0);
		expect(await home.ledger.day("2026-11-30")).toMatchObject({ usedTokens: 300, reservedTokens: 0, usedCost: 1.5, reservedCost: 0 });
		expect(await home.ledger.share("2026-11-30", "p1")).toEqual({ usedTokens: 300, reservedTokens: 0 });
		expect(await usage("2026-11-29T16:00:00Z", "2026-11-30T16:00:00Z")).toMatchObject([
			{ calls: 3, inputTokens: 180, outputTokens: 120, estimatedTokens: 300, cost: 1.5 },
		]);
	});

	it("are settled once, whatever comes later", async () => {
		await home.ledger.reserve("a", start(60), reservation, limits);
		const end = {
			response: null,
			error: null,
			usage: { inputTokens: 10, cachedTokens: 0, outputTokens: 5, reasoningTokens: 0, estimated: false, cost: 0.1, currency: "USD" },
			ms: 1,
			firstByteMs: 1,
		};
		const settlement = { budgetCost: 0.1, price: null, ratio: null };
		await home.ledger.settle("a", end, settlement);
		await home.ledger.settle("a", { ...end, usage: { ...end.usage, inputTokens: 9_000 } }, settlement);
		expect(await home.ledger.day("2026-11-30")).toMatchObject({ usedTokens: 15, reservedTokens: 0, usedCost: 0.1 });
		expect((await home.ledger.get("a"))?.usage.inputTokens).toBe(10);
		expect(await home.ledger.share("2026-11-30", "p1")).toEqual({ usedTokens: 15, reservedTokens: 0 });
	});

	it("give each threshold and each person once a day", async () => {
		expect(await home.ledger.warn("2026-11-30", [0.5])).toEqual([0.5]);
		expect(await home.ledger.warn("2026-11-30", [0.5, 0.8])).toEqual([0.8]);
		expect(await home.ledger.warn("2026-12-01", [0.5])).toEqual([0.5]);
		expect([
			await home.ledger.tellOnce("2026-11-30", "c1"),
			await home.ledger.tellOnce("2026-11-30", "c1"),
			await home.ledger.tellOnce("2026-12-01", "c1"),
		]).toEqual([true, false, true]);
	});
});
