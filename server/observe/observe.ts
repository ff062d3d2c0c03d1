/** Alerts, watchdog, metrics, traces and the activity lines in one piece, so that the composition root wires them with one call. */
import type { Status } from "../http/contract.ts";
import type { LedgerRouteDeps } from "../http/routes/ledger.ts";
import type { Fuse } from "../safety/fuse.ts";
import type { AlertRow, Ledger } from "../store/ledger-store.ts";
import { createActivityLog } from "./activity.ts";
import { type Alerts, createAlerts } from "./alerts.ts";
import type { EventBus } from "./bus.ts";
import type { Calendar } from "./day.ts";
import type { RootLog } from "./log.ts";
import type { MeteredCall } from "./meter.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import type { Tracer } from "./traces.ts";
import { createWatchdog, type Watchdog } from "./watchdog.ts";

export interface ObserveOptions {
	ledger: Ledger;
	bus: EventBus;
	fuse: Fuse;
	calendar: Calendar;
	log: RootLog;
	clock: { now(): number };
	newId(): string;
	home: string;
	version: string;
	startedAt: number;
	locale: () => string;
	channels(): Status["channels"];
	breakers(): Status["breakers"];
	queue(): Promise<{ people: number; background: number }>;
	running(): number;
	/** The configured models with their prices, for `GET /api/v1/prices`. */
	prices?: LedgerRouteDeps["prices"];
	/** Told after a raise of the fuse. */
	statusChanged(): void;
	/** Sends a sentence to the master's own channel. */
	notify?(text: string, row: AlertRow): Promise<void>;
	webhook?(row: AlertRow): Promise<void>;
	/** Where traces go (`OTEL_EXPORTER_OTLP_ENDPOINT`), or null. The exporter is loaded only then. */
	otlp?: { endpoint: string; headers?: Record<string, string>; serviceName?: string } | null;
}

export interface Observe {
	alerts: Alerts;
	watchdog: Watchdog;
	metrics: Metrics;
	/** For the meter's `onCall`. */
	onCall(call: MeteredCall): void;
	/** For `HttpDeps.ledger`. */
	routes: LedgerRouteDeps;
	/** Reads what was open before, starts the timers. */
	start(): Promise<void>;
	stop(): Promise<void>;
}

export function createObserve(options: ObserveOptions): Observe {
	const { bus, clock, ledger, fuse, calendar, log } = options;
	const alerts = createAlerts({
		store: ledger.alerts,
		bus,
		clock,
		newId: options.newId,
		locale: options.locale,
		notify: options.notify,
		webhook: options.webhook,
		log,
	});
	const watchdog = createWatchdog({
		alerts,
		bus,
		fuse,
		ledger,
		channels: options.channels,
		calendar,
		clock,
		home: options.home,
		log,
	});
	const metrics = createMetrics({
		bus,
		fuse: () => fuse.state(),
		queue: options.queue,
		running: options.running,
		breakers: options.breakers,
		channels: options.channels,
		openAlerts: async () => (await ledger.alerts.list({ state: "open", limit: 1_000 })).length,
		logLost: () => log.lost(),
		startedAt: options.startedAt,
		version: options.version,
	});
	const activity = createActivityLog({ bus, log: log.local(), clock });
	let tracer: Tracer | null = null;

	return {
		alerts,
		watchdog,
		metrics,
		onCall(call) {
			// The test of a model that is not in use yet is nobody's call and no incident.
			const { conversationId, turnId, personId } = call.context;
			if (conversationId ?? turnId ?? personId) watchdog.called(call);
			metrics.called(call);
			tracer?.called(call);
			log.local().debug("model.called", {
				conversation: call.context.conversationId ?? undefined,
				turnId: call.context.turnId ?? undefined,
				model: call.model,
				source: call.context.source,
				inputTokens: call.usage.inputTokens,
				cachedTokens: call.usage.cachedTokens,
				outputTokens: call.usage.outputTokens,
				estimated: call.usage.estimated || undefined,
				cost: call.usage.cost ?? "unknown",
				ms: call.ms,
				firstByteMs: call.firstByteMs ?? undefined,
				error: call.error?.kind,
			});
		},
		routes: {
			ledger,
			fuse,
			calendar,
			clock,
			metrics: () => metrics.text(),
			changed: options.statusChanged,
			...(options.prices ? { prices: options.prices } : {}),
		},
		async start() {
			await alerts.load();
			watchdog.start();
			if (options.otlp) {
				const { createTracer } = await import("./traces.ts");
				tracer = createTracer({ ...options.otlp, bus, log });
			}
		},
		async stop() {
			watchdog.stop();
			activity.stop();
			metrics.stop();
			await tracer?.stop();
		},
	};
}
