import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defaults, entryDefaults, isPlain } from "../../../server/config/defaults.ts";
import { readEnvironment } from "../../../server/config/environment.ts";
import { parseConfig } from "../../../server/config/parse.ts";
import { idleSettings } from "../../../server/config/without-effect.ts";
import { createTestHome } from "./helpers.ts";

/** Who reads a setting. One that changes nothing stands among those without effect instead. */
const readers: Record<string, string[]> = {
	"server/daemon.ts": [
		"server.host",
		"server.port",
		"server.publicUrl",
		"locale",
		"timezone",
		"models",
		"alerts.deliverTo",
		"alerts.webhook",
		"observe.callDays",
		"observe.callMb",
		"observe.eventDays",
		"observe.otlp",
		"memory.localModel",
		"agent.maxSteps",
		"agent.maxRounds",
		"people.dailyShare.stranger",
		"people.dailyShare.known",
		"people.dailyShare.group",
		"safety.approvals.tools.run_shell",
		"safety.approvals.tools.run_python",
		"safety.permissions.master",
		"safety.permissions.trusted",
		"safety.permissions.known",
		"safety.permissions.stranger",
		"safety.permissions.group",
	],
	"server/model/candidates.ts": ["roles.chat", "roles.small", "roles.vision"],
	"server/model/models.ts": ["roles.embedding"],
	"server/safety/fuse.ts": [
		"budget.dailyTokens",
		"budget.dailyCost",
		"budget.warnAt",
		"budget.reserveForPeople",
		"budget.currency",
		"budget.exchange",
		"budget.whenBlown",
	],
	"server/memory/short-term.ts": ["memory.exchanges", "memory.compress"],
	"server/memory/summing.ts": ["memory.summaryLines", "memory.archive"],
	"server/memory/create.ts": ["memory.recallSemantic", "memory.recallKeyword"],
	"server/safety/approvals.ts": ["safety.approvals.expiresS", "safety.approvals.automatic"],
};

function leaves(value: unknown, path: string[] = []): string[] {
	if (!isPlain(value) || Object.keys(value).length === 0) return [path.join(".")];
	return Object.entries(value).flatMap(([key, child]) => leaves(child, [...path, key]));
}

describe("every setting", () => {
	it("is read by somebody, or said to be without effect", () => {
		const read = Object.values(readers).flat();
		const idle = (key: string) => idleSettings.some(({ path }) => key === path.join(".") || key.startsWith(`${path.join(".")}.`));
		const all = leaves(defaults);
		expect(all.filter((key) => !read.includes(key) && !idle(key))).toEqual([]);
		expect(read.filter((key) => idle(key) || !all.includes(key))).toEqual([]);
	});

	it("is named where it is said to be read", async () => {
		for (const [file, keys] of Object.entries(readers)) {
			const text = await readFile(join(import.meta.dirname, "../../..", file), "utf8");
			// What people or the model's list name is read as a whole.
			const names = keys.map(
				(key) =>
					key
						.replace(/(dailyShare|tools|permissions)\..*/, "$1")
						.split(".")
						.at(-1) ?? "",
			);
			expect([file, names.filter((name) => !new RegExp(`\\b${name === "small" ? "request.role" : name}\\b`).test(text))]).toEqual([
				file,
				[],
			]);
		}
		expect(Object.keys(entryDefaults["models.*"] ?? {})).toEqual(["baseUrl", "apiKeys", "kind", "contextTokens", "price", "limits"]);
	});
});

describe("a setting without effect", () => {
	const parse = (text: string) => parseConfig(text, readEnvironment({ TZ: "UTC" }));
	const said = (text: string) => parse(text).withoutEffect.map(({ key, line }) => `${key}:${line}`);

	it("is taken, and said with its line", () => {
		const parsed = parse("locale: en\nheartbeat:\n  every: 10m\nsafety:\n  egress: { maxRedirects: 1 }\n");
		expect(parsed.config?.heartbeat.every).toBe(600_000);
		expect(parsed.errors).toEqual([]);
		expect(parsed.withoutEffect).toEqual([
			{ key: "heartbeat", line: 2, message: "has no effect in this version: there is no heartbeat" },
			{ key: "safety.egress", line: 5, message: "has no effect in this version: there is no access to the web" },
		]);
		expect(said("channels:\n  webhook:\n    - { id: hook, secret: abcdefgh }\n")).toEqual(["channels:1"]);
		expect(said("mcp: { servers: { files: { command: npx } } }")).toEqual(["mcp:1"]);
	});

	it("is not said where it is the default, or says what is so anyway", () => {
		for (const text of [
			"",
			"heartbeat: off",
			"heartbeat: { every: 30m }",
			"safety: { sandbox: none }",
			"agent: { critique: { mode: off } }",
			"channels: {}",
		])
			expect([text, said(text)]).toEqual([text, []]);
		expect(said("channels:\n  webhook:\n    - { id: hook, secret: abcdefgh, enabled: false }\n")).toEqual([]);
		expect(said("mcp: { servers: { files: { command: npx, enabled: false } } }")).toEqual([]);
	});

	it("is said once in the log, and again when it is set anew", async () => {
		const home = await createTestHome();
		try {
			await home.write("heartbeat: { every: 10m }\n");
			const service = await home.service({}, { watch: false });
			const times = () => home.logged.filter(({ event }) => event === "config.without-effect").length;
			expect(times()).toBe(1);
			expect(service.withoutEffect()).toHaveLength(1);
			expect(service.errors()).toEqual([]);
			for (const [text, count] of [
				["heartbeat: { every: 10m }\nlocale: en\n", 1],
				["locale: en\n", 1],
				["locale: en\nheartbeat: { every: 20m }\n", 2],
			] as const) {
				await home.write(text);
				await service.reload();
				expect(times()).toBe(count);
			}
		} finally {
			await home.remove();
		}
	});
});
