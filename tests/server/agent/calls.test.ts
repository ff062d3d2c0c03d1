import { describe, expect, it } from "vitest";
import type { GateTurn } from "../../../server/agent/types.ts";
import type { Tool } from "../../../server/tools/tool.ts";
import { call, input, memoryJournal, results, run, texts, tool } from "./scripted.ts";

const anything = { type: "object", properties: { a: { type: "string" } } };
const counted = (name: string, more: Partial<Tool> = {}) => {
	const seen: string[] = [];
	return {
		seen,
		tool: tool(name, async (args) => ({ text: `${name} ${seen.push(String(args.a ?? ""))}` }), { parameters: anything, ...more }),
	};
};

describe("calls of one step", () => {
	it("run side by side when read-only, the others in order, results in the order of the calls", async () => {
		const log: string[] = [];
		let release = () => {};
		const both = new Promise<void>((resolve) => {
			release = resolve;
		});
		const read = tool(
			"read",
			async (args) => {
				log.push(`+${args.a}`);
				if (log.filter((entry) => entry.startsWith("+r")).length === 2) release();
				await both;
				log.push(`-${args.a}`);
				return { text: String(args.a) };
			},
			{ parameters: anything },
		);
		const write = tool(
			"write",
			async (args) => {
				log.push(`w${args.a}`);
				return { text: String(args.a) };
			},
			{ parameters: anything, readOnly: false, effect: "outside" },
		);
		const { model, journal } = await run(
			[
				{ calls: [call("read", { a: "r1" }), call("read", { a: "r2" }), call("write", { a: "1" }), call("write", { a: "2" })] },
				{ text: "ok" },
			],
			{ tools: [read, write] },
		);
		expect(log.slice(0, 2)).toEqual(["+r1", "+r2"]);
		expect(log.slice(-2)).toEqual(["w1", "w2"]);
		expect(results(model.requests[1])).toEqual(["r1", "r2", "1", "2"]);
		expect(journal.log.filter((entry) => entry.startsWith("started"))).toEqual(["started r0_3", "started r0_4"]);
		expect(journal.log.indexOf("started r0_3")).toBeLessThan(journal.log.indexOf("finished r0_3 done"));
	});

	it("are stored before any of them runs", async () => {
		const journal = memoryJournal();
		const probe = tool("probe", async () => ({ text: journal.log.join() }));
		const { model } = await run([{ calls: [call("probe")] }, { text: "ok" }], { tools: [probe], journal });
		expect(results(model.requests[1])).toEqual(["step 1"]);
	});

	it("with one id in one answer are kept apart and each runs once", async () => {
		const c = counted("count");
		const { model } = await run([{ calls: [call("count", { a: "x" }, "same"), call("count", { a: "x" }, "same")] }, { text: "ok" }], {
			tools: [c.tool],
		});
		expect(c.seen).toHaveLength(2);
		expect(results(model.requests[1])).toEqual(["count 1", "count 2"]);
	});

	it("with an id of an earlier step are answered with its result when the arguments are the same, and run otherwise", async () => {
		const c = counted("count", { readOnly: false, effect: "outside" });
		const { model } = await run(
			[
				{ calls: [call("count", { a: "x" }, "same")] },
				{ calls: [call("count", '{ "a" : "x" }', "same")] },
				{ calls: [call("count", { a: "y" }, "same")] },
				{ text: "ok" },
			],
			{ tools: [c.tool] },
		);
		expect(c.seen).toEqual(["x", "y"]);
		expect(results(model.requests[3])).toEqual(["count 1", "count 1", "count 2"]);
	});

	it("after finish are skipped and answered as such", async () => {
		const c = counted("count", { readOnly: false });
		const { outcome, journal } = await run(
			[
				{
					calls: [
						call("count"),
						call("finish", { status: "blocked", reply: "cannot", channel: "tg", to: "42" }),
						call("count"),
						call("nope"),
					],
				},
			],
			{ tools: [c.tool] },
		);
		expect(c.seen).toHaveLength(1);
		expect(outcome).toMatchObject({ state: "done", status: "blocked", reply: "cannot", deliverTo: { channel: "tg", to: "42" } });
		expect(journal.steps[0]?.calls.map((record) => record.state)).toEqual(["done", "done", "skipped", "skipped"]);
		expect(journal.steps[0]?.calls[2]?.result).toContain("finish");
	});

	it("that cannot be run are answered with the right signature", async () => {
		const c = counted("count");
		const { model, journal } = await run(
			[
				{ calls: [call("Count", {}), call("missing", {}), call("count", "{bad"), call("count", { a: 1 }), call("count", { b: "x" })] },
				{ text: "ok" },
			],
			{ tools: [c.tool] },
		);
		const [close, unknown, json, type, extra] = results(model.requests[1]);
		expect(close).toContain("Did you mean count(a?: string)?");
		expect(unknown).toMatch(/no tool named "missing".*now/);
		for (const text of [json, type, extra]) expect(text).toContain("Right: count(a?: string)");
		expect(c.seen).toEqual([]);
		expect(journal.steps[0]?.calls.every((record) => record.state === "failed")).toBe(true);
	});

	it("are bounded in number, each answered", async () => {
		const c = counted("count");
		const { model } = await run([{ calls: Array.from({ length: 70 }, () => call("count")) }, { text: "ok" }], { tools: [c.tool] });
		expect(c.seen).toHaveLength(64);
		expect(results(model.requests[1])).toHaveLength(70);
		expect(results(model.requests[1]).at(-1)).toContain("too many calls");
	});

	it("may be refused by a gate that knows what the turn has read", async () => {
		const page = tool("page", async () => ({ text: "text of a page", taint: "web:example.test" }));
		const c = counted("count", { readOnly: false, effect: "outside" });
		const seen: string[][] = [];
		const { outcome, model, journal } = await run([{ calls: [call("page")] }, { calls: [call("count")] }, { text: "ok" }], {
			tools: [page, c.tool],
			gate: async (asked, turn) => {
				seen.push(turn.tainted);
				return asked.name === "count" ? "Refused: needs the master's approval." : null;
			},
		});
		expect(c.seen).toEqual([]);
		expect(seen).toEqual([[], ["web:example.test"]]);
		expect(results(model.requests[2]).at(-1)).toBe("Refused: needs the master's approval.");
		expect(outcome.taint).toEqual([{ source: "web:example.test", step: 1 }]);
		expect(journal.log.some((entry) => entry.startsWith("started"))).toBe(false);
	});

	it("refused by a gate were not run: the same id with the same arguments is a new try", async () => {
		const c = counted("count", { readOnly: false, effect: "outside" });
		const seen: GateTurn[] = [];
		const again = call("count", { b: 1, a: null }, "call_1");
		const { model } = await run([{ calls: [again] }, { calls: [again] }, { text: "ok" }], {
			tools: [{ ...c.tool, parameters: { type: "object", properties: { a: { type: "string" }, b: { type: "number" } } } }],
			gate: async (_asked, turn) => {
				seen.push(turn);
				return seen.length === 1 ? "Waiting." : null;
			},
		});
		expect(results(model.requests[1]).at(-1)).toBe("Waiting.");
		expect(c.seen).toHaveLength(1);
		expect(seen.map((turn) => turn.arguments)).toEqual(['{"b":1}', '{"b":1}']);
		expect(new Set(seen.map((turn) => turn.recordId)).size).toBe(2);
		expect(seen[0]).toMatchObject({ origin: "human", tainted: [] });
	});

	it("that throw are told to the model without internals", async () => {
		const bad = tool("bad", () => {
			throw new Error("EACCES /home/me/.secret");
		});
		const { model, outcome } = await run([{ calls: [call("bad")] }, { text: "ok" }], { tools: [bad] });
		expect(results(model.requests[1])[0]).toContain("fault in this program");
		expect(results(model.requests[1])[0]).not.toContain("secret");
		expect(outcome.state).toBe("done");
	});

	it("that hang are ended at their time limit", async () => {
		const hang = tool("hang", () => new Promise(() => {}), { timeoutMs: 20, readOnly: false, effect: "outside" });
		const { model } = await run([{ calls: [call("hang")] }, { text: "ok" }], { tools: [hang] });
		expect(results(model.requests[1])[0]).toMatch(/did not end within.*outcome is unknown/);
	});

	it("hand their effects over with the result", async () => {
		const { journal, events, model } = await run([
			{
				calls: [
					call("write_plan", {
						items: [
							{ text: "one", done: true },
							{ text: "two", done: false },
						],
					}),
				],
			},
			{ text: "ok" },
		]);
		expect(journal.effects).toEqual([
			{
				type: "plan",
				items: [
					{ text: "one", done: true },
					{ text: "two", done: false },
				],
			},
		]);
		expect(events.find((event) => event.type === "plan")).toMatchObject({ items: [{ text: "one" }, { text: "two" }] });
		expect(texts(model.requests[1]).at(-1)).toContain("- [x] one\n- [ ] two");
	});
});

describe("a journal that refuses", () => {
	it("an effect makes the call fail and not the turn", async () => {
		const journal = memoryJournal();
		const plain = journal.callFinished;
		journal.callFinished = async (turn, id, outcome) => {
			if (outcome.effects.length > 0) throw new Error("no such channel /secret");
			await plain(turn, id, outcome);
		};
		const { model, outcome } = await run([{ calls: [call("write_plan", { items: [{ text: "x", done: false }] })] }, { text: "ok" }], {
			journal,
		});
		expect(outcome).toMatchObject({ state: "done", reply: "ok" });
		expect(results(model.requests[1])[0]).toBe("write_plan had no effect: it could not be stored. Check its arguments.");
		expect(texts(model.requests[1]).join()).not.toContain("Plan:");
	});

	it("the full text costs the path, not the turn", async () => {
		const journal = memoryJournal();
		journal.keepFullText = async () => {
			throw new Error("ENOSPC");
		};
		const big = tool("big", async () => ({ text: "x".repeat(50_000) }));
		const { model, outcome } = await run([{ calls: [call("big")] }, { text: "ok" }], { journal, tools: [big] });
		expect(outcome.reply).toBe("ok");
		expect(results(model.requests[1])[0]).toContain("…[cut: 50000 characters]…");
	});
});

describe("results", () => {
	const big = (length: number) => tool("big", async () => ({ text: `BEGIN${"😀".repeat(length / 2)}END` }));

	it("are capped one by one on characters, the whole kept and its path told", async () => {
		const limits = { ...input().limits, toolResultChars: 1_000 };
		const { model, journal, events } = await run([{ calls: [call("big")] }, { text: "ok" }], { tools: [big(50_000)], input: { limits } });
		const text = results(model.requests[1])[0] as string;
		expect(text.length).toBeLessThanOrEqual(1_000);
		expect(text).toMatch(/^BEGIN.*results\/r0_1\.txt.*END$/s);
		expect(text).not.toMatch(/\p{Surrogate}/u);
		expect(journal.kept.get("r0_1")).toHaveLength(50_008);
		expect(events.find((event) => event.type === "call-finished")).toMatchObject({ stored: text });
	});

	it("of one step are bounded together", async () => {
		const limits = { ...input().limits, toolResultChars: 5_000, stepResultChars: 12_000 };
		const { model, journal } = await run([{ calls: Array.from({ length: 10 }, () => call("big")) }, { text: "ok" }], {
			tools: [big(4_000)],
			input: { limits },
		});
		const sum = results(model.requests[1]).reduce((total, text) => total + text.length, 0);
		expect(sum).toBeLessThanOrEqual(12_000);
		expect(journal.kept.size).toBeGreaterThan(5);
	});

	it("are made well-formed and never empty", async () => {
		const odd = tool("odd", async () => ({ text: "x\ud83d" }));
		const none = tool("none", async () => ({ text: "" }));
		const { model } = await run([{ calls: [call("odd"), call("none")] }, { text: "ok" }], { tools: [odd, none] });
		expect(results(model.requests[1])).toEqual(["x\ufffd", "(no output)"]);
	});
});
