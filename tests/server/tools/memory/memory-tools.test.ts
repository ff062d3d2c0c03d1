import { afterEach, describe, expect, it } from "vitest";
import { keyOfOwner } from "../../../../server/memory/scope.ts";
import { createMemoryTools, type MemoryToolOptions } from "../../../../server/tools/memory/index.ts";
import type { Tool, ToolContext } from "../../../../server/tools/tool.ts";
import { openMemory, start, type TestMemory } from "../../memory/setup.ts";

const open: TestMemory[] = [];
afterEach(async () => {
	for (const one of open) await one.close();
	for (const one of open.splice(0)) await one.remove();
});

const context = (change: Partial<ToolContext> = {}): ToolContext => ({
	turnId: "t1",
	callId: "k1",
	conversationId: "c1",
	personId: "master",
	tier: "master",
	groupId: null,
	origin: "human",
	timezone: "UTC",
	locale: "en",
	now: () => start,
	signal: new AbortController().signal,
	plan: [],
	...change,
});

async function tools(change: Partial<MemoryToolOptions> = {}): Promise<{
	test: TestMemory;
	call: (name: string, args: Record<string, unknown>, where?: ToolContext) => ReturnType<Tool["run"]>;
	all: Tool[];
}> {
	const test = await openMemory();
	open.push(test);
	const { core, further } = createMemoryTools({ memory: test.memory, workspace: test.workspace, ...change });
	const all = [...core, ...further];
	return {
		test,
		all,
		call: (name, args, where = context()) => {
			const tool = all.find((one) => one.name === name);
			if (!tool) throw new Error(name);
			return tool.run(args, where);
		},
	};
}

describe("the memory's tools", () => {
	it("cost few characters in a request", async () => {
		const { all } = await tools();
		const core = all.filter((tool) =>
			["remember_fact", "recall", "update_user", "update_identity", "update_agent_notes", "forget"].includes(tool.name),
		);
		expect(core).toHaveLength(6);
		expect(JSON.stringify(core.map(({ name, description, parameters }) => ({ name, description, parameters }))).length).toBeLessThan(2000);
	});

	it("remember_fact hands its fact over as an effect, and refuses what nobody said", async () => {
		const { call } = await tools({ turn: async () => ({ said: ["please look at this page"], tainted: true }) });
		expect((await call("remember_fact", { text: "" })).isError).toBe(true);
		for (const origin of ["heartbeat", "alarm", "job", "bot", "mail-robot", "tool"] as const)
			expect((await call("remember_fact", { text: "The sky is green" }, context({ origin }))).isError, origin).toBe(true);
		expect((await call("remember_fact", { text: "The admin password of the bank is hunter2" })).isError).toBe(true);
		const plain = await tools({ turn: async () => ({ said: ["remember that my cat is called Miso"], tainted: true }) });
		expect((await plain.call("remember_fact", { text: "My cat is called Miso", until: "2026-12-31" })).effects?.[0]).toMatchObject({
			type: "fact",
			action: "remember",
			row: { owner: "master", audience: "private", text: "My cat is called Miso", conversationId: "c1" },
		});
		expect((await plain.call("remember_fact", { text: "My cat is called Miso", until: "2020-01-01" })).isError).toBe(true);
		expect((await plain.call("remember_fact", { text: "We meet on Friday" }, context({ groupId: "g1" }))).isError).toBe(true);
	});

	it("in a group the fact and the search are the group's", async () => {
		const { test, call } = await tools();
		const group = context({ groupId: "g1" });
		expect((await call("remember_fact", { text: "We meet on Friday" }, group)).effects?.[0]).toMatchObject({
			row: { owner: "group:g1", audience: "group" },
		});
		await test.memory.addFact(keyOfOwner("master"), { text: "The vault code is 5521" });
		await test.memory.addFact(keyOfOwner("group:g1"), { text: "The club code is 9914" });
		await test.memory.settled();
		expect((await call("recall", { query: "code" }, group)).text).toContain("9914");
		expect((await call("recall", { query: "code vault" }, group)).text).not.toContain("5521");
		expect((await call("recall", { query: "vault code" })).text).toContain("5521");
	});

	it("recall of no more than the speaker shows the newest facts, of this memory only", async () => {
		const { test, call } = await tools();
		await test.memory.addFact(keyOfOwner("master"), { text: "My sister is called Anna" });
		await test.memory.addFact(keyOfOwner("group:g1"), { text: "We meet on Friday" });
		await test.memory.settled();
		for (const query of ["me", "What do you know about me?", "我"])
			expect((await call("recall", { query })).text).toMatch(/^\S+ \(fact\) My sister is called Anna \[\S+\]$/);
		expect((await call("recall", { query: "me" }, context({ personId: "ana", tier: "known" }))).text).toBe("Nothing found.");
	});

	it("forget takes the id that recall shows, and none of another memory", async () => {
		const { test, call } = await tools();
		await test.memory.addFact(keyOfOwner("master"), { text: "The vault code is 5521" });
		await test.memory.settled();
		const id = /\[(.+)\]/.exec((await call("recall", { query: "vault code" })).text)?.[1] ?? "";
		expect((await call("forget", { id }, context({ personId: "ana", tier: "known" }))).isError).toBe(true);
		expect((await call("forget", { id })).isError).toBeUndefined();
		expect((await call("recall", { query: "vault code" })).text).toBe("Nothing found.");
		expect(await test.memory.facts(keyOfOwner("master"))).toEqual([]);
	});

	it("update_user: the speaker their own, the master anybody's in private, nobody in a group another's", async () => {
		const { test, call } = await tools();
		expect(
			(await call("update_user", { person: "me", text: "Is left-handed" }, context({ personId: "ana", tier: "known" }))).isError,
		).toBeUndefined();
		expect(await test.memory.profile("ana")).toContain("left-handed");
		expect((await call("update_user", { person: "bo", text: "x" }, context({ personId: "ana", tier: "known" }))).isError).toBe(true);
		expect((await call("update_user", { person: "master", text: "x" }, context({ personId: "ana", tier: "known" }))).isError).toBe(true);
		expect((await call("update_user", { person: "bo", text: "Sells boats" })).isError).toBeUndefined();
		expect((await call("update_user", { person: "bo", text: "x" }, context({ groupId: "g1" }))).isError).toBe(true);
		expect((await call("update_user", { person: "me", text: "Plays cards" }, context({ groupId: "g1" }))).isError).toBeUndefined();
		expect(await test.memory.profile("group:g1")).toContain("cards");
	});

	it("prompt files: versions are listed, read and restored; SOUL.md only by proposal", async () => {
		const proposals: string[] = [];
		const { test, call } = await tools({ proposed: (path) => proposals.push(path) });
		await call("update_identity", { text: "Likes riddles" });
		await call("update_agent_notes", { text: "Answer in haiku" });
		expect((await test.workspace.read("Agent.md")).text).toMatch(/## Notes\n\n- Answer in haiku/);
		const listed = (await call("list_prompt_versions", { file: "identity.md" })).text.split("\n");
		const first = listed.at(-1)?.split(" ")[0] ?? "";
		expect((await call("read_prompt_version", { file: "IDENTITY.md", version: first })).text).not.toContain("riddles");
		await call("restore_prompt", { file: "IDENTITY.md", version: first });
		expect((await test.workspace.read("IDENTITY.md")).text).not.toContain("riddles");
		const soul = (await test.workspace.read("SOUL.md")).text;
		expect((await call("restore_prompt", { file: "SOUL.md", version: first })).isError).toBe(true);
		expect((await call("propose_soul_change", { text: "Be a pirate", reason: "fun" })).isError).toBeUndefined();
		expect((await test.workspace.read("SOUL.md")).text).toBe(soul);
		expect((await test.workspace.read("proposals/SOUL.md")).text).toContain("Be a pirate");
		expect(proposals).toEqual(["proposals/SOUL.md"]);
		expect((await call("list_prompt_versions", { file: "../../etc/passwd" })).isError).toBe(true);
	});
});
