import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { readEnvironment } from "../../../server/config/environment.ts";
import { startDaemon } from "../../../server/daemon.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";

let home: string;
let server: FakeOpenAI;
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "openlani-canary-"));
	server = await startFakeOpenAI();
});
afterEach(async () => {
	await server.close();
	await rm(home, { recursive: true, force: true });
});

/** One for every place that holds a secret; none of them looks like a key by its shape. */
const canaries = {
	apiKey: "canary-apikey-qwertyuiop",
	token: "canary-token-asdfghjkl",
	mail: "canary-mailword-zxcvbnm",
	telegram: "canary-telegram-poiuytr",
	hook: "canary-hooksecret-lkjhgf",
	search: "canary-searchkey-mnbvcx",
	mcpEnv: "canary-mcpenv-yuiophj",
	mcpHeader: "canary-mcpheader-rewqasd",
};

async function filesBelow(folder: string): Promise<string[]> {
	const entries = await readdir(folder, { recursive: true, withFileTypes: true });
	return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

describe("a canary in every secret", () => {
	it("is found in no log, frame, prompt, error, answer or file but config", async () => {
		await writeFile(
			join(home, "config.yaml"),
			`
models:
  - { id: main, provider: custom, model: scripted, baseUrl: "${server.url}", apiKeys: ["${canaries.apiKey}"] }
channels:
  telegram: [{ id: tg, enabled: false, token: "${canaries.telegram}" }]
  email: [{ id: mail, enabled: false, address: a@example.test, imap: { host: 127.0.0.1, port: 1143, security: none, user: a, password: "${canaries.mail}" }, smtp: { host: 127.0.0.1, port: 1587, security: none, user: a, password: "${canaries.mail}" } }]
  webhook: [{ id: hook, enabled: false, secret: "${canaries.hook}" }]
mcp: { servers: { files: { command: nothing, enabled: false, env: { KEY: "${canaries.mcpEnv}" } }, far: { url: "https://example.test/mcp", enabled: false, headers: { Authorization: "Bearer ${canaries.mcpHeader}" } } } }
web: { search: { provider: searxng, url: null, apiKey: "${canaries.search}" } }
`,
			{ mode: 0o600 },
		);
		const environment = readEnvironment(
			{ OPENLANI_TOKEN: canaries.token, OPENLANI_LOG_LEVEL: "trace", TZ: "Asia/Shanghai" },
			{ home, port: 0 },
		);
		const daemon = await startDaemon({ environment, quiet: true, inProcess: true });
		const seen: string[] = [];
		const authorization = `Bearer ${canaries.token}`;
		const live = new WebSocket(`${daemon.url.replace("http", "ws")}/api/v1/live`, { headers: { authorization } });
		live.on("open", () => live.send(JSON.stringify({ type: "hello", since: 0 })));
		live.on("message", (data) => seen.push(String(data)));
		const call = async (method: string, path: string, body?: unknown): Promise<string> => {
			const response = await fetch(daemon.url + path, {
				method,
				headers: { authorization, ...(body ? { "content-type": "application/json" } : {}) },
				...(body ? { body: JSON.stringify(body) } : {}),
			});
			const text = await response.text();
			seen.push(text);
			return text;
		};
		try {
			const { id } = JSON.parse(await call("POST", "/api/v1/conversations", {})) as { id: string };
			const say = (text: string) => call("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text });
			server.script({ calls: [{ name: "now", arguments: {} }] }, { text: "Hello." });
			await say("hi");
			// A server that throws our own key back at us.
			server.script({ status: 400, error: { message: `the key ${canaries.apiKey} is not welcome, nor is Bearer ${canaries.apiKey}` } });
			await say("and now?");
			server.script({ status: 401, error: { message: `Incorrect API key provided: ${canaries.apiKey}` } });
			await say("once more");
			for (const path of [
				"/api/v1/status",
				"/api/v1/config",
				"/api/v1/calls",
				"/api/v1/turns",
				"/api/v1/events?level=trace",
				"/api/v1/usage",
				"/api/v1/alerts",
				"/metrics",
				`/api/v1/conversations/${id}/messages`,
				"/api/v1/models",
				"/nowhere",
			])
				await call("GET", path);
			for (const { id: one } of (JSON.parse(await call("GET", "/api/v1/calls")) as { calls: { id: string }[] }).calls)
				await call("GET", `/api/v1/calls/${one}`);
			for (const { id: one } of (JSON.parse(await call("GET", "/api/v1/turns")) as { turns: { id: string }[] }).turns)
				await call("GET", `/api/v1/turns/${one}`);
			await call("POST", "/api/v1/models/test", { id: "main" });
		} finally {
			live.terminate();
			await daemon.stop();
		}
		expect(server.requests.length).toBeGreaterThanOrEqual(4);
		seen.push(...server.requests.map((request) => request.raw));
		const everything = seen.join("\n");
		for (const [place, canary] of Object.entries(canaries))
			expect(everything.includes(canary), `${place} in an answer, a frame or a prompt`).toBe(false);
		const files = (await filesBelow(home)).filter((file) => !/config/.test(file.slice(home.length)));
		expect(files.some((file) => file.includes("openlani.db"))).toBe(true);
		expect(files.some((file) => file.includes("logs"))).toBe(true);
		for (const file of files) {
			const bytes = (await readFile(file)).toString("latin1");
			for (const [place, canary] of Object.entries(canaries))
				expect(bytes.includes(canary), `${place} in ${file.slice(home.length)}`).toBe(false);
		}
	}, 60_000);
});
