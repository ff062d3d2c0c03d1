/** A whole gateway on a real store: the loop, the bus and delivery, with a scripted model and channels of the test's own. */
import { v7 } from "uuid";
import type { Channel, OutboundMessage, Receipt } from "../../channels/channel.ts";
import { createWebChannel } from "../../channels/web/index.ts";
import { defaultLimits } from "../../server/agent/limits.ts";
import { saidOf } from "../../server/agent/prompt.ts";
import { runTurn } from "../../server/agent/run-turn.ts";
import { createGateway, type Gateway, type GatewayOptions } from "../../server/gateway/gateway.ts";
import type { LiveFrame } from "../../server/http/contract.ts";
import { createPresenter } from "../../server/http/presenter.ts";
import type { Model } from "../../server/model/model.ts";
import type { EventBus } from "../../server/observe/bus.ts";
import { createBus } from "../../server/observe/create-bus.ts";
import { createPassFilter } from "../../server/safety/filter.ts";
import type { Store } from "../../server/store/store.ts";
import { createBuiltinTools, createToolBox } from "../../server/tools/tool-box.ts";
import { createPlanFile } from "../../server/workspace/plan-file.ts";
import { createMessageMemory } from "./message-memory.ts";
import type { TestHome } from "./store.ts";

export interface TestGateway {
	gateway: Gateway;
	store: Store;
	bus: EventBus;
	frames: LiveFrame[];
	/** Says something in a conversation of the page and waits for the answer. */
	ask(conversationId: string, text: string): Promise<string | null>;
	/** Resolves with the first frame, old or new, that fits. */
	seen<F extends LiveFrame = LiveFrame>(fits: (frame: LiveFrame) => boolean): Promise<F>;
	/** Ends without order, as a crash does: what is in memory is gone, the file stays. */
	crash(): Promise<void>;
	close(): Promise<void>;
}

/** A channel that keeps what it is given and answers with the receipts of the test. */
export function recordingChannel(
	id: string,
	receipt: (message: OutboundMessage) => Receipt | Promise<Receipt> = (message) => ({ state: "sent", platformIds: [message.id] }),
) {
	const sent: OutboundMessage[] = [];
	const channel: Channel = {
		id,
		type: "test",
		start: async (host) => host.report("up"),
		stop: async () => undefined,
		async send(message) {
			sent.push(message);
			return receipt(message);
		},
	};
	return { channel, sent };
}

export async function testGateway(
	home: TestHome,
	options: { model: Model; channels?: Channel[]; clock?: { now(): number } } & Partial<
		Pick<GatewayOptions, "filter" | "policy" | "admission" | "maxTurns" | "memory" | "onRemoving">
	>,
): Promise<TestGateway> {
	const store = await home.open();
	const clock = options.clock ?? { now: () => Date.now() };
	const present = createPresenter(store);
	const errors: unknown[] = [];
	const bus = await createBus({ events: store.events, clock, messages: present.byIds, onError: (error) => errors.push(error) });
	const frames: LiveFrame[] = [];
	const watchers = new Set<(frame: LiveFrame) => void>();
	bus.subscribe((frame) => {
		frames.push(frame);
		for (const watcher of watchers) watcher(frame);
	});
	const web = createWebChannel({
		show: (message) => gateway.show(message.id, message.text),
	});
	const channels = new Map([web, ...(options.channels ?? [])].map((channel) => [channel.id, channel]));
	const tools = createBuiltinTools({
		files: `${home.dir}/workspace/files`,
		keep: (data, info) => store.assets.put(data, info),
		channels: () => [...channels.keys()],
	});
	const box = createToolBox(tools, { allow: ["chat", "memory", "web", "files", "send"] });
	const quiet = () => undefined;
	const gateway: Gateway = createGateway({
		store,
		bus,
		filter: options.filter ?? createPassFilter(),
		model: options.model,
		memory: options.memory ?? createMessageMemory({ store, exchanges: 8, step: 4 }),
		clock,
		newId: () => v7(),
		owner: v7(),
		runTurn,
		saidOf,
		countTokens: (_model, parts) => Math.ceil(parts.join("").length / 4),
		channel: (id) => channels.get(id),
		policy: options.policy ?? (() => ({ masters: ["boss"], allow: [], profile: null })),
		locale: () => "en",
		settings: () => ({ timezone: "Asia/Shanghai", locale: "en", limits: defaultLimits() }),
		blocks: async () => [{ name: "soul", text: "You are Lani." }],
		tools: () => box,
		admission: options.admission ?? (async () => null),
		present,
		keepFullText: async (recordId) => `results/${recordId}.txt`,
		plan: createPlanFile(`${home.dir}/workspace`),
		log: { info: quiet, warn: quiet, error: quiet },
		...(options.maxTurns ? { maxTurns: options.maxTurns } : {}),
		...(options.onRemoving ? { onRemoving: options.onRemoving } : {}),
	});

	async function close(graceMs: number): Promise<void> {
		await gateway.close(graceMs);
		await bus.close();
		await store.close();
	}

	return {
		gateway,
		store,
		bus,
		frames,
		async ask(conversationId, text) {
			const { messageId } = await gateway.submit({
				conversationId,
				text,
				attachments: [],
				model: null,
				clientId: null,
				limits: {},
				replaces: null,
			});
			const answered = await gateway.whenAnswered(messageId, AbortSignal.timeout(10_000));
			return answered?.replyId ? ((await store.messages.get(answered.replyId))?.text ?? null) : null;
		},
		seen(fits) {
			const known = frames.find(fits);
			if (known) return Promise.resolve(known as never);
			return new Promise((resolve, reject) => {
				const timer = setTimeout(() => {
					watchers.delete(watcher);
					reject(new Error(`no such frame among: ${frames.map((frame) => frame.type).join(" ")}`));
				}, 8_000);
				const watcher = (frame: LiveFrame) => {
					if (!fits(frame)) return;
					clearTimeout(timer);
					watchers.delete(watcher);
					resolve(frame as never);
				};
				watchers.add(watcher);
			});
		},
		crash: () => close(0),
		close: () => close(2_000),
	};
}

/** A gate that holds whoever waits at it until it is opened. */
export function gate(): { wait(): Promise<void>; open(): void; reached: Promise<void> } {
	let open!: () => void;
	let reach!: () => void;
	const opened = new Promise<void>((resolve) => {
		open = resolve;
	});
	const reached = new Promise<void>((resolve) => {
		reach = resolve;
	});
	return {
		wait() {
			reach();
			return opened;
		},
		open,
		reached,
	};
}
