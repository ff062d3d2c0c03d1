import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LiveBody, LiveFrame, Status } from "../../../server/http/contract.ts";
import { createAlerts } from "../../../server/observe/alerts.ts";
import type { MeteredCall } from "../../../server/observe/meter.ts";
import { createWatchdog, isUnusual } from "../../../server/observe/watchdog.ts";
import type { FuseEvent, FuseState } from "../../../server/safety/fuse.ts";
import { fakeClock, openLedger } from "../store/open-ledger.ts";

let home: Awaited<ReturnType<typeof openLedger>>;
beforeEach(async () => {
	home = await openLedger();
});
afterEach(() => home.close());

const state: FuseState = {
	day: "2026-11-30",
	limitTokens: 10_000,
	usedTokens: 8_000,
	reservedTokens: 0,
	limitCost: null,
	usedCost: 0,
	reservedCost: 0,
	currency: "USD",
	unpricedTokens: 0,
	state: "warn",
	blownBy: null,
	resetsAt: Date.parse("2026-11-30T16:00:00Z"),
};

function make() {
	const clock = fakeClock();
	const frames: LiveBody[] = [];
	const sent: string[] = [];
	const hooks: { frame?: (frame: LiveFrame) => void; fuse?: (event: FuseEvent) => void } = {};
	const world = { channels: [] as Status["channels"], disk: { free: 50e9, total: 100e9 }, skewMs: 0 };
	const began = clock.now();
	let ids = 0;
	const alerts = createAlerts({
		store: home.ledger.alerts,
		bus: {
			publish: (body) => {
				frames.push(body);
				return { ...body, seq: 0, at: "" };
			},
		},
		clock,
		newId: () => `alert-${++ids}-${Math.random()}`,
		locale: () => "en",
		notify: async (text) => void sent.push(text),
		log: { info: () => undefined, warn: () => undefined },
	});
	const watchdog = createWatchdog({
		alerts,
		bus: {
			subscribe: (listener) => {
				hooks.frame = listener;
				return () => undefined;
			},
		},
		fuse: {
			onEvent: (listener) => {
				hooks.fuse = listener;
				return () => undefined;
			},
			state: async () => state,
		},
		ledger: home.ledger,
		channels: () => world.channels,
		calendar: home.calendar,
		clock,
		monotonic: () => clock.now() - began - world.skewMs,
		home: "/",
		disk: async () => world.disk,
		log: { warn: (event, data) => expect.unreachable(`${event} ${JSON.stringify(data)}`) },
	});
	const frame = (body: LiveBody) => hooks.frame?.({ ...body, seq: 1, at: new Date(clock.now()).toISOString() } as LiveFrame);
	/** Open incidents, once everything reported has been stored. */
	const open = async (): Promise<string[]> => {
		await watchdog.tick();
		await home.ledger.alerts.list({ limit: 1 });
		await new Promise((resolve) => setTimeout(resolve, 20));
		return (await home.ledger.alerts.list({ state: "open", limit: 100 })).map((row) => row.kind).sort();
	};
	return { clock, frames, sent, hooks, world, alerts, watchdog, frame, open };
}

const call = (error: MeteredCall["error"], key = "sk-…a1b2"): MeteredCall => ({
	id: "c",
	context: { source: "chat", conversationId: "c1", turnId: "t1", personId: "master" },
	model: "main",
	modelName: "m",
	provider: "custom",
	key,
	attempt: 1,
	startedAt: 0,
	ms: 10,
	firstByteMs: 5,
	usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" },
	error,
	ledgerMs: 1,
});

describe("an alert", () => {
	it("is one per incident, counted while it lasts, and resolved when it is over", async () => {
		const { alerts, frames, sent, clock } = make();
		const incident = { kind: "k", incident: "i", severity: "error" as const, message: { en: "down", zh: "断开" } };
		await Promise.all([alerts.report(incident), alerts.report(incident), alerts.report(incident)]);
		clock.at += 120_000;
		await alerts.report(incident);
		const rows = await home.ledger.alerts.list({ limit: 10 });
		expect(rows).toMatchObject([{ state: "open", count: 2 }]);
		await alerts.resolve("k", "i");
		await alerts.resolve("k", "i");
		expect(frames.map((frame) => frame.type === "alert" && frame.state)).toEqual(["open", "resolved"]);
		expect(sent).toEqual(["down", "Over: down"]);
		await alerts.report(incident);
		expect(await home.ledger.alerts.list({ limit: 10 })).toHaveLength(2);
	});

	it("that was open before a restart is known again and can be resolved", async () => {
		const first = make();
		await first.alerts.report({ kind: "k", incident: "i", severity: "warn", message: { en: "a", zh: "b" } });
		const second = make();
		await second.alerts.load();
		await second.alerts.report({ kind: "k", incident: "i", severity: "warn", message: { en: "a", zh: "b" } });
		expect(second.sent).toEqual([]);
		await second.alerts.resolve("k", "i");
		expect(await home.ledger.alerts.list({ state: "open", limit: 10 })).toEqual([]);
	});
});

describe("the watchdog", () => {
	it("notices a turn without progress within two minutes, and its progress", async () => {
		const { clock, frame, open } = make();
		frame({ type: "turn", conversation: "c1", turnId: "t1", state: "running", origin: "human", model: null });
		clock.at += 60_000;
		expect(await open()).toEqual([]);
		frame({ type: "delta", conversation: "c1", turnId: "t1", text: "x" });
		clock.at += 100_000;
		expect(await open()).toEqual([]);
		clock.at += 15_000;
		expect(await open()).toEqual(["turn-still"]);
		frame({ type: "delta", conversation: "c1", turnId: "t1", text: "x" });
		expect(await open()).toEqual([]);
	});

	it("notices that the agent plays dead in a conversation, but not where messages wait on purpose", async () => {
		const { clock, open } = make();
		const at = clock.now();
		const conversation = (id: string, owner: string | null, until: number) =>
			home.raw
				.prepare(
					"insert into conversations (id, title, titled, channel, account, place, address, person_id, created_at, updated_at, lease_owner, lease_until) values (?, '', 0, 'web', 'default', ?, '{}', 'master', ?, ?, ?, ?)",
				)
				.run(id, id, at, at, owner, until);
		const waiting = (id: string) =>
			home.raw
				.prepare(
					"insert into inbox (id, channel, account, external_id, conversation_id, person_id, tier, origin, priority, address, limits, turn_id, state, created_at) values (?, 'web', 'default', ?, ?, 'master', 'master', 'human', 0, '{}', '{}', 't', 'waiting', ?)",
				)
				.run(`m-${id}`, `m-${id}`, id, at);
		for (const [id, owner, until] of [
			["dead", null, 0],
			["held", "hold", at + 1e9],
		] as const) {
			conversation(id, owner, until);
			waiting(id);
		}
		clock.at += 80_000;
		expect(await open()).toEqual([]);
		clock.at += 30_000;
		expect(await open()).toEqual(["nobody-answers"]);
		home.raw.prepare("update inbox set state = 'done'").run();
		expect(await open()).toEqual([]);
	});

	it("reports a model after three failures in a row and a refused key at once, and both as over", async () => {
		const { watchdog, open, frames } = make();
		const failed = (kind: "server" | "auth" | "bad-request") => call({ kind, message: "", status: 500 });
		watchdog.called(failed("server"));
		watchdog.called(failed("server"));
		for (let i = 0; i < 5; i += 1) watchdog.called(failed("bad-request"));
		expect(await open()).toEqual([]);
		watchdog.called(failed("auth"));
		expect(await open()).toEqual(["key-refused", "model-failing"]);
		const [failing] = (await home.ledger.alerts.list({ limit: 10 })).filter((row) => row.kind === "model-failing");
		expect(failing?.message.zh).toContain("连续失败 3 次（密钥无效 500）。");
		watchdog.called(failed("server"));
		watchdog.called(call(null));
		expect(await open()).toEqual([]);
		expect(frames.filter((frame) => frame.type === "alert" && frame.kind === "model-failing")).toHaveLength(2);
	});

	it("reports a tool that keeps failing, a loop that was cut, a channel that stays down", async () => {
		const { frame, open, world, clock } = make();
		const tool = (state: "failed" | "done") =>
			frame({
				type: "tool",
				conversation: "c1",
				turnId: "t1",
				tool: { recordId: "r", step: 1, name: "web_fetch", arguments: "{}", state, result: "", ms: 1 },
			});
		for (let i = 0; i < 5; i += 1) tool("failed");
		frame({ type: "turn", conversation: "c1", turnId: "t1", state: "done", origin: "human", model: null, guard: "same-call" });
		world.channels = [{ id: "tg", type: "telegram", state: "down", error: "409" }];
		expect(await open()).toEqual(["loop-cut", "tool-failing"]);
		clock.at += 70_000;
		expect(await open()).toEqual(["channel-down", "loop-cut", "tool-failing"]);
		const chinese = (await home.ledger.alerts.list({ limit: 10 })).map((row) => row.message.zh).join("");
		expect(chinese).toContain("反复做同一个调用");
		expect(chinese).not.toMatch(/[(),;]|same-call/);
		world.channels = [{ id: "tg", type: "telegram", state: "up", error: null }];
		tool("done");
		frame({ type: "turn", conversation: "c1", turnId: "t2", state: "done", origin: "human", model: null });
		expect(await open()).toEqual([]);
	});

	it("reports warnings and a blown fuse once, names the limit, and takes them back when it opens", async () => {
		const { hooks, open, sent } = make();
		hooks.fuse?.({ type: "warned", threshold: 0.8, limit: "tokens", state });
		hooks.fuse?.({
			type: "blown",
			state: { ...state, state: "blown", blownBy: "tokens" },
			payer: { personId: "master", tier: "master", groupId: null, source: "chat" },
		});
		expect(await open()).toEqual(["fuse-blown", "fuse-warning"]);
		expect(sent[0]).toContain("80 %");
		expect(sent.at(-1)).toContain("8,000 / 10,000");
		hooks.fuse?.({ type: "opened", reason: "raise", state });
		expect(await open()).toEqual(["fuse-warning"]);
		// A raise that leaves the day far from its limit ends the warning as well.
		hooks.fuse?.({ type: "opened", reason: "raise", state: { ...state, limitTokens: 100_000 } });
		expect(await open()).toEqual([]);
		hooks.fuse?.({ type: "warned", threshold: 0.8, limit: "tokens", state });
		expect(await open()).toEqual(["fuse-warning"]);
		hooks.fuse?.({ type: "opened", reason: "day", state: { ...state, day: "2026-12-01" } });
		expect(await open()).toEqual([]);
	});

	it("reports a nearly full disk and a clock that jumped", async () => {
		const { world, open } = make();
		await open();
		world.disk = { free: 100e6, total: 100e9 };
		world.skewMs = 3_600_000;
		expect(await open()).toEqual(["clock-jump", "disk-full"]);
		world.disk = { free: 50e9, total: 100e9 };
		expect(await open()).toEqual([]);
	});

	it("reports a day far above the last ones", async () => {
		expect(isUnusual(400_000, [100_000, 90_000, 110_000])).toBe(true);
		expect(isUnusual(250_000, [100_000, 90_000, 110_000])).toBe(false);
		expect(isUnusual(400_000, [100_000, 90_000])).toBe(false);
		expect(isUnusual(40_000, [100, 100, 100])).toBe(false);
		const { open } = make();
		for (const [day, tokens] of [
			["2026-11-26", 60_000],
			["2026-11-27", 50_000],
			["2026-11-28", 70_000],
			["2026-11-30", 300_000],
		] as const)
			home.raw.prepare("insert into usage_days values (?, 'chat', 'main', 'USD', 1, ?, 0, 0, 0, 0, 0, ?, 0)").run(day, tokens, tokens);
		home.raw
			.prepare(
				"insert into calls (id, source, model, model_name, at, input_tokens, attempt, state) values ('x', 'chat', 'main', 'm', ?, 300000, 1, 'done')",
			)
			.run(Date.parse("2026-11-30T01:00:00Z"));
		expect(await open()).toEqual(["unusual-use"]);
	});
});
