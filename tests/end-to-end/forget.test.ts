import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AlertItem, Approval, Call, Fact, Message, Status } from "../../server/http/contract.ts";
import { createGate, type FakeOpenAI, type RecordedRequest, startFakeOpenAI } from "../fakes/openai-server.ts";
import { homeWithModel, type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";
import { holding, textsOfHome } from "../helpers/home-text.ts";

let dir: string;
let home: string;
let model: FakeOpenAI;
let daemon: RunningDaemon;
/** Begins with a home in which nothing has been said. */
async function begin(name: string): Promise<void> {
	home = join(dir, name);
	await homeWithModel(
		home,
		model.url,
		`  - { id: meaning, provider: custom, model: vectors, kind: embedding, baseUrl: "${model.url}", apiKeys: ["sk-test-0123456789abcdef"] }\nroles: { embedding: meaning }\n`,
	);
	daemon = await startDaemonProcess({ home });
}
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-forget-"));
	model = await startFakeOpenAI();
	await begin("home");
});
afterAll(async () => {
	await daemon?.kill();
	await model?.close();
	await rm(dir, { recursive: true, force: true });
});

const create = async () => (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body.id;
const say = async (id: string, text: string) =>
	(await daemon.call<{ reply: Message }>("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text })).body.reply;
const facts = async () => (await daemon.call<{ facts: Fact[] }>("GET", "/api/v1/memory/facts")).body.facts;
const held = async (...words: string[]) => holding(await textsOfHome(home), words);
const settled = (words: string[]) => expect.poll(() => held(...words), { timeout: 20_000, interval: 200 }).toEqual([]);

/** What a person said last, without the time behind it, and what a tool has answered since. */
function asked(request: { body: { messages: { role: string; content: string }[] } }): { said: string; tool: string | null } {
	const { messages } = request.body;
	const at = messages.findLastIndex(({ role, content }) => role === "user" && !/^<(situation|note)/.test(content));
	return {
		said: (messages[at]?.content ?? "").replace(/\s*\[[^\]]*\]$/, ""),
		tool: messages.slice(at + 1).findLast(({ role }) => role === "tool")?.content ?? null,
	};
}

const summedUp = (request: RecordedRequest) => ({
	text: `They spoke of ${request.lastUser.match(/\b\d{6}\b|Anna|filler\d+/g)?.join(", ") ?? "little"}.`,
});

/** Keeps what it is told to keep, sums up with all numbers, and forgets what it has looked up. */
function scripted(): void {
	model.reset();
	model.memory(summedUp);
	model.otherwise((request) => {
		const { said, tool } = asked(request);
		if (tool !== null) {
			const id = /\[(f[\w-]+)\]/.exec(tool)?.[1];
			if (id && said.startsWith("forget")) return { calls: [{ name: "forget", arguments: { id } }] };
			return { text: said.includes("forget") ? `Forgetting ${/\d{6}/.exec(said)?.[0] ?? "471147"}: ${tool}` : `Kept: ${said}` };
		}
		const kept = /^remember that my (.+)/.exec(said)?.[1];
		if (kept) return { calls: [{ name: "remember_fact", arguments: { text: `The user's ${kept}` } }] };
		if (said.startsWith("forget")) return { calls: [{ name: "recall", arguments: { query: said } }] };
		const approved = /Approved: forget \{"id":"([\w-]+)"/.exec(said)?.[1];
		if (approved) return { calls: [{ name: "forget", arguments: { id: approved } }] };
		return { text: `You said: ${said}` };
	});
}

/** Tells an old number, a new one, a sister, and enough to have all of it compressed. */
async function tell(old: string, now: string): Promise<{ first: string; second: string }> {
	scripted();
	const first = await create();
	await say(first, `remember that my PIN is ${old}`);
	await say(first, `remember that my PIN is ${now}`);
	await say(first, "remember that my sister is called Anna");
	await say(first, `the PIN of my card is still ${now}, as I said`);
	for (let number = 1; number <= 9; number++) await say(first, `filler${number}`);
	const second = await create();
	await say(second, "what is my PIN?");
	await say(second, `so it is ${now}, that PIN`);
	await expect.poll(() => held(`They spoke of ${old}`), { timeout: 20_000 }).not.toEqual([]);
	return { first, second };
}

describe("a forgotten fact", () => {
	it("is gone from the whole house when it is forgotten by its id: earlier versions, repetitions, answers, records", async () => {
		const { first, second } = await tell("399939", "815581");
		const fact = (await facts()).find((one) => one.text.includes("815581"));
		// A turn that runs meanwhile, and whose answer says it once more.
		const gate = createGate();
		const third = await create();
		model.script({ text: "Your PIN is 815581.", gate });
		const running = say(third, "what is my PIN?");
		await gate.reached;
		const forgotten = await daemon.call("POST", "/api/v1/memory/forget", { factId: fact?.id });
		expect(forgotten).toMatchObject({ status: 200, body: { facts: 2 } });
		expect((await facts()).map((one) => one.text)).toEqual([expect.stringContaining("Anna")]);
		gate.open();
		expect((await running).text).toBe("Your PIN is 815581.");
		await settled(["399939", "815581"]);
		// What has nothing to do with it stays.
		const left = await textsOfHome(home);
		for (const word of ["Anna", "filler1", "filler9"]) expect(holding(left, [word])).not.toEqual([]);
		expect(holding(left, ["removed on request"])).not.toEqual([]);
		const before = model.requests.length;
		for (const id of [first, second, third, await create()]) await say(id, "what is my PIN, and who is my sister?");
		const later = model.requests.slice(before);
		expect(later.length).toBeGreaterThanOrEqual(4);
		expect(later.filter((request) => /399939|815581/.test(request.raw))).toEqual([]);
		expect(later.some((request) => request.raw.includes("Anna"))).toBe(true);
		expect(JSON.stringify((await daemon.call("GET", "/api/v1/memory/export")).body)).not.toMatch(/399939|815581/);
	});

	it("is gone from what waited to join a turn and came to begin the next one", async () => {
		scripted();
		const id = await create();
		await say(id, "remember that my locker code is 515253");
		const fact = (await facts()).find((one) => one.text.includes("515253"));
		const gate = createGate();
		model.script({ text: "Let me think.", gate });
		const running = say(id, "tell me a story");
		await gate.reached;
		const waiting = say(id, "so my locker code is 515253, right?");
		await expect.poll(() => held("so my locker code"), { timeout: 20_000 }).not.toEqual([]);
		expect(await daemon.call("POST", "/api/v1/memory/forget", { factId: fact?.id })).toMatchObject({ status: 200, body: { facts: 1 } });
		gate.open();
		expect((await running).text).toBe("Let me think.");
		await waiting;
		await settled(["515253"]);
	});

	it("is gone when the agent is asked to forget it, with the asking", async () => {
		const { first, second } = await tell("300030", "471147");
		const reply = await say(second, "forget that my PIN is 471147");
		expect(reply.text).toContain("471147");
		const waiting = (await daemon.call<{ approvals: Approval[] }>("GET", "/api/v1/approvals")).body.approvals[0];
		expect(waiting?.about).toContain("471147");
		await daemon.call("POST", `/api/v1/approvals/${waiting?.id}`, { decision: "allow" });
		await expect.poll(async () => (await facts()).filter((one) => one.text.includes("471147")), { timeout: 20_000 }).toEqual([]);
		await expect.poll(async () => (await daemon.call<Status>("GET", "/api/v1/status")).body.turns.running).toBe(0);
		await settled(["300030", "471147"]);
		const before = model.requests.length;
		for (const id of [first, second]) await say(id, "is it gone?");
		expect(model.requests.slice(before).filter((request) => /300030|471147/.test(request.raw))).toEqual([]);
		expect(model.refused).toEqual([]);
	});
});

describe("forgetting while a model hangs that sums up", () => {
	it("is answered at once; what the model had begun is booked and done anew of what is left, after a restart too", async () => {
		await daemon.kill();
		await begin("hanging");
		scripted();
		const gate = createGate();
		model.memory((request) => ({ text: summedUp(request).text.split(/(?<= )/), gate, gateAfter: 5 }));
		const summing = () => model.requests.filter(({ ofMemory, raw }) => ofMemory && /bark1\b/.test(raw));
		const id = await create();
		await say(id, "remember that my PIN is 602214");
		for (let number = 1; number <= 8; number++) await say(id, `filler${number} bark${number}`);
		await expect.poll(() => summing().length, { timeout: 20_000 }).toBe(1);
		await gate.reached;
		expect(summing()[0]?.raw).toContain("602214");
		const fact = (await facts()).find((one) => one.text.includes("602214"));
		expect((await daemon.call("POST", "/api/v1/memory/forget", { factId: fact?.id })).status).toBe(200);
		await settled(["602214"]);
		await summing()[0]?.finished;
		expect(summing()[0]?.aborted).toBe(true);
		await expect.poll(() => summing().length, { timeout: 20_000 }).toBe(2);
		expect(summing()[1]?.raw).not.toContain("602214");
		const { calls } = (await daemon.call<{ calls: Call[] }>("GET", "/api/v1/calls?source=memory&limit=1000")).body;
		const booked = calls.filter((call) => call.conversationId === id && call.state !== "open");
		expect(booked).toMatchObject([{ state: "failed", error: expect.stringMatching(/aborted|stopped/), estimated: true }]);
		expect(booked[0]?.inputTokens).toBeGreaterThan(0);
		expect(booked[0]?.outputTokens).toBeGreaterThan(0);

		expect(await daemon.stop()).toBe(0);
		daemon = await startDaemonProcess({ home });
		gate.open();
		await expect
			.poll(() => readFile(join(home, "workspace/people/master/SUMMARY.md"), "utf8"), { timeout: 20_000 })
			.toMatch(/They spoke of (filler1, )+(filler2, )+(filler3, )*filler3\./);
		expect(await held("602214", "[extract]", "memory.extracted", "memory.job-failed")).toEqual([]);
		expect((await daemon.call<{ alerts: AlertItem[] }>("GET", "/api/v1/alerts")).body.alerts).toEqual([]);
		expect(model.refused).toEqual([]);
	});
});
