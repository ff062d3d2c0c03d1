/** The HTTP application over a real store, bus and gateway; only what the agent does in a turn is scripted. */
import { mkdir, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from "fastify";
import { v7 } from "uuid";
import { WebSocket } from "ws";
import { createWebChannel } from "../../../channels/web/index.ts";
import type { TurnEvent, TurnInput, TurnOutcome } from "../../../server/agent/types.ts";
import { createGateway, type Gateway } from "../../../server/gateway/gateway.ts";
import { buildApp } from "../../../server/http/app.ts";
import type { LiveFrame, Status } from "../../../server/http/contract.ts";
import { ConfigInvalid, type HttpDeps } from "../../../server/http/deps.ts";
import { createPresenter } from "../../../server/http/presenter.ts";
import type { EventBus } from "../../../server/observe/bus.ts";
import { createBus } from "../../../server/observe/create-bus.ts";
import { createPassFilter } from "../../../server/safety/filter.ts";
import type { Store } from "../../../server/store/store.ts";
import { testHome } from "../../helpers/store.ts";

export const TOKEN = "test-token-0123456789";
export const CODE = "one-time-code";

export type Script = (input: TurnInput, signal: AbortSignal) => AsyncGenerator<TurnEvent, TurnOutcome>;

export interface House {
	app: FastifyInstance;
	deps: HttpDeps;
	store: Store;
	bus: EventBus;
	gateway: Gateway;
	dir: string;
	clock: { now(): number; set(at: number): void };
	config: Record<string, unknown>;
	log: { level: string; event: string; data: Record<string, unknown> | undefined }[];
	setScript(script: Script): void;
	/** A request with the API token. */
	call(method: InjectOptions["method"], url: string, payload?: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>;
	conversation(): Promise<string>;
	listen(): Promise<{ port: number; url: string }>;
	close(): Promise<void>;
}

export const usage = {
	inputTokens: 120,
	cachedTokens: 100,
	outputTokens: 7,
	reasoningTokens: 2,
	estimated: false,
	cost: 0.001,
	currency: "USD",
};

export function outcome(change: Partial<TurnOutcome> & { reply: string }): TurnOutcome {
	return {
		state: "done",
		fromUs: false,
		silent: false,
		status: "done",
		deliverTo: null,
		attachments: [],
		guard: null,
		error: null,
		rounds: 1,
		steps: 1,
		usage,
		model: "main",
		modelName: "scripted-1",
		taint: [],
		toolDigest: null,
		...change,
	};
}

/** Says `reply` in the given pieces, waiting between them when asked to. */
export function saying(pieces: string[], { pauseMs = 0, end = {} }: { pauseMs?: number; end?: Partial<TurnOutcome> } = {}): Script {
	return async function* (_input, signal) {
		yield { type: "step-started", step: 1, round: 1, chars: 10 };
		for (const text of pieces) {
			if (pauseMs > 0) await pause(pauseMs, signal);
			if (signal.aborted) return yield* ended(outcome({ reply: "", silent: true, ...end, state: "stopped" }));
			yield { type: "delta", step: 1, text };
		}
		return yield* ended(outcome({ reply: pieces.join(""), ...end }));
	};
}

export async function* ended(value: TurnOutcome): AsyncGenerator<TurnEvent, TurnOutcome> {
	yield { type: "done", outcome: value };
	return value;
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(done, ms);
		signal?.addEventListener("abort", done);
		function done(): void {
			clearTimeout(timer);
			signal?.removeEventListener("abort", done);
			resolve();
		}
	});
}

export async function until<T>(look: () => T | Promise<T>, what = "the condition", ms = 5000): Promise<NonNullable<T>> {
	const end = Date.now() + ms;
	for (;;) {
		const value = await look();
		if (value) return value as NonNullable<T>;
		if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
		await pause(5);
	}
}

export function statusOf(change: Partial<Status> = {}): Status {
	return {
		version: "1.2.3",
		startedAt: new Date(0).toISOString(),
		state: "ok",
		fuse: {
			limitTokens: 1000,
			usedTokens: 1,
			reservedTokens: 0,
			limitCost: null,
			usedCost: 0,
			state: "ok",
			resetsAt: new Date(0).toISOString(),
		},
		config: { errors: [], withoutEffect: [], restartNeeded: [] },
		heartbeat: { enabled: false, nextAt: null, lastAt: null, beats: 0, savedCalls: 0, savedTokens: 0 },
		channels: [],
		sandbox: { backend: "none" },
		breakers: [],
		embeddings: { model: "none", state: "off", indexed: 0, total: 0 },
		models: [],
		demo: false,
		turns: { running: 0, queued: 0 },
		locale: "en",
		timezone: "UTC",
		agentName: "Lani",
		...change,
	};
}

export async function openHouse(change: Partial<HttpDeps> & { page?: boolean } = {}): Promise<House> {
	let now: number | null = null;
	const clock = {
		now: () => now ?? Date.now(),
		set(at: number) {
			now = at;
		},
	};
	const home = await testHome({ ...clock, forward: () => {} });
	const store = await home.open();
	const present = createPresenter(store);
	const log: House["log"] = [];
	const note = (level: string) => (event: string, data?: Record<string, unknown>) => void log.push({ level, event, data });
	const logger = { info: note("info"), warn: note("warn"), error: note("error") };
	const bus = await createBus({
		events: store.events,
		clock,
		messages: present.byIds,
		onError: (error) => note("error")("bus", { error: String(error) }),
	});
	let script: Script = saying(["Hello ", "there."]);
	const web = createWebChannel({
		async show(message) {
			const outbox = await store.outbox.get(message.id);
			const row = outbox?.messageId ? await store.messages.get(outbox.messageId) : null;
			if (row) {
				bus.publish({
					type: "message",
					conversation: row.conversationId,
					message: await present.message({ ...row, text: message.text, delivery: "sent" }),
				});
			}
		},
	});
	await web.start({ accept: () => Promise.reject(new Error("not used")), report: () => {} });
	const gateway = createGateway({
		store,
		bus,
		filter: createPassFilter(),
		model: {
			stream() {
				throw new Error("not used");
			},
			contextTokens: () => 128_000,
		},
		memory: {
			history: async () => [],
			blocks: async () => [],
			recall: async () => [],
			takenBack: () => undefined,
			remember: async () => {},
			stop: async () => {},
		},
		clock,
		newId: () => v7(),
		owner: "test",
		runTurn: (input, _deps, signal) => script(input, signal),
		countTokens: (_model, parts) => Math.ceil(parts.join("").length / 4),
		saidOf: (messages) => messages.map((message) => message.text).join("\n\n"),
		settings: () => ({
			timezone: "UTC",
			locale: "en",
			limits: { maxSteps: 10, maxRounds: 1, toolResultChars: 1000, stepResultChars: 1000, requestChars: 100_000 },
		}),
		blocks: async () => [{ name: "SOUL", text: "You are Lani." }],
		tools: () => ({ list: () => [], get: () => undefined }),
		admission: async () => null,
		present,
		keepFullText: async () => "files/full.txt",
		plan: { write: async () => {}, edited: async () => null },
		channel: (id) => (id === "web" ? web : undefined),
		policy: () => ({ masters: [], allow: [], profile: null }),
		locale: () => "en",
		log: logger,
	});
	await gateway.start();
	let codeUsed = false;
	const config: Record<string, unknown> = { models: [], roles: { chat: [] }, budget: { dailyTokens: 1000 } };
	let pageDir: string | null = null;
	if (change.page) {
		pageDir = join(home.dir, "page");
		await mkdir(join(pageDir, "assets"), { recursive: true });
		await writeFile(join(pageDir, "index.html"), "<!doctype html><title>OpenLani</title>");
		await writeFile(join(pageDir, "assets", "app-B1c2D3e4.js"), "export {};");
		await writeFile(join(pageDir, "favicon.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>");
		await writeFile(join(home.dir, "secret.txt"), "not for the page");
	}
	const { page: _page, ...given } = change;
	const deps: HttpDeps = {
		store,
		gateway,
		bus,
		config: {
			read: () => structuredClone(config),
			async write(next) {
				if ("surprise" in next) throw new ConfigInvalid([{ key: "surprise", line: 3, message: "is not known" }]);
				for (const key of Object.keys(config)) delete config[key];
				Object.assign(config, next);
				return { restartNeeded: ["server.port"] };
			},
			async set(changes) {
				if (changes.timezone === "Nowhere/Land") throw new ConfigInvalid([{ key: "timezone", line: null, message: "is no time zone" }]);
				Object.assign(config, changes);
				return { restartNeeded: [] };
			},
		},
		filter: createPassFilter(),
		channels: () => [web],
		models: {
			test: async (input) => ({ ok: true, message: `tested ${input.id}`, kind: "text", ms: 3, reply: "hi" }),
			list: () => [{ id: "main", name: "Main", provider: "custom", kind: "text" }],
		},
		setup: {
			info: async () => ({ needed: true, locale: null, timezone: "UTC", providers: [], answering: null, detected: [] }),
			async redeem(code) {
				if (codeUsed || code !== CODE) return false;
				codeUsed = true;
				return true;
			},
			check: async (code) => !codeUsed && code === CODE,
		},
		status: async () => statusOf(),
		token: () => TOKEN,
		clock,
		newId: () => v7(),
		pageDir,
		publicUrl: () => null,
		log: logger,
		version: "1.2.3",
		...given,
	};
	const app = await buildApp(deps);

	const house: House = {
		app,
		deps,
		store,
		bus,
		gateway,
		dir: home.dir,
		clock,
		config,
		log,
		setScript(next) {
			script = next;
		},
		call: (method, url, payload, headers = {}) =>
			app.inject({
				method,
				url,
				headers: {
					authorization: `Bearer ${TOKEN}`,
					...(app.server.listening ? { host: `127.0.0.1:${(app.server.address() as AddressInfo).port}` } : {}),
					...headers,
				},
				...(payload === undefined ? {} : { payload: payload as object }),
			}),
		async conversation() {
			return (await house.call("POST", "/api/v1/conversations", {})).json().id as string;
		},
		async listen() {
			await app.listen({ host: "127.0.0.1", port: 0 });
			const { port } = app.server.address() as AddressInfo;
			return { port, url: `http://127.0.0.1:${port}` };
		},
		async close() {
			await app.close();
			await gateway.close(100);
			await bus.close();
			await store.close();
			await home.remove();
		},
	};
	return house;
}

export interface Client {
	socket: WebSocket;
	frames: LiveFrame[];
	closed: Promise<{ code: number; reason: string }>;
	send(frame: unknown): void;
	/** The first frame that fits, now or later. */
	frame<T extends LiveFrame["type"]>(
		type: T,
		fits?: (frame: Extract<LiveFrame, { type: T }>) => boolean,
	): Promise<Extract<LiveFrame, { type: T }>>;
}

export async function connect(port: number, headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` }): Promise<Client> {
	const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/live`, { headers });
	const frames: LiveFrame[] = [];
	socket.on("message", (data) => frames.push(JSON.parse(String(data)) as LiveFrame));
	const closed = new Promise<{ code: number; reason: string }>((resolve) =>
		socket.on("close", (code, reason) => resolve({ code, reason: String(reason) })),
	);
	await new Promise<void>((resolve, reject) => {
		socket.on("open", () => resolve());
		socket.on("error", reject);
	});
	return {
		socket,
		frames,
		closed,
		send: (frame) => socket.send(typeof frame === "string" || frame instanceof Uint8Array ? frame : JSON.stringify(frame)),
		frame: (type, fits = () => true) =>
			until(
				() => frames.find((one) => one.type === type && fits(one as never)) as Extract<LiveFrame, { type: typeof type }> | undefined,
				`a ${type} frame`,
			),
	};
}
