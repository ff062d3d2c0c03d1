import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const BIOME = join(ROOT, "node_modules", "@biomejs", "biome", "bin", "biome");

/** Each import is allowed by DESIGN.md; a rule that refuses one of these is too wide. */
const ALLOWED: Record<string, string[]> = {
	"channels/telegram/inbound.ts": [
		'import type { Channel } from "../channel.ts";',
		'import { cut } from "../text.ts";',
		'import { call } from "./api.ts";',
		'import { WebSocket } from "ws";',
	],
	"server/agent/run-turn.ts": [
		'import type { Address } from "../../channels/channel.ts";',
		'import { ModelError } from "../model/model.ts";',
		'import type { Tool } from "../tools/tool.ts";',
		'import type { Memory } from "../memory/memory.ts";',
		'import { gate } from "./gate.ts";',
	],
	"server/gateway/inbox.ts": [
		'import type { Address } from "../../channels/channel.ts";',
		'import { cut } from "../../channels/text.ts";',
		'import type { Store } from "../store/store.ts";',
	],
	"server/store/open.ts": [
		'import Database from "better-sqlite3";',
		'import { Kysely } from "kysely";',
		'import * as vec from "sqlite-vec";',
	],
	"server/daemon.ts": ['import { createWeb } from "../channels/web/index.ts";', 'import { openStore } from "./store/open.ts";'],
	"server/cli/serve.ts": ['import { startDaemon } from "../daemon.ts";'],
	"web/src/lib/api.ts": [
		'import type { Message } from "../../../server/http/contract.ts";',
		'export type { Turn } from "../../../server/http/contract.ts";',
		'import { x } from "../ui/x.tsx";',
	],
};

/** Each is one violation of a direction, alone in its file. */
const REFUSED: [rule: string, file: string, line: string][] = [
	["channel.ts imports nothing", "channels/channel.ts", 'import type { z } from "zod";'],
	["a channel does not know the server", "channels/telegram/index.ts", 'import { openStore } from "../../server/store/open.ts";'],
	["not even its types", "channels/telegram/types.ts", 'import type { Store } from "../../server/store/store.ts";'],
	["a channel does not know another", "channels/telegram/other.ts", 'import { send } from "../onebot/api.ts";'],
	["nor lazily", "channels/telegram/lazy.ts", 'export const other = () => import("../onebot/api.ts");'],
	["the text cutter does not know a channel", "channels/text.ts", 'import { limit } from "./telegram/format.ts";'],
	["the agent knows no store", "server/agent/a.ts", 'import type { Store } from "../store/store.ts";'],
	["no http", "server/agent/b.ts", 'import type { Message } from "../http/contract.ts";'],
	["no config", "server/agent/c.ts", 'import type { Config } from "../config/schema.ts";'],
	["no concrete channel", "server/agent/d.ts", 'import type { createWeb } from "../../channels/web/index.ts";'],
	["contracts as types only", "server/agent/e.ts", 'import { registry } from "../tools/tool.ts";'],
	["no database", "server/agent/f.ts", 'import Database from "better-sqlite3";'],
	["only the daemon knows a concrete channel", "server/gateway/a.ts", 'import { createWeb } from "../../channels/web/index.ts";'],
	["the command line does not either", "server/cli/a.ts", 'import { createWeb } from "../../channels/web/index.ts";'],
	["nobody but the command line knows the daemon", "server/http/app.ts", 'import { startDaemon } from "../daemon.ts";'],
	["SQL only in the store", "server/memory/a.ts", 'import { sql } from "kysely";'],
	["SQL only in the store (driver)", "server/cli/b.ts", 'import Database from "better-sqlite3";'],
	["SQL only in the store (vectors)", "server/memory/b.ts", 'import * as vec from "sqlite-vec";'],
	["the server does not know the page", "server/http/page.ts", 'import { App } from "../../web/src/app/app.tsx";'],
	["the page takes types, not code", "web/src/lib/a.ts", 'import { Message } from "../../../server/http/contract.ts";'],
	["nor mixed with types", "web/src/lib/b.ts", 'import { type Turn, Message } from "../../../server/http/contract.ts";'],
	["nor by export", "web/src/lib/c.ts", 'export { Message } from "../../../server/http/contract.ts";'],
	["nor lazily", "web/src/lib/d.ts", 'export const contract = () => import("../../../server/http/contract.ts");'],
	["from nowhere else in the server", "web/src/lib/e.ts", 'import type { Store } from "../../../server/store/store.ts";'],
	["nor from a channel", "web/src/lib/f.ts", 'import type { Channel } from "../../../channels/channel.ts";'],
	["one reader of the environment", "server/gateway/env.ts", "export const level = process.env.OPENLANI_LOG_LEVEL;"],
	["no floating promise", "server/gateway/floating.ts", "async function f(): Promise<void> {}\nexport function g() {\n\tf();\n}"],
];

const RULES = /^lint\/(style\/noRestrictedImports|style\/noProcessEnv|nursery\/noFloatingPromises)$|^plugin/;

interface Report {
	diagnostics: { category: string; message: string; location: { path: string | { file: string } } }[];
}

let directory: string;
let found: Map<string, string[]>;

async function put(file: string, text: string): Promise<void> {
	await mkdir(dirname(join(directory, file)), { recursive: true });
	await writeFile(join(directory, file), `${text}\n`);
}

describe("import directions", () => {
	beforeAll(async () => {
		directory = await mkdtemp(join(tmpdir(), "openlani-directions-"));
		await cp(join(ROOT, "biome.json"), join(directory, "biome.json"));
		await cp(join(ROOT, "scripts", "biome"), join(directory, "scripts", "biome"), { recursive: true });
		await put("tsconfig.json", "{}");
		for (const [file, lines] of Object.entries(ALLOWED)) await put(file, lines.join("\n"));
		for (const [, file, line] of REFUSED) await put(file, line);
		const output = await new Promise<string>((resolve) => {
			const args = [BIOME, "lint", "--vcs-enabled=false", "--reporter=json", "--max-diagnostics=none", "server", "channels", "web"];
			execFile(process.execPath, args, { cwd: directory, maxBuffer: 1e8 }, (_error, stdout) => resolve(stdout));
		});
		found = new Map();
		for (const { category, message, location } of (JSON.parse(output) as Report).diagnostics) {
			if (!RULES.test(category)) continue;
			const path = typeof location.path === "string" ? location.path : location.path.file;
			found.set(path, [...(found.get(path) ?? []), message]);
		}
	});
	afterAll(() => rm(directory, { recursive: true, force: true }));

	it.each(REFUSED)("%s: %s is refused", (_rule, file) => {
		expect(found.get(file)).toHaveLength(1);
	});
	it.each(Object.keys(ALLOWED))("%s may import what DESIGN.md allows", (file) => {
		expect(found.get(file)).toBeUndefined();
	});
});
