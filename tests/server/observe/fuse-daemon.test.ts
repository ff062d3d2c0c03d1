import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readEnvironment } from "../../../server/config/environment.ts";
import { type Daemon, startDaemon } from "../../../server/daemon.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";

let home: string;
let server: FakeOpenAI;
let daemon: Daemon | null = null;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "openlani-fuse-"));
	server = await startFakeOpenAI();
});
afterEach(async () => {
	await daemon?.stop();
	daemon = null;
	await server.close();
	await rm(home, { recursive: true, force: true });
});

async function start(budget: string): Promise<Daemon> {
	await writeFile(
		join(home, "config.yaml"),
		`models:\n  - { id: main, provider: custom, model: scripted, baseUrl: "${server.url}", apiKeys: ["sk-test-0123456789abcdef"], limits: { maxOutputTokens: 400 } }\nlocale: en\ntimezone: Asia/Shanghai\nbudget: ${budget}\n`,
		{ mode: 0o600 },
	);
	daemon = await startDaemon({
		environment: readEnvironment({ OPENLANI_TOKEN: "a-token-of-tests-1234", OPENLANI_LOG_LEVEL: "error" }, { home, port: 0 }),
		quiet: true,
		inProcess: true,
	});
	return daemon;
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
	const response = await fetch((daemon as Daemon).url + path, {
		method,
		headers: { authorization: "Bearer a-token-of-tests-1234", ...(body ? { "content-type": "application/json" } : {}) },
		...(body ? { body: JSON.stringify(body) } : {}),
	});
	return (await response.json()) as T;
}

type Fuse = { fuse: { state: string; usedTokens: number; reservedTokens: number; limitTokens: number } };
type Messages = { messages: { role: string; text: string; model: string | null }[] };
const messages = async (id: string) => (await call<Messages>("GET", `/api/v1/conversations/${id}/messages`)).messages;

async function until<T>(what: string, ask: () => Promise<T | null | false>): Promise<T> {
	for (let i = 0; i < 600; i += 1) {
		const answer = await ask();
		if (answer) return answer;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	throw new Error(`never came: ${what}`);
}

describe("a daily limit over the whole service", () => {
	it("is never passed by the server's own count, tells everyone once, drops nothing, and goes on after a raise", async () => {
		let counted = 0;
		const answer = () => {
			counted += 3_000;
			return { text: "An answer.", usageNumbers: { prompt_tokens: 2_800, completion_tokens: 200, total_tokens: 3_000 } };
		};
		server.otherwise(answer);
		server.memory(answer);
		await start("{ dailyTokens: 20000 }");
		const ids = await Promise.all(
			Array.from({ length: 10 }, async () => (await call<{ id: string }>("POST", "/api/v1/conversations", {})).id),
		);
		// One by one until the fuse has blown, then everybody at once, twice.
		for (let i = 0; (await call<Fuse>("GET", "/api/v1/status")).fuse.state !== "blown"; i += 1) {
			expect(i).toBeLessThan(10);
			await call("POST", `/api/v1/conversations/${ids[0]}/messages?wait=2`, { text: `hello ${i}` });
		}
		const before = counted;
		await Promise.all(ids.map((id) => call("POST", `/api/v1/conversations/${id}/messages`, { text: "are you there?" })));
		await Promise.all(ids.map((id) => call("POST", `/api/v1/conversations/${id}/messages`, { text: "hello??" })));
		for (const id of ids) {
			const told = await until("the sentence", async () => {
				const found = (await messages(id)).filter((message) => message.role === "system");
				return found.length > 0 && found;
			});
			expect(told.map((message) => message.text)).toEqual([
				expect.stringMatching(/token limit is used up; it resets on .* 00:00 \(Asia\/Shanghai\).*kept/),
			]);
		}
		expect(counted, "no model call of any kind while blown").toBe(before);
		expect(counted).toBeLessThanOrEqual(20_000 * 1.02);
		const { fuse } = await call<Fuse>("GET", "/api/v1/status");
		expect(fuse).toMatchObject({ state: "blown", usedTokens: counted, reservedTokens: 0, limitTokens: 20_000 });
		const { alerts } = await call<{ alerts: { kind: string; state: string }[] }>("GET", "/api/v1/alerts");
		expect(alerts.filter((alert) => alert.kind === "fuse-blown")).toHaveLength(1);
		expect(alerts.filter((alert) => alert.kind === "fuse-warning").length).toBe(2);

		await call("POST", "/api/v1/fuse/raise", { tokens: 1_000_000 });
		for (const id of ids) {
			await until("an answer to what waited", async () => {
				const all = await messages(id);
				const last = all.findLastIndex((message) => message.role === "user");
				return all.slice(last).some((message) => message.role === "assistant");
			});
			expect(
				(await messages(id)).filter((message) => message.role === "system"),
				"told once",
			).toHaveLength(1);
		}
		expect(
			(await call<{ alerts: { kind: string }[] }>("GET", "/api/v1/alerts?state=open")).alerts.filter(
				(alert) => alert.kind === "fuse-blown",
			),
		).toEqual([]);
	}, 90_000);
});

describe("usage as servers report it", () => {
	it("is counted within a tenth of the truth when it comes last, on every chunk, or never", async () => {
		await start("{ dailyTokens: 10000000 }");
		const { id } = await call<{ id: string }>("POST", "/api/v1/conversations", {});
		const text = "The quick brown fox jumps over the lazy dog and tells everybody about it. ".repeat(10);
		/** What the server would charge: its tokens are a fifth larger than ours. */
		let truth = 0;
		const say = async (usage: "last" | "finish" | "every" | "none") => {
			server.otherwise((request) => {
				const prompt = Math.round(request.raw.length / 3.2);
				const completion = Math.round(text.length / 3.6);
				truth = prompt + completion;
				return { text, usage, usageNumbers: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: truth } };
			});
			await call("POST", `/api/v1/conversations/${id}/messages?wait=20`, { text: `tell me, ${usage}` });
			const { calls } = await call<{ calls: { source: string; inputTokens: number; outputTokens: number; estimated: boolean }[] }>(
				"GET",
				"/api/v1/calls?source=chat&limit=1",
			);
			const [last] = calls;
			if (!last) throw new Error("no call");
			return { counted: last.inputTokens + last.outputTokens, estimated: last.estimated };
		};
		for (const usage of ["last", "finish", "every"] as const) expect(await say(usage), usage).toEqual({ counted: truth, estimated: false });
		const { counted, estimated } = await say("none");
		expect(estimated).toBe(true);
		expect(Math.abs(counted - truth) / truth).toBeLessThan(0.1);
	}, 60_000);
});
