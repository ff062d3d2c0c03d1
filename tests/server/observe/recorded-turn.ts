/** A turn that really ran: real store, loop and meter; the model is scripted. For the tests of report and replay. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultLimits } from "../../../server/agent/limits.ts";
import { runTurn } from "../../../server/agent/run-turn.ts";
import type { Journal, TurnOutcome } from "../../../server/agent/types.ts";
import type { Model, ModelReply, ModelRequest, ToolCall } from "../../../server/model/model.ts";
import { createPriceBook } from "../../../server/model/prices.ts";
import { createCalendar } from "../../../server/observe/day.ts";
import { createMeter } from "../../../server/observe/meter.ts";
import { createFuse } from "../../../server/safety/fuse.ts";
import { createRedactor } from "../../../server/safety/redact.ts";
import { openStore } from "../../../server/store/open.ts";
import type { Tool } from "../../../server/tools/tool.ts";

export interface Answer {
	text?: string;
	reasoning?: string;
	calls?: [name: string, args: Record<string, unknown>][];
}

const text = (name: string, run: (args: Record<string, unknown>) => string): Tool => ({
	name,
	// As long as the descriptions of real tools together.
	description: `The tool ${name}. ${"It does what its name says. ".repeat(50)}`,
	parameters: { type: "object", properties: { path: { type: "string" } } },
	capability: "files",
	readOnly: false,
	effect: "none",
	async run(args) {
		const out = run(args);
		return { text: out, isError: out.startsWith("failed") };
	},
});

export async function recordTurn(options: {
	said: string;
	answers: Answer[];
	tools?: Record<string, (args: Record<string, unknown>) => string>;
	secrets?: string[];
}) {
	const home = await mkdtemp(join(tmpdir(), "openlani-recorded-"));
	await mkdir(join(home, "data"), { recursive: true });
	let at = Date.parse("2026-11-30T04:00:00Z");
	const clock = { now: () => ++at };
	let ids = 0;
	const newId = () => `id-${String(++ids).padStart(4, "0")}`;
	const calendar = createCalendar(() => "Asia/Shanghai");
	const store = await openStore({
		file: join(home, "data", "openlani.db"),
		assetsDir: join(home, "data", "assets"),
		clock,
		newId,
		dayOf: calendar.dayOf,
	});
	const redact = createRedactor(options.secrets ?? []);
	const fuse = createFuse({
		ledger: store.ledger,
		budget: () => ({
			dailyTokens: 1e6,
			dailyCost: null,
			warnAt: [0.5],
			reserveForPeople: 0.2,
			dailyShare: { stranger: null, known: null, group: null },
		}),
		calendar,
		timezone: () => "Asia/Shanghai",
		clock,
	});
	const meter = createMeter({
		ledger: store.ledger,
		fuse,
		prices: createPriceBook({ main: { input: 1, output: 2 } }),
		modelOf: (id) => ({ id, provider: "custom", modelName: id }),
		redact,
		clock,
		newId,
	});

	const address = { channel: "web", account: "default", conversation: "c1" };
	await store.conversations.create({
		id: "c1",
		title: "First talk",
		titled: true,
		channel: "web",
		address,
		personId: "master",
		groupId: null,
		at: clock.now(),
	});
	await store.inbox.accept({
		id: newId(),
		channel: "web",
		account: "default",
		externalId: "x1",
		conversationId: "c1",
		personId: "master",
		tier: "master",
		origin: "human",
		priority: 0,
		address,
		model: null,
		limits: {},
		message: { id: "m1", text: options.said, from: null, at: clock.now(), attachments: [], notes: [] },
		clientId: null,
		from: null,
		replaces: null,
		newTurnId: "turn-1",
		at: clock.now(),
	});
	const claim = await store.inbox.claim({ owner: "test", leaseMs: 60_000, now: clock.now(), background: true });
	if (!claim) throw new Error("nothing to claim");

	const answers = [...options.answers];
	const model: Model = {
		contextTokens: () => 100_000,
		async *stream(request: ModelRequest) {
			const answer = answers.shift() ?? { text: "(end of script)" };
			const wire = {
				model: "some-model",
				tools: request.tools.map(({ name, description, parameters }) => ({
					type: "function",
					function: { name, description, parameters },
				})),
				messages: request.messages.map((message) => {
					if (message.role === "system") return { role: "system", content: message.text };
					if (message.role === "user")
						return { role: "user", content: message.content.map((part) => (part.type === "text" ? part.text : "<image>")).join("") };
					if (message.role === "tool") return { role: "tool", tool_call_id: message.callId, content: message.text };
					return {
						role: "assistant",
						content: message.text,
						tool_calls: message.calls.map((call) => ({
							id: call.id,
							type: "function",
							function: { name: call.name, arguments: call.arguments },
						})),
					};
				}),
			};
			const body = JSON.stringify(wire);
			const id = await meter.open({
				context: request.context,
				model: "main",
				modelName: "some-model",
				key: null,
				attempt: 1,
				request: body,
				requestHead: body.indexOf('{"role"'),
				estimatedInputTokens: 100,
				maxOutputTokens: 100,
				startedAt: clock.now(),
			});
			const calls: ToolCall[] = (answer.calls ?? []).map(([name, args]) => ({ id: newId(), name, arguments: JSON.stringify(args) }));
			const usage = {
				inputTokens: 120,
				cachedTokens: 20,
				outputTokens: 30,
				reasoningTokens: 0,
				estimated: false,
				cost: 0.00018,
				currency: "USD",
			};
			const said = {
				text: answer.text ?? "",
				reasoning: answer.reasoning ?? "",
				calls,
				finish: calls.length > 0 ? ("calls" as const) : ("stop" as const),
			};
			await meter.close(id, { response: said, error: null, usage, ms: 12, firstByteMs: 4 });
			const reply: ModelReply = { ...said, usage, model: "main", modelName: "some-model", callIds: [id], ms: 12, firstByteMs: 4 };
			if (said.text !== "") yield { type: "text" as const, text: said.text };
			yield { type: "end" as const, reply };
		},
	};
	const tools = Object.entries(options.tools ?? {}).map(([name, run]) => text(name, run));
	const journal: Journal = {
		stepStored: (step) => store.turns.stepStored("turn-1", step),
		callStarted: (_turnId, recordId, when) => store.turns.callStarted(recordId, when),
		async callFinished(turnId, recordId, outcome) {
			await store.turns.callFinished(turnId, recordId, { ...outcome, outbox: [] });
		},
		keepFullText: async (_turnId, recordId) => `results/${recordId}.txt`,
		takeJoining: (turnId, step) => store.turns.takeJoining(turnId, step, clock.now()),
		stepAmended: (turnId, step, change) => store.turns.stepAmended(turnId, step, change),
	};
	const run = runTurn(
		{
			turnId: "turn-1",
			conversationId: "c1",
			channel: "web",
			personId: "master",
			tier: "master",
			groupId: null,
			origin: "human",
			blocks: [{ name: "soul", text: "You are Lani." }],
			history: [],
			messages: claim.rows.map((row) => row.message),
			recalled: [],
			steps: [],
			plan: [],
			model: null,
			limits: defaultLimits(),
			timezone: "Asia/Shanghai",
			locale: "en",
		},
		{ model, tools: { list: () => tools, get: (name) => tools.find((tool) => tool.name === name) }, journal, clock, newId },
		AbortSignal.timeout(20_000),
	);
	let outcome: TurnOutcome;
	for (;;) {
		const next = await run.next();
		if (!next.done) continue;
		outcome = next.value;
		break;
	}
	if (outcome.error) throw new Error(`the turn failed: ${JSON.stringify(outcome.error)}`);
	await store.turns.setWhy("turn-1", {
		blocks: [{ name: "soul", chars: 13 }],
		recalled: [{ text: "likes tea", score: 0.7, at: "", source: "chat", by: "keyword" }],
	});
	await store.turns.end("turn-1", {
		state: outcome.state,
		rounds: outcome.rounds,
		usage: { ...outcome.usage, calls: outcome.steps },
		model: outcome.model,
		modelName: outcome.modelName,
		guard: outcome.guard,
		taint: outcome.taint,
		error: null,
		at: clock.now(),
		reply: {
			id: newId(),
			conversationId: "c1",
			turnId: "turn-1",
			address,
			profile: "private",
			text: outcome.reply,
			attachments: [],
			at: clock.now(),
			message: {
				id: newId(),
				turnId: "turn-1",
				role: "assistant",
				model: outcome.model,
				modelName: outcome.modelName,
				usage: { ...outcome.usage, calls: outcome.steps },
			},
		},
	});
	return {
		home,
		store,
		calendar,
		clock,
		outcome,
		async close() {
			await store.close();
			await rm(home, { recursive: true, force: true });
		},
	};
}
