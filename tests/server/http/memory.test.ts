import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Fact, Forgotten, MemoryExport, MemoryHit, MemoryImportReport } from "../../../server/http/contract.ts";
import { exchange, openMemory, privately, start, type TestMemory } from "../memory/setup.ts";
import { type House, openHouse, until } from "./house.ts";

let house: House;
let test: TestMemory;
beforeEach(async () => {
	test = await openMemory();
	house = await openHouse({ memory: { memory: test.memory, home: test.dir, clock: { now: () => test.now.value } } });
});
afterEach(async () => {
	await house.close();
	await test.remove();
});

const base = "/api/v1/memory";
async function call(method: "GET" | "POST" | "DELETE", path: string, body?: unknown) {
	const answer = await house.call(method, base + path, body);
	return { status: answer.statusCode, type: String(answer.headers["content-type"]), body: answer.body === "" ? null : answer.json() };
}
const search = async (q: string, more = "") => (await call("GET", `/search?q=${encodeURIComponent(q)}${more}`)).body;
const texts = (found: { semantic: { text: string }[]; keyword: { text: string }[] }) =>
	[...found.semantic, ...found.keyword].map(({ text }) => text);
const factsOf = async (person: string): Promise<string[]> =>
	(await call("GET", `/facts?person=${person}`)).body.facts.map(({ text }: { text: string }) => text);

describe("facts", () => {
	it("a fact that was put in is listed and found at once, in the words of the contract", async () => {
		const put = await call("POST", "/facts", { text: "My sister's name is Anna." });
		expect(put.status).toBe(201);
		const { outcome, ...fact } = put.body;
		expect(outcome).toBe("new");
		expect(Fact.strict().parse(fact)).toMatchObject({
			text: "My sister's name is Anna.",
			source: "api",
			at: new Date(start).toISOString(),
			scope: "master",
			messageId: null,
			expiresAt: null,
		});
		expect((await call("GET", "/facts")).body).toEqual({ facts: [fact] });
		const found = await search("sister");
		for (const hit of [...found.semantic, ...found.keyword]) MemoryHit.strict().parse(hit);
		expect(texts(found)).toContain("My sister's name is Anna.");
		expect((await test.workspace.read("Fact.md")).text).toContain("My sister's name is Anna.");
	});

	it("the same again is refreshed; a contradicting one takes its place and the old one is history", async () => {
		await call("POST", "/facts", { text: "My dentist is Dr. Wang." });
		expect(await call("POST", "/facts", { text: "my dentist is Dr. Wang" })).toMatchObject({ status: 200, body: { outcome: "refreshed" } });
		expect(await call("POST", "/facts", { text: "My dentist is Dr. Li." })).toMatchObject({ status: 201, body: { outcome: "superseded" } });
		expect(await factsOf("master")).toEqual(["My dentist is Dr. Li."]);
		const all = (await call("GET", "/facts?state=all")).body.facts;
		expect(all.map(({ text, state }: { text: string; state: string }) => [text, state])).toEqual([
			["My dentist is Dr. Wang.", "superseded"],
			["My dentist is Dr. Li.", "active"],
		]);
		expect(all[0].supersededBy).toBe(all[1].id);
	});

	it("ends when it was said to end, and never before it began", async () => {
		const expiresAt = new Date(start + 3_600_000).toISOString();
		expect((await call("POST", "/facts", { text: "The parcel is at the neighbour's", expiresAt })).body.expiresAt).toBe(expiresAt);
		expect(await factsOf("master")).toHaveLength(1);
		test.now.value = start + 3_600_001;
		expect(await factsOf("master")).toEqual([]);
		expect(await call("POST", "/facts", { text: "x", expiresAt })).toMatchObject({ status: 400, body: { code: "bad-time" } });
		expect(await call("POST", "/facts", { text: "x", expiresAt: "soon" })).toMatchObject({
			status: 400,
			body: { code: "invalid-request" },
		});
	});

	it("is refused in words when its file cannot be written", async () => {
		await rm(join(test.dir, "workspace", "Fact.md"), { force: true });
		await mkdir(join(test.dir, "workspace", "Fact.md"));
		const answer = await call("POST", "/facts", { text: "The lamp is green" });
		expect(answer).toMatchObject({ status: 409, body: { code: "not-writable", detail: "Fact.md is a folder; it must be a file" } });
		expect(texts(await search("lamp"))).toEqual([]);
	});

	it("is removed with what was made of it", async () => {
		const { id } = (await call("POST", "/facts", { text: "The spare key is under the blue pot" })).body;
		expect(await call("DELETE", `/facts/${id}`)).toMatchObject({ status: 204, body: null });
		expect(await factsOf("master")).toEqual([]);
		expect(texts(await search("spare key blue pot"))).toEqual([]);
		expect((await test.workspace.read("Fact.md")).text).not.toContain("blue pot");
		expect(await call("DELETE", `/facts/${id}`)).toMatchObject({ status: 404, body: { code: "fact-not-found" } });
	});
});

describe("search", () => {
	it("names whose memory it is about; nobody named is the master, and nobody's is another's", async () => {
		await call("POST", "/facts", { text: "The secret garden is markrose" });
		await call("POST", "/facts", { text: "The secret garden is marktulip", scope: "p-anna" });
		await call("POST", "/facts", { text: "The secret garden is marklily", scope: "group:g1" });
		await call("POST", "/entries", [
			{ text: "the secret garden gate is markoak", at: start },
			{ text: "the secret garden gate is markbirch", at: start, person: "p-anna" },
		]);
		const whose: [string, string[]][] = [
			["", ["markrose", "markoak"]],
			["&person=master", ["markrose", "markoak"]],
			["&person=p-anna", ["marktulip", "markbirch"]],
			["&person=group:g1", ["marklily"]],
			["&person=g1", []],
			["&person=p-bob", []],
			["&person=*", []],
			["&person=%25", []],
		];
		for (const [person, marks] of whose) {
			const answer = JSON.stringify(await search("secret garden", person));
			expect([...new Set(answer.match(/mark[a-z]+/g) ?? [])].sort(), person).toEqual([...marks].sort());
		}
		expect(await factsOf("p-anna")).toEqual(["The secret garden is marktulip"]);
		expect((await call("GET", "/facts?scope=group:g1")).body.facts).toHaveLength(1);
		expect((await call("GET", "/search?q=garden&person=")).status).toBe(400);
		expect((await call("GET", "/facts?person=%20")).status).toBe(400);
	});

	it("wants words, and bounds what it brings", async () => {
		expect((await call("GET", "/search")).status).toBe(400);
		const blank = await call("GET", "/search?q=%20");
		expect(blank).toMatchObject({ status: 400, type: "application/problem+json; charset=utf-8", body: { code: "invalid-request" } });
		await call(
			"POST",
			"/entries",
			Array.from({ length: 20 }, (_, number) => ({ text: `咖啡 number ${number}`, at: start + number })),
		);
		expect((await search("咖啡", "&limit=3")).keyword).toHaveLength(3);
		expect((await search("咖啡")).keyword).toHaveLength(10);
	});
});

describe("bulk import", () => {
	it("takes a thousand at a time, keeps their times and sources, and takes nothing twice", async () => {
		const entries = Array.from({ length: 1000 }, (_, number) => ({
			text: `entry ${number} about zebra${number}`,
			at: new Date(Date.UTC(2020, 0, 1) + number * 60_000).toISOString(),
			source: "old notes",
		}));
		expect(await call("POST", "/entries", entries)).toMatchObject({ status: 200, body: { stored: 1000 } });
		// The index takes so many in while it answers already.
		const hit = await until(async () => (await search("zebra777")).keyword[0], "the entry");
		expect(hit).toMatchObject({ text: "entry 777 about zebra777", at: "2020-01-01T12:57:00.000Z", source: "old notes" });
		await call("POST", "/entries", entries.slice(0, 10));
		const { files } = (await call("GET", "/export")).body;
		expect(JSON.parse(files["memories.json"])).toHaveLength(1000);
		expect(await call("POST", "/entries", [...entries, ...entries])).toMatchObject({ status: 400, body: { code: "invalid-request" } });
		expect((await call("POST", "/entries", [])).status).toBe(400);
		expect((await call("POST", "/entries", [{ text: "x", at: "yesterday" }])).body.errors[0].path).toBe("0.at");
		expect((await call("POST", "/entries", [{ text: "  ", at: 1 }])).status).toBe(400);
	});

	it("large entries fit", async () => {
		const text = `${"长".repeat(19_000)}尾巴`;
		const answer = await call(
			"POST",
			"/entries",
			Array.from({ length: 50 }, (_, number) => ({ text: `${number} ${text}`, at: start })),
		);
		expect(answer).toMatchObject({ status: 200, body: { stored: 50 } });
	});
});

describe("forget", () => {
	it("a message goes with what was made of it: exchange, fact, memory", async () => {
		for (let number = 1; number <= 16; number++) {
			await test.memory.remember(privately(), exchange(number, number === 2 ? "my locker code is markplatypus" : `mark${number}`));
			test.db.raw
				.prepare(
					"insert into messages (id, conversation_id, role, text, at, origin, turn_id, attachments, notes) values (?, 'c1', 'user', ?, ?, 'human', ?, '[]', '[]')",
				)
				.run(`m${number}`, number === 2 ? "my locker code is markplatypus" : `mark${number}`, start, `e${number}`);
		}
		await test.memory.settled();
		await call("POST", "/facts", { text: "The locker code is markplatypus", messageId: "m2" });
		expect(JSON.stringify((await call("GET", "/export")).body)).toContain("markplatypus");
		const report = await call("POST", "/forget", { messageId: "m2" });
		expect(Forgotten.strict().parse(report.body)).toMatchObject({ messages: 1, facts: 1 });
		await test.memory.settled();
		expect(JSON.stringify((await call("GET", "/export")).body)).not.toContain("markplatypus");
		expect(JSON.stringify(await search("locker code"))).not.toContain("platypus");
		expect(await factsOf("master")).toEqual([]);
		expect(await call("POST", "/forget", { messageId: "m99" })).toMatchObject({ status: 404, body: { code: "message-not-found" } });
	});

	it("a fact, a memory by its id, and a whole person; the others keep theirs", async () => {
		const { id } = (await call("POST", "/facts", { text: "The boat is called Albatros" })).body;
		expect(await call("POST", "/forget", { factId: id })).toMatchObject({ status: 200, body: { facts: 1 } });
		expect(texts(await search("boat Albatros"))).toEqual([]);
		expect(await call("POST", "/forget", { factId: id })).toMatchObject({ status: 404, body: { code: "fact-not-found" } });

		await call("POST", "/entries", [{ text: "a walk to the lighthouse", at: start }]);
		const hit = (await search("lighthouse")).keyword[0];
		expect(await call("POST", "/forget", { entryId: hit.id })).toMatchObject({ status: 200, body: { memories: 1 } });
		expect(texts(await search("lighthouse"))).toEqual([]);

		await call("POST", "/facts", { text: "Anna likes marzipan", scope: "p-anna" });
		await call("POST", "/facts", { text: "I like marzipan" });
		await call("POST", "/forget", { person: "p-anna" });
		await test.memory.settled();
		expect(await factsOf("p-anna")).toEqual([]);
		expect(texts(await search("marzipan", "&person=p-anna"))).toEqual([]);
		expect(await factsOf("master")).toEqual(["I like marzipan"]);
	});

	it("wants exactly one thing", async () => {
		for (const body of [{}, { factId: "a", person: "b" }, { person: "" }, { all: true }])
			expect(await call("POST", "/forget", body), JSON.stringify(body)).toMatchObject({ status: 400, body: { code: "invalid-request" } });
	});
});

describe("export and import", () => {
	it("a person's memory comes as files, and only theirs", async () => {
		await call("POST", "/facts", { text: "Anna plays the harp", scope: "p-anna" });
		await call("POST", "/facts", { text: "I play the drums" });
		const answer = await house.call("GET", `${base}/export?person=p-anna`);
		expect(answer.headers["content-disposition"]).toBe('attachment; filename="memory-p-anna.json"');
		const { person, files } = MemoryExport.strict().parse(answer.json());
		expect(person).toBe("p-anna");
		expect(JSON.parse(files["facts.json"] ?? "")).toMatchObject([{ text: "Anna plays the harp" }]);
		expect(files["facts.md"]).toContain("- Anna plays the harp");
		expect(JSON.stringify(files)).not.toContain("drums");
	});

	it("another agent's workspace is read in, with a report; its SOUL.md is left to a person", async () => {
		const folder = await mkdtemp(join(tmpdir(), "openlani-other-"));
		try {
			await writeFile(join(folder, "SOUL.md"), "# Soul\n\nI am somebody else.\n");
			await writeFile(join(folder, "MEMORY.md"), "# Memory\n\n- Our cat is called Mimi\n");
			await mkdir(join(folder, "memory"));
			await writeFile(join(folder, "memory", "2026-05-01.md"), "- We planted tomatoes\n");
			const soul = await readFile(join(test.dir, "workspace", "SOUL.md"), "utf8");
			const answer = await call("POST", "/import", { folder });
			expect(answer.status).toBe(200);
			const report = MemoryImportReport.strict().parse(answer.body);
			expect(report.taken.map(({ from }) => from)).toEqual(["MEMORY.md", "memory/2026-05-01.md"]);
			expect(report.skipped.map(({ from }) => from)).toEqual(["SOUL.md"]);
			expect(await factsOf("master")).toEqual(["Our cat is called Mimi"]);
			expect(texts(await search("tomatoes")).join()).toContain("We planted tomatoes");
			expect(await readFile(join(test.dir, "workspace", "SOUL.md"), "utf8")).toBe(soul);
		} finally {
			await rm(folder, { recursive: true, force: true });
		}
		expect(await call("POST", "/import", { folder })).toMatchObject({ status: 404, body: { code: "folder-not-found" } });
		expect(await call("POST", "/import", { folder: "notes" })).toMatchObject({ status: 400, body: { code: "bad-folder" } });
		expect(await call("POST", "/import", { folder: join(test.dir, "workspace") })).toMatchObject({
			status: 400,
			body: { code: "bad-folder" },
		});
	});
});

describe("the door", () => {
	it("none of it without signing in, and all of it in the OpenAPI document", async () => {
		for (const [method, path] of [
			["GET", "/search?q=x"],
			["GET", "/facts"],
			["GET", "/export"],
			["POST", "/forget"],
			["POST", "/import"],
			["POST", "/entries"],
		] as const)
			expect((await house.app.inject({ method, url: base + path })).statusCode, path).toBe(401);
		const { paths } = (await house.call("GET", "/api/v1/openapi.json")).json();
		for (const path of ["/search", "/entries", "/facts", "/facts/{id}", "/forget", "/export", "/import"])
			expect(Object.keys(paths)).toContain(base + path);
	});
});
