/** What `GET /metrics` says. Counted from the bus and the meter; gauges are read when somebody asks. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { LiveFrame, Status } from "../http/contract.ts";
import type { FuseState } from "../safety/fuse.ts";
import type { EventBus } from "./bus.ts";
import type { MeteredCall } from "./meter.ts";
import { createRegistry, type Labels } from "./prometheus.ts";

export interface MetricsOptions {
	bus: Pick<EventBus, "subscribe">;
	fuse(): Promise<FuseState>;
	queue(): Promise<{ people: number; background: number }>;
	outbox?(): Promise<number>;
	running(): number;
	breakers(): Status["breakers"];
	channels(): Status["channels"];
	openAlerts?(): Promise<number>;
	logLost?(): number;
	startedAt: number;
	version: string;
}

export interface Metrics {
	called(call: MeteredCall): void;
	text(): Promise<string>;
	stop(): void;
}

const secondsBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export function createMetrics(options: MetricsOptions): Metrics {
	const registry = createRegistry();
	const turns = registry.counter("openlani_turns_total", "Turns by how they ended and what woke them.");
	const tools = registry.counter("openlani_tool_calls_total", "Tool calls by name and outcome.");
	const calls = registry.counter("openlani_model_calls_total", "Model calls by model, source and outcome (ok or the kind of error).");
	const tokens = registry.counter(
		"openlani_tokens_total",
		"Tokens by model, source and kind; cached is part of input, reasoning of output.",
	);
	const estimated = registry.counter("openlani_tokens_estimated_total", "Tokens that were estimated because the server reported none.");
	const cost = registry.counter("openlani_cost_total", "Cost of priced calls by model and currency.");
	const unpriced = registry.counter("openlani_tokens_unpriced_total", "Tokens of calls whose price is unknown.");
	const duration = registry.histogram("openlani_model_call_duration_seconds", "Time of a model call, answer included.", secondsBuckets);
	const firstByte = registry.histogram("openlani_model_first_byte_seconds", "Time to the first byte of a model's answer.", secondsBuckets);
	const writing = registry.histogram(
		"openlani_ledger_write_seconds",
		"Time to store a call, before and after it.",
		[0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25],
	);
	const turnTime = registry.histogram("openlani_turn_duration_seconds", "Time from the start of a turn to its end.", secondsBuckets);
	const begun = new Map<string, number>();

	const plain = (value: number): [Labels, number][] => [[{}, value]];
	registry.gauge("openlani_queue_depth", "Messages that wait, by who waits.", async () => {
		const { people, background } = await options.queue();
		return [
			[{ kind: "people" }, people],
			[{ kind: "background" }, background],
		];
	});
	registry.gauge("openlani_turns_running", "Turns in progress.", () => plain(options.running()));
	const { outbox, openAlerts, logLost } = options;
	if (outbox) registry.gauge("openlani_outbox_pending", "Messages that wait to be sent.", async () => plain(await outbox()));
	if (openAlerts) registry.gauge("openlani_alerts_open", "Incidents that are not over.", async () => plain(await openAlerts()));
	if (logLost)
		registry.gauge("openlani_log_lines_lost", "Log lines that could not be written since the last that could.", () => plain(logLost()));
	registry.gauge("openlani_fuse_tokens", "Tokens of the day: limit, used, reserved.", async () => {
		const state = await options.fuse();
		const rows: [Labels, number][] = [
			[{ kind: "used" }, state.usedTokens],
			[{ kind: "reserved" }, state.reservedTokens],
		];
		if (state.limitTokens !== null) rows.push([{ kind: "limit" }, state.limitTokens]);
		return rows;
	});
	registry.gauge("openlani_fuse_cost", "Cost of the day: limit and used, in the budget's currency.", async () => {
		const state = await options.fuse();
		const rows: [Labels, number][] = [[{ kind: "used", currency: state.currency }, state.usedCost]];
		if (state.limitCost !== null) rows.push([{ kind: "limit", currency: state.currency }, state.limitCost]);
		return rows;
	});
	registry.gauge("openlani_fuse_blown", "1 while no model is called.", async () => plain((await options.fuse()).state === "blown" ? 1 : 0));
	registry.gauge("openlani_breaker_open", "0 closed, 0.5 half open, 1 open.", () =>
		options.breakers().map(({ key, state }) => [{ host: key }, state === "open" ? 1 : state === "half-open" ? 0.5 : 0]),
	);
	registry.gauge("openlani_channel_up", "1 up, 0.5 connecting, 0 down; channels that are off are left out.", () =>
		options
			.channels()
			.flatMap(({ id, type, state }): [Labels, number][] =>
				state === "off" ? [] : [[{ id, type }, state === "up" ? 1 : state === "connecting" ? 0.5 : 0]],
			),
	);
	registry.gauge("openlani_info", "Version and start.", () => [[{ version: options.version }, 1]]);
	registry.gauge("process_start_time_seconds", "Start of the process, seconds since the epoch.", () => plain(options.startedAt / 1000));
	registry.gauge("process_resident_memory_bytes", "Resident memory.", () => plain(process.memoryUsage.rss()));

	// Measured from the first question on: nobody who does not scrape pays for it.
	let lag: IntervalHistogram | null = null;
	registry.gauge("openlani_event_loop_lag_seconds", "How late the event loop ran since the last question: p50, p99, max.", () => {
		if (!lag) {
			lag = monitorEventLoopDelay({ resolution: 20 });
			lag.enable();
			return [];
		}
		const seconds = (nanoseconds: number): number => (Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - 0.02) : 0);
		const rows: [Labels, number][] = [
			[{ quantile: "0.5" }, seconds(lag.percentile(50))],
			[{ quantile: "0.99" }, seconds(lag.percentile(99))],
			[{ quantile: "1" }, seconds(lag.max)],
		];
		lag.reset();
		return rows;
	});

	function onFrame(frame: LiveFrame): void {
		if (frame.type === "turn") {
			if (frame.state === "running") {
				if (!begun.has(frame.turnId)) begun.set(frame.turnId, Date.parse(frame.at));
			} else if (frame.state !== "queued") {
				turns({ state: frame.state, origin: frame.origin });
				const from = begun.get(frame.turnId);
				begun.delete(frame.turnId);
				if (from !== undefined) turnTime({ origin: frame.origin }, Math.max(0, Date.parse(frame.at) - from) / 1000);
			}
		} else if (frame.type === "tool" && frame.tool.state !== "open" && frame.tool.state !== "started")
			tools({ tool: frame.tool.name, outcome: frame.tool.state });
	}
	const end = options.bus.subscribe(onFrame);

	return {
		called({ model, context, error, usage, ms, firstByteMs, ledgerMs }) {
			const { source } = context;
			calls({ model, source, outcome: error?.kind ?? "ok" });
			for (const [kind, value] of [
				["input", usage.inputTokens],
				["cached", usage.cachedTokens],
				["output", usage.outputTokens],
				["reasoning", usage.reasoningTokens],
			] as const)
				if (value > 0) tokens({ model, source, kind }, value);
			const all = usage.inputTokens + usage.outputTokens;
			if (usage.estimated && all > 0) estimated({ model }, all);
			if (usage.cost === null) unpriced({ model }, all);
			else if (usage.cost > 0) cost({ model, currency: usage.currency }, usage.cost);
			duration({ model }, ms / 1000);
			if (firstByteMs !== null) firstByte({ model }, firstByteMs / 1000);
			writing({}, ledgerMs / 1000);
		},
		text: () => registry.text(),
		stop() {
			end();
			lag?.disable();
		},
	};
}
