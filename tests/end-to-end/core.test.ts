import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Message, Status } from "../../server/http/contract.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { homeWithModel, type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

let dir: string;
let home: string;
let model: FakeOpenAI;
let daemon: RunningDaemon;
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-core-"));
	home = join(dir, "home");
	model = await startFakeOpenAI();
	await homeWithModel(home, model.url);
	daemon = await startDaemonProcess({ home });
});
afterAll(async () => {
	await daemon?.kill();
	await model?.close();
	await rm(dir, { recursive: true, force: true });
});
beforeEach(() => model.reset());

const create = async () => (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body.id;
const say = async (id: string, text: string, more: object = {}) =>
	(await daemon.call<{ reply?: Message }>("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text, ...more })).body;
const messages = async (id: string) =>
	(await daemon.call<{ messages: Message[] }>("GET", `/api/v1/conversations/${id}/messages`)).body.messages;
/** What the model was told last, without the system message and the times behind what people said. */
const told = () =>
	((model.chats.at(-1)?.body.messages ?? []) as { role: string; content: string }[])
		.slice(1)
		.map(({ role, content }) => `${role}: ${content.replace(/\s+\[[^\]]*\]$/, "")}`);

describe("the next request", () => {
	it("knows of an answer that was stopped, and of a message whose answer failed", async () => {
		const id = await create();
		model.script({ text: "one two three four five six", betweenMs: 100 });
		await daemon.call("POST", `/api/v1/conversations/${id}/messages`, { text: "my name is Zed" });
		await model.waitForChats(1);
		await expect.poll(async () => (await daemon.call<Status>("GET", "/api/v1/status")).body.turns.running).toBe(1);
		await daemon.call("POST", `/api/v1/conversations/${id}/stop`);
		model.script({ status: 401, error: { message: "no such key" } });
		await say(id, "are you there?");
		// The only key is set aside now: a changed one is taken up without a restart.
		await homeWithModel(home, model.url.replace("127.0.0.1", "localhost"));
		await expect.poll(async () => (await say(id, "hello"))?.reply?.role, { timeout: 20_000, interval: 200 }).toBe("assistant");
		const lines = told();
		expect(lines[0]).toBe("user: my name is Zed");
		expect(lines[1]).toMatch(/^assistant: (one|\(no reply\))/);
		expect(lines.slice(2, 4)).toEqual(["user: are you there?", "assistant: (no reply)"]);
		expect(lines.at(-1)).toBe("user: hello");
		expect(model.refused).toEqual([]);
	});

	it("knows nothing of what was edited away", async () => {
		const id = await create();
		for (const text of ["m1", "m2", "m3"]) await say(id, text);
		await say(id, "m2 edited", { replaces: (await messages(id))[2]?.id });
		expect(told()).toEqual(["user: m1", "assistant: You said: m1", "user: m2 edited"]);
	});

	it("is not made when a prompt file is larger than can be read: the person is told which", async () => {
		await writeFile(join(home, "workspace", "SOUL.md"), "S".repeat(5_000_000));
		const { reply } = await say(await create(), "hi");
		expect(reply).toMatchObject({ role: "system", text: expect.stringContaining("soul") });
		expect(model.chats).toEqual([]);
		await writeFile(join(home, "workspace", "SOUL.md"), "You are Lani.\n");
	});
});

describe("a number that cannot be", () => {
	it("does not use up the day", async () => {
		model.script({ text: "ok", usageNumbers: { prompt_tokens: 1e15, completion_tokens: 1e15 } });
		expect((await say(await create(), "hi")).reply).toMatchObject({ text: "ok", usage: { estimated: true } });
		expect((await daemon.call<Status>("GET", "/api/v1/status")).body.fuse.state).toBe("ok");
	});
});

describe("a home that cannot be used", () => {
	it("is refused with a sentence, not with a stack", async () => {
		for (const [name, spoil] of [
			["database", (at: string) => mkdir(join(at, "data", "openlani.db"), { recursive: true })],
			["logs", (at: string) => writeFile(join(at, "logs"), "x")],
		] as const) {
			const at = join(dir, name);
			await homeWithModel(at, model.url);
			await spoil(at);
			const refused: Error = await startDaemonProcess({ home: at }).then(
				() => new Error("started"),
				(error: Error) => error,
			);
			expect(refused.message).toContain("ended with 1");
			expect(refused.message).not.toMatch(/\n\s+at /);
		}
	});
});
