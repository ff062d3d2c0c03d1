import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Message } from "../../server/http/contract.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { homeWithModel, type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

const kills = 100;

let dir: string;
let model: FakeOpenAI;
let daemon: RunningDaemon;
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-kill-"));
	model = await startFakeOpenAI();
	await homeWithModel(join(dir, "home"), model.url);
});
afterAll(async () => {
	await daemon?.kill();
	await model.close();
	await rm(dir, { recursive: true, force: true });
});

/** The same numbers at every run: a failure can be looked at again. */
function seeded(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state * 1664525 + 1013904223) % 4294967296;
		return state / 4294967296;
	};
}

const start = async () => {
	daemon = await startDaemonProcess({ home: join(dir, "home") });
};

/** As a client does: the same message with the same client id until it is acknowledged. */
async function send(conversation: string, text: string, clientId: string): Promise<string | null> {
	try {
		const { status, body } = await daemon.call<{ messageId: string }>("POST", `/api/v1/conversations/${conversation}/messages`, {
			text,
			clientId,
		});
		return status === 202 ? body.messageId : null;
	} catch {
		return null;
	}
}

async function messages(conversation: string): Promise<Message[]> {
	return (await daemon.call<{ messages: Message[] }>("GET", `/api/v1/conversations/${conversation}/messages?limit=200`)).body.messages;
}

async function until<T>(what: string, ask: () => Promise<T | null | false>): Promise<T> {
	const end = Date.now() + 30_000;
	for (;;) {
		const found = await ask();
		if (found) return found;
		if (Date.now() > end) throw new Error(`never came: ${what}\n${daemon.output().slice(-2000)}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}

describe("kill -9", () => {
	it(`at ${kills} random points: one message, one answer, no turn stuck, no effect twice`, { timeout: 600_000 }, async () => {
		await start();
		const create = async () => (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body.id;
		const [talk, target] = [await create(), await create()];
		// Each turn: a message sent to another place, then the answer. The pauses make every stretch of a turn long enough to be hit.
		model.otherwise((request) => {
			const number = /number (\d+)/.exec(request.lastUser)?.[1];
			if (request.lastTool !== null) return { text: `answer ${number}`, delayMs: 4, betweenMs: 2 };
			return { calls: [{ name: "send_message", arguments: { channel: "web", to: target, text: `effect ${number}` } }], delayMs: 4 };
		});
		const random = seeded(20261130);
		for (let n = 1; n <= kills; n++) {
			const clientId = `client-${n}`;
			const sending = send(talk, `number ${n}`, clientId);
			await new Promise((resolve) => setTimeout(resolve, random() * 45));
			await daemon.kill();
			await sending;
			await start();
			await until(`acknowledgement ${n}`, () => send(talk, `number ${n}`, clientId));
			await until(`answer ${n}`, async () =>
				(await messages(talk)).some((message) => message.role !== "user" && message.text === `answer ${n}`),
			);
		}
		await until(
			"rest",
			async () => (await daemon.call<{ turns: { running: number; queued: number } }>("GET", "/api/v1/status")).body.turns.running === 0,
		);

		const said: Message[] = [];
		for (let before = ""; ; ) {
			const page = (await daemon.call<{ messages: Message[] }>("GET", `/api/v1/conversations/${talk}/messages?limit=200${before}`)).body
				.messages;
			said.unshift(...page);
			if (page.length < 200) break;
			before = `&before=${page[0]?.id}`;
		}
		const texts = (role: string) =>
			said.filter((message) => (message.role === "user") === (role === "user")).map((message) => message.text);
		const expected = (word: string) => Array.from({ length: kills }, (_, n) => `${word} ${n + 1}`);
		expect(texts("user")).toEqual(expected("number"));
		expect(texts("assistant")).toEqual(expected("answer"));
		expect((await messages(target)).map((message) => message.text).sort()).toEqual(expected("effect").sort());
		const turns = (await daemon.call<{ turns: { state: string }[] }>("GET", "/api/v1/turns?limit=200")).body.turns;
		expect(new Set(turns.map((turn) => turn.state))).toEqual(new Set(["done"]));
		expect(model.refused).toEqual([]);
	});
});
