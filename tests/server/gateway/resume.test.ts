import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recordingChannel, type TestGateway, testGateway } from "../../helpers/gateway.ts";
import { type TestHome, testHome } from "../../helpers/store.ts";
import { scripted } from "../agent/scripted.ts";

let home: TestHome;
let test: TestGateway;
const chat = recordingChannel("chat");
beforeEach(async () => {
	home = await testHome({ now: () => Date.now(), set: () => undefined, forward: () => undefined });
	test = await testGateway(home, { model: scripted([{ text: "one" }, { text: "two" }, { text: "three" }]), channels: [chat.channel] });
	await test.gateway.start();
});
afterEach(async () => {
	await test.close();
	await home.remove();
});

describe("a decision that goes on where it was asked for", () => {
	it("wakes the agent with the rights of the person who asked, once", async () => {
		const { turnId } = await test.gateway.accept("chat", {
			externalId: "1",
			address: { channel: "chat", account: "default", conversation: "bob" },
			sender: { account: "bob", name: "Bob", verified: true, isBot: false },
			group: null,
			text: "forget my boat",
			attachments: [],
			notes: [],
			sentAt: Date.now(),
		} as never);
		await test.seen((frame) => frame.type === "turn" && frame.turnId === turnId && frame.state === "done");
		const asked = await test.store.turns.get(turnId);
		const decision = {
			conversationId: asked?.conversationId ?? "",
			personId: asked?.personId ?? "",
			tier: asked?.tier ?? "stranger",
			text: "Approved: forget {}. Go on.",
			note: "a decision",
			externalId: "approval:a1",
		};
		const woken = await test.gateway.resume(decision);
		expect(await test.gateway.resume(decision)).toEqual({ ...woken, duplicate: true });
		await test.seen((frame) => frame.type === "turn" && frame.turnId === woken.turnId && frame.state === "done");
		expect(await test.store.turns.get(woken.turnId)).toMatchObject({ personId: "chat-bob", tier: "stranger", origin: "human" });
		const rows = await test.store.messages.list(decision.conversationId, { limit: 10 });
		expect(rows.filter((row) => row.clientId === "approval:a1")).toMatchObject([
			{ role: "user", text: decision.text, from: null, notes: ["a decision"] },
		]);
		// The answer goes to the person who asked.
		await test.gateway.whenAnswered(woken.messageId, AbortSignal.timeout(5_000));
		expect(chat.sent.map((message) => message.address.conversation)).toEqual(["bob", "bob"]);
	});

	it("says so when the conversation is gone", async () => {
		const decision = { conversationId: "none", personId: "master", tier: "master", text: "x", note: "y", externalId: "z" } as const;
		await expect(test.gateway.resume(decision)).rejects.toMatchObject({ code: "conversation-not-found" });
	});
});
