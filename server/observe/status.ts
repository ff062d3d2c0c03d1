import type { Status } from "../http/contract.ts";
import type { EventBus } from "./bus.ts";

/** What `GET /api/v1/status` says, gathered from those who know. */
export interface StatusOptions {
	version: string;
	startedAt: number;
	config: {
		errors(): { key: string; line: number | null; message: string }[];
		withoutEffect(): { key: string; line: number | null; message: string }[];
		restartNeeded(): string[];
		safeMode(): boolean;
		current(): { heartbeat: { enabled: boolean }; timezone: string };
	};
	models: {
		describe(): Status["models"];
		breakers(): Status["breakers"];
		demo(): boolean;
		usable(): boolean;
	};
	fuse: {
		state(): Promise<{
			limitTokens: number | null;
			usedTokens: number;
			reservedTokens: number;
			limitCost: number | null;
			usedCost: number;
			state: "ok" | "warn" | "blown";
			resetsAt: number;
		}>;
	};
	bus: EventBus;
	channels(): Status["channels"];
	turns(): Promise<Status["turns"]>;
	store: { health(): Promise<{ ok: boolean }> };
	embeddings(): Promise<Status["embeddings"]>;
	locale(): string | null;
	agentName(): Promise<string>;
	/** Bytes that can still be written where the home is; null when the system does not say. */
	diskFree(): Promise<number | null>;
	clock: { now(): number };
}

/** Below this nothing is safe to be stored any more. */
const leastFree = 16 * 1024 * 1024;

export function createStatus(options: StatusOptions): () => Promise<Status> {
	const { config, models } = options;

	return async () => {
		const [fuse, turns, health, embeddings, free, agentName] = await Promise.all([
			options.fuse.state(),
			options.turns(),
			options.store.health(),
			options.embeddings(),
			options.diskFree(),
			options.agentName(),
		]);
		const channels = options.channels();
		const safeMode = config.safeMode() || !models.usable();
		const degraded =
			!health.ok || (free !== null && free < leastFree) || fuse.state === "blown" || channels.some((channel) => channel.state === "down");
		return {
			version: options.version,
			startedAt: new Date(options.startedAt).toISOString(),
			state: safeMode ? "safe-mode" : degraded ? "degraded" : "ok",
			fuse: {
				limitTokens: fuse.limitTokens,
				usedTokens: fuse.usedTokens,
				reservedTokens: fuse.reservedTokens,
				limitCost: fuse.limitCost,
				usedCost: fuse.usedCost,
				state: fuse.state,
				resetsAt: new Date(fuse.resetsAt).toISOString(),
			},
			config: { errors: config.errors(), withoutEffect: config.withoutEffect(), restartNeeded: config.restartNeeded() },
			// Nothing beats yet in this version: what is not there is off.
			heartbeat: { enabled: false, nextAt: null, lastAt: null, beats: 0, savedCalls: 0, savedTokens: 0 },
			channels,
			sandbox: { backend: "none" },
			breakers: models.breakers(),
			embeddings,
			models: models.describe(),
			demo: models.demo(),
			turns,
			locale: options.locale(),
			timezone: config.current().timezone,
			agentName,
		};
	};
}
