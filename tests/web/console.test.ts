import { describe, expect, it } from "vitest";
import type { EventItem, LiveFrame, UsageRow } from "../../server/http/contract.ts";
import { failureOf } from "../../web/src/features/console/failure.ts";
import { atLeast, keptLines, lineOfEvent, lineOfFrame, mergeLines } from "../../web/src/features/console/log.ts";
import { prettyBody } from "../../web/src/features/console/pretty.ts";
import { dayLabel, spanOfTime, withZoneTimes, zoneClock } from "../../web/src/features/console/times.ts";
import {
	cachedPercent,
	causeOf,
	dayIn,
	forecastMonth,
	lastDays,
	mainCurrency,
	part,
	sortRows,
	spanDays,
	stackDays,
	suggestedRaise,
	sumRows,
	usedPercent,
} from "../../web/src/features/console/usage.ts";
import { isWithoutModel, problemOf, reasonOf } from "../../web/src/features/models/problems.ts";

const row = (key: string, value: Partial<UsageRow> = {}): UsageRow => ({
	key,
	calls: 1,
	inputTokens: 0,
	cachedTokens: 0,
	outputTokens: 0,
	reasoningTokens: 0,
	cost: 0,
	currency: "USD",
	costs: {},
	unpricedTokens: 0,
	estimatedTokens: 0,
	...value,
});

describe("days of the configured zone", () => {
	it("belong to the zone, not to the machine or UTC", () => {
		const at = Date.parse("2026-11-30T16:30:00Z");
		expect(dayIn(at, "Asia/Shanghai")).toBe("2026-12-01");
		expect(dayIn(at, "UTC")).toBe("2026-11-30");
		expect(dayIn(at, "America/New_York")).toBe("2026-11-30");
		expect(dayIn(at, "No/Such_Zone")).toBe("2026-11-30");
	});

	it("count one each, over the end of a month and both clock changes", () => {
		expect(lastDays("2026-03-02", 4)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
		expect(lastDays("2026-03-09", 3)).toEqual(["2026-03-07", "2026-03-08", "2026-03-09"]);
		expect(new Set(lastDays("2026-11-08", 14)).size).toBe(14);
		expect(lastDays("2026-11-08", 14)[0]).toBe("2026-10-26");
	});

	it("make the spans of the tables", () => {
		expect(spanDays("today", "2026-12-01")).toEqual({ from: "2026-12-01", to: "2026-12-01" });
		expect(spanDays("week", "2026-12-01")).toEqual({ from: "2026-11-25", to: "2026-12-01" });
		expect(spanDays("month", "2026-12-31")).toEqual({ from: "2026-12-01", to: "2026-12-31" });
	});
});

describe("who caused what", () => {
	it("is people, the agent by itself, or upkeep; an unknown source is upkeep", () => {
		expect(["chat", "voice", "image", "heartbeat", "alarm", "job", "memory", "critique", "embedding", "new-one"].map(causeOf)).toEqual([
			"people",
			"people",
			"people",
			"itself",
			"itself",
			"itself",
			"upkeep",
			"upkeep",
			"upkeep",
			"upkeep",
		]);
	});

	it("stands one on the other in a bar a day, empty days too", () => {
		const sources = new Map([
			["2026-12-01", [row("chat", { inputTokens: 90, outputTokens: 10 }), row("voice", { inputTokens: 5, unpricedTokens: 5, cost: null })]],
			["2026-11-30", [row("heartbeat", { inputTokens: 7 }), row("memory", { outputTokens: 3 })]],
		]);
		const bars = stackDays(["2026-11-29", "2026-11-30", "2026-12-01"], sources, "tokens", "USD");
		expect(bars.map((bar) => [bar.total, bar.parts.people, bar.parts.itself, bar.parts.upkeep])).toEqual([
			[0, 0, 0, 0],
			[10, 0, 7, 3],
			[105, 105, 0, 0],
		]);
	});

	it("adds money of one currency only, and says what no cost stands for", () => {
		const rows = [
			row("chat", { costs: { USD: 0.5, CNY: 9 } }),
			row("memory", { costs: { CNY: 1 } }),
			row("voice", { cost: null, unpricedTokens: 800 }),
		];
		expect(mainCurrency(rows, "USD")).toBe("CNY");
		expect(mainCurrency([row("chat", { costs: { EUR: 0 } })], "USD")).toBe("USD");
		const [bar] = stackDays(["d"], new Map([["d", rows]]), "cost", "CNY");
		expect(bar).toMatchObject({ total: 10, unpricedTokens: 800, parts: { people: 9, itself: 0, upkeep: 1 } });
	});
});

describe("sums", () => {
	it("keep unknown prices unknown", () => {
		const unknown = row("voice", { cost: null, unpricedTokens: 40, inputTokens: 40 });
		expect(sumRows([unknown], "all")).toMatchObject({ cost: null, unpricedTokens: 40 });
		expect(sumRows([unknown, row("chat", { cost: 0.2, costs: { USD: 0.2 }, inputTokens: 10, calls: 3 })], "all")).toMatchObject({
			cost: 0.2,
			costs: { USD: 0.2 },
			unpricedTokens: 40,
			inputTokens: 50,
			calls: 4,
		});
	});

	it("put the largest first and count the cache of what went in", () => {
		expect(
			sortRows([row("a", { inputTokens: 1 }), row("b", { outputTokens: 5 }), row("c", { inputTokens: 3 })]).map(({ key }) => key),
		).toEqual(["b", "c", "a"]);
		expect(cachedPercent(row("a", { inputTokens: 300, cachedTokens: 282 }))).toBe(94);
		expect(cachedPercent(row("a"))).toBeNull();
	});
});

describe("the forecast", () => {
	const days = (...totals: number[]) => lastDays("2026-11-20", totals.length).map((day, index) => ({ day, total: totals[index] ?? 0 }));

	it("is the month so far and the days left like the last seven whole ones", () => {
		// Mean 2, today already 1 of it: 40 + 1 + 10 × 2.
		expect(forecastMonth(days(2, 2, 2, 2, 2, 2, 2, 1), 40)).toBe(61);
		// A day above the mean leaves nothing of itself to come.
		expect(forecastMonth(days(2, 2, 2, 2, 2, 2, 2, 9), 40)).toBe(60);
	});

	it("is none before there are three whole days of use; quiet days before the first do not count", () => {
		expect(forecastMonth(days(0, 0, 0, 0, 0, 5, 5, 5), 15)).toBeNull();
		expect(forecastMonth(days(0, 0, 0, 0, 5, 5, 5, 5), 20)).toBe(70);
		expect(forecastMonth([], 0)).toBeNull();
	});
});

describe("the fuse", () => {
	it("is never more than full, and nothing without a limit", () => {
		expect([part(5, 10), part(15, 10), part(5, null), part(5, 0), part(-1, 10)]).toEqual([0.5, 1, 0, 0, 0]);
		expect(usedPercent({ usedTokens: 10, limitTokens: 100, usedCost: 1.7, limitCost: 2 })).toBe(85);
		expect(usedPercent({ usedTokens: 10, limitTokens: null, usedCost: 5, limitCost: null })).toBe(0);
	});

	it("offers a raise in round numbers", () => {
		expect([2_000_000, 20_000, 3000, 0, 1_500_000].map(suggestedRaise)).toEqual([500_000, 5000, 1000, 1000, 400_000]);
	});
});

describe("times", () => {
	it("are in the zone that was asked for", () => {
		expect(zoneClock("2026-12-01T16:00:00Z", "en", "Asia/Shanghai")).toBe("00:00");
		expect(zoneClock("2026-12-01T16:00:00Z", "en", "No/Such_Zone")).toBe("16:00");
		expect(dayLabel("2026-11-18", "en")).toBe("Nov 18");
		expect(withZoneTimes("stops until 2026-12-01T16:00:00.000Z.", "en", "Asia/Shanghai")).toBe("stops until Dec 2, 00:00.");
		expect(withZoneTimes("no 2026-99-99T99:99:99Z here", "en", "UTC")).toBe("no 2026-99-99T99:99:99Z here");
	});

	it("since a start are told in one unit", () => {
		const minute = 60_000;
		expect([-5, 5 * minute, 119 * minute, 120 * minute, 49 * 60 * minute].map(spanOfTime)).toEqual([
			{ unit: "minutes", count: 0 },
			{ unit: "minutes", count: 5 },
			{ unit: "minutes", count: 119 },
			{ unit: "hours", count: 2 },
			{ unit: "days", count: 2 },
		]);
	});
});

describe("the log", () => {
	const frame = (seq: number, data: Record<string, unknown> = {}): Extract<LiveFrame, { type: "log" }> => ({
		seq,
		at: "2026-12-01T00:00:00Z",
		type: "log",
		level: "info",
		event: "turn.done",
		message: "turn.done",
		conversation: null,
		turnId: "t1",
		data,
	});
	const event = (seq: number, body: Record<string, unknown> = {}): EventItem => ({
		seq,
		at: "2026-12-01T00:00:00Z",
		type: "log",
		level: "info",
		conversation: null,
		turnId: "t1",
		body: { level: "info", event: "turn.done", message: "turn.done", data: {}, ...body },
	});

	it("is the same line from history and from the socket", () => {
		expect(lineOfEvent(event(7, { data: { ms: 12 } }))).toEqual(lineOfFrame(frame(7, { ms: 12 })));
		expect(lineOfEvent({ ...event(7), type: "message" })).toBeNull();
	});

	it("tells of turns, steps and tools too, each once and when it is over", () => {
		const at = { at: "2026-12-01T00:00:00Z", conversation: "c", turnId: "t1" };
		const tool = {
			recordId: "r",
			step: 2,
			name: "read_file",
			arguments: '{"path":"a.md"}',
			state: "done" as const,
			result: "12345",
			ms: 12,
		};
		const frames: LiveFrame[] = [
			{ seq: 1, type: "turn", state: "running", origin: "human", model: "main", ...at },
			{ seq: 2, type: "step", step: 2, round: 1, state: "started", text: null, ...at },
			{ seq: 3, type: "tool", tool: { ...tool, state: "started", result: null, ms: null }, ...at },
			{ seq: 4, type: "tool", tool, ...at },
			{ seq: 5, type: "step", step: 2, round: 1, state: "finished", text: "I look\ninto it", ...at },
			{
				seq: 6,
				type: "plan",
				items: [
					{ text: "a", done: true },
					{ text: "b", done: false },
				],
				...at,
			},
			{ seq: 7, type: "delta", text: "x", ...at },
			{ seq: 8, type: "restart", model: "main-2", reason: "429", ...at },
		];
		expect(frames.map(lineOfFrame).flatMap((line) => (line ? [[line.event, line.message, line.details]] : []))).toEqual([
			["turn.running", "", "origin human  model main"],
			["tool.done", 'read_file {"path":"a.md"}', "ms 12  result 5 characters"],
			["step 2", "I look into it", "round 1"],
			["plan", "", "done 1/2"],
			["step.restarted", "", "reason 429  model main-2"],
		]);
		expect(lineOfFrame(frames[3] as LiveFrame)).toMatchObject({ turnId: "t1", conversation: "c", level: "info" });
		// A kept event may be older than this page: what it lacks is left out.
		expect(lineOfEvent({ ...event(9), type: "tool", body: {} })).toMatchObject({ event: "tool.", details: "" });
	});

	it("says its data in short, once, on one line", () => {
		expect(lineOfFrame(frame(1, { a: "x\ny", b: null, c: [], d: [1], e: "é".repeat(300) }))?.details).toBe(
			`a x y  d [1]  e ${"é".repeat(159)}…`,
		);
		expect(lineOfFrame(frame(1))?.message).toBe("");
		expect(lineOfEvent(event(1, { message: "hello", data: "odd" }))).toMatchObject({ message: "hello", details: "" });
	});

	it("has each line once and in order, however history and socket overlap, and the newest stay", () => {
		const lines = (...seqs: number[]) => seqs.flatMap((seq) => lineOfFrame(frame(seq)) ?? []);
		expect(mergeLines(lines(1, 2, 3), lines(2, 3, 5)).map(({ seq }) => seq)).toEqual([1, 2, 3, 5]);
		expect(mergeLines(lines(9), lines(1, 2)).map(({ seq }) => seq)).toEqual([1, 2, 9]);
		const many = mergeLines(lines(...Array.from({ length: keptLines }, (_, index) => index)), lines(keptLines));
		expect([many.length, many[0]?.seq]).toEqual([keptLines, 1]);
	});

	it("is filtered from a level up", () => {
		expect([atLeast("error", "warn"), atLeast("warn", "warn"), atLeast("info", "warn")]).toEqual([true, true, false]);
	});
});

describe("a body", () => {
	it("is JSON set out over lines; short parts stay on one", () => {
		expect(prettyBody({ model: "m", tools: ["a", "b"] })).toBe('{"model":"m","tools":["a","b"]}');
		const long = "x".repeat(80);
		expect(prettyBody({ a: long, b: [1, 2] })).toBe(`{\n  "a": "${long}",\n  "b": [1,2]\n}`);
		expect([prettyBody(null), prettyBody(undefined), prettyBody("a"), prettyBody([]), prettyBody({})]).toEqual([
			"null",
			"null",
			'"a"',
			"[]",
			"{}",
		]);
	});

	it("shows a long text as lines, and whatever stands in it as it is", () => {
		expect(prettyBody({ messages: [{ role: "user", text: "one\n<script>two</script>" }] })).toBe(
			[
				"{",
				'  "messages": [',
				"    {",
				'      "role": "user",',
				'      "text": """',
				"        one",
				"        <script>two</script>",
				'        """',
				"    }",
				"  ]",
				"}",
			].join("\n"),
		);
	});
});

describe("a stored error", () => {
	it("is a kind, and the server's own words", () => {
		expect(failureOf("aborted: stopped while waiting")).toEqual({ kind: "aborted", said: "" });
		expect(failureOf("network: the connection failed: ECONNREFUSED")).toEqual({ kind: "network", said: "ECONNREFUSED" });
		expect(failureOf("auth: Incorrect API key")).toEqual({ kind: "auth", said: "Incorrect API key" });
		expect(failureOf("toString: x")).toEqual({ kind: null, said: "toString: x" });
	});
});

describe("a model that cannot be used", () => {
	const key = (state: "ok" | "set-aside") => ({ key: "sk-…", state, reason: "refused with 401", until: null }) as never;
	it("is told by what its keys are, and by reasons of which the page has words", () => {
		expect(problemOf({ problem: "every key is set aside: refused with 401", keys: [key("set-aside")] })).toEqual({ key: "allAside" });
		expect(problemOf({ problem: "1 of 2 keys set aside: x", keys: [key("set-aside"), key("ok")] })).toEqual({
			key: "someAside",
			said: "1/2",
		});
		expect(problemOf({ problem: "no API key", keys: [] })).toEqual({ key: "noKey" });
		expect(problemOf({ problem: "something new", keys: [] })).toEqual({ text: "something new" });
		expect(problemOf({ problem: null, keys: [] })).toBe(null);
		expect(reasonOf("refused with 401")).toEqual({ key: "refused", said: "401" });
		expect(reasonOf("no credit (told in the answer)")).toEqual({ key: "noCredit" });
		expect(reasonOf("something new")).toEqual({ text: "something new" });
	});
	it("is no mistake in the configuration", () => {
		const errors = [{ key: "server", line: 1, message: "wrong" }];
		expect(isWithoutModel({ state: "safe-mode", config: { errors: [] } })).toBe(true);
		expect(isWithoutModel({ state: "safe-mode", config: { errors } })).toBe(false);
		expect(isWithoutModel({ state: "ok", config: { errors: [] } })).toBe(false);
	});
});
