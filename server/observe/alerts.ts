/** Alerts: one per incident, with cause and what to do; shown on the page, sent to the master and a webhook once, resolved when it is over. */
import type { AlertRow, AlertStore } from "../store/ledger-store.ts";
import type { EventBus } from "./bus.ts";

export interface Incident {
	/** What kind: "fuse-blown", "model-failing", … */
	kind: string;
	/** Which one of its kind. */
	incident: string;
	severity: AlertRow["severity"];
	/** What happened, why, what to do. */
	message: { en: string; zh: string };
	conversationId?: string | null;
	turnId?: string | null;
}

export interface Alerts {
	/** Reports an incident. While it is open, a further report only counts (at most once a minute). Never throws. */
	report(incident: Incident): Promise<void>;
	/** The incident is over. Does nothing when it is not open. */
	resolve(kind: string, incident: string): Promise<void>;
	/** Reads the open ones, so that incidents of before the start can be resolved. */
	load(): Promise<void>;
	/** Whether such an incident is open. */
	isOpen(kind: string, incident: string): boolean;
	/** Open incidents of a kind. */
	openOf(kind: string): string[];
}

export interface AlertsOptions {
	store: AlertStore;
	bus: Pick<EventBus, "publish">;
	clock: { now(): number };
	newId(): string;
	locale: () => string;
	/** Sends to the master's own channel; called when an incident opens and when one of `warn` or `error` ends. */
	notify?(text: string, row: AlertRow): Promise<void>;
	/** Posts to the configured webhook. */
	webhook?(row: AlertRow): Promise<void>;
	log: { warn(event: string, data?: Record<string, unknown>): void; info(event: string, data?: Record<string, unknown>): void };
}

const countEveryMs = 60_000;

export function createAlerts(options: AlertsOptions): Alerts {
	const { store, bus, clock, log } = options;
	const open = new Map<string, { kind: string; incident: string; countedAt: number }>();
	/** Reports of one incident go one after the other: two at once make one alert. */
	const lines = new Map<string, Promise<void>>();
	const keyOf = (kind: string, incident: string): string => `${kind}\n${incident}`;
	const chinese = (): boolean => options.locale().toLowerCase().startsWith("zh");

	function tell(row: AlertRow): void {
		const text = chinese() ? row.message.zh : row.message.en;
		const resolved = row.state === "resolved";
		bus.publish({ type: "alert", id: row.id, state: row.state, kind: row.kind, message: text });
		log[resolved || row.severity === "info" ? "info" : "warn"](resolved ? "alert.resolved" : "alert.opened", {
			kind: row.kind,
			message: text,
			conversation: row.conversationId,
			turnId: row.turnId,
		});
		if (resolved && row.severity === "info") return;
		const said = resolved ? `${chinese() ? "已恢复：" : "Over: "}${text}` : text;
		for (const [way, sending] of [
			["notify", options.notify?.(said, row)],
			["webhook", options.webhook?.(row)],
		] as const)
			sending?.catch((error: unknown) => log.info("alert.not-sent", { way, kind: row.kind, error: (error as Error).message }));
	}

	function inLine(key: string, work: () => Promise<void>): Promise<void> {
		const before = lines.get(key) ?? Promise.resolve();
		const mine = before.then(work).catch((error: unknown) => log.warn("alert.not-stored", { error: (error as Error).message }));
		lines.set(key, mine);
		void mine.finally(() => {
			if (lines.get(key) === mine) lines.delete(key);
		});
		return mine;
	}

	return {
		report({ conversationId = null, turnId = null, ...incident }) {
			const key = keyOf(incident.kind, incident.incident);
			return inLine(key, async () => {
				const now = clock.now();
				const known = open.get(key);
				if (known && now - known.countedAt < countEveryMs) return;
				const { row, opened } = await store.open({ ...incident, id: options.newId(), conversationId, turnId, at: now });
				open.set(key, { kind: row.kind, incident: row.incident, countedAt: now });
				if (opened) tell(row);
			});
		},
		resolve(kind, incident) {
			const key = keyOf(kind, incident);
			if (!open.has(key) && !lines.has(key)) return Promise.resolve();
			return inLine(key, async () => {
				if (!open.delete(key)) return;
				const row = await store.resolve(kind, incident, clock.now());
				if (row) tell(row);
			});
		},
		async load() {
			for (const { kind, incident, lastAt } of await store.list({ state: "open", limit: 1_000 }))
				open.set(keyOf(kind, incident), { kind, incident, countedAt: lastAt });
		},
		isOpen: (kind, incident) => open.has(keyOf(kind, incident)),
		openOf: (kind) => [...open.values()].flatMap((one) => (one.kind === kind ? [one.incident] : [])),
	};
}
