import { describe, expect, it } from "vitest";
import type { Journal } from "../../../server/agent/types.ts";
import type { ModelRequest } from "../../../server/model/model.ts";
import { call, memoryJournal, message, run, type Say, tool } from "./scripted.ts";
import { strictProblems } from "./strict.ts";

/** What the model says depends only on how far the turn is, as with a real one. */
function say(request: ModelRequest): Say {
	const done = request.messages.filter((item) => item.role === "tool").length;
	if (done === 0)
		return {
			text: "First.",
			calls: [
				call("write_plan", { items: [{ text: "all", done: false }] }, "p1"),
				call("read", {}, "r1"),
				call("read", {}, "r2"),
				call("shell", {}, "s1"),
			],
		};
	if (done === 4) return { calls: [call("shell", {}, "s2"), call("send", {}, "m1")] };
	if (done === 6) return { calls: [call("finish", { status: "done", reply: "All is done." }, "f1")] };
	return { text: `lost the thread at ${done}` };
}

const METHODS = ["stepStored", "callStarted", "callFinished", "takeJoining"] as const;

describe("a crash at any write", () => {
	it("repeats nothing that cannot be undone and ends with the one answer", async () => {
		let points = 0;
		for (let point = 0; ; point++) {
			const runs = { shell: 0, send: 0 };
			const seen = new Set<string>();
			const journal = memoryJournal();
			journal.joining = [[message("joined")]];
			const tools = [
				tool("read", async () => ({ text: "read" })),
				tool(
					"shell",
					async (_args, context) => {
						expect(seen.has(context.callId)).toBe(false);
						seen.add(context.callId);
						return { text: `shell ${++runs.shell}` };
					},
					{ readOnly: false, effect: "outside" },
				),
				tool(
					"send",
					async () => ({ text: "queued", effects: [{ type: "send", channel: "c", to: "t", text: String(++runs.send), attachments: [] }] }),
					{ readOnly: false, effect: "row" },
				),
			];
			// The process dies at write number `point >> 1`: before it is committed, or right after.
			let count = 0;
			let dead = false;
			const dying: Journal = { ...journal };
			for (const name of METHODS) {
				const real = journal[name] as (...args: unknown[]) => Promise<unknown>;
				Object.assign(dying, {
					[name]: async (...args: unknown[]) => {
						if (dead) throw new Error("dead");
						const mine = count++ === point >> 1;
						if (mine) dead = true;
						if (mine && point % 2 === 0) throw new Error("killed before the commit");
						const value = await real(...args);
						if (mine) throw new Error("killed after the commit");
						return value;
					},
				});
			}
			const first = await run([say], { journal: { ...journal, ...dying }, tools });
			if (!dead) {
				expect(first.outcome.reply).toBe("All is done.");
				break;
			}
			points++;
			const steps = structuredClone(journal.steps);
			const second = await run([say], { journal, tools, input: { steps, plan: steps.length > 0 ? [{ text: "all", done: false }] : [] } });
			expect(second.outcome, `point ${point}`).toMatchObject({ state: "done", reply: "All is done." });
			for (const request of [...first.model.requests, ...second.model.requests]) expect(strictProblems(request.messages)).toEqual([]);
			const records = journal.steps.flatMap((step) => step.calls);
			expect(records.every((record) => record.result !== null)).toBe(true);
			expect(
				records
					.filter((record) => record.call.name === "shell")
					.every((record) => record.state === "done" || record.state === "interrupted"),
			).toBe(true);
			expect(journal.effects.filter((effect) => effect.type === "send")).toHaveLength(1);
			expect(journal.steps.flatMap((step) => step.joined).length).toBeLessThanOrEqual(1);
		}
		expect(points).toBeGreaterThan(20);
	});
});
