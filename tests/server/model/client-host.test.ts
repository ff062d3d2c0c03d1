import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AttemptFailed } from "../../../server/model/openai/client.ts";
import { createClientHost } from "../../../server/model/openai/client-host.ts";
import { NO_ROLES } from "../../../server/model/settings.ts";
import { createGate, type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, setUp, tool } from "./setup.ts";

let server: FakeOpenAI;
let dir: string;
const closing: (() => void)[] = [];
beforeEach(async () => {
	server = await startFakeOpenAI();
	dir = await mkdtemp(join(tmpdir(), "openlani-thread-"));
});
afterEach(async () => {
	for (const close of closing.splice(0)) close();
	await server.close();
	await rm(dir, { recursive: true, force: true });
});

/** Models whose connections live in a thread; `program` replaces what runs there. */
async function inThread(program?: string, lookMs?: number) {
	const warnings: { event: string; data?: Record<string, unknown> }[] = [];
	const file = program === undefined ? undefined : join(dir, "thread.mjs");
	if (file) await writeFile(file, `import { parentPort } from "node:worker_threads";\n${program}`);
	const clock = { now: () => Date.now() };
	const log = { warn: (event: string, data?: Record<string, unknown>) => void warnings.push({ event, data }) };
	const client = createClientHost({ newId: randomUUID, clock, log, file, ...(lookMs ? { lookMs } : {}) });
	const setup = setUp([entry("main", server.url)], { client });
	closing.push(() => setup.models.close());
	return { ...setup, client, warnings };
}

describe("model connections in a thread", () => {
	it("bring text, calls under their own names, usage, and what a server says when it refuses", async () => {
		const { models, calls, client, warnings } = await inThread();
		server.script({ text: ["Good", " morning"], reasoning: "hm" }, { calls: [{ name: "do_it_", arguments: { a: "ü" } }] });
		const said = await run(models, ask("hi"));
		expect(said.text).toBe("Good morning");
		expect(said.reply).toMatchObject({ reasoning: "hm", finish: "stop", usage: { estimated: false } });
		const called = await run(models, ask("do", { tools: [tool("do it!")] }));
		expect(called.reply.calls).toMatchObject([{ name: "do it!" }]);
		expect(JSON.parse(called.reply.calls[0]?.arguments ?? "")).toEqual({ a: "ü" });
		expect(client.threadId()).not.toBeNull();

		server.script({ status: 401, error: { message: "no such key", code: "invalid_api_key" } });
		await expect(run(models, ask("hi"))).rejects.toMatchObject({ kind: "auth", status: 401 });
		expect(calls.at(-1)?.end).toMatchObject({ error: { kind: "auth", status: 401 }, usage: null });
		expect(warnings).toEqual([]);
		expect(server.refused).toEqual([]);
	});

	it("are ended when the request is stopped, and what had come is told and counted", async () => {
		const { models, calls } = await inThread();
		const gate = createGate();
		server.script({ text: ["one", " two"], gate, gateAfter: 2 });
		const stop = new AbortController();
		const stream = models.stream(ask("hi"), stop.signal);
		let text = "";
		await expect(
			(async () => {
				for await (const event of stream) {
					if (event.type === "text") text += event.text;
					if (text !== "") stop.abort();
				}
			})(),
		).rejects.toMatchObject({ kind: "aborted" });
		expect(text).toMatch(/^one/);
		expect(calls[0]?.end).toMatchObject({ error: { kind: "aborted" }, response: { text, partial: true }, usage: { estimated: true } });
		await server.chats[0]?.finished;
		expect(server.chats[0]?.aborted).toBe(true);
		gate.open();
	});

	it("tell a fault of ours without the key that was used, and without what looks like one", async () => {
		const { client } = await inThread(`parentPort.postMessage([]);
			parentPort.on("message", ({ id, request }) => {
				const fault = "TypeError: " + request.key + " is not iterable\\n    at https://lani:open-sesame@host.test/x?sig=abcdef (authorization: Bearer 0123456789abcdef)";
				parentPort.postMessage([{ id, fault }]);
			});`);
		const request = { baseUrl: server.url, key: "house-key-of-0815", limits: entry("main", server.url).limits };
		const error = await client.json("/models", request, new AbortController().signal).catch((thrown: Error) => thrown);
		expect(String(error)).toContain("is not iterable at https://host.test/x");
		for (const secret of ["house-key", "open-sesame", "abcdef"]) expect(String(error)).not.toContain(secret);
	});

	it("of a thread that hangs are broken connections too; one that answers may take its time", async () => {
		const mark = JSON.stringify(join(dir, "hung"));
		const { client, warnings } = await inThread(
			`import { existsSync, writeFileSync } from "node:fs";
			parentPort.postMessage([]);
			let pings = 0;
			let asked = 0;
			parentPort.on("message", ({ id, type }) => {
				if (type === "json" && !existsSync(${mark})) {
					writeFileSync(${mark}, "");
					for (;;);
				}
				if (type === "json") asked = id;
				if (type === "ping") parentPort.postMessage(++pings < 5 ? [] : [{ id: asked, value: pings }]);
			});`,
			200,
		);
		const request = { baseUrl: server.url, key: "", limits: entry("main", server.url).limits };
		const models = () => client.json("/models", request, new AbortController().signal);
		await expect(models()).rejects.toMatchObject({ failure: { error: { kind: "network" }, mayHaveCost: true } });
		expect(warnings).toMatchObject([{ event: "models.thread-ended", data: { isUp: true, error: "it did not answer any more" } }]);
		expect(await models()).toBe(5);
		expect(warnings).toHaveLength(1);
	});

	it("make what a model's test and embeddings ask for", async () => {
		const { models } = await inThread();
		const stop = new AbortController().signal;
		expect(await models.test("main", stop)).toMatchObject({ ok: true });
		const embedding = setUp([entry("vectors", server.url, { kind: "embedding" })], {
			client: (await inThread()).client,
			roles: { ...NO_ROLES, embedding: "vectors" },
		}).models;
		const { vectors } = await embedding.embed(
			["a", "b"],
			{ source: "embedding", conversationId: null, turnId: null, personId: null },
			stop,
		);
		expect(vectors).toHaveLength(2);
	});

	it("of a thread that ends are broken connections, and the next call gets another thread", async () => {
		const answer = { text: "again", reasoning: "", calls: [], finish: "stop", usage: null, firstByteMs: 1, strayClose: false };
		const mark = JSON.stringify(join(dir, "ended"));
		const { client, warnings } = await inThread(`
			import { existsSync, writeFileSync } from "node:fs";
			const isSecond = existsSync(${mark});
			writeFileSync(${mark}, "");
			parentPort.on("message", ({ id }) => (isSecond ? parentPort.postMessage([{ id, answer: ${JSON.stringify(answer)} }]) : process.exit(3)));
			parentPort.postMessage([]);`);
		const attempt = { baseUrl: server.url, key: "", json: "{}", limits: entry("main", server.url).limits, names: new Set<string>() };
		const halt = { why: null, listen: () => () => {} };
		const chat = () => client.chat({ ...attempt, thinksUnopened: false, nearlyFull: false }, halt, () => {});
		const failed = await chat().catch((error: unknown) => error);
		expect(failed).toBeInstanceOf(AttemptFailed);
		expect((failed as AttemptFailed).failure).toMatchObject({ error: { kind: "network" }, mayHaveCost: true });
		expect((await chat()).text).toBe("again");
		expect(warnings).toMatchObject([{ event: "models.thread-ended", data: { code: 3, isUp: true } }]);
	});

	it("are made in this thread where no other comes up", async () => {
		const { models, client, warnings } = await inThread(`throw new Error("not here");`);
		await client.warm();
		expect((await run(models, ask("hi"))).text).toBe("You said: hi");
		expect(client.threadId()).toBeNull();
		expect(warnings).toMatchObject([{ event: "models.thread-ended", data: { isUp: false, error: "not here" } }]);
	});

	it("are made in this thread where the system gives no other", async () => {
		const warnings: string[] = [];
		const log = { warn: (event: string) => void warnings.push(event) };
		// Refused before a thread exists, as it is where no more threads are allowed.
		const client = createClientHost({ newId: randomUUID, clock: Date, log, file: "nowhere" });
		const { models } = setUp([entry("main", server.url)], { client });
		closing.push(() => models.close());
		expect((await run(models, ask("hi"))).text).toBe("You said: hi");
		expect((await run(models, ask("there"))).text).toBe("You said: there");
		expect(warnings).toEqual(["models.thread-ended"]);
	});

	it("are not begun any more when the models were closed", async () => {
		const { models, client, calls } = await inThread();
		await client.warm();
		models.close();
		await expect(run(models, ask("late"))).rejects.toMatchObject({ kind: "aborted" });
		expect(calls.at(-1)?.end).toMatchObject({ error: { kind: "aborted" }, usage: null });
		expect(server.chats).toHaveLength(0);
	});

	it("end with the models, and so does what they are at", async () => {
		const { models } = await inThread();
		const gate = createGate();
		server.script({ text: "never", gate });
		const running = run(models, ask("hi"));
		await gate.reached;
		models.close();
		await expect(running).rejects.toMatchObject({ kind: "aborted" });
		await server.chats[0]?.finished;
		expect(server.chats[0]?.aborted).toBe(true);
		gate.open();
	});
});
