import { describe, expect, it } from "vitest";
import { defaults } from "../../../server/config/defaults.ts";
import { readEnvironment } from "../../../server/config/environment.ts";
import { nearest } from "../../../server/config/nearest.ts";
import { parseConfig, settled } from "../../../server/config/parse.ts";
import { type SectionName, sectionSchema, sections } from "../../../server/config/schema.ts";
import { parseDuration, parseSize } from "../../../server/config/units.ts";
import { wholeConfig, wholeEnv } from "./helpers.ts";

const environment = (env: Record<string, string> = {}) => readEnvironment({ TZ: "UTC", ...env });
const parse = (text: string, env: Record<string, string> = {}) => parseConfig(text, environment(env));
const config = (text: string, env: Record<string, string> = {}) => {
	const parsed = parse(text, env);
	expect(parsed.errors).toEqual([]);
	if (!parsed.config) throw new Error("no config");
	return parsed.config;
};

describe("units", () => {
	it("reads durations and sizes as people write them", () => {
		expect(["10s", "5m", "2h", "40d", "1h30m", 1500, "1500", "250ms"].map(parseDuration)).toEqual([
			10_000, 300_000, 7_200_000, 3_456_000_000, 5_400_000, 1500, 1500, 250,
		]);
		expect(["", "soon", "5 parsecs", -1, Number.NaN, null].map(parseDuration)).toEqual([null, null, null, null, null, null]);
		expect(["128k", "1M", 128_000, "1.5m", "200_000"].map(parseSize)).toEqual([128_000, 1_000_000, 128_000, 1_500_000, 200_000]);
		expect(["k", "12q", {}, -5].map(parseSize)).toEqual([null, null, null, null]);
	});
	it("finds the name that was meant", () => {
		expect(nearest("hartbeat", ["heartbeat", "channels"])).toBe("heartbeat");
		expect(nearest("base_url", ["baseUrl", "model"])).toBe("baseUrl");
		expect(nearest("teh", ["the"])).toBe("the");
		expect(nearest("zebra", ["heartbeat", "channels"])).toBeNull();
	});
});

describe("the whole configuration", () => {
	it("has defaults that pass their own schema unchanged", () => {
		for (const section of Object.keys(sections) as SectionName[]) {
			expect(sectionSchema(section).parse(structuredClone(defaults[section])), section).toEqual(settled(section, defaults[section]));
		}
		expect(Object.keys(defaults).sort()).toEqual(Object.keys(sections).sort());
	});
	it("takes every section of the documented example", () => {
		const { config: whole, errors, warnings } = parse(wholeConfig, wholeEnv);
		expect(errors).toEqual([]);
		expect(warnings).toEqual([]);
		expect(whole?.models[0]?.apiKeys[0]).toBe("sk-from-the-environment");
		expect(whole?.models[0]?.contextTokens).toBe(128_000);
		expect(whole?.heartbeat.every).toBe(1_800_000);
		expect(whole?.channels.telegram?.[0]).toMatchObject({
			token: "123:telegram-token-value",
			masters: ["12345678901234567890"],
			pairing: true,
			debounceMs: 1500,
		});
		expect(whole?.channels.telegram?.[0]?.groups).toEqual({ "-100123": { enabled: true, trigger: "all", atAll: false } });
		expect(whole?.channels.email?.[0]?.imap.port).toBe(1143);
		expect(whole?.channels.discord?.[0]?.botToken).toBe("discord-bot-token-value");
		expect(whole?.mcp.servers.remote).toMatchObject({ enabled: true, approval: "never", timeoutS: 60 });
		expect(whole?.safety.approvals.tools).toEqual({ run_shell: "ask", run_python: "ask", "files__*": "ask" });
		expect(whole?.safety.permissions.trusted).toEqual(["chat", "memory"]);
		expect(whole?.safety.permissions.known).toEqual(["chat", "memory", "web"]);
		expect(whole?.safety.filter.profiles.private?.cards).toBe("off");
	});
	it("is complete without any file", () => {
		const empty = config("");
		expect(empty.server).toEqual({ host: "127.0.0.1", port: 7717, publicUrl: null });
		expect(empty.timezone).toBe("UTC");
		expect(empty.agent).toEqual({ maxSteps: 60, maxRounds: 3, plan: "auto", critique: { mode: "auto", maxRounds: 3 } });
		expect(config("# only a comment\n")).toEqual(empty);
		expect(config("\uFEFFbudget:\r\n  dailyTokens: 2M\r\n")).toEqual(empty);
		expect(config("budget:\nagent:\n")).toEqual(empty);
	});
	it("knows every way to switch the heartbeat off", () => {
		for (const off of [
			"heartbeat: false",
			"heartbeat: off",
			"heartbeat: 0",
			"heartbeat: {}",
			"heartbeat:",
			"heartbeat: { enabled: false }",
			"heartbeat: { enabled: off }",
			"heartbeat: { every: 0 }",
			"heartbeat: { every: off }",
			"heartbeat: { every: false }",
			"heartbeat: { every: 0m, enabled: true }",
		]) {
			expect(config(off).heartbeat.enabled, off).toBe(false);
		}
		expect(config("heartbeat: { every: 1s }").heartbeat).toMatchObject({ enabled: true, every: 1000 });
		expect(parse("heartbeat: { every: 500ms }").errors[0]?.key).toBe("heartbeat.every");
	});
	it("takes one model from the environment, before the file's", () => {
		const env = { OPENAI_API_KEY: "sk-x", OPENAI_BASE_URL: "http://127.0.0.1:9/v1", OPENLANI_MODEL: "m1" };
		const file = "models:\n  - { id: main, provider: deepseek, model: d }\n";
		expect(config("", env).models).toMatchObject([
			{ id: "env", provider: "custom", model: "m1", baseUrl: "http://127.0.0.1:9/v1", apiKeys: ["sk-x"] },
		]);
		expect(config(file, env).roles.chat).toEqual(["env", "main"]);
		expect(config(file, { OPENAI_API_KEY: "sk-x" }).roles.chat).toEqual([]);
		expect(config("", { OPENAI_API_KEY: "sk-x" }).models).toMatchObject([{ id: "env", provider: "openai" }]);
		expect(config(`${file}  - { id: other, provider: xai, model: g }\n`, { OPENLANI_MODEL: "other" }).roles.chat).toEqual([
			"other",
			"main",
		]);
		expect(config("server: { port: 1 }", { OPENLANI_PORT: "0", OPENLANI_HOST: "::1" }).server).toMatchObject({ host: "::1", port: 0 });
	});
});

describe("what is refused", () => {
	const refused = (text: string, env: Record<string, string> = {}) => {
		const parsed = parse(text, env);
		expect(parsed.config).toBeNull();
		return parsed.errors;
	};
	it("names key, line and the nearest valid name", () => {
		expect(refused("server:\n  prot: 1\nhartbeat: off\n")).toEqual([
			{ key: "hartbeat", line: 3, message: 'unknown key "hartbeat"; did you mean "heartbeat"?' },
			{ key: "server.prot", line: 2, message: 'unknown key "prot"; did you mean "port"?' },
		]);
		expect(refused("models:\n  - id: a\n    provider: deepsek\n    model: m\n    apikeys: [x]\n")).toMatchObject([
			{ key: "models[0].provider", line: 3, message: expect.stringContaining('did you mean "deepseek"?') },
			{ key: "models[0].apikeys", line: 5, message: expect.stringContaining('did you mean "apiKeys"?') },
		]);
		expect(refused("channels:\n  telegramm:\n    - id: x\n")).toMatchObject([
			{ key: "channels.telegramm", line: 2, message: expect.stringContaining('"telegram"') },
		]);
		expect(refused("mcp:\n  servers:\n    a: { comand: x }\n")[0]).toMatchObject({ line: 3 });
	});
	it("says what should stand there, without repeating long texts", () => {
		expect(refused("server: { port: many }")).toEqual([{ key: "server.port", line: 1, message: 'must be a number, not "many"' }]);
		expect(refused("server: { port: 70000 }")[0]?.message).toContain("at most 65535");
		expect(refused("timezone: Mars/Olympus")[0]?.message).toContain("time zone");
		expect(refused("models: main")[0]?.message).toBe('must be a list, not "main"');
		expect(refused("models:\n  - { id: m, provider: xai, model: x, apiKeys: sk-abcdefghijklmnopqrstuvwxyz }")[0]?.message).not.toContain(
			"sk-abc",
		);
		expect(refused("models:\n  - { id: m, provider: xai }")[0]).toMatchObject({ key: "models[0].model", message: "is missing" });
		expect(refused("heartbeat: { activeHours: always }")[0]?.message).toContain("08:00-23:00");
	});
	it("sees names that clash or do not exist", () => {
		const models = "models:\n  - { id: main, provider: xai, model: a }\n";
		expect(refused(`${models}roles:\n  chat: [mian]\n`)).toEqual([
			{ key: "roles.chat[0]", line: 4, message: 'there is no model "mian"; did you mean "main"?' },
		]);
		expect(refused(`${models}  - { id: main, provider: xai, model: b }\n`)[0]).toMatchObject({ key: "models[1].id", line: 3 });
		expect(refused("channels:\n  webhook: [{ id: a, secret: s }]\n  telegram: [{ id: a, token: t }]\n")[0]?.message).toContain(
			"id of its own",
		);
		expect(refused("models: [{ id: c, provider: custom, model: m }]")[0]).toMatchObject({ key: "models[0].baseUrl" });
	});
	it("lets mail go in clear only to this machine", () => {
		const mail = (host: string, more = "") =>
			`channels:\n  email:\n    - { id: m, address: a@b.c, imap: { host: ${host}, security: none${more} }, smtp: { host: 127.0.0.1, security: none } }\n`;
		expect(refused(mail("mx.example.test"))[0]).toMatchObject({ key: "channels.email[0].imap.security", line: 3 });
		expect(config(mail("127.0.0.1")).channels.email).toHaveLength(1);
		expect(config(mail("mx.example.test", ", insecure: true")).channels.email).toHaveLength(1);
	});
	it("names the line of broken YAML, and survives damage", () => {
		expect(refused("server:\n  port: [1\nagent: {}\n")[0]).toMatchObject({ key: "config.yaml", line: expect.any(Number) });
		expect(refused("server: {}\nserver: {}\n")[0]).toMatchObject({ line: 2 });
		expect(refused("just words")[0]).toMatchObject({ key: "config.yaml", line: 1 });
		expect(refused("a: \0\0\0")[0]?.message).toContain("damaged");
		expect(
			refused(`${Array.from({ length: 30 }, (_, i) => `a${i}: &a${i} [${i ? `*a${i - 1},*a${i - 1},*a${i - 1}` : "1"}]`).join("\n")}`)[0]
				?.message,
		).toBeTruthy();
	});
});

describe("variables", () => {
	it("puts them in, and escapes with $${", () => {
		const one = config('models: [{ id: m, provider: xai, model: "x-${A}-${B}", apiKeys: ["$${A}"] }]', { A: "1", B: "2" }).models[0];
		expect(one?.model).toBe("x-1-2");
		expect(one?.apiKeys).toEqual(["${A}"]);
		expect(config('server: { port: "${P}" }', { P: "8123" }).server.port).toBe(8123);
	});
	it("names the key of one that is not set, and goes on", () => {
		const parsed = parse(
			'models:\n  - id: m\n    provider: xai\n    model: x\n    apiKeys:\n      - "${NOT_THERE}"\n      - sk-b\nchannels:\n  telegram:\n    - id: tg\n      token: ${NOR_THIS}\nserver: { port: "${NOR_PORT}" }\n',
		);
		expect(parsed.errors).toEqual([]);
		expect(parsed.warnings).toEqual([
			{ key: "models[0].apiKeys[0]", line: 6, message: "the environment variable NOT_THERE is not set" },
			{ key: "channels.telegram[0].token", line: 11, message: "the environment variable NOR_THIS is not set" },
			{ key: "server.port", line: 12, message: "the environment variable NOR_PORT is not set" },
		]);
		expect(parsed.config?.models[0]?.apiKeys).toEqual(["sk-b"]);
		expect(parsed.config?.channels.telegram?.[0]?.token).toBe("");
		expect(parsed.config?.server.port).toBe(7717);
	});
});

describe("environment", () => {
	it("reads every variable, and names the wrong ones", () => {
		const env = readEnvironment({
			HOME: "/h",
			OPENLANI_HOME: "~/a",
			OPENLANI_PORT: "99999",
			OPENLANI_TOKEN: "short",
			OPENLANI_LOG_LEVEL: "loud",
			OPENLANI_LIMITS_LOCK: "maxSteps, maxTokens",
			OPENLANI_CONTEXT_AUTOFOLD: "0",
			LANG: "zh_CN.UTF-8",
			TZ: "Nowhere/At_all",
		});
		expect(env).toMatchObject({
			home: "/h/a",
			port: null,
			token: null,
			logLevel: "info",
			limitsLock: ["maxSteps", "maxTokens"],
			contextAutofold: false,
			language: "zh-CN",
			timezone: "UTC",
		});
		expect(env.problems.map((problem) => problem.key)).toEqual(["OPENLANI_PORT", "OPENLANI_TOKEN", "OPENLANI_LOG_LEVEL"]);
		expect(readEnvironment({ HOME: "/h", OPENLANI_LIMITS_LOCK: "1" })).toMatchObject({
			home: "/h/.openlani",
			limitsLock: true,
			contextAutofold: true,
			language: "en",
			logLevel: "info",
		});
	});
});
