import { describe, expect, it } from "vitest";
import type { CallRecord, StepRecord } from "../../../server/agent/types.ts";
import { call, input, memoryJournal, message, results, run, texts, tool } from "./scripted.ts";
import { strictProblems } from "./strict.ts";

const deaf = (name: string, more = {}) => tool(name, () => new Promise(() => {}), more);

async function stopWhen(type: string, script: Parameters<typeof run>[0], tools = [deaf("hang")], gate?: () => Promise<null>) {
	const control = new AbortController();
	const journal = memoryJournal();
	const started = performance.now();
	const ran = await run(script, {
		signal: control.signal,
		journal,
		tools,
		...(gate ? { gate } : {}),
		onEvent: (event) => void (event.type === type && setTimeout(() => control.abort(), 1)),
	});
	expect(performance.now() - started).toBeLessThan(1_000);
	return ran;
}

describe("stop", () => {
	it("ends a model that streams and does not listen; what was said stays", async () => {
		const { outcome } = await stopWhen("delta", [{ text: "Half of it", hang: true }]);
		expect(outcome).toMatchObject({ state: "stopped", reply: "Half of it", fromUs: false });
	});

	it("ends a model that says nothing", async () => {
		const { outcome } = await stopWhen("step-started", [{ hang: true }]);
		expect(outcome).toMatchObject({ state: "stopped", reply: "Stopped.", fromUs: true });
	});

	it("ends tools that do not listen and answers every open call in order; the next turn works", async () => {
		const { outcome, journal } = await stopWhen(
			"call-started",
			[{ calls: [call("hang"), call("hang"), call("shell"), call("now")] }],
			[deaf("hang"), deaf("shell", { readOnly: false, effect: "outside" })],
		);
		expect(outcome.state).toBe("stopped");
		expect(journal.steps[0]?.calls.map((record) => record.state)).toEqual(["interrupted", "interrupted", "skipped", "skipped"]);
		expect(journal.log.filter((entry) => entry.startsWith("finished")).map((entry) => entry.split(" ")[1])).toEqual([
			"r0_1",
			"r0_2",
			"r0_3",
			"r0_4",
		]);
		expect(journal.steps[0]?.calls.every((record) => record.result?.startsWith("Cancelled"))).toBe(true);
		const next = await run([{ text: "here" }], { input: { steps: journal.steps.map((step) => ({ ...step, note: "go on" })) } });
		expect(next.outcome.reply).toBe("here");
		expect(strictProblems(next.model.requests[0]?.messages ?? [])).toEqual([]);
	});

	it("says of an outside tool that its outcome is unknown", async () => {
		const { journal } = await stopWhen(
			"call-started",
			[{ calls: [call("shell")] }],
			[deaf("shell", { readOnly: false, effect: "outside" })],
		);
		expect(journal.steps[0]?.calls[0]).toMatchObject({ state: "interrupted", result: expect.stringContaining("outcome is unknown") });
	});

	it("ends the wait for an approval", async () => {
		const { journal } = await stopWhen("call-started", [{ calls: [call("now")] }], [], () => new Promise(() => {}));
		expect(journal.steps[0]?.calls[0]).toMatchObject({ state: "skipped" });
	});

	it("works before anything has begun", async () => {
		const { outcome, model } = await run([{ text: "x" }], { signal: AbortSignal.abort() });
		expect(outcome.state).toBe("stopped");
		expect(model.requests).toHaveLength(0);
	});

	it.each([
		["a shutdown", "shutdown"],
		["a lost lease", Object.assign(new Error("taken over"), { name: "LeaveTurn" })],
	])("for %s writes nothing more and leaves the turn to the next start", async (_why, reason) => {
		const control = new AbortController();
		const journal = memoryJournal();
		const going = run([{ calls: [call("hang"), call("now")] }], {
			signal: control.signal,
			journal,
			tools: [deaf("hang", { readOnly: false })],
			onEvent: (event) => void (event.type === "call-started" && control.abort(reason)),
		});
		await expect(going).rejects.toThrow("stopped");
		expect(journal.log).toEqual(["step 1"]);
		const { outcome } = await run([{ text: "done" }], {
			tools: [tool("hang", async () => ({ text: "ran" }), { readOnly: false })],
			input: { steps: journal.steps },
		});
		expect(outcome.reply).toBe("done");
	});
});

describe("going on after a crash", () => {
	const record = (name: string, more: Partial<CallRecord> = {}, args: unknown = {}): CallRecord => ({
		call: call(name, args),
		recordId: `x_${name}`,
		state: "open",
		result: null,
		startedAt: null,
		endedAt: null,
		...more,
	});
	const stored = (more: Partial<StepRecord>): StepRecord => ({
		step: 1,
		round: 1,
		text: "",
		reasoning: "",
		calls: [],
		usage: { inputTokens: 5, cachedTokens: 0, outputTokens: 5, reasoningTokens: 0, estimated: false, cost: 0, currency: "USD" },
		model: "main",
		modelName: "scripted-1",
		callIds: ["c"],
		joined: [],
		note: null,
		startedAt: 1,
		endedAt: 2,
		...more,
	});
	const counter = (name: string, more = {}) => {
		const box = { runs: 0 };
		return Object.assign(box, { tool: tool(name, async () => ({ text: `${name} ran ${++box.runs}` }), more) });
	};

	it("runs what is safe or never began, and not what had begun", async () => {
		const read = counter("read");
		const row = counter("row", { readOnly: false, effect: "row" });
		const shell = counter("shell", { readOnly: false, effect: "outside" });
		const fresh = counter("fresh", { readOnly: false, effect: "outside" });
		const steps = [
			stored({
				calls: [
					record("done", { state: "done", result: "kept" }),
					record("read", { state: "started" }),
					record("row"),
					record("shell", { state: "started", startedAt: 1 }),
					record("fresh"),
				],
			}),
		];
		const { model, outcome, journal } = await run([{ text: "all done" }], {
			tools: [read.tool, row.tool, shell.tool, fresh.tool],
			input: { steps },
		});
		expect([read.runs, row.runs, shell.runs, fresh.runs]).toEqual([1, 1, 0, 1]);
		expect(results(model.requests[0])).toEqual([
			"kept",
			"read ran 1",
			"row ran 1",
			expect.stringMatching(/Interrupted.*outcome is unknown/),
			"fresh ran 1",
		]);
		expect(outcome).toMatchObject({ reply: "all done", steps: 2, usage: { inputTokens: 15 } });
		expect(journal.log).toContain("finished x_shell interrupted");
		expect(strictProblems(model.requests[0]?.messages ?? [])).toEqual([]);
	});

	it("needs no model call when the last word is stored", async () => {
		const text = await run([{ text: "wrong" }], { input: { steps: [stored({ text: "The answer." })] } });
		expect(text.outcome.reply).toBe("The answer.");
		expect(text.model.requests).toHaveLength(0);
		const finish = await run([{ text: "wrong" }], {
			input: {
				steps: [stored({ calls: [record("finish", { state: "done", result: "The turn ends." }, { status: "done", reply: "Finished." })] })],
			},
		});
		expect(finish.outcome).toMatchObject({ reply: "Finished.", status: "done" });
		expect(finish.model.requests).toHaveLength(0);
		expect(finish.journal.log).toEqual([]);
	});

	it("goes on with plan, notes, joined messages and round", async () => {
		const steps = [stored({ round: 2, text: "half", note: "Answer shorter.", joined: [message("also this")] })];
		const { model, events } = await run([{ text: "ok" }], { input: { steps, plan: [{ text: "ship", done: false }] } });
		const sent = texts(model.requests[0]);
		expect(sent.some((text) => text.startsWith("also this"))).toBe(true);
		expect(sent).toContain("<note>Answer shorter.</note>");
		expect(sent.at(-1)).toContain("- [ ] ship");
		expect(events.find((event) => event.type === "step-started")).toMatchObject({ step: 2, round: 2 });
	});

	it("does not say or start anything twice, and remembers what the guards saw", async () => {
		const same = tool("same", async () => ({ text: "same" }));
		const script = ["a", "b", "c"].map((id) => ({ calls: [call("same", {}, id)] }));
		const limits = { ...input().limits, maxSteps: 3 };
		const first = await run([...script, { error: "server" }], { tools: [same], input: { limits } });
		const note = first.journal.steps[2]?.note;
		expect(note).toMatch(/several times in a row.*\nRound 2 of 3/);
		const second = await run([{ calls: [call("same", {}, "d")] }, { calls: [call("same", {}, "e")] }, { text: "" }], {
			tools: [same],
			journal: first.journal,
			input: { limits, steps: structuredClone(first.journal.steps) },
		});
		expect(first.journal.steps[2]?.note).toBe(note);
		expect(second.outcome).toMatchObject({ guard: "same-call", rounds: 2 });
	});

	it("keeps the taint of what was read before", async () => {
		const { outcome } = await run([{ text: "ok" }], {
			input: { steps: [stored({ note: "n", calls: [record("now", { state: "done", result: "x", taint: "mail:1" })] })] },
		});
		expect(outcome.taint).toEqual([{ source: "mail:1", step: 1 }]);
	});
});
