/** The models room: the `Model` contract over configured providers and the demo model, and what status, set-up and memory need of it. */
import { createHosts } from "./breaker.ts";
import { candidatesFor, talks, targetOf } from "./candidates.ts";
import { createDemo, DEMO_ID } from "./demo/demo.ts";
import { type Embedded, embedTexts } from "./embed.ts";
import { createEngine, type Engine, type EngineDeps, type Prices } from "./engine.ts";
import { createKeyRing } from "./keys.ts";
import { type CallContext, type Meter, type Model, ModelError } from "./model.ts";
import { type Client, createClient } from "./openai/client.ts";
import { createLearned } from "./openai/quirks.ts";
import type { ProxySettings } from "./openai/transport.ts";
import { DEFAULT_CONTEXT_TOKENS, type ModelRoles, type ModelSettings } from "./settings.ts";
import { createTokenCounter, type TokenCounter } from "./tokens.ts";
import { type TestResult, testModel } from "./try.ts";

export interface ModelsOptions {
	models: ModelSettings[];
	roles: ModelRoles;
	meter: Meter;
	prices: Prices;
	/** Bytes of a stored attachment. */
	readAsset(sha256: string): Promise<Uint8Array>;
	clock: { now(): number };
	newId(): string;
	log: { info(event: string, data?: Record<string, unknown>): void; warn(event: string, data?: Record<string, unknown>): void };
	tokens?: TokenCounter;
	/** 0 ≤ x < 1, for jitter. */
	random?(): number;
	/** Waits between attempts; rejects when `signal` aborts. For tests. */
	sleep?(ms: number, signal: AbortSignal): Promise<void>;
	/** From the environment (config reads it); null = direct. */
	proxy?: ProxySettings | null;
	/** Makes the requests, and is closed with the models. Default: one in this thread. */
	client?: Client;
	/** Ms between two words of the demo model. Default 18; 0 in tests. */
	demoPaceMs?: number;
}

/** One model as status and doctor show it. */
export interface ModelStatus {
	id: string;
	provider: string;
	model: string;
	kind: string;
	usable: boolean;
	problem: string | null;
	keys: { key: string; state: "ok" | "set-aside"; reason: string | null; until: string | null }[];
}

export interface Models extends Model {
	/** Every configured model; the demo model alone when none is. */
	describe(): ModelStatus[];
	/** Chat models that a person may pick. */
	list(): { id: string; name: string; provider: string; kind: string }[];
	breakers(): { key: string; state: "closed" | "open" | "half-open"; failures: number; retryAt: string | null }[];
	/** True when the demo model answers because no chat model is configured. */
	demo(): boolean;
	/** True when some chat model (or the demo) could be called now. */
	usable(): boolean;
	/** Sends one small real request, without retries and whatever health is remembered. A success forgives the model's keys. Never throws. */
	test(model: ModelSettings | string, signal: AbortSignal): Promise<TestResult>;
	/** Vectors of `texts` in order, from the model of role `embedding`. Throws `ModelError` ("no-model" when none is configured). */
	embed(texts: string[], context: CallContext, signal: AbortSignal): Promise<Embedded>;
	/** Id, name and endpoint of the embedding model, or null: changes when vectors of before do not fit any more. */
	embedding(): { id: string; model: string; baseUrl: string } | null;
	/** Edited settings take effect with the next call; running calls end as they began. A changed key is a healthy one. */
	update(change: { models?: ModelSettings[]; roles?: ModelRoles }): void;
	/** Loads what the first call will need; for the quiet moment after the start. Does nothing while the demo model answers. */
	warm(): Promise<void>;
	/** Closes kept connections. */
	close(): void;
}

export function createModels(options: ModelsOptions): Models {
	let models = options.models;
	let roles = options.roles;
	const tokens = options.tokens ?? createTokenCounter();
	const { clock, newId, log } = options;
	const client = options.client ?? createClient({ proxy: options.proxy ?? null, newId, clock });
	const ring = createKeyRing(clock);
	const hosts = createHosts(clock);
	const learned = createLearned();
	const random = options.random ?? Math.random;
	const sleep = options.sleep ?? wait;
	const demo = createDemo({ newId, clock, paceMs: options.demoPaceMs ?? 18, sleep: options.sleep ?? wait, tokens });
	const deps: EngineDeps = {
		client,
		demo,
		ring,
		hosts,
		learned,
		tokens,
		meter: options.meter,
		prices: options.prices,
		readAsset: options.readAsset,
		clock,
		newId,
		random,
		sleep,
		log,
	};
	const engine: Engine = createEngine(deps);
	const isDemo = () => !models.some(talks);

	function candidates(request: { role: "chat" | "small" | "critique" | "vision"; model: string | null; images: boolean }): ModelSettings[] {
		if (isDemo() || request.model === DEMO_ID) return [demo.settings];
		return candidatesFor(request, models, roles);
	}

	function embeddingSettings(): ModelSettings | null {
		return models.find((settings) => settings.id === roles.embedding) ?? null;
	}

	return {
		stream(request, signal) {
			const images = request.messages.some((message) => message.role === "user" && message.content.some((part) => part.type === "image"));
			return engine.stream(request, candidates({ role: request.role, model: request.model, images }), signal);
		},
		contextTokens(role, model) {
			const list = candidates({ role, model, images: false });
			const first = list.find((settings) => settings.id === DEMO_ID || !("problem" in targetOf(settings))) ?? list[0];
			return first?.contextTokens ?? DEFAULT_CONTEXT_TOKENS;
		},
		describe() {
			if (models.length === 0)
				return [{ id: DEMO_ID, provider: DEMO_ID, model: demo.settings.model, kind: "text", usable: true, problem: null, keys: [] }];
			return models.map((settings) => {
				const target = targetOf(settings);
				const base = { id: settings.id, provider: settings.provider, model: settings.model, kind: settings.kind };
				if ("problem" in target) return { ...base, usable: false, problem: target.problem, keys: [] };
				const keys = ring.status(target.origin, settings.model, target.keys);
				const aside = keys.filter((key) => key.state === "set-aside");
				const free = keys.length === 0 || aside.length < keys.length;
				const problem =
					aside.length === 0
						? null
						: free
							? `${aside.length} of ${keys.length} keys set aside: ${aside[0]?.reason}`
							: `every key is set aside: ${aside[0]?.reason}`;
				return { ...base, usable: free, problem, keys: keys.map((key) => ({ ...key, until: iso(key.until) })) };
			});
		},
		list() {
			if (isDemo()) return [{ id: DEMO_ID, name: demo.settings.model, provider: DEMO_ID, kind: "text" }];
			return models
				.filter(talks)
				.map((settings) => ({ id: settings.id, name: settings.model, provider: settings.provider, kind: settings.kind }));
		},
		breakers: () => hosts.status().map((host) => ({ ...host, retryAt: iso(host.retryAt) })),
		demo: isDemo,
		usable: () =>
			isDemo() ||
			models.some((settings) => {
				const target = targetOf(settings);
				return talks(settings) && !("problem" in target) && ring.freeIn(target.origin, settings.model, target.keys) === null;
			}),
		async test(model, signal) {
			const settings = typeof model === "string" ? (model === DEMO_ID ? demo.settings : models.find((entry) => entry.id === model)) : model;
			if (!settings) return { ok: false, message: `There is no model "${String(model)}".`, kind: "no-model", ms: null, reply: null };
			const result = await testModel(settings, deps, signal);
			const target = targetOf(settings);
			if (result.ok && !("problem" in target)) for (const key of target.keys) ring.good(target.origin, key, settings.model);
			return result;
		},
		async embed(texts, context, signal) {
			const settings = embeddingSettings();
			if (!settings) throw new ModelError("no-model", "no embedding model is configured");
			return embedTexts(texts, settings, context, deps, signal);
		},
		embedding() {
			const settings = embeddingSettings();
			const target = settings ? targetOf(settings) : null;
			return settings && target && !("problem" in target) ? { id: settings.id, model: settings.model, baseUrl: target.baseUrl } : null;
		},
		update(change) {
			if (change.models) models = change.models;
			if (change.roles) roles = change.roles;
			ring.keep(models.flatMap((settings) => settings.apiKeys));
			log.info("models.updated", { models: models.map((settings) => settings.id) });
		},
		warm: async () => {
			if (!isDemo()) await client.warm();
		},
		close: () => client.close(),
	};
}

const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

function wait(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		const stop = () => {
			clearTimeout(timer);
			reject(new ModelError("aborted", "stopped while waiting"));
		};
		if (signal.aborted) {
			reject(new ModelError("aborted", "stopped while waiting"));
			return;
		}
		const timer = setTimeout(() => {
			signal.removeEventListener("abort", stop);
			resolve();
		}, ms);
		signal.addEventListener("abort", stop, { once: true });
	});
}
