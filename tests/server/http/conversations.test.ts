import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Conversation, type Message, SendAnswered } from "../../../server/http/contract.ts";
import { ended, type House, openHouse, outcome, pause, saying, until, usage } from "./house.ts";

let house: House;
beforeEach(async () => {
	house = await openHouse();
});
afterEach(() => house.close());

describe("conversations", () => {
	it("are created, read, renamed, pinned and deleted", async () => {
		const made = await house.call("POST", "/api/v1/conversations", { title: "  A\n title " });
		expect(made.statusCode).toBe(201);
		expect(Conversation.strict().parse(made.json())).toMatchObject({ title: "A title", pinned: false, busy: null });
		const { id } = made.json();
		expect((await house.call("POST", "/api/v1/conversations")).statusCode).toBe(201);

		const changes: unknown[] = [];
		house.bus.subscribe((frame) => frame.type === "conversation" && changes.push(frame.change));
		const patched = await house.call("PATCH", `/api/v1/conversations/${id}`, { title: "Other", pinned: true, model: "main" });
		expect(patched.json()).toMatchObject({ id, title: "Other", pinned: true, model: "main" });
		await vi.waitFor(() => expect(changes).toEqual(["changed"]));

		const list = (await house.call("GET", "/api/v1/conversations")).json().conversations;
		expect(list.map((one: { title: string }) => one.title)).toEqual(["Other", ""]);
		expect((await house.call("GET", "/api/v1/conversations?query=othe")).json().conversations).toHaveLength(1);

		expect((await house.call("DELETE", `/api/v1/conversations/${id}`)).statusCode).toBe(204);
		expect((await house.call("GET", `/api/v1/conversations/${id}`)).json()).toMatchObject({ status: 404, code: "conversation-not-found" });
		expect((await house.call("DELETE", `/api/v1/conversations/${id}`)).statusCode).toBe(404);
	});

	it("refuse a model that is not configured", async () => {
		const id = await house.conversation();
		expect((await house.call("PATCH", `/api/v1/conversations/${id}`, { model: "other" })).json()).toMatchObject({
			status: 400,
			code: "model-not-found",
		});
		expect((await house.call("POST", `/api/v1/conversations/${id}/messages`, { text: "x", model: "other" })).json().code).toBe(
			"model-not-found",
		);
	});
});

describe("messages", () => {
	it("are accepted with 202, or answered with ?wait", async () => {
		const id = await house.conversation();
		const accepted = await house.call("POST", `/api/v1/conversations/${id}/messages`, { text: "one" });
		expect(accepted.statusCode).toBe(202);
		expect(Object.keys(accepted.json()).sort()).toEqual(["messageId", "turnId"]);

		const answered = await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "two" });
		expect(answered.statusCode).toBe(200);
		const body = SendAnswered.parse(answered.json());
		expect(body.reply).toMatchObject({
			role: "assistant",
			text: "Hello there.",
			model: "main",
			modelName: "scripted-1",
			delivery: "sent",
			from: null,
		});
		expect(body.reply.usage).toEqual({ ...usage, calls: 1 });
		expect(body.reply.turnId).toBe(body.turnId);
	});

	it("answer 202 when the wait is over, and the reply comes all the same", async () => {
		const id = await house.conversation();
		let go: () => void = () => {};
		const gate = new Promise<void>((resolve) => {
			go = resolve;
		});
		house.setScript(async function* () {
			await gate;
			return yield* ended(outcome({ reply: "late" }));
		});
		const answer = await house.call("POST", `/api/v1/conversations/${id}/messages?wait=0.05`, { text: "x" });
		expect(answer.statusCode).toBe(202);
		expect((await house.call("GET", `/api/v1/conversations/${id}`)).json().busy).toBe("running");
		go();
		await until(async () => (await house.call("GET", `/api/v1/conversations/${id}/messages`)).json().messages.length === 2, "the reply");
	});

	it("give both waiters one turn's reply when the second joined or followed", async () => {
		const id = await house.conversation();
		house.setScript(saying(["slow"], { pauseMs: 30 }));
		const send = (text: string) => house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text });
		const [first, second] = await Promise.all([send("a"), send("b")]);
		expect([first.statusCode, second.statusCode]).toEqual([200, 200]);
	});

	it("are one message and one answer for one client id, however often it is sent", async () => {
		const id = await house.conversation();
		const send = () => house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "once", clientId: "c-1" });
		const answers = await Promise.all([send(), send(), send()]);
		answers.push(await send());
		expect(new Set(answers.map((answer) => answer.json().messageId)).size).toBe(1);
		expect(new Set(answers.map((answer) => answer.json().reply.id)).size).toBe(1);
		const { messages } = (await house.call("GET", `/api/v1/conversations/${id}/messages`)).json();
		expect(messages.map((one: Message) => one.role)).toEqual(["user", "assistant"]);
		expect(messages[0].clientId).toBe("c-1");
	});

	it("tell a failed turn's sentence as a system message", async () => {
		const id = await house.conversation();
		house.setScript(async function* () {
			return yield* ended(
				outcome({ reply: "The model did not answer.", fromUs: true, state: "failed", error: { kind: "server", message: "500" } }),
			);
		});
		const { reply } = (await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "x" })).json();
		expect(reply).toMatchObject({ role: "system", text: "The model did not answer.", model: null });
	});

	it("are paged by id, oldest first, 50 unless asked for, at most 200", async () => {
		const id = await house.conversation();
		for (let index = 0; index < 60; index += 1) {
			await house.store.inbox.accept({
				id: `m${String(index).padStart(3, "0")}`,
				channel: "web",
				account: "default",
				externalId: `e${index}`,
				conversationId: id,
				personId: "master",
				tier: "master",
				origin: "human",
				priority: 0,
				address: { channel: "web", account: "default", conversation: id },
				model: null,
				limits: {},
				message: { id: `m${String(index).padStart(3, "0")}`, text: `text ${index}`, from: null, at: index, attachments: [], notes: [] },
				clientId: null,
				from: null,
				replaces: null,
				newTurnId: "t1",
				at: index,
			});
		}
		const page = async (query: string) => {
			const answer = (await house.call("GET", `/api/v1/conversations/${id}/messages${query}`)).json();
			return answer.messages.filter((one: Message) => one.role === "user").map((one: Message) => one.text);
		};
		const last = await page("?limit=10");
		expect(last).toHaveLength(10);
		expect(last[9]).toBe("text 59");
		expect(await page("?before=m050&limit=3")).toEqual(["text 47", "text 48", "text 49"]);
		expect(await page("")).toHaveLength(50);
		expect(await page("?limit=100000")).toHaveLength(60);
		for (const query of ["?limit=0", "?limit=-1", "?limit=x", "?limit="]) {
			expect((await house.call("GET", `/api/v1/conversations/${id}/messages${query}`)).json()).toMatchObject({
				status: 400,
				code: "invalid-request",
			});
		}
		expect((await house.call("GET", `/api/v1/conversations/${id}/messages?before=nothing`)).json()).toMatchObject({
			status: 400,
			code: "bad-before",
		});
		const other = await house.conversation();
		expect((await house.call("GET", `/api/v1/conversations/${other}/messages?before=m050`)).json().code).toBe("bad-before");
	});

	it("stop a turn", async () => {
		const id = await house.conversation();
		house.setScript(saying(["a", "b", "c"], { pauseMs: 2000 }));
		const waiting = house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "x" });
		await until(async () => (await house.call("GET", `/api/v1/conversations/${id}`)).json().busy === "running");
		expect((await house.call("POST", `/api/v1/conversations/${id}/stop`)).json()).toEqual({ stopped: true });
		expect((await waiting).statusCode).toBe(202);
		expect((await house.call("POST", `/api/v1/conversations/${id}/stop`)).json()).toEqual({ stopped: false });
		house.setScript(saying(["works"]));
		expect((await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "y" })).json().reply.text).toBe("works");
	});

	it("are refused with a code when they cannot be taken", async () => {
		const id = await house.conversation();
		const send = async (where: string, body: unknown) => {
			const answer = await house.call("POST", `/api/v1/conversations/${where}/messages`, body);
			expect(answer.headers["content-type"]).toContain("application/problem+json");
			return [answer.statusCode, answer.json().code];
		};
		expect(await send("nowhere", { text: "x" })).toEqual([404, "conversation-not-found"]);
		expect(await send(id, { text: "  " })).toEqual([400, "empty-message"]);
		expect(await send(id, { text: 5 })).toEqual([400, "invalid-request"]);
		expect(await send(id, { text: "x".repeat(200_001) })).toEqual([400, "invalid-request"]);
		expect(await send(id, { text: "x".repeat(2_000_001) })).toEqual([413, "too-large"]);
		expect(await send(id, { text: "x", attachments: [{ sha256: "a".repeat(64) }] })).toEqual([400, "attachment-not-found"]);
		expect(await send(id, { text: "x", replaces: "nothing" })).toEqual([404, "message-not-found"]);
		const wait = await house.call("POST", `/api/v1/conversations/${id}/messages?wait=soon`, { text: "x" });
		expect(wait.json()).toMatchObject({ status: 400, code: "invalid-request" });
	});

	it("name their files without folders and tricks, whatever the upload was called", async () => {
		const id = await house.conversation();
		const { sha256 } = await house.store.assets.put(new Uint8Array([1, 2, 3]), { name: "a.bin", mimeType: "application/octet-stream" });
		const sent = await house.call("POST", `/api/v1/conversations/${id}/messages`, {
			text: "look",
			attachments: [{ sha256, name: "../..\u202e/gpj.\nexe" }],
		});
		expect(sent.statusCode).toBe(202);
		const read = await house.call("GET", `/api/v1/conversations/${id}/messages`);
		expect(read.json().messages[0].attachments[0].name).toBe("gpj.exe");
	});

	it("are well formed when stored", async () => {
		const id = await house.conversation();
		await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "a\ud800b😀" });
		const { messages } = (await house.call("GET", `/api/v1/conversations/${id}/messages`)).json();
		expect(messages[0].text).toBe("a\ufffdb😀");
	});

	it("supersede what they replace", async () => {
		const id = await house.conversation();
		const first = (await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "one" })).json();
		await house.call("POST", `/api/v1/conversations/${id}/messages?wait=10`, { text: "two", replaces: first.messageId });
		const shown = (await house.call("GET", `/api/v1/conversations/${id}/messages`)).json().messages;
		expect(shown.map((one: Message) => one.text)).toEqual(["two", "Hello there."]);
		const all = (await house.call("GET", `/api/v1/conversations/${id}/messages?superseded=true`)).json().messages;
		expect(all.filter((one: Message) => one.superseded)).toHaveLength(2);
	});

	it("let a waiting request go when the server closes", async () => {
		const id = await house.conversation();
		house.setScript(saying(["x"], { pauseMs: 3000 }));
		const waiting = house.call("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text: "x" });
		await until(async () => (await house.store.turns.open(id)).some(({ state }) => state === "running"));
		const closing = house.app.close();
		expect((await waiting).statusCode).toBe(202);
		await closing;
		await pause(0);
	});
});
