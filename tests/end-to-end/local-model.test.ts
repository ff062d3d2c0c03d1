import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Status } from "../../server/http/contract.ts";
import { startFakeOpenAI } from "../fakes/openai-server.ts";
import { type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";
import { standIn, transformersDir, writeTinyModel } from "../server/memory/tiny-model.ts";

/** With the real package where it is installed; what is seen here does not hang on it. */
const real = transformersDir();
let dir: string;
let home: string;
let daemon: RunningDaemon;
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-local-"));
	home = join(dir, "home");
	daemon = await startDaemonProcess({ home, env: { OPENLANI_TRANSFORMERS_DIR: real ?? "" } });
});
afterAll(async () => {
	await daemon?.kill();
	await rm(dir, { recursive: true, force: true });
});

const embeddings = async () => (await daemon.call<Status>("GET", "/api/v1/status")).body.embeddings;
async function untilStatus(what: string, is: (now: Status["embeddings"]) => boolean): Promise<Status["embeddings"]> {
	for (let tries = 0; tries < 300; tries++) {
		const now = await embeddings();
		if (is(now)) return now;
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
	throw new Error(`never came: ${what}; it is ${JSON.stringify(await embeddings())}`);
}
async function change(memory: Record<string, unknown>, more: Record<string, unknown> = {}): Promise<void> {
	const { body: config } = await daemon.call<{ memory: object }>("GET", "/api/v1/config");
	const { status, body } = await daemon.call("PUT", "/api/v1/config", { ...config, ...more, memory: { ...config.memory, ...memory } });
	expect(status, JSON.stringify(body)).toBe(200);
}

describe("memory.localModel in the running program", () => {
	it("takes effect as it is set, is said when it cannot, and gives way to a model of role embedding", async () => {
		await daemon.call("POST", "/api/v1/memory/facts", { text: "The ship leaves on Friday" });
		const before = await untilStatus("lexical vectors", (now) => now.state === "ready" && now.total > 0);
		expect(before.model).toMatch(/lexical/);

		await change({ localModel: "models/tiny" });
		const missing = await untilStatus("the sentence", (now) => now.state.startsWith("error: "));
		expect(missing).toEqual({
			...before,
			state: `error: there is no directory ${join(home, "models", "tiny")}; put config.json, tokenizer.json and onnx/model.onnx there`,
		});
		expect((await daemon.call<{ keyword: unknown[] }>("GET", "/api/v1/memory/search?q=ship")).body.keyword).toHaveLength(1);
		expect(daemon.output()).toContain("memories are found by words and lexical vectors meanwhile");

		await writeTinyModel(join(home, "models", "tiny"));
		if (real === null) await standIn(home);
		await change({ localModel: "./models/tiny" });
		const local = await untilStatus("the local model", (now) => now.model.startsWith("local:tiny:") && now.state === "ready");
		expect(local).toMatchObject({ indexed: before.total, total: before.total });
		expect(local.model).toMatch(real === null ? /\/2$/ : /\/8$/);

		// After a restart it is the same model, and nothing is made anew.
		expect(await daemon.stop()).toBe(0);
		daemon = await startDaemonProcess({ home, env: { OPENLANI_TRANSFORMERS_DIR: real ?? "" } });
		expect(await untilStatus("the same model", (now) => now.model === local.model && now.state === "ready")).toEqual(local);
		expect(await readFile(join(home, "config.yaml"), "utf8")).toContain("localModel: ./models/tiny");

		const server = await startFakeOpenAI();
		try {
			await change(
				{},
				{
					models: [{ id: "e", provider: "custom", model: "vectors", baseUrl: server.url, apiKeys: ["sk-test-0123456789abcdef"] }],
					roles: { chat: [], embedding: "e" },
				},
			);
			expect((await untilStatus("the configured one", (now) => now.model.startsWith("vectors@") && now.state === "ready")).total).toBe(
				before.total,
			);
		} finally {
			await server.close();
		}

		await writeFile(join(home, "config.yaml"), "memory: { localModel: null }\n");
		expect(await untilStatus("lexical vectors again", (now) => now.model === before.model && now.state === "ready")).toEqual(before);
	}, 60_000);
});
