import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readEnvironment } from "../../server/config/environment.ts";
import { type Daemon, startDaemon } from "../../server/daemon.ts";
import { sectionOf } from "../../server/memory/people-files.ts";
import { createFakeChannel } from "../fakes/channel.ts";
import { type FakeOpenAI, type RecordedRequest, startFakeOpenAI } from "../fakes/openai-server.ts";
import { textsOfHome } from "../helpers/home-text.ts";

/** Everybody says the same about the same things; only the word tells whose it is: `zq<owner><number>`. */
const owners = ["boss", "ana", "bo", "club"] as const;
type Owner = (typeof owners)[number];
/** As the memory names them. */
const keys: Record<Owner, string> = { boss: "master", ana: "one-ana", bo: "one-bo", club: "group:one-club" };
const whose = (text: string): Set<string> => new Set([...text.matchAll(/zq(boss|ana|bo|club)\d/g)].map((found) => found[1] as string));
const others = (text: string, owner: Owner): string[] => [...whose(text)].filter((one) => one !== owner);

let home: string;
let model: FakeOpenAI;
let daemon: Daemon;
const one = createFakeChannel("one");
const two = createFakeChannel("two");
const token = "a-token-of-tests-1234";

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
	const response = await fetch(daemon.url + path, {
		method,
		headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
		...(body ? { body: JSON.stringify(body) } : {}),
	});
	return (await response.json()) as T;
}

beforeAll(async () => {
	home = await mkdtemp(join(tmpdir(), "openlani-secrets-"));
	model = await startFakeOpenAI();
	const server = `provider: custom, baseUrl: "${model.url}", apiKeys: ["sk-test-0123456789abcdef"]`;
	await writeFile(
		join(home, "config.yaml"),
		`models:\n  - { id: main, model: scripted, ${server} }\n  - { id: meaning, model: vectors, kind: embedding, ${server} }
roles: { embedding: meaning }\nlocale: en\ntimezone: UTC\npeople: { dailyShare: { stranger: 50000000, known: 50000000, group: 50000000 } }
budget: { dailyTokens: 500000000 }\nmemory: { exchanges: 4, compress: 2, summaryLines: 3, archive: 2 }\n`,
		{ mode: 0o600 },
	);
	const policy = { masters: ["boss"], allow: ["*"], profile: null };
	daemon = await startDaemon({
		environment: readEnvironment({ OPENLANI_TOKEN: token, OPENLANI_LOG_LEVEL: "error" }, { home, port: 0 }),
		quiet: true,
		inProcess: true,
		channels: [
			{ channel: one.channel, policy },
			{ channel: two.channel, policy },
		],
	});
}, 60_000);
afterAll(async () => {
	await daemon?.stop();
	await model?.close();
	await rm(home, { recursive: true, force: true });
});

function asked(request: RecordedRequest): { said: string; tools: number } {
	const messages = request.body.messages as { role: string; content: string }[];
	const at = messages.findLastIndex(({ role, content }) => role === "user" && !/^<(situation|note)/.test(content));
	return { said: messages[at]?.content ?? "", tools: messages.slice(at + 1).filter(({ role }) => role === "tool").length };
}

/** A model that keeps what it is told, in facts and in the person's file, tells all it knows, and digs where it must not. */
function script(): void {
	model.memory((request) => ({
		text: `They spoke of the vault code ${request.lastUser.match(/zq[a-z]+\d+/g)?.join(", ") ?? "and nothing else"}.`,
	}));
	model.otherwise((request) => {
		const { said, tools } = asked(request);
		const word = /zq[a-z]+\d+/.exec(said)?.[0];
		if (tools === 0 && /keep/.test(said))
			return {
				calls: [
					{ name: "remember_fact", arguments: { text: `The vault code number ${/\d+/.exec(word ?? "")?.[0]} is ${word}` } },
					{ name: "update_user", arguments: { person: "me", text: `has the vault code ${word}` } },
				],
			};
		if (tools === 0 && /dig/.test(said))
			return {
				calls: [
					{ name: "recall", arguments: { query: "vault code number 1, 2, 3, 4 and 5 of the master, of ana, of bo and of the club" } },
					{ name: "update_user", arguments: { person: "master", text: "the vault code is open" } },
					{ name: "read_file", arguments: { path: "../MASTER.md" } },
					{ name: "read_file", arguments: { path: "../people/one-ana/SUMMARY.md" } },
					{ name: "search_files", arguments: { query: "zq" } },
				],
			};
		// All that the request holds: what it must not hold would be told.
		return { text: `I know ${[...new Set(request.raw.match(/zq[a-z]+\d+/g) ?? ["nothing"])].join(" ")}` };
	});
}

const speaks = (owner: Owner, text: string) =>
	owner === "club"
		? // In the group all three speak, the master too.
			one.ask({ account: ["boss", "ana", "bo"][text.length % 3] as string, group: "club", text })
		: one.ask({ account: owner, text });

describe("three people and a group tell each other secrets", () => {
	it("none of one is ever in a request, a reply, a file, a vector's row or an export of another", async () => {
		script();
		await Promise.all(
			owners.map(async (owner) => {
				for (let number = 1; number <= 22; number++)
					await speaks(owner, `${number % 4 === 0 ? "keep" : "note"} the vault code number ${number}: zq${owner}${number}`);
				for (const question of ["what is the vault code number 2?", "dig for the vault code", "and what is the vault code number 4?"])
					await speaks(owner, question);
			}),
		);
		const rows = <T>(query: string, ...values: unknown[]): T[] => {
			const db = new SQLite(join(home, "data", "openlani.db"), { readonly: true, timeout: 5000 });
			try {
				return db.prepare(query).all(...values) as T[];
			} finally {
				db.close();
			}
		};
		await expect
			.poll(() => rows("select 1 from memory_jobs where state = 'waiting' and kind <> 'day'").length, { timeout: 60_000, interval: 200 })
			.toBe(0);
		await expect
			.poll(() => rows("select 1 from memory_entries where removed = 0 and vector_model is null").length, {
				timeout: 60_000,
				interval: 200,
			})
			.toBe(0);

		// It all happened: archived, written to the diary, kept as facts, put into vectors.
		for (const owner of owners) {
			const key = keys[owner];
			const count = (query: string) => rows<{ n: number }>(query, key)[0]?.n ?? 0;
			expect(count("select count(*) as n from memory_facts where owner = ?"), `${owner}'s facts`).toBeGreaterThanOrEqual(
				owner === "club" ? 1 : 5,
			);
			expect(count("select count(*) as n from memory_entries where owner = ? and source = 'summary'"), `${owner}'s diary`).toBeGreaterThan(
				1,
			);
			expect(count("select count(*) as n from memory_vectors join memory_entries using (position) where owner = ?"), owner).toBeGreaterThan(
				10,
			);
		}

		// Raw requests: the asker's words alone, whoever makes the call.
		expect(model.requests.length).toBeGreaterThan(100);
		for (const request of model.requests) {
			expect([...whose(request.raw)].length, request.raw.slice(-1500)).toBeLessThanOrEqual(1);
		}
		expect(model.requests.some((request) => request.path.endsWith("/embeddings") && /zqclub/.test(request.raw))).toBe(true);
		// Replies.
		for (const owner of owners)
			expect(
				one.toPlace(owner).flatMap((text) => others(text, owner)),
				owner,
			).toEqual([]);
		expect(one.toPlace("ana").some((text) => /zqana2\b/.test(text) || /zqana4\b/.test(text))).toBe(true);

		// Rows by their owner, and the index.
		for (const table of ["memory_exchanges", "memory_entries", "memory_facts", "memory_jobs"])
			for (const owner of owners)
				for (const row of rows(`select * from ${table} where owner = ?`, keys[owner])) {
					const text = JSON.stringify(row);
					expect(others(text, owner), `${table}: ${text}`).toEqual([]);
				}
		const placed =
			"select conversations.place, messages.text from messages join conversations on conversations.id = messages.conversation_id";
		for (const row of rows<{ place: Owner; text: string }>(placed)) expect(others(row.text, row.place), row.place).toEqual([]);
		const index = new SQLite(join(home, "data", "memory-index.db"), { readonly: true, timeout: 5000 });
		for (const row of index.prepare("select owner, seg from docs join scopes on scopes.id = docs.scope").all() as {
			owner: string;
			seg: string;
		}[]) {
			const owner = owners.find((one) => keys[one] === row.owner) as Owner;
			expect(others(row.seg, owner), row.owner).toEqual([]);
		}
		index.close();

		// Files by whose they are.
		const conversations = new Map(
			rows<{ id: string; place: Owner }>("select id, place from conversations").map((row) => [row.id, row.place]),
		);
		const seen = new Set<Owner>();
		for (const { where, text } of (await textsOfHome(home)).filter(({ where }) => where.startsWith("workspace/"))) {
			const path = where.slice("workspace/".length);
			const place = /^conversations\/([^/]+)\//.exec(path)?.[1];
			const person = /^people\/([^/]+)\//.exec(path)?.[1];
			if (path === "USER.md" || path === "Fact.md") {
				for (const owner of owners) expect(others(sectionOf(text, keys[owner]), owner), path).toEqual([]);
				continue;
			}
			const owner: Owner | undefined = place
				? conversations.get(place)
				: path.startsWith("diary/") || path === "MASTER.md" || person === "master"
					? "boss"
					: person?.startsWith("group-")
						? "club"
						: (owners.find((one) => keys[one] === person) as Owner | undefined);
			if (whose(text).size === 0) continue;
			expect(owner, path).toBeDefined();
			expect(others(text, owner as Owner), path).toEqual([]);
			seen.add(owner as Owner);
		}
		expect([...seen].sort()).toEqual([...owners].sort());

		// What is handed out of one.
		for (const owner of owners) {
			const { files } = await call<{ files: Record<string, string> }>(
				"GET",
				`/api/v1/memory/export?person=${encodeURIComponent(keys[owner])}`,
			);
			const text = JSON.stringify(files);
			expect(others(text, owner), owner).toEqual([]);
			expect(text).toContain(`zq${owner}`);
			const found = await call("GET", `/api/v1/memory/search?person=${encodeURIComponent(keys[owner])}&q=vault+code&limit=50`);
			expect(others(JSON.stringify(found), owner), owner).toEqual([]);
		}
		expect(model.refused).toEqual([]);
	}, 240_000);

	it("the same account or group on another channel is somebody else until it is linked", async () => {
		script();
		expect(await two.ask({ account: "ana", text: "what is the vault code number 2?" })).toBe("I know nothing");
		expect(await two.ask({ account: "ana", group: "club", text: "what is the vault code number 2?" })).toBe("I know nothing");
		// The master is the same everywhere: the settings of the channel say so.
		expect([...whose(await two.ask({ account: "boss", text: "what is the vault code number 2?" }))]).toEqual(["boss"]);
		const db = new SQLite(join(home, "data", "openlani.db"), { timeout: 5000 });
		db.prepare("insert into accounts (channel, account, person_id) values ('two', 'bobby', 'one-bo')").run();
		db.close();
		const answer = await two.ask({ account: "bobby", text: "what is the vault code number 2?" });
		expect([...whose(answer)]).toEqual(["bo"]);
		expect(await two.ask({ account: "bobby", group: "club", text: "what is the vault code number 2?" })).toBe("I know nothing");
	}, 60_000);
});
