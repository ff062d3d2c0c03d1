import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTestProgram, type TestProgram } from "./helpers.ts";

let test: TestProgram;
beforeEach(async () => {
	test = await createTestProgram();
});
afterEach(() => test.remove());
const json = (text: string) => JSON.parse(text) as Record<string, unknown>;

describe("words on the command line", () => {
	it("lead to a command, or to the nearest one by name", async () => {
		expect(await test.run(["rnu", "x"])).toEqual({
			code: 1,
			out: "",
			err: 'There is no command "rnu"; did you mean run? (openlani --help)\n',
		});
		expect((await test.run(["run", "--modle", "x"])).err).toContain("did you mean --model?");
		expect((await test.run(["run", "--model"])).err).toContain("--model needs a value");
		expect((await test.run(["run", "x", "--max-steps", "many"])).err).toContain('must be a number, not "many"');
		expect((await test.run(["backup"])).err).toContain("usage: openlani backup FILE");
		expect((await test.run(["rnu"], { env: { LANG: "zh_CN.UTF-8" } })).err).toContain("是不是 run？");
		expect(test.started).toBe(0);
	});
	it("show help for everything, in both languages", async () => {
		for (const lang of ["C", "zh_CN.UTF-8"]) {
			const all = await test.run(["--help"], { env: { LANG: lang } });
			expect(all.code).toBe(0);
			for (const name of ["serve", "chat", "run", "init", "inspect", "doctor", "token", "backup", "restore"]) {
				expect(all.out).toMatch(new RegExp(`^  ${name} `, "m"));
				const one = await test.run([name, "--help"], { env: { LANG: lang } });
				expect(one.code).toBe(0);
				expect(one.out).toContain("--home DIR");
				expect((await test.run(["help", name], { env: { LANG: lang } })).out).toBe(one.out);
			}
		}
		expect((await test.run(["run", "-h"])).out).toContain("--max-rounds N");
		expect((await test.run(["--version"])).out).toBe("0.0.0-test\n");
	});
	it("without a command mean serve, with its flags over the environment", async () => {
		expect(json((await test.run([])).out)).toEqual({ home: test.home, host: null, port: 0, quiet: false });
		const other = join(test.root, "other");
		for (const argv of [
			["--home", other, "--port", "8123", "--host=::1", "-q"],
			["serve", "--home", other, "--port=8123", "--host", "::1", "--quiet"],
			["--home", other, "serve", "--port", "8123", "--host", "::1", "-q"],
		]) {
			expect(json((await test.run(argv)).out)).toEqual({ home: other, host: "::1", port: 8123, quiet: true });
		}
		expect((await test.run(["--prot", "1"])).err).toContain("did you mean --port?");
		expect((await test.run(["--port", "70000"])).code).toBe(1);
	});
	it("never show a stack trace, unless asked for", async () => {
		await mkdir(test.home);
		await writeFile(join(test.home, "workspace"), "a file in the way");
		const plain = await test.run(["init", "--yes"]);
		expect(plain.code).toBe(1);
		expect(plain.err).not.toMatch(/\n\s+at /);
		expect((await test.run(["init", "--yes"], { env: { OPENLANI_LOG_LEVEL: "debug" } })).err).toMatch(/\n\s+at /);
	});
});

describe("init", () => {
	it("makes a home with a configuration that is right, and never overwrites it", async () => {
		const made = await test.run([
			"init",
			"--locale",
			"zh-CN",
			"--timezone",
			"Asia/Shanghai",
			"--provider",
			"deepseek",
			"--model",
			"m: #1",
			"--api-key",
			"${KEY}",
			"--daily-tokens",
			"500k",
		]);
		expect(made).toMatchObject({ code: 0, err: "" });
		const path = join(test.home, "config.yaml");
		expect((await stat(path)).mode & 0o777).toBe(0o600);
		const text = await readFile(path, "utf8");
		const facts = json((await test.run(["inspect", "--json"], { env: { KEY: "sk-1234567890" } })).out);
		expect(facts).toMatchObject({
			locale: "zh-CN",
			timezone: "Asia/Shanghai",
			config: { safeMode: false, errors: [] },
			models: [{ id: "main", provider: "deepseek", model: "m: #1", keys: 1 }],
			roles: { chat: ["main"] },
		});
		expect(JSON.stringify(facts)).not.toContain("sk-1234567890");
		await writeFile(join(test.home, "workspace", "SOUL.md"), "mine");
		expect(await test.run(["init", "--yes"])).toMatchObject({ code: 0 });
		expect((await test.run(["init", "--provider", "openai"])).code).toBe(1);
		expect(await readFile(path, "utf8")).toBe(text);
		expect(await readFile(join(test.home, "workspace", "SOUL.md"), "utf8")).toBe("mine");
	});
	it("refuses what cannot be, and then makes nothing", async () => {
		expect((await test.run(["init", "--provider", "deepsek"])).err).toContain("did you mean deepseek?");
		expect((await test.run(["init", "--timezone", "Mars"])).code).toBe(1);
		expect((await test.run(["init", "--locale", "fr"])).code).toBe(1);
		expect((await test.run(["init", "--daily-tokens", "lots"])).code).toBe(1);
		expect((await test.run(["init", "--provider", "custom", "--model", "x"])).err).toContain("baseUrl");
		await expect(stat(test.home)).rejects.toThrow();
	});
});

describe("doctor and inspect", () => {
	const findings = (out: string) =>
		(JSON.parse(out) as { findings: { area: string; state: string; what: string; fix: string | null }[] }).findings;
	it("find nothing at fault in a fresh home", async () => {
		await test.run(["init", "--yes"]);
		const { code, out } = await test.run(["doctor", "--json", "--offline"]);
		expect(findings(out).filter(({ state }) => state === "fault")).toEqual([]);
		expect(code).toBe(0);
		expect((await test.run(["doctor", "--offline"])).out).toContain("✓ config");
	});
	it("name every fault with a way to mend it", async () => {
		await test.run(["init", "--yes"]);
		const blocker = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
		await new Promise((resolve) => blocker.once("listening", resolve));
		const port = (blocker.address() as { port: number }).port;
		await writeFile(
			join(test.home, "config.yaml"),
			`models: [{ id: m, provider: custom, baseUrl: "http://127.0.0.1:1/v1", model: x, apiKeys: [ "\${NOT_SET}" ] }]\nserver: { prot: 1 }\n`,
		);
		await mkdir(join(test.home, "data"), { recursive: true });
		await writeFile(join(test.home, "data", "openlani.db"), "this is not a database, it only has the name of one");
		await writeFile(join(test.home, "workspace", "SOUL.md"), "");
		const { code, out } = await test.run(["doctor", "--json"], { env: { OPENLANI_PORT: String(port) } });
		await new Promise((resolve) => blocker.close(resolve));
		const found = findings(out);
		expect(code).toBe(1);
		for (const [area, words] of [
			["config", "prot"],
			["database", "damaged"],
			["files", "SOUL.md is empty"],
			["port", "EADDRINUSE"],
		] as const) {
			const finding = found.find((one) => one.area === area && one.what.includes(words));
			expect(finding?.fix, `${area} ${words}`).toBeTruthy();
		}
		expect(await readFile(join(test.home, "data", "openlani.db"), "utf8")).toContain("not a database");
	});
	it("ask the models for real", async () => {
		await test.run(["init", "--yes"]);
		await writeFile(join(test.home, "config.yaml"), 'models: [{ id: m, provider: custom, baseUrl: "http://127.0.0.1:1/v1", model: x }]\n');
		const { code, out } = await test.run(["doctor", "--json"]);
		expect(code).toBe(1);
		expect(findings(out).find(({ area }) => area === "model")).toMatchObject({
			state: "fault",
			what: expect.stringContaining("could not be reached"),
		});
	});
	it("know the models of the running daemon, whatever this shell's variables say, and count the database with its log", async () => {
		await test.run(["init", "--yes"]);
		const daemon = await test.daemon({
			OPENAI_BASE_URL: "http://127.0.0.1:1/v1",
			OPENLANI_MODEL: "house-model",
			OPENAI_API_KEY: "sk-1234567890",
		});
		const checked = await test.run(["doctor", "--offline"]);
		expect(checked.out).toContain("1 model from the running daemon's environment (not asked)");
		expect(checked.out).toContain("· sandbox  Nothing uses a sandbox yet");
		const shown = (await test.run(["inspect"])).out;
		expect(shown).toMatch(/→ env {2}custom house-model .*from the running daemon's environment/);
		const facts = json((await test.run(["inspect", "--json"])).out) as { sizes: { database: number } };
		const file = join(test.home, "data", "openlani.db");
		expect(facts.sizes.database).toBe((await stat(file)).size + (await stat(`${file}-wal`)).size);
		await daemon.stop();
		expect((await test.run(["inspect"])).out).toContain("none: the demo model answers");
	});
	it("tell the time of a turn in the home's own time zone", async () => {
		await test.run(["init", "--yes", "--timezone", "Asia/Kathmandu"]);
		await test.run(["run", "what time is it"]);
		const { turns } = json((await test.run(["inspect", "--json"])).out) as { turns: { startedAt: string }[] };
		const there = new Date(Date.parse(turns[0]?.startedAt ?? "") + 345 * 60_000).toISOString().slice(0, 19).replace("T", " ");
		expect((await test.run(["inspect"])).out).toContain(`  ${there}  done`);
	});
	it("warn of a port that another OpenLani uses, and name its home where that is the usual one", async () => {
		await test.run(["init", "--yes"]);
		const usual = join(test.root, ".openlani");
		for (const home of [usual, join(test.root, "elsewhere")]) {
			const daemon = await test.daemon({ OPENLANI_HOME: home });
			const { code, out } = await test.run(["doctor", "--json", "--offline"], { env: { OPENLANI_PORT: new URL(daemon.url).port } });
			await daemon.stop();
			expect(code).toBe(0);
			const port = findings(out).find(({ area }) => area === "port");
			expect(port).toMatchObject({
				state: "warn",
				what: expect.stringContaining("another OpenLani"),
				fix: expect.stringContaining("server.port"),
			});
			expect(port?.what.includes(`(home ${usual})`)).toBe(home === usual);
		}
	});
	it("only look: a home that is not there is not made", async () => {
		expect((await test.run(["inspect"])).code).toBe(1);
		await test.run(["doctor", "--offline"]);
		await mkdir(join(test.root, "empty"));
		expect(await test.run(["inspect", "--home", join(test.root, "empty")])).toMatchObject({ code: 0, err: "" });
		const token = await test.run(["token"]);
		expect(token).toMatchObject({ code: 1, out: "" });
		expect(token.err).toContain(`There is no home ${test.home}`);
		await expect(stat(test.home)).rejects.toThrow();
	});
});
