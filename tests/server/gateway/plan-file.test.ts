import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TestGateway, testGateway } from "../../helpers/gateway.ts";
import { type TestHome, testHome } from "../../helpers/store.ts";
import { call, scripted } from "../agent/scripted.ts";

let home: TestHome;
let up: TestGateway | null = null;
beforeEach(async () => {
	home = await testHome();
});
afterEach(async () => {
	await up?.close();
	await home.remove();
});

const plan = (...items: [string, boolean][]) => call("write_plan", { items: items.map(([text, done]) => ({ text, done })) });

describe("Plan.md", () => {
	it("is in step with write_plan, and what a person changes in it is in the next step's prompt", async () => {
		const file = (id: string) => join(home.dir, "workspace", "conversations", id, "Plan.md");
		let id = "";
		const model = scripted([{ calls: [plan(["look", false], ["book", false])] }, { calls: [call("now")] }, { text: "done" }]);
		const stream = model.stream;
		let n = 0;
		up = await testGateway(home, {
			model: {
				...model,
				async *stream(request, signal) {
					// Between the first and the second step a person takes their pen.
					if (++n === 2) {
						expect(await readFile(file(id), "utf8")).toBe("- [ ] look\n- [ ] book\n");
						await writeFile(file(id), "my plan\r\n- [X] look\r\n* [ ] book a window seat\r\n");
					}
					yield* stream.call(model, request, signal);
				},
			},
		});
		await up.gateway.start();
		id = (await up.gateway.createConversation(null, "web")).id;
		await up.ask(id, "go");
		expect(JSON.stringify(model.requests[2]?.messages.at(-1))).toContain("book a window seat");
		const [turn] = await up.store.turns.list({ conversationId: id, limit: 1 });
		expect(turn?.plan).toEqual([
			{ text: "look", done: true },
			{ text: "book a window seat", done: false },
		]);
	});
});
