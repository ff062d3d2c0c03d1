import { describe, expect, it } from "vitest";
import { newGuards, type ObservedCall, observe } from "../../../server/agent/guards.ts";
import type { GuardKind } from "../../../server/agent/types.ts";
import { call, input, run, texts, tool } from "./scripted.ts";

const anything = { type: "object", properties: { a: { type: "string" } } };
let tick = 0;
const tools = [
	tool("same", async () => ({ text: "always the same" }), { parameters: anything }),
	tool("clock", async () => ({ text: `state ${++tick}` }), { parameters: anything }),
	tool("find", async (args) => ({ text: `Nothing found for "${args.a}" at 12:0${tick++ % 10}:00` }), { parameters: anything }),
	tool("fresh", async (args) => ({ text: `page about ${args.a}: ${String(args.a).repeat(3)} ${++tick}` }), { parameters: anything }),
	tool("fail", async (args) => ({ text: `error number ${++tick} for ${args.a}`, isError: true }), { parameters: anything }),
	tool("write", async (args) => ({ text: `Wrote ${args.a}.` }), { parameters: anything, readOnly: false, effect: "outside" }),
];

const limits = { ...input().limits, maxSteps: 40, maxRounds: 1 };

describe("loops end with an answer that says so, and an event for an alert", () => {
	it.each([
		["same-call", 6, (n: number) => call("same", { a: "x" }, `s${n}`)],
		["same-call", 11, (n: number) => call("clock", { a: "x" }, `s${n}`)],
		["same-call", 6, () => call("same", { a: "x" }, "one-id-for-all")],
		["alternating", 9, (n: number) => call("same", { a: n % 2 ? "x" : "y" }, `s${n}`)],
		["alternating", 17, (n: number) => call("clock", { a: n % 2 ? "x" : "y" }, `s${n}`)],
		["no-news", 12, (n: number) => call("find", { a: `question ${n}` }, `s${n}`)],
		["failures", 9, (n: number) => call("fail", { a: `try ${n}` }, `s${n}`)],
		["unknown-tool", 5, (n: number) => call(`invented_${n}`, {}, `s${n}`)],
	] as const)("%s within %i requests", async (kind, most, make) => {
		let n = 0;
		const { outcome, model, events } = await run([() => ({ calls: [make(n++)] })], { tools, input: { limits } });
		expect(outcome).toMatchObject({
			guard: kind as GuardKind,
			state: "done",
			status: "blocked",
			fromUs: true,
			reply: expect.stringContaining("I stopped"),
		});
		expect(events.filter((event) => event.type === "guard")).toEqual([{ type: "guard", kind, detail: expect.any(String) }]);
		expect(model.requests.length).toBeLessThanOrEqual(most);
		expect(texts(model.requests.at(-1)).join()).toContain("The work ends here");
		const warned = model.requests.findIndex((request) => texts(request).some((text) => text.startsWith("<note>")));
		expect(warned).toBeGreaterThan(0);
		expect(warned).toBeLessThan(model.requests.length - 1);
	});

	it("gives the model one last word on what was found", async () => {
		const { outcome, journal } = await run(
			[
				(request) =>
					texts(request).join().includes("The work ends here")
						? { text: "So far: nothing.", calls: [call("same", { a: "x" })] }
						: { calls: [call("same", { a: "x" })] },
			],
			{ tools, input: { limits } },
		);
		expect(outcome.reply).toMatch(/^I stopped because.*\n\nSo far: nothing\.$/s);
		expect(outcome.fromUs).toBe(false);
		expect(journal.steps.at(-1)).toMatchObject({ text: "So far: nothing.", calls: [] });
	});

	it("does not mind honest work: new pages, many writes, edit and test in turn", async () => {
		const script = Array.from({ length: 30 }, (_, n) => ({
			calls: [
				n % 3 === 0 ? call("fresh", { a: `topic${n}` }) : n % 3 === 1 ? call("write", { a: `file${n}` }) : call("same", { a: "test" }),
			],
		}));
		const { outcome } = await run([...script, { text: "done" }], { tools, input: { limits } });
		expect(outcome).toMatchObject({ guard: null, reply: "done" });
		const writes = Array.from({ length: 15 }, (_, n) => ({ calls: [call("write", { a: `file${n}` })] }));
		expect((await run([...writes, { text: "done" }], { tools, input: { limits } })).outcome).toMatchObject({ guard: null });
	});

	it("is a function of the steps: fed again it says the same", () => {
		const calls: ObservedCall[] = [{ name: "same", args: "{}", result: "r", failed: false, known: true, readOnly: true }];
		const feed = () => {
			let state = newGuards();
			return Array.from({ length: 5 }, () => {
				const seen = observe(state, calls);
				state = seen.state;
				return seen.verdict.action;
			});
		};
		expect(feed()).toEqual(["go", "go", "warn", "go", "stop"]);
		expect(feed()).toEqual(feed());
	});
});

describe("steps and rounds", () => {
	it("start again with a fresh budget, the plan and a note of what was done, then end", async () => {
		let n = 0;
		const { outcome, model, events } = await run(
			[
				() =>
					n === 0
						? {
								calls: [
									call(
										"write_plan",
										{
											items: [
												{ text: "first", done: true },
												{ text: "second", done: false },
											],
										},
										`p${n++}`,
									),
								],
							}
						: { calls: [call("fresh", { a: `t${n++}` }, `f${n}`)] },
			],
			{
				tools,
				input: { limits: { ...limits, maxSteps: 3, maxRounds: 2 } },
			},
		);
		expect(outcome).toMatchObject({ guard: "steps", rounds: 2, steps: 6, fromUs: true });
		expect(model.requests).toHaveLength(7);
		expect(events.find((event) => event.type === "round")).toMatchObject({
			round: 2,
			note: expect.stringMatching(/Round 2 of 2 begins with 3 steps.*write_plan, fresh ×2.*1 of 2 done, next: second/),
		});
		expect(texts(model.requests[3]).join()).toContain("Round 2 of 2");
		expect(texts(model.requests[5]).at(-1)).toContain("Steps left in this round: 1; there is no further round");
		expect(events.flatMap((event) => (event.type === "step-started" ? [event.round] : []))).toEqual([1, 1, 1, 2, 2, 2, 2]);
	});

	it("answers within the budget when the model does", async () => {
		const { outcome, model } = await run([{ calls: [call("fresh", { a: "x" })] }, { text: "done" }], {
			tools,
			input: { limits: { ...limits, maxSteps: 1, maxRounds: 2 } },
		});
		expect(outcome).toMatchObject({ reply: "done", rounds: 2, guard: null });
		expect(model.requests).toHaveLength(2);
	});
});
