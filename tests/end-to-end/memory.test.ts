import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fact, MemoryHit, WorkspaceFile } from "../../server/http/contract.ts";
import { type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

let dir: string;
let daemon: RunningDaemon;
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-memory-"));
	daemon = await startDaemonProcess({ home: join(dir, "home") });
});
afterAll(async () => {
	await daemon?.kill();
	await rm(dir, { recursive: true, force: true });
});

async function conversation(): Promise<(text: string) => Promise<string>> {
	const { id } = (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body;
	return async (text) => {
		const { body } = await daemon.call<{ reply: { text: string } }>("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text });
		return body.reply.text;
	};
}

describe("the memory of the running program", () => {
	it("knows at once what it was asked to remember, in a new home and in another conversation", async () => {
		const say = await conversation();
		expect(await say("remember that my sister's name is Anna")).toContain('I will remember: "my sister\'s name is Anna".');
		expect(await say("what do you know about my sister?")).toMatch(/^About "my sister" I remember:\n- my sister's name is Anna \(/);
		expect(await (await conversation())("你好，记住我对花生过敏")).toContain("我记住了：“我对花生过敏”。");
		const other = await conversation();
		expect(await other("你知道关于花生的什么？")).toContain("我对花生过敏");
	});

	it("a fact put in by the API is listed and found at once, and is gone at once", async () => {
		const { status, body: fact } = await daemon.call<Fact>("POST", "/api/v1/memory/facts", { text: "My boat is called Albatros" });
		expect(status).toBe(201);
		const list = async () => (await daemon.call<{ facts: Fact[] }>("GET", "/api/v1/memory/facts")).body.facts.map(({ id }) => id);
		const search = async () =>
			(await daemon.call<{ semantic: MemoryHit[]; keyword: MemoryHit[] }>("GET", "/api/v1/memory/search?q=boat")).body.keyword.map(
				({ text }) => text,
			);
		expect(await list()).toContain(fact.id);
		expect(await search()).toEqual(["My boat is called Albatros"]);
		const { body: file } = await daemon.call<WorkspaceFile>("GET", "/api/v1/workspace/files/Fact.md");
		expect(file.content).toContain("My boat is called Albatros");
		expect((await daemon.call("POST", "/api/v1/memory/forget", { factId: fact.id })).status).toBe(200);
		expect(await list()).not.toContain(fact.id);
		expect(await search()).toEqual([]);
	});

	it("a person's edit of SOUL.md is what the agent is from the next message on", async () => {
		const before = (await daemon.call<WorkspaceFile>("GET", "/api/v1/workspace/files/SOUL.md")).body;
		const content = "# Soul\n\nI am markheron.\n";
		expect((await daemon.call("PUT", "/api/v1/workspace/files/SOUL.md", { content, base: before.version })).status).toBe(200);
		expect((await daemon.call("PUT", "/api/v1/workspace/files/SOUL.md", { content: "x", base: before.version })).status).toBe(409);
		await (await conversation())("hi");
		const { calls } = (await daemon.call<{ calls: { id: string }[] }>("GET", "/api/v1/calls")).body;
		const { body: last } = await daemon.call("GET", `/api/v1/calls/${calls[0]?.id}`);
		expect(JSON.stringify(last)).toContain("markheron");
		const back = await daemon.call("POST", "/api/v1/workspace/files/SOUL.md/restore", { version: before.version });
		expect(back).toMatchObject({ status: 200, body: { content: before.content } });
	});

	it("repairs no history of its own demo model", () => {
		expect(daemon.output()).toContain("tool.done");
		expect(daemon.output()).not.toContain("history-repaired");
	});
});
