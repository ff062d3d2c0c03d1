import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import type { LiveBody, LiveFrame } from "../../../server/http/contract.ts";
import { createActivityLog } from "../../../server/observe/activity.ts";
import type { MeteredCall } from "../../../server/observe/meter.ts";
import { createMetrics } from "../../../server/observe/metrics.ts";
import { createTracer } from "../../../server/observe/traces.ts";

function fakeBus() {
	const listeners = new Set<(frame: LiveFrame) => void>();
	let seq = 0;
	return {
		subscribe(listener: (frame: LiveFrame) => void) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		say(body: LiveBody, at = 1_000) {
			for (const listener of listeners) listener({ ...body, seq: ++seq, at: new Date(at).toISOString() } as LiveFrame);
		},
	};
}

const call: MeteredCall = {
	id: "c",
	context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "master" },
	model: 'ma"in',
	modelName: "some-model",
	provider: "openai",
	key: null,
	attempt: 1,
	startedAt: 1_000,
	ms: 700,
	firstByteMs: 200,
	usage: { inputTokens: 100, cachedTokens: 40, outputTokens: 20, reasoningTokens: 5, estimated: false, cost: 0.25, currency: "USD" },
	error: null,
	ledgerMs: 0.4,
};
const turn = (state: "running" | "done" | "failed"): LiveBody => ({
	type: "turn",
	conversation: "c1",
	turnId: "t1",
	state,
	origin: "human",
	model: null,
});
const tool = (state: "started" | "done" | "failed"): LiveBody => ({
	type: "tool",
	conversation: "c1",
	turnId: "t1",
	tool: {
		recordId: "r1",
		step: 1,
		name: "web_fetch",
		arguments: JSON.stringify({ url: "x".repeat(500) }),
		state,
		result: state === "started" ? null : "abc",
		ms: state === "started" ? null : 30,
	},
});

describe("metrics", () => {
	it("are Prometheus text with what was counted and what is now", async () => {
		const bus = fakeBus();
		const metrics = createMetrics({
			bus,
			fuse: async () => ({
				day: "d",
				limitTokens: 1_000,
				usedTokens: 120,
				reservedTokens: 30,
				limitCost: 5,
				usedCost: 0.25,
				reservedCost: 0,
				currency: "USD",
				unpricedTokens: 0,
				state: "blown",
				blownBy: "tokens",
				resetsAt: 0,
			}),
			queue: async () => ({ people: 2, background: 1 }),
			running: () => 3,
			breakers: () => [{ key: "https://a.test:443", state: "open", failures: 5, retryAt: null }],
			channels: () => [
				{ id: "web", type: "web", state: "up", error: null },
				{ id: "tg", type: "telegram", state: "off", error: null },
			],
			openAlerts: async () => {
				throw new Error("store is away");
			},
			startedAt: 5_000,
			version: "1.2.3",
		});
		metrics.called(call);
		metrics.called({ ...call, error: { kind: "server", message: "", status: 500 }, usage: { ...call.usage, cost: null } });
		bus.say(turn("running"), 1_000);
		bus.say(tool("started"));
		bus.say(tool("done"));
		bus.say(turn("done"), 3_500);
		const text = await metrics.text();
		for (const line of [
			'openlani_model_calls_total{model="ma\\"in",source="chat",outcome="ok"} 1',
			'openlani_model_calls_total{model="ma\\"in",source="chat",outcome="server"} 1',
			'openlani_tokens_total{model="ma\\"in",source="chat",kind="cached"} 80',
			'openlani_cost_total{model="ma\\"in",currency="USD"} 0.25',
			'openlani_tokens_unpriced_total{model="ma\\"in"} 120',
			'openlani_model_call_duration_seconds_bucket{model="ma\\"in",le="1"} 2',
			'openlani_model_call_duration_seconds_count{model="ma\\"in"} 2',
			'openlani_turns_total{state="done",origin="human"} 1',
			'openlani_turn_duration_seconds_sum{origin="human"} 2.5',
			'openlani_tool_calls_total{tool="web_fetch",outcome="done"} 1',
			'openlani_queue_depth{kind="people"} 2',
			"openlani_turns_running 3",
			'openlani_fuse_tokens{kind="limit"} 1000',
			"openlani_fuse_blown 1",
			'openlani_breaker_open{host="https://a.test:443"} 1',
			'openlani_channel_up{id="web",type="web"} 1',
			"process_start_time_seconds 5",
		])
			expect(text.split("\n")).toContain(line);
		expect(text).not.toContain('id="tg"');
		// A gauge that cannot be read is left out and harms no other.
		expect(text).not.toContain("alerts_open");
		for (const line of text.trim().split("\n"))
			expect(line).toMatch(/^(# (HELP|TYPE) \S+ .+|[a-z_]+(\{[^}]*\})? [-+]?(\d+(\.\d+)?(e[-+]?\d+)?|Inf|NaN))$/i);
		expect(await metrics.text()).toContain('openlani_event_loop_lag_seconds{quantile="0.99"}');
		metrics.stop();
	});
});

describe("the activity lines", () => {
	it("tell of step, thinking, tool and end, with arguments shortened and the result's size", () => {
		const bus = fakeBus();
		const lines: [string, Record<string, unknown> | undefined][] = [];
		const fine: string[] = [];
		const clock = { at: 0, now: () => clock.at };
		const activity = createActivityLog({
			bus,
			clock,
			log: {
				debug: (event) => fine.push(event),
				info: (event, data) => lines.push([event, data]),
				warn: (event, data) => lines.push([event, data]),
			},
		});
		bus.say(turn("running"));
		bus.say({ type: "step", conversation: "c1", turnId: "t1", step: 1, round: 1, state: "started", text: null });
		for (let i = 0; i < 3; i += 1)
			bus.say({ type: "step", conversation: "c1", turnId: "t1", step: 1, round: 1, state: "thinking", text: null });
		bus.say(tool("started"));
		bus.say(tool("failed"));
		clock.at = 9_000;
		bus.say(turn("failed"));
		expect(lines.map(([event]) => event)).toEqual(["step.thinking", "tool.started", "tool.failed", "turn.failed"]);
		expect(fine, "said only to who wants to know more").toEqual(["turn.started", "step.started"]);
		expect(String(lines[1]?.[1]?.arguments).length).toBeLessThan(170);
		expect(lines[2]?.[1]).toMatchObject({ resultChars: 3, ms: 30, tool: "web_fetch" });
		expect(lines[3]?.[1]).toMatchObject({ ms: 9_000 });
		activity.stop();
	});

	it("give a sign of life every 15 seconds of a long wait, and none when something moves", () => {
		const bus = fakeBus();
		const lines: Record<string, unknown>[] = [];
		const clock = { at: 0, now: () => clock.at };
		const activity = createActivityLog({
			bus,
			clock,
			log: {
				debug: () => undefined,
				info: (event, data) => event === "turn.still-running" && lines.push(data ?? {}),
				warn: () => undefined,
			},
		});
		bus.say(turn("running"));
		bus.say({ type: "step", conversation: "c1", turnId: "t1", step: 2, round: 1, state: "started", text: null });
		for (clock.at = 1_000; clock.at <= 31_000; clock.at += 1_000) activity.tick();
		expect(lines).toMatchObject([
			{ step: 2, waitsFor: "model", seconds: 15 },
			{ waitsFor: "model", seconds: 30 },
		]);
		for (; clock.at <= 60_000; clock.at += 1_000) {
			bus.say({ type: "delta", conversation: "c1", turnId: "t1", text: "x" });
			activity.tick();
		}
		expect(lines).toHaveLength(2);
		activity.stop();
	});
});

describe("traces", () => {
	it("send a turn with its calls and tools to an OTLP collector, and try again when it is away", async () => {
		const bodies: { resourceSpans: { scopeSpans: { spans: Record<string, unknown>[] }[] }[] }[] = [];
		let answer = 500;
		const server = createServer((request, response) => {
			let text = "";
			request.on("data", (data: Buffer) => {
				text += data.toString();
			});
			request.on("end", () => {
				if (answer === 200) bodies.push(JSON.parse(text));
				expect(request.url).toBe("/v1/traces");
				response.writeHead(answer).end("{}");
			});
		});
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const bus = fakeBus();
		const warnings: string[] = [];
		const tracer = createTracer({
			endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
			bus,
			log: { warn: (event) => warnings.push(event) },
			everyMs: 1e6,
		});
		bus.say(turn("running"), 1_000);
		tracer.called(call);
		bus.say(tool("done"), 2_000);
		bus.say(turn("done"), 3_000);
		await tracer.flush();
		expect(warnings).toEqual(["traces.not-sent"]);
		answer = 200;
		await tracer.stop();
		const spans = bodies[0]?.resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
		expect(spans.map((span) => span.name)).toEqual(["chat some-model", "execute_tool web_fetch", "invoke_agent openlani"]);
		expect(new Set(spans.map((span) => span.traceId)).size).toBe(1);
		expect(spans[0]?.parentSpanId).toBe(spans[2]?.spanId);
		expect(spans[2]).toMatchObject({ startTimeUnixNano: "1000000000", endTimeUnixNano: "3000000000" });
		expect(spans[0]?.attributes).toContainEqual({ key: "gen_ai.usage.input_tokens", value: { intValue: "100" } });
		await new Promise((resolve) => server.close(resolve));
	});
});
