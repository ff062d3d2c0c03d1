/** The composition root: the only file that knows everybody. Starts in order, stops in reverse. */
import { setMaxListeners } from "node:events";
import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Channel } from "../channels/channel.ts";
import { createWebChannel } from "../channels/web/index.ts";
import { requestCharsFor } from "./agent/limits.ts";
import { saidOf } from "./agent/prompt.ts";
import { rulesBlock } from "./agent/rules.ts";
import { runTurn } from "./agent/run-turn.ts";
import type { ToolBox } from "./agent/types.ts";
import { onceFor } from "./config/derived.ts";
import type { Environment } from "./config/environment.ts";
import { chatModels } from "./config/parse.ts";
import type { Config } from "./config/schema.ts";
import { createConfigService } from "./config/service.ts";
import { createGateway, type Gateway } from "./gateway/gateway.ts";
import { patient } from "./gateway/insist.ts";
import { payerOf, sourceOf } from "./gateway/payer.ts";
import type { ChannelPolicy } from "./gateway/people.ts";
import { recentExchanges } from "./gateway/recent.ts";
import { showAgain } from "./gateway/show-again.ts";
import { buildApp } from "./http/app.ts";
import { displayHost, listen, StartRefused } from "./http/listen.ts";
import { createPresenter } from "./http/presenter.ts";
import { createSetupCode } from "./http/setup-code.ts";
import { createIds } from "./ids.ts";
import { createMemory } from "./memory/create.ts";
import { embedderOf } from "./memory/embedder.ts";
import { createLocalModel, installHintOf } from "./memory/local-model.ts";
import { keyOfOwner } from "./memory/scope.ts";
import { createModels } from "./model/models.ts";
import { createClientHost } from "./model/openai/client-host.ts";
import { createPriceBook } from "./model/prices.ts";
import { detectLocal, listProviders } from "./model/providers.ts";
import type { ModelSettings } from "./model/settings.ts";
import { createTokenCounter } from "./model/tokens.ts";
import { postAlert } from "./observe/alert-webhook.ts";
import type { Incident } from "./observe/alerts.ts";
import { createCalibration } from "./observe/calibration.ts";
import { createBus } from "./observe/create-bus.ts";
import { createCalendar } from "./observe/day.ts";
import { createLog } from "./observe/log.ts";
import { createMeter, type MeteredCall } from "./observe/meter.ts";
import { createObserve } from "./observe/observe.ts";
import { createStatus } from "./observe/status.ts";
import { policyFor } from "./safety/approval-policy.ts";
import { createApprovals } from "./safety/approvals.ts";
import { createPassFilter } from "./safety/filter.ts";
import { createFuse } from "./safety/fuse.ts";
import { createRedactor } from "./safety/redact.ts";
import { redactTools } from "./safety/redact-tools.ts";
import { openStore } from "./store/open.ts";
import type { Claim } from "./store/store.ts";
import { createMemoryTools } from "./tools/memory/index.ts";
import { createResults } from "./tools/results.ts";
import { createBuiltinTools, createToolBox } from "./tools/tool-box.ts";
import { version } from "./version.ts";
import { agentNameOf } from "./workspace/agent-name.ts";
import { lockHome, writeRuntime } from "./workspace/lock.ts";
import { createPlanFile } from "./workspace/plan-file.ts";
import { ensureToken } from "./workspace/token.ts";
import { createWorkspace } from "./workspace/workspace.ts";

export interface DaemonOptions {
	environment: Environment;
	/** The console says only warnings and errors. */
	quiet?: boolean;
	/** For a command that runs the agent in its own process: any free port, and no log lines on the console but errors. */
	inProcess?: boolean;
	/** Ways to reach people beside the page, each with what its settings say about people. */
	channels?: { channel: Channel; policy: ChannelPolicy }[];
}

export interface Daemon {
	url: string;
	token: string;
	/** Address of the set-up page with its one-time code in the fragment; null once an account exists. */
	setupUrl: string | null;
	/** Takes no new work, lets running turns reach a stored step (at most 10 s), closes everything. Safe to call twice. */
	stop(): Promise<void>;
}

const graceMs = 10_000;
const pruneEveryMs = 60 * 60_000;
/** Nobody was being answered at two looks in a row: a quiet moment. */
const idleEveryMs = 2_000;

const isLoopback = (host: string) => host === "localhost" || host === "::1" || /^127\./.test(host);

/** `dist/page`, from the sources and from a build; null when the page has not been built. */
function findPage(): string | null {
	const here = dirname(fileURLToPath(import.meta.url));
	const found = [join(here, "..", "page"), join(here, "..", "dist", "page")].find((dir) => existsSync(join(dir, "index.html")));
	return found ?? null;
}

/** Starts everything. Throws `StartRefused` and `HomeLocked` with a sentence for people; whatever was opened is closed again. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
	const { environment } = options;
	const closers: { name: string; close(): unknown }[] = [];
	const opened = <T>(name: string, thing: T, close: (thing: T) => unknown): T => {
		closers.push({ name, close: () => close(thing) });
		return thing;
	};
	async function closeAll(): Promise<void> {
		for (const { name, close } of closers.splice(0).reverse()) {
			try {
				await close();
			} catch (error) {
				process.stderr.write(`closing ${name} failed: ${(error as Error).message}\n`);
			}
		}
	}
	try {
		return await start(options, environment, opened, closeAll);
	} catch (error) {
		await closeAll();
		throw error;
	}
}

type Opened = <T>(name: string, thing: T, close: (thing: T) => unknown) => T;

async function start(options: DaemonOptions, environment: Environment, opened: Opened, closeAll: () => Promise<void>): Promise<Daemon> {
	const clock = { now: () => Date.now() };
	const startedAt = clock.now();
	const newId = createIds();
	const { home } = environment;

	// The home: one process, folders, log, settings.
	opened("lock", await lockHome(home), (lock) => lock.release());
	const redact = createRedactor();
	const log = opened(
		"log",
		createLog({ dir: join(home, "logs"), level: environment.logLevel, quiet: options.quiet ?? options.inProcess ?? false, clock, redact }),
		(it) => it.close(),
	);
	for (const { key, message } of environment.problems) log.warn("environment.problem", { message: `${key} ${message}` });
	const workspace = createWorkspace({ home, clock, log });
	const config = opened("config", await createConfigService({ environment, clock, log, watch: !options.inProcess }), (it) => it.close());
	const settings = () => config.current();
	const locale = () => settings().locale ?? environment.language;
	redact.add(config.secrets());
	await workspace.ensure(locale());
	const token = await ensureToken(home, environment.token);
	redact.add([token.token]);

	// The store and what counts money on it.
	const calendar = createCalendar(() => settings().timezone);
	const store = opened(
		"store",
		await openStore({
			file: workspace.paths.database,
			assetsDir: workspace.paths.assets,
			clock,
			newId,
			dayOf: calendar.dayOf,
			onMigrate: ({ from, to, bytes }) =>
				log.info("store.migrating", {
					from,
					to,
					bytes,
					message: "the database is brought up to date; a large one takes a minute, and a copy of it as it was is kept for a month",
				}),
		}),
		(it) => it.close(),
	);
	const { problem } = await store.health();
	if (problem) log.error("store.damaged", { message: problem });
	await store.ledger.recover(clock.now());

	const host = environment.host ?? settings().server.host;
	if (!isLoopback(host) && !token.own && !(await store.auth.hasUser())) {
		throw new StartRefused(
			`To listen on ${host}, where others can reach it, OpenLani needs a password or a token of yours: start it once on 127.0.0.1 and make an account, or set OPENLANI_TOKEN.`,
		);
	}

	const present = createPresenter(store);
	const bus = opened(
		"bus",
		await createBus({
			events: store.events,
			clock,
			messages: present.byIds,
			onError: (error) => log.error("bus.failed", { message: (error as Error).message }),
		}),
		(it) => it.close(),
	);
	opened(
		"log on the bus",
		log.attach((body) => void bus.publish(body)),
		(detach) => detach(),
	);

	// A call that was paid for is booked, however long the disk is full; until then nothing goes on.
	const patience = opened("waiting for the disk", new AbortController(), (it) => it.abort());
	setMaxListeners(0, patience.signal);
	const notBooked = (error: unknown) => log.error("ledger.not-stored", { message: (error as Error).message });
	const ledger = {
		...store.ledger,
		reserve: patient(store.ledger.reserve, () => patience.signal, notBooked),
		settle: patient(store.ledger.settle, () => patience.signal, notBooked),
	};

	// Models, prices, the fuse.
	const modelsOf = onceFor((now: Config): ModelSettings[] =>
		now.models.map((entry) => ({ ...entry, price: entry.price ? { ...entry.price, currency: entry.price.currency ?? "USD" } : null })),
	);
	const budgetOf = onceFor((now: Config) => ({ ...now.budget, dailyShare: now.people.dailyShare }));
	const overrides = (now: Config) => Object.fromEntries(now.models.map((entry) => [entry.id, entry.price]));
	const prices = createPriceBook(overrides(settings()));
	const priced = (entry: ModelSettings) => ({ id: entry.id, provider: entry.provider, modelName: entry.model, baseUrl: entry.baseUrl });
	const fuse = opened(
		"fuse",
		createFuse({
			ledger,
			budget: () => budgetOf(settings()),
			calendar,
			timezone: () => settings().timezone,
			clock,
			log,
		}),
		(it) => it.stop(),
	);
	// The watchers are made last, of everything; a call before that has nobody to tell.
	const watched: { onCall(call: MeteredCall): void; report(incident: Incident): Promise<void> } = {
		onCall: () => undefined,
		report: async () => undefined,
	};
	const demoPrice = { id: "demo", provider: "demo", modelName: "demo", baseUrl: null };
	const meter = createMeter({
		ledger,
		fuse,
		prices,
		modelOf(id) {
			const entry = modelsOf(settings()).find((one) => one.id === id);
			return entry ? priced(entry) : id === "demo" ? demoPrice : null;
		},
		redact,
		clock,
		newId,
		payerOf: (context) => payerOf(store, (turnId) => gateway.claimOf(turnId), context),
		onCall: (call) => watched.onCall(call),
	});
	const tokens = createCalibration({
		counter: createTokenCounter(),
		ledger: store.ledger,
		onError: (error) => log.warn("calibration.not-kept", { message: (error as Error).message }),
	});
	const models = opened(
		"models",
		createModels({
			models: modelsOf(settings()),
			roles: settings().roles,
			meter,
			prices: {
				cost(entry, usage) {
					const cost = prices.cost(priced(entry), usage, clock.now());
					return cost ?? { cost: null, currency: "USD" };
				},
			},
			readAsset: (sha256) => store.assets.read(sha256),
			clock,
			newId,
			log,
			client: createClientHost({ proxy: environment.proxy, newId, clock, log, env: environment.ofConnections }),
			tokens,
		}),
		(it) => it.close(),
	);

	// The gateway: one way in, one way out.
	const filter = createPassFilter();
	const transformersDir = environment.lookup("OPENLANI_TRANSFORMERS_DIR") || join(environment.cacheDir, "transformers");
	const localModel = opened(
		"local model",
		createLocalModel({
			packageDirs: [transformersDir, home],
			installHint: installHintOf(transformersDir),
			log,
			onChange: () => memory.embedderChanged(),
		}),
		(it) => it.stop(),
	);
	/** The directory in the settings; `~` is the machine user's own, a relative one begins at the home. */
	const localModelDir = () => {
		const named = settings().memory.localModel;
		if (named === null) return null;
		return named === "~" || named.startsWith("~/") ? join(environment.userHome, named.slice(1)) : resolve(home, named);
	};
	const memory: ReturnType<typeof createMemory> = opened(
		"memory",
		createMemory({
			store: store.memory,
			workspace,
			settings: () => settings().memory,
			timezone: () => settings().timezone,
			clock,
			newId,
			log,
			// The demo model cannot sum up what it does not understand: whole sentences are taken instead.
			model: () => (models.demo() ? null : models),
			embedder: () => embedderOf(models) ?? localModel.embedder(),
			recent: (conversationId, limit) => recentExchanges(store, conversationId, limit),
			answering: () => gateway.running() > 0,
			async settle() {
				await bus.flush();
				await log.flush();
			},
			onRemoved: (ids) =>
				void showAgain(ids, { store, bus, present }).catch((error: unknown) =>
					log.error("memory.removal-not-shown", { message: (error as Error).message }),
				),
			onProblem(kind, message) {
				log.warn(`memory.${kind}`, { message });
				void watched.report({ kind: `memory-${kind}`, incident: message, severity: "warn", message: { en: message, zh: message } });
			},
		}),
		(it) => it.stop(),
	);
	const web: Channel = createWebChannel({
		show: (message) => gateway.show(message.id, message.text),
	});
	const further = options.channels ?? [];
	const channels = new Map<string, Channel>([web, ...further.map(({ channel }) => channel)].map((channel) => [channel.id, channel]));
	const channelStates = new Map<string, { state: "up" | "connecting" | "down" | "off"; error: string | null }>();

	const tools = [
		...createBuiltinTools({
			files: workspace.paths.files,
			keep: (data, info) => store.assets.put(data, info),
			channels: () => [...channels.keys()],
		}),
		...allOf(
			createMemoryTools({
				memory,
				workspace,
				async turn(turnId) {
					const [rows, turn] = [await store.messages.ofTurn(turnId), await store.turns.calls([turnId])];
					return {
						said: rows.filter((row) => row.role === "user").map((row) => row.text),
						tainted: (turn.get(turnId) ?? []).some((call) => call.taint !== undefined),
					};
				},
				async textOf(key, id) {
					const [entry] = await store.memory.entries(key, [id]);
					if (entry) return entry.text;
					const fact = await store.memory.fact(key, id);
					if (fact) return fact.text;
					const said = await store.messages.get(id);
					const place = said && (await store.conversations.get(said.conversationId));
					return said &&
						place &&
						keyOfOwner(place.groupId ? `group:${place.groupId}` : (said.personId ?? place.personId)).owner === key.owner
						? said.text
						: null;
				},
				proposed: (path, reason) =>
					void watched.report({
						kind: "soul-proposed",
						incident: path,
						severity: "info",
						message: {
							en: `A change of SOUL.md is proposed in ${path}: ${reason} Read it, and put it into SOUL.md yourself if you agree.`,
							zh: `${path} 里有一份对 SOUL.md 的修改建议:${reason} 请过目,同意的话由你自己写进 SOUL.md。`,
						},
					}),
			}),
		),
	];

	const approvals = opened(
		"approvals",
		createApprovals({
			store: store.approvals,
			durable: () => store.durable(),
			publish: (body) => void bus.publish(body),
			policy(name, turn) {
				const tool = tools.find((one) => one.name === name);
				return tool ? policyFor(tool, settings().safety.approvals.tools, turn) : "allow";
			},
			settings: () => settings().safety.approvals,
			resume: (message) => gateway.resume(message),
			locale,
			clock,
			newId,
			log,
		}),
		(it) => it.stop(),
	);

	const results = createResults(workspace.paths.files);
	/** The files that are part of every prompt: they seldom change. */
	const cleanBlock = new Map(["soul", "agent"].map((name) => [name, redact.alike()]));
	/** Said once, and again when it changes. */
	let promptProblems = "";
	/** One box for each list of capabilities: a changed configuration brings new lists. */
	const boxes = new WeakMap<object, ToolBox>();
	const payer = (claim: Claim) => ({
		personId: claim.turn.personId,
		tier: claim.turn.tier,
		groupId: claim.conversation.groupId,
		source: sourceOf(claim),
	});

	const gateway: Gateway = opened(
		"gateway",
		createGateway({
			store,
			bus,
			filter,
			model: models,
			memory,
			clock,
			newId,
			owner: `${process.pid}-${newId()}`,
			runTurn,
			saidOf,
			channel: (id) => channels.get(id),
			policy: (id) => further.find(({ channel }) => channel.id === id)?.policy ?? { masters: [], allow: [], profile: null },
			locale,
			settings(claim) {
				const now = settings();
				const picked = claim.rows.findLast((row) => row.model)?.model ?? claim.conversation.model;
				return {
					timezone: now.timezone,
					locale: locale(),
					limits: {
						maxSteps: now.agent.maxSteps,
						maxRounds: now.agent.maxRounds,
						toolResultChars: 20_000,
						stepResultChars: 48_000,
						// Without folding by us a request grows until the model's own limit says so.
						requestChars: environment.contextAutofold ? requestCharsFor(models.contextTokens("chat", picked)) : Number.MAX_SAFE_INTEGER,
					},
				};
			},
			async blocks() {
				const { blocks, problems } = await workspace.prompt();
				const told = problems.join("\n");
				if (told !== promptProblems) for (const one of problems) log.warn("workspace.problem", { message: one });
				promptProblems = told;
				// Who it is and whom it talks to come from the memory, for the speaker alone.
				const own = [rulesBlock(locale())];
				for (const { name, text } of blocks) {
					const cleaned = cleanBlock.get(name)?.(text);
					if (cleaned !== undefined) own.push({ name, text: cleaned });
				}
				return own;
			},
			tools(claim) {
				const allow = settings().safety.permissions[claim.turn.tier];
				const made = boxes.get(allow) ?? redactTools(createToolBox(tools, { allow, gate: approvals.gate }), redact);
				boxes.set(allow, made);
				return made;
			},
			async admission(claim) {
				const admission = await fuse.admits(payer(claim));
				if (admission.admitted) return null;
				return {
					policy: admission.policy,
					until: admission.resetsAt,
					sentence: fuse.sentence(admission, locale()),
					// Room that calls in flight hold comes back in moments: nothing to tell a person.
					tell: admission.limit !== "room" && (await fuse.tellOnce(claim.conversation.id)),
				};
			},
			present,
			keepFullText: results.keep,
			plan: createPlanFile(workspace.paths.workspace),
			countTokens: tokens.countParts,
			onRemoving: (id) => memory.conversationRemoved(id),
			log,
		}),
		(it) => it.close(graceMs),
	);
	opened(
		"waiting for the fuse",
		fuse.onChange(
			() => void gateway.retryHeld().catch((error: unknown) => log.error("gateway.retry-failed", { message: (error as Error).message })),
		),
		(off) => off(),
	);

	// Settings that change while we run.
	opened(
		"config listener",
		config.onChange((now, _before, change) => {
			redact.add(config.secrets());
			models.update({ models: modelsOf(now), roles: now.roles });
			prices.override(overrides(now));
			void localModel
				.use(localModelDir())
				.then(() => memory.embedderChanged())
				.catch((error: unknown) => log.error("memory.local-model-failed", { message: (error as Error).message }));
			log.info("config.changed", { changed: change.changed, restartNeeded: change.restartNeeded });
			void publishStatus();
		}),
		(off) => off(),
	);

	// HTTP.
	const setup = createSetupCode(() => store.auth.hasUser());
	const channelList = () =>
		[...channels.values()].map(({ id, type }) => ({
			id,
			type,
			...(channelStates.get(id) ?? { state: "connecting" as const, error: null }),
		}));
	const status = createStatus({
		version,
		startedAt,
		config,
		models,
		fuse,
		bus,
		channels: channelList,
		turns: async () => {
			const waiting = await store.inbox.waiting();
			return { running: gateway.running(), queued: waiting.people + waiting.background };
		},
		store,
		locale: () => settings().locale,
		async embeddings() {
			const told = await memory.status();
			const problem = embedderOf(models) ? null : localModel.problem();
			return problem === null ? told : { ...told, state: `error: ${problem}` };
		},
		async diskFree() {
			const disk = await statfs(home).catch(() => null);
			return disk ? disk.bavail * disk.bsize : null;
		},
		agentName: async () => agentNameOf((await workspace.read("IDENTITY.md")).text),
		clock,
	});
	async function publishStatus(): Promise<void> {
		try {
			bus.publish({ type: "status", status: await status() });
		} catch (error) {
			log.error("status.failed", { message: (error as Error).message });
		}
	}
	const observe = opened(
		"observe",
		createObserve({
			ledger: store.ledger,
			bus,
			fuse,
			calendar,
			log,
			clock,
			newId,
			home,
			version,
			startedAt,
			locale,
			channels: channelList,
			breakers: () => models.breakers(),
			queue: () => store.inbox.waiting(),
			running: () => gateway.running(),
			statusChanged: () => void publishStatus(),
			async prices() {
				await prices.load();
				return modelsOf(settings()).map((entry) => ({ model: entry.id, price: prices.price(priced(entry), clock.now()) }));
			},
			async notify(text) {
				const { deliverTo } = settings().alerts;
				if (deliverTo) await gateway.notify(deliverTo, text);
			},
			async webhook(row) {
				const { webhook } = settings().alerts;
				if (webhook) await postAlert(webhook, row);
			},
			otlp: settings().observe.otlp,
		}),
		(it) => it.stop(),
	);
	watched.onCall = observe.onCall;
	watched.report = observe.alerts.report;
	const app = opened(
		"http",
		await buildApp({
			store,
			gateway,
			bus,
			config,
			filter,
			channels: () => [...channels.values()],
			models: {
				async test(input, signal) {
					const known = "provider" in input ? null : modelsOf(settings()).find((one) => one.id === input.id);
					if (known === undefined) return models.test(input.id, signal);
					const entry = known ?? (config.resolveModel(input as Record<string, unknown>) as ModelSettings);
					return models.test(entry, signal);
				},
				list: () => models.list(),
			},
			setup: {
				async info() {
					return {
						needed: !(await store.auth.hasUser()),
						locale: settings().locale,
						timezone: settings().timezone,
						providers: listProviders(),
						answering: models.demo() ? null : firstModel(settings()),
						detected: await detectLocal(AbortSignal.timeout(2_000)),
					};
				},
				redeem: (code) => setup.redeem(code),
				check: (code) => setup.check(code),
			},
			status,
			token: () => token.token,
			clock,
			newId,
			ledger: observe.routes,
			memory: { memory, home, clock },
			workspace: { workspace },
			approvals: {
				approvals,
				async about(row) {
					const tool = tools.find((one) => one.name === row.tool);
					return (await tool?.about?.(JSON.parse(row.arguments), { personId: row.personId, groupId: row.groupId })) ?? null;
				},
			},
			pageDir: findPage(),
			publicUrl: () => settings().server.publicUrl,
			listenHost: () => host,
			log,
			version,
		}),
		(it) => it.close(),
	);

	// Recovery comes before the doors open.
	await localModel.use(localModelDir());
	await memory.start();
	const { resumed } = await gateway.start();
	if (resumed > 0) log.info("gateway.resumed", { turns: resumed });
	await approvals.start();
	for (const channel of channels.values()) {
		await channel.start({
			accept: (message) => gateway.accept(channel.id, message),
			report: (state, error) => channelStates.set(channel.id, { state, error: error ?? null }),
		});
		opened(`channel ${channel.id}`, channel, (it) => it.stop());
	}

	const port = options.inProcess ? 0 : (environment.port ?? settings().server.port);
	await listen(app, host, port);
	const address = app.server.address() as AddressInfo;
	const url = `http://${displayHost(host)}:${address.port}`;
	await writeRuntime(home, {
		pid: process.pid,
		url: `http://${displayHost(host)}:${address.port}`,
		startedAt: new Date(startedAt).toISOString(),
	});
	await observe.start();
	const pruning = setInterval(() => {
		void Promise.all([
			store.prune(clock.now(), { eventDays: settings().observe.eventDays }),
			store.ledger.pruneCalls(clock.now(), { days: settings().observe.callDays, bytes: settings().observe.callMb * 1024 * 1024 }),
			results.prune(clock.now()),
		]).catch((error: unknown) => log.error("store.prune-failed", { message: (error as Error).message }));
	}, pruneEveryMs);
	pruning.unref();
	opened("pruning", pruning, clearInterval);
	let quiet = false;
	const idling = setInterval(() => {
		const wasQuiet = quiet;
		quiet = gateway.running() === 0;
		// What fails here fails at the next write too, and is told there.
		if (quiet && wasQuiet) void store.idle().catch(() => undefined);
	}, idleEveryMs);
	idling.unref();
	opened("idling", idling, clearInterval);
	// What a first answer may need but a start must not wait for: loading blocks, so it begins when the start has been reported.
	const after = setImmediate(() => {
		fuse.start();
		void prices.load();
		void models.warm().catch((error: unknown) => log.warn("models.not-warm", { message: (error as Error).message }));
		void tokens.load().catch((error: unknown) => log.warn("calibration.not-read", { message: (error as Error).message }));
		void meter.ready().catch((error: unknown) => log.warn("meter.not-ready", { message: (error as Error).message }));
	});
	opened("what follows the start", after, clearImmediate);

	let stopping: Promise<void> | null = null;
	return {
		url,
		token: token.token,
		setupUrl: (await store.auth.hasUser()) ? null : `${url}/#setup=${setup.code}`,
		stop() {
			stopping ??= closeAll();
			return stopping;
		},
	};
}

/** The memory's tools, the rarer ones last. */
const allOf = ({ core, further }: ReturnType<typeof createMemoryTools>) => [...core, ...further];

/** The model that is asked first. */
function firstModel(config: Config): { provider: string; model: string } | null {
	const [first] = chatModels(config);
	const entry = config.models.find(({ id }) => id === first);
	return entry ? { provider: entry.provider, model: entry.model } : null;
}
