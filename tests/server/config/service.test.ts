import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ConfigService } from "../../../server/config/service.ts";
import { ConfigInvalid } from "../../../server/http/deps.ts";
import { createTestHome, type TestHome, wholeConfig, wholeEnv } from "./helpers.ts";

let home: TestHome;
beforeEach(async () => {
	home = await createTestHome();
});
afterEach(() => home.remove());

// biome-ignore lint/suspicious/noExplicitAny: tests reach deep into JSON
type Json = Record<string, any>;

const content = () => readFile(home.path, "utf8");
const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as Json;

describe("a bad file", () => {
	it("leaves the last good one in force over restarts, and names what is wrong", async () => {
		await home.write("budget: { dailyTokens: 5 }\n");
		expect((await home.service()).current().budget.dailyTokens).toBe(5);
		await home.write("budget:\n  dailyTokns: 7\n");
		for (let start = 0; start < 2; start++) {
			const service = await home.service();
			expect(service.current().budget.dailyTokens).toBe(5);
			expect(service.safeMode()).toBe(true);
			expect(service.errors()).toEqual([
				{ key: "budget.dailyTokns", line: 2, message: 'unknown key "dailyTokns"; did you mean "dailyTokens"?' },
			]);
		}
		expect(await content()).toBe("budget:\n  dailyTokns: 7\n");
	});
	it("is complained about without the secret that stands in the wrong place", async () => {
		await home.write('models: [{ id: a, provider: openai, model: m, apiKeys: ["sk-canary-0123456789"] }]\n');
		await home.service();
		await home.write("models: [{ id: a, provider: sk-canary-0123456789, model: m }]\nsk-canary-0123456789: 1\n");
		const errors = (await home.service()).errors();
		expect(errors.length).toBeGreaterThan(1);
		expect(JSON.stringify(errors)).not.toContain("canary");
	});
	it("falls back on the defaults where no good one was", async () => {
		await home.write("{{{");
		const service = await home.service();
		expect(service.current().budget.dailyTokens).toBe(2_000_000);
		expect(service.safeMode()).toBe(true);
	});
	it("does not take a torn, damaged or missing file for an empty one", async () => {
		await home.write("budget: { dailyTokens: 5 }\n");
		await home.service();
		const cases: [string, () => Promise<void>, string][] = [
			["0 bytes", () => home.write(""), "0 bytes"],
			["binary", () => home.write(new Uint8Array([0xff, 0x80, 0x81])), "UTF-8"],
			["zeros", () => home.write("\0\0\0\0\0\0"), "zero bytes"],
			["missing", () => rm(home.path), "missing"],
			["folder", () => mkdir(home.path).then(() => undefined), "folder"],
		];
		for (const [name, damage, says] of cases) {
			await damage();
			const service = await home.service();
			expect(service.current().budget.dailyTokens, name).toBe(5);
			expect(service.errors()[0]?.message, name).toContain(says);
		}
	});
	it("is moved aside, not overwritten, when the page writes a good one", async () => {
		await home.write("budget: { dailyTokens: 5 } # mine\n");
		await home.service();
		await home.write("budget: { dailyTokens: [ }\n");
		const service = await home.service();
		await service.set({ "agent.maxSteps": 9 });
		expect(await content()).toBe("budget: { dailyTokens: 5 } # mine\nagent:\n  maxSteps: 9\n");
		expect(service.safeMode()).toBe(false);
		const [kept] = await readdir(join(home.home, "backups"));
		expect(await readFile(join(home.home, "backups", kept ?? ""), "utf8")).toBe("budget: { dailyTokens: [ }\n");
	});
});

describe("reading and writing", () => {
	it("masks every secret and shows variables as they are written", async () => {
		await home.write(wholeConfig);
		const service = await home.service({ ...wholeEnv, OPENAI_API_KEY: "sk-environment-canary-1" });
		const text = JSON.stringify(service.read());
		for (const secret of [
			"sk-written-in-the-file",
			"one-bot-secret",
			"mail-password",
			"hook-secret",
			"mcp-env-secret",
			"mcp-header",
			"search-key",
			"discord-bot-token",
			"sk-from-the-env",
			"telegram-token-value",
			"environment-canary",
		])
			expect(text, secret).not.toContain(secret);
		const read = json(service.read());
		expect(read.models[0].apiKeys).toEqual(["${DEEPSEEK_API_KEY}", "********9876"]);
		expect(read.channels.telegram[0].token).toBe("${TELEGRAM_TOKEN}");
		expect(read.memory.exchanges).toBe(8);
		expect(service.secrets()).toEqual(
			expect.arrayContaining([
				"sk-written-in-the-file-9876",
				"sk-from-the-environment",
				"mail-password-in-clear",
				"sk-environment-canary-1",
			]),
		);
	});
	it("changes nothing when what was read is put back", async () => {
		for (const text of [wholeConfig, "heartbeat: off\n", "", "server: { port: 9 } # x\n"]) {
			if (text !== "") await home.write(text);
			else await rm(home.path);
			await rm(join(home.home, "data"), { recursive: true, force: true });
			const service = await home.service({ ...wholeEnv, OPENLANI_PORT: "0" });
			const before = service.current();
			const stamp = text === "" ? null : (await stat(home.path, { bigint: true })).mtimeNs;
			expect(await service.write(json(service.read()))).toEqual({ restartNeeded: [] });
			expect(service.current()).toBe(before);
			if (stamp === null) await expect(stat(home.path)).rejects.toThrow();
			else {
				expect(await content()).toBe(text);
				expect((await stat(home.path, { bigint: true })).mtimeNs).toBe(stamp);
			}
		}
	});
	it("writes one change, keeps every comment and every other line", async () => {
		await home.write(wholeConfig);
		const service = await home.service(wholeEnv);
		const next = json(service.read());
		next.budget.dailyTokens = 77;
		next.models[0].model = "deepseek-v4-pro";
		next.models[0].apiKeys = ["********9876", "sk-a-new-key", "${DEEPSEEK_API_KEY}"];
		next.mcp.servers = { remote: next.mcp.servers.remote };
		await service.write(next);
		const text = await content();
		for (const kept of [
			"# my agent",
			"# or en",
			"# the cheap one",
			"# two keys",
			"contextTokens: 128k",
			"mail-password-in-clear",
			"Bearer mcp-header-secret",
		])
			expect(text, kept).toContain(kept);
		expect(text).toContain("deepseek-v4-pro");
		expect(text).not.toContain("mcp-server-filesystem");
		expect(text).not.toContain("********");
		expect(text).not.toContain("sk-from-the-environment");
		expect(service.current().budget.dailyTokens).toBe(77);
		expect(service.current().models[0]?.apiKeys).toEqual(["sk-written-in-the-file-9876", "sk-a-new-key", "sk-from-the-environment"]);
		expect((await stat(home.path)).mode & 0o777).toBe(0o600);
	});
	it("keeps an entry's own secrets when entries move, are renamed or leave", async () => {
		await home.write(
			"models:\n  - { id: a, provider: xai, model: m, apiKeys: [secret-key-number-aaaa] } # A\n  - { id: b, provider: xai, model: m, apiKeys: [secret-key-number-bbbb] } # B\n",
		);
		const service = await home.service();
		const next = json(service.read());
		next.models.reverse();
		next.models[1].id = "renamed";
		await service.write(next);
		expect(service.current().models.map(({ id, apiKeys }) => [id, ...apiKeys])).toEqual([
			["b", "secret-key-number-bbbb"],
			["renamed", "secret-key-number-aaaa"],
		]);
		await service.write({ models: json(service.read()).models.slice(1) });
		expect(service.current().models.map(({ id, apiKeys }) => [id, ...apiKeys])).toEqual([["renamed", "secret-key-number-aaaa"]]);
		expect(await content()).toContain("# A");
		await expect(service.set({ models: [{ id: "z", provider: "xai", model: "m", apiKeys: ["********9999"] }] })).rejects.toThrow(/masked/);
	});
	it("sends a kept key to no other server than the one it was entered for", async () => {
		await home.write(
			"models: [{ id: a, provider: custom, model: m, baseUrl: 'https://one.example/v1', apiKeys: [secret-key-number-aaaa] }]\nmcp: { servers: { notes: { url: 'https://notes.example/mcp', headers: { Authorization: Bearer-secret-number-bbbb } } } }\n",
		);
		const service = await home.service();
		const text = await content();
		const shown = () => json(service.read());
		const moved = shown();
		moved.models[0].baseUrl = "https://two.example/v1";
		const refusal = await service.write(moved).catch((error: unknown) => error);
		expect((refusal as ConfigInvalid).errors).toMatchObject([
			{ key: "models[0].apiKeys[0]", message: expect.stringContaining("enter it anew") },
		]);
		expect(() => service.resolveModel(moved.models[0])).toThrow(/enter it anew/);
		const plain = shown();
		plain.models[0].baseUrl = "http://one.example/v1";
		await expect(service.write(plain)).rejects.toThrow(/enter it anew/);
		const provider = shown();
		Object.assign(provider.models[0], { provider: "xai", baseUrl: null });
		await expect(service.write(provider)).rejects.toThrow(/enter it anew/);
		const notes = shown();
		notes.mcp.servers.notes.url = "https://other.example/mcp";
		await expect(service.write(notes)).rejects.toThrow(/enter it anew/);
		expect(await content()).toBe(text);
		// Another path of the same server, or a key that is entered with the address, is no move.
		const path = shown();
		path.models[0].baseUrl = "https://one.example/v2";
		await service.write(path);
		const anew = shown();
		Object.assign(anew.models[0], { baseUrl: "https://two.example/v1", apiKeys: ["secret-key-number-cccc"] });
		await service.write(anew);
		expect(service.current().models[0]).toMatchObject({ baseUrl: "https://two.example/v1", apiKeys: ["secret-key-number-cccc"] });
	});
	it("refuses a bad value, by key, and writes nothing", async () => {
		await home.write("agent: { maxSteps: 3 }\n");
		const service = await home.service();
		const refusal = await service.set({ "agent.maxSteps": "lots" }).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(ConfigInvalid);
		expect((refusal as ConfigInvalid).errors).toMatchObject([{ key: "agent.maxSteps" }]);
		await expect(service.write({ agnt: {} })).rejects.toThrow(/agent/);
		expect(await content()).toBe("agent: { maxSteps: 3 }\n");
		expect(service.current().agent.maxSteps).toBe(3);
	});
	it("lets a part through without touching the rest", async () => {
		await home.write("models: [{ id: a, provider: xai, model: m }]\nbudget: { dailyTokens: 4 }\n");
		const service = await home.service();
		await service.write({ agent: { maxSteps: 2 } });
		expect(service.current().models).toHaveLength(1);
		expect(service.current().budget.dailyTokens).toBe(4);
		expect(service.current().agent).toMatchObject({ maxSteps: 2, maxRounds: 3 });
	});
	it("writes the set-up into a home without a file, short", async () => {
		const service = await home.service();
		await service.set({
			locale: "zh-CN",
			models: [{ id: "main", provider: "deepseek", model: "d", apiKeys: ["sk-abcdef"] }],
			"budget.dailyTokens": 100,
			"models.main.model": "e",
		});
		expect(await content()).toBe(
			"locale: zh-CN\nmodels:\n  - id: main\n    provider: deepseek\n    model: e\n    apiKeys: [ sk-abcdef ]\nbudget:\n  dailyTokens: 100\n",
		);
	});
	it("switches the heartbeat on and off however it was written", async () => {
		for (const text of ["heartbeat: off\n", "heartbeat: {}\n", "heartbeat: { every: off }\n", "heartbeat: { enabled: false }\n"]) {
			await home.write(text);
			const service = await home.service();
			await service.set({ "heartbeat.every": "10m" });
			expect(service.current().heartbeat, text).toMatchObject({ enabled: false, every: 600_000 });
			await service.set({ "heartbeat.enabled": true });
			expect(service.current().heartbeat, text).toMatchObject({ enabled: true, every: 600_000 });
			await service.write({ heartbeat: false });
			expect(service.current().heartbeat.enabled, text).toBe(false);
		}
	});
	it("resolves a model entry as the page sends it", async () => {
		await home.write('models: [{ id: a, provider: xai, model: m, apiKeys: [secret-key-number-aaaa, "${K}"] }]\n');
		const service = await home.service({ K: "from-env" });
		expect(service.resolveModel(json(service.read()).models[0]).apiKeys).toEqual(["secret-key-number-aaaa", "from-env"]);
		expect(service.resolveModel({ id: "n", provider: "ollama", model: "q" }).limits.connectMs).toBe(5000);
		expect(() => service.resolveModel({ id: "n", provider: "xai", model: "q", apiKeys: ["${UNSET}"] })).toThrow(/UNSET/);
		expect(() => service.resolveModel({ id: "n", provider: "nope", model: "q" })).toThrow(ConfigInvalid);
	});
});

describe("edits by hand", () => {
	const changed = (service: ConfigService) =>
		new Promise<{ changed: string[]; restartNeeded: string[] }>((resolve) => service.onChange((_now, _before, change) => resolve(change)));

	it("take effect by themselves: rotated keys at once, the port after a restart", async () => {
		await home.write("models: [{ id: a, provider: xai, model: m, apiKeys: [old-key] }]\n");
		const service = await home.service({}, { watch: true, pollMs: 50 });
		const seen = changed(service);
		await home.write("models: [{ id: a, provider: xai, model: m, apiKeys: [new-key] }]\nserver: { port: 8000 }\n");
		expect(await seen).toEqual({ changed: ["server.port", "models"], restartNeeded: ["server.port"] });
		expect(service.current().models[0]?.apiKeys).toEqual(["new-key"]);
		expect(service.restartNeeded()).toEqual(["server.port"]);
		const back = changed(service);
		await home.write("models: [{ id: a, provider: xai, model: m, apiKeys: [new-key] }]\n");
		await back;
		expect(service.restartNeeded()).toEqual([]);
	});
	it("that are wrong change nothing but the list of problems, until they are mended", async () => {
		await home.write("agent: { maxSteps: 3 }\n");
		const service = await home.service({}, { watch: true, pollMs: 50 });
		const broken = changed(service);
		await home.write("agent: { maxSteps: -3 }\n");
		expect((await broken).changed).toEqual([]);
		expect(service.errors()).toMatchObject([{ key: "agent.maxSteps", line: 1 }]);
		expect(service.current().agent.maxSteps).toBe(3);
		const mended = changed(service);
		await home.write("agent: { maxSteps: 3 }\n\n");
		await mended;
		expect(service.errors()).toEqual([]);
	});
	it("made while the page was open are kept when the page saves something else", async () => {
		await home.write("agent: { maxSteps: 3 }\n");
		const service = await home.service();
		const page = json(service.read());
		page.budget.dailyTokens = 9;
		await writeFile(home.path, "agent: { maxSteps: 4 } # by hand\n");
		await service.write(page);
		expect(await content()).toBe("agent: { maxSteps: 4 } # by hand\nbudget:\n  dailyTokens: 9\n");
		expect(service.current().agent.maxSteps).toBe(4);
	});
	it("keep their line ends", async () => {
		await home.write("agent:\r\n  maxSteps: 3\r\n");
		const service = await home.service();
		await service.set({ "agent.maxSteps": 5 });
		expect(await content()).toBe("agent:\r\n  maxSteps: 5\r\n");
	});
});
