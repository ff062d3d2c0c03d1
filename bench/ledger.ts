/** What the ledger costs: time to store a call, and usage queries over a million rows. Prints one JSON line a figure. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPriceBook } from "../server/model/prices.ts";
import { createCalendar } from "../server/observe/day.ts";
import { createMeter } from "../server/observe/meter.ts";
import { createFuse } from "../server/safety/fuse.ts";
import { createRedactor } from "../server/safety/redact.ts";
import { createLedger } from "../server/store/ledger.ts";
import { openSqlite } from "../server/store/sqlite.ts";

const dir = await mkdtemp(join(tmpdir(), "openlani-bench-ledger-"));
const now = Date.parse("2026-11-30T04:00:00Z");
const clock = { now: () => now };
const { db, raw } = await openSqlite(join(dir, "openlani.db"), now);
const calendar = createCalendar(() => "Asia/Shanghai");
const ledger = createLedger({ db, dayOf: calendar.dayOf });

const quantile = (values: number[], part: number): number => [...values].sort((a, b) => a - b)[Math.floor(values.length * part)] ?? 0;
const print = (name: string, figures: Record<string, number>): void =>
	console.log(
		JSON.stringify({
			bench: name,
			...Object.fromEntries(Object.entries(figures).map(([key, value]) => [key, Math.round(value * 1000) / 1000])),
		}),
	);

// One call of a usual size: a prompt of some 12,000 characters.
let ids = 0;
const fuse = createFuse({
	ledger,
	budget: () => ({
		dailyTokens: 1e12,
		dailyCost: 1e9,
		warnAt: [0.5, 0.8],
		reserveForPeople: 0.2,
		dailyShare: { stranger: null, known: null, group: null },
	}),
	calendar,
	timezone: () => "Asia/Shanghai",
	clock,
});
const meter = createMeter({
	ledger,
	fuse,
	prices: createPriceBook({ main: { input: 1, output: 2 } }),
	modelOf: (id) => ({ id, provider: "custom", modelName: id }),
	redact: createRedactor(["sk-bench-0123456789abcdef", "another-secret-value"]),
	clock,
	newId: () => `call-${++ids}`,
});
const request = {
	messages: [
		{ role: "system", content: "You are a helpful agent. ".repeat(350) },
		{ role: "user", content: "今天天气怎么样？".repeat(300) },
	],
};
const times: number[] = [];
for (let round = 0; round < 2_000; round += 1) {
	const began = performance.now();
	const id = await meter.open({
		context: { source: "chat", conversationId: `c${round % 50}`, turnId: `t${round}`, personId: "master" },
		model: "main",
		modelName: "m",
		key: null,
		attempt: 1,
		request,
		estimatedInputTokens: 3_000,
		maxOutputTokens: 500,
		startedAt: now,
	});
	await meter.close(id, {
		response: { text: "It is sunny. ".repeat(20), calls: [] },
		error: null,
		usage: {
			inputTokens: 3_000,
			cachedTokens: 2_000,
			outputTokens: 80,
			reasoningTokens: 0,
			estimated: false,
			cost: 0.003,
			currency: "USD",
		},
		ms: 900,
		firstByteMs: 200,
	});
	if (round >= 100) times.push(performance.now() - began);
}
print("ledger: store one call, before and after it (ms)", { median: quantile(times, 0.5), p95: quantile(times, 0.95) });

// A million calls over a year, of a hundred conversations, nine sources and three models.
const sources = ["chat", "heartbeat", "alarm", "job", "critique", "memory", "embedding", "voice", "image"];
const rows = 1_000_000;
const year = 365 * 86_400_000;
const insertCall = raw.prepare(
	"insert into calls (id, source, model, model_name, conversation_id, at, input_tokens, output_tokens, cost, attempt, state) values (?, ?, ?, 'm', ?, ?, 1000, 100, 0.001, 1, 'done')",
);
const add =
	"on conflict do update set calls = calls + 1, input_tokens = input_tokens + 1000, output_tokens = output_tokens + 100, cost = cost + 0.001, priced_calls = priced_calls + 1";
const insertDay = raw.prepare(`insert into usage_days values (?, ?, ?, 'USD', 1, 1000, 0, 100, 0, 0.001, 1, 0, 0) ${add}`);
const insertConversation = raw.prepare(`insert into usage_conversations values (?, ?, 'USD', 1, 1000, 0, 100, 0, 0.001, 1, 0, 0) ${add}`);
raw.exec("begin");
for (let row = 0; row < rows; row += 1) {
	const at = Math.round(now - year + (row / rows) * year);
	const source = sources[row % 9] as string;
	const model = `m${row % 3}`;
	const conversation = `c${row % 100}`;
	insertCall.run(`row-${row}`, source, model, conversation, at);
	insertDay.run(calendar.dayOf(at), source, model);
	insertConversation.run(calendar.dayOf(at), conversation);
}
raw.exec("commit");
raw.exec("pragma optimize");
const month = { from: now - 30 * 86_400_000, to: now + 1, dayOf: calendar.dayOf, startOfDay: calendar.startOf };
for (const by of ["day", "source", "model", "conversation"] as const) {
	const spent: number[] = [];
	for (let round = 0; round < 20; round += 1) {
		const began = performance.now();
		await ledger.usage({ ...month, by });
		spent.push(performance.now() - began);
	}
	print(`ledger: usage of a month by ${by}, 1,000,000 calls (ms)`, { median: quantile(spent, 0.5), max: Math.max(...spent) });
}
await db.destroy();
await rm(dir, { recursive: true, force: true });
