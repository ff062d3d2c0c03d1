/** Looks at what should be happening: turns that stand still, people who wait, models, keys, tools and channels that fail, money, disk, clock. */
import { statfs } from "node:fs/promises";
import type { LiveFrame, Status } from "../http/contract.ts";
import type { Fuse, FuseEvent, FuseState } from "../safety/fuse.ts";
import type { Ledger } from "../store/ledger-store.ts";
import { guardWords, kindWords } from "./alert-words.ts";
import type { Alerts } from "./alerts.ts";
import type { EventBus } from "./bus.ts";
import type { Calendar } from "./day.ts";
import type { MeteredCall } from "./meter.ts";

export interface WatchdogOptions {
	alerts: Alerts;
	bus: Pick<EventBus, "subscribe">;
	fuse: Pick<Fuse, "onEvent" | "state">;
	ledger: Pick<Ledger, "forgotten" | "usage">;
	channels(): Status["channels"];
	calendar: Calendar;
	clock: { now(): number };
	/** Monotonic ms: a wall clock that runs apart from it has jumped. */
	monotonic?(): number;
	/** Folder whose disk is watched. */
	home: string;
	/** Free and whole bytes of the disk. Default: asks the system. */
	disk?(): Promise<{ free: number; total: number }>;
	everyMs?: number;
	log: { warn(event: string, data?: Record<string, unknown>): void };
}

export interface Watchdog {
	/** Told of every settled call (the meter's `onCall`). */
	called(call: MeteredCall): void;
	/** One look. Called by the timer, and by tests. */
	tick(): Promise<void>;
	start(): void;
	stop(): void;
}

/** A turn that shows nothing for so long stands still. Longer than a slow model's first byte plus a tool's usual limit would be too late for whoever waits. */
const stillMs = 110_000;
const forgottenMs = 90_000;
const failuresInRow = 3;
const toolFailuresInRow = 5;
const channelDownMs = 60_000;
const clockJumpMs = 30_000;
const burnEveryMs = 10 * 60_000;
const leastFreeBytes = 500_000_000;
const leastFreePart = 0.03;

const failingKinds = new Set(["auth", "payment", "rate-limited", "server", "network", "timeout", "protocol"]);
const keyKinds = new Set(["auth", "payment"]);

/** Says whether today's use is out of the ordinary. Pure. `history`: tokens of earlier days, those without any left out by the caller. */
export function isUnusual(today: number, history: number[]): boolean {
	if (history.length < 3) return false;
	const mean = history.reduce((sum, value) => sum + value, 0) / history.length;
	return today > 50_000 && today > 3 * mean && today > 1.5 * Math.max(...history);
}

/** Whether a warning ("DAY THRESHOLD") still says what is: a new day or a larger limit ends it. */
function stillWarns(state: FuseState, incident: string): boolean {
	const [day, threshold] = incident.split(" ");
	const beyond = (used: number, limit: number | null) => limit !== null && used >= limit * Number(threshold);
	return day === state.day && (beyond(state.usedTokens, state.limitTokens) || beyond(state.usedCost, state.limitCost));
}

export function createWatchdog(options: WatchdogOptions): Watchdog {
	const { alerts, clock, everyMs = 20_000 } = options;
	const monotonic = options.monotonic ?? (() => performance.now());
	const turns = new Map<string, { conversation: string; lastAt: number }>();
	const failures = new Map<string, number>();
	const downSince = new Map<string, number>();
	let lastLook: { wall: number; steady: number } | null = null;
	let burnLookedAt = Number.NEGATIVE_INFINITY;
	let timer: NodeJS.Timeout | null = null;
	const ends: (() => void)[] = [];

	const say = (work: Promise<void>): void =>
		void work.catch((error: unknown) => options.log.warn("watchdog.failed", { error: (error as Error).message }));

	function count(key: string, failed: boolean): number {
		const now = failed ? (failures.get(key) ?? 0) + 1 : 0;
		if (now === 0) failures.delete(key);
		else failures.set(key, now);
		return now;
	}

	function called(call: MeteredCall): void {
		const kind = call.error?.kind ?? null;
		// A request that was wrong, a stop and the fuse say nothing about the model's health.
		if (kind !== null && !failingKinds.has(kind)) return;
		if (count(`model ${call.model}`, kind !== null) >= failuresInRow && kind !== null) {
			say(
				alerts.report({
					kind: "model-failing",
					incident: call.model,
					severity: "error",
					message: {
						en: `The model "${call.model}" has failed ${failuresInRow} times in a row (${kindWords(kind).en}${call.error?.status ? ` ${call.error.status}` : ""}). Check its provider, its key and the network; a fallback in roles.chat keeps people answered.`,
						zh: `模型“${call.model}”连续失败 ${failuresInRow} 次（${kindWords(kind).zh}${call.error?.status ? ` ${call.error.status}` : ""}）。请检查服务商、密钥和网络；在 roles.chat 里配置备用模型可以保证有人应答。`,
					},
				}),
			);
		} else if (kind === null) say(alerts.resolve("model-failing", call.model));
		if (call.key === null) return;
		const incident = `${call.model} ${call.key}`;
		if (kind !== null && keyKinds.has(kind)) {
			say(
				alerts.report({
					kind: "key-refused",
					incident,
					severity: "error",
					message: {
						en: `The key ${call.key} of "${call.model}" was refused (${kind === "payment" ? "no credit left" : "not valid"}). Top it up or put a new one into the configuration.`,
						zh: `“${call.model}”的密钥 ${call.key} 被拒绝（${kind === "payment" ? "余额不足" : "无效"}）。请充值或更换密钥。`,
					},
				}),
			);
		} else if (kind === null) say(alerts.resolve("key-refused", incident));
	}

	function onFrame(frame: LiveFrame): void {
		const now = clock.now();
		switch (frame.type) {
			case "turn":
				if (frame.state === "running") turns.set(frame.turnId, { conversation: frame.conversation, lastAt: now });
				else {
					turns.delete(frame.turnId);
					say(alerts.resolve("turn-still", frame.turnId));
					if (frame.state === "done" || frame.state === "failed") say(lookAtEnd(frame));
				}
				return;
			case "delta":
			case "step":
			case "plan":
			case "restart":
			case "tool": {
				const turn = turns.get(frame.turnId);
				if (turn) {
					turn.lastAt = now;
					if (alerts.isOpen("turn-still", frame.turnId)) say(alerts.resolve("turn-still", frame.turnId));
				}
				if (frame.type === "tool" && (frame.tool.state === "done" || frame.tool.state === "failed"))
					onTool(frame.tool.name, frame.tool.state === "failed", frame);
				return;
			}
			default:
		}
	}

	function onTool(name: string, failed: boolean, at: { conversation: string; turnId: string }): void {
		if (count(`tool ${name}`, failed) >= toolFailuresInRow) {
			say(
				alerts.report({
					kind: "tool-failing",
					incident: name,
					severity: "warn",
					conversationId: at.conversation,
					turnId: at.turnId,
					message: {
						en: `The tool "${name}" has failed ${toolFailuresInRow} times in a row. Its results are in the turn's details.`,
						zh: `工具“${name}”连续失败 ${toolFailuresInRow} 次。详情见该轮记录。`,
					},
				}),
			);
		} else if (!failed) say(alerts.resolve("tool-failing", name));
	}

	function lookAtEnd({ turnId, conversation, guard }: Extract<LiveFrame, { type: "turn" }>): Promise<void> {
		if (guard === undefined) return alerts.resolve("loop-cut", conversation);
		return alerts.report({
			kind: "loop-cut",
			incident: conversation,
			severity: "warn",
			conversationId: conversation,
			turnId,
			message: {
				en: `A turn was ended because it went in circles or on for too long (${guardWords(guard).en}). Look at its steps; a clearer task or another model may help.`,
				zh: `有一轮因为原地打转或太长而被结束（${guardWords(guard).zh}）。请查看它的步骤；把任务说得更清楚或换个模型可能有用。`,
			},
		});
	}

	function onFuse(event: FuseEvent): void {
		const { state } = event;
		const part = (used: number, limit: number | null): string =>
			limit ? `${used.toLocaleString("en")} / ${limit.toLocaleString("en")}` : used.toLocaleString("en");
		const figures =
			event.type === "warned" && event.limit === "cost"
				? `${part(Number(state.usedCost.toFixed(4)), state.limitCost)} ${state.currency}`
				: part(state.usedTokens, state.limitTokens);
		if (event.type === "warned") {
			const percent = Math.round(event.threshold * 100);
			say(
				alerts.report({
					kind: "fuse-warning",
					incident: `${state.day} ${event.threshold}`,
					severity: "warn",
					message: {
						en: `${percent} % of today's ${event.limit === "cost" ? "spending" : "token"} limit is used (${figures}). At the limit every model call stops until ${new Date(state.resetsAt).toISOString()}.`,
						zh: `今天的${event.limit === "cost" ? "费用" : "用量"}上限已用 ${percent} %（${figures}）。到达上限后，所有模型调用会停到 ${new Date(state.resetsAt).toISOString()}。`,
					},
				}),
			);
		} else if (event.type === "blown") {
			const cost = state.blownBy === "cost";
			say(
				alerts.report({
					kind: "fuse-blown",
					incident: state.day,
					severity: "error",
					message: {
						en: `Today's ${cost ? "spending" : "token"} limit is reached (${figures}): no model is called until ${new Date(state.resetsAt).toISOString()}. Messages wait. Raise it for today on the page, or change budget in the configuration.`,
						zh: `今天的${cost ? "费用" : "用量"}上限已到（${figures}）：在 ${new Date(state.resetsAt).toISOString()} 之前不再调用模型，消息会等待。可在页面上为今天提高上限，或修改配置里的 budget。`,
					},
				}),
			);
		} else if (event.type === "opened" && event.reason !== "room") {
			for (const kind of ["fuse-blown", "fuse-warning"])
				for (const incident of alerts.openOf(kind))
					if (kind === "fuse-blown" || !stillWarns(state, incident)) say(alerts.resolve(kind, incident));
		}
	}

	async function lookAtTurns(now: number): Promise<void> {
		for (const [turnId, turn] of turns)
			if (now - turn.lastAt > stillMs)
				await alerts.report({
					kind: "turn-still",
					incident: turnId,
					severity: "warn",
					conversationId: turn.conversation,
					turnId,
					message: {
						en: `A turn has shown no progress for ${Math.round((now - turn.lastAt) / 1000)} s. It may wait for a slow model or tool; stopping it lets the next message through.`,
						zh: `有一轮已经 ${Math.round((now - turn.lastAt) / 1000)} 秒没有进展，可能在等很慢的模型或工具；停掉它，后面的消息就能继续。`,
					},
				});
		const forgotten = await options.ledger.forgotten(now - forgottenMs, now);
		for (const { conversationId, since } of forgotten)
			await alerts.report({
				kind: "nobody-answers",
				incident: conversationId,
				severity: "error",
				conversationId,
				message: {
					en: `A message has waited for ${Math.round((now - since) / 1000)} s and no turn runs in its conversation: the agent plays dead there. Restarting the service takes it up again; nothing is lost.`,
					zh: `有条消息已等待 ${Math.round((now - since) / 1000)} 秒，而它的会话里没有任何处理：助手在那里没有反应。重启服务会接着处理，消息不会丢失。`,
				},
			});
		const still = new Set(forgotten.map((one) => one.conversationId));
		for (const incident of alerts.openOf("nobody-answers")) if (!still.has(incident)) await alerts.resolve("nobody-answers", incident);
	}

	async function lookAtChannels(now: number): Promise<void> {
		for (const { id, state, error } of options.channels()) {
			if (state !== "down") {
				downSince.delete(id);
				if (state === "up" || state === "off") await alerts.resolve("channel-down", id);
				continue;
			}
			const since = downSince.get(id) ?? now;
			downSince.set(id, since);
			if (now - since < channelDownMs) continue;
			await alerts.report({
				kind: "channel-down",
				incident: id,
				severity: "error",
				message: {
					en: `The channel "${id}" is down${error ? ` (${error})` : ""}. It is tried again by itself; check its token and its server.`,
					zh: `渠道“${id}”已断开${error ? `（${error}）` : ""}。程序会自动重连；请检查令牌和服务器。`,
				},
			});
		}
	}

	async function lookAtDisk(): Promise<void> {
		const { free, total } = options.disk
			? await options.disk()
			: await statfs(options.home).then(({ bavail, blocks, bsize }) => ({ free: bavail * bsize, total: blocks * bsize }));
		if (free > Math.min(leastFreeBytes, total * 0.1) && free > total * leastFreePart * (total > 20_000_000_000 ? 0.5 : 1))
			return alerts.resolve("disk-full", "home");
		await alerts.report({
			kind: "disk-full",
			incident: "home",
			severity: "error",
			message: {
				en: `The disk of the home is nearly full (${Math.round(free / 1e6)} MB free). Make room: without it messages cannot be stored.`,
				zh: `数据目录所在的磁盘快满了（剩 ${Math.round(free / 1e6)} MB）。请清理空间，否则无法保存消息。`,
			},
		});
	}

	async function lookAtClock(now: number): Promise<void> {
		const steady = monotonic();
		const before = lastLook;
		lastLook = { wall: now, steady };
		if (!before) return;
		const jumpMs = now - before.wall - (steady - before.steady);
		if (Math.abs(jumpMs) < clockJumpMs) return alerts.resolve("clock-jump", "clock");
		await alerts.report({
			kind: "clock-jump",
			incident: "clock",
			severity: "warn",
			message: {
				en: `The clock jumped by ${Math.round(jumpMs / 1000)} s (or the machine slept). Schedules follow the new time, each slot once.`,
				zh: `系统时钟跳变了 ${Math.round(jumpMs / 1000)} 秒（或机器休眠过）。定时任务按新时间进行，每个时刻只运行一次。`,
			},
		});
	}

	async function lookAtBurn(now: number): Promise<void> {
		if (now - burnLookedAt < burnEveryMs && now >= burnLookedAt) return;
		burnLookedAt = now;
		const { calendar } = options;
		const today = calendar.dayOf(now);
		const rows = await options.ledger.usage({
			from: calendar.startOf(calendar.shift(today, -7)),
			to: now + 1,
			by: "day",
			dayOf: calendar.dayOf,
			startOfDay: calendar.startOf,
		});
		const tokens = (row: (typeof rows)[number]): number => row.inputTokens + row.outputTokens;
		const now_ = rows.filter((row) => row.key === today).reduce((sum, row) => sum + tokens(row), 0);
		for (const incident of alerts.openOf("unusual-use")) if (incident !== today) await alerts.resolve("unusual-use", incident);
		if (!isUnusual(now_, rows.filter((row) => row.key !== today).map(tokens))) return;
		await alerts.report({
			kind: "unusual-use",
			incident: today,
			severity: "warn",
			message: {
				en: `Today's use (${now_.toLocaleString("en")} tokens) is far above that of the last days. The usage page shows by source and conversation where it goes.`,
				zh: `今天的用量（${now_.toLocaleString("en")} 个 token）远高于前几天。用量页可以按来源和会话查看去向。`,
			},
		});
	}

	async function tick(): Promise<void> {
		const now = clock.now();
		const looks = await Promise.allSettled([lookAtTurns(now), lookAtChannels(now), lookAtDisk(), lookAtClock(now), lookAtBurn(now)]);
		for (const look of looks)
			if (look.status === "rejected") options.log.warn("watchdog.failed", { error: (look.reason as Error).message });
	}

	ends.push(options.bus.subscribe(onFrame), options.fuse.onEvent(onFuse));
	return {
		called,
		tick,
		start() {
			if (timer) return;
			timer = setInterval(() => say(tick()), everyMs);
			timer.unref();
		},
		stop() {
			if (timer) clearInterval(timer);
			timer = null;
			for (const end of ends.splice(0)) end();
		},
	};
}
