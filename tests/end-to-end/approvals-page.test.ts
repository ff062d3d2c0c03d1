import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Approval, Fact } from "../../server/http/contract.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { browserNote, launchBrowser, noBrowser } from "../helpers/browser.ts";
import { type Program, startProgram } from "./page-program.ts";

const token = "a-token-of-the-owner-0123456789";
const account = { username: "robin", password: "correct horse battery" };

describe.skipIf(noBrowser)(`approvals on the page ${browserNote}`, () => {
	let browser: Browser;
	let model: FakeOpenAI;
	let program: Program;
	let page: Page;
	const faults: string[] = [];

	beforeAll(async () => {
		model = await startFakeOpenAI();
		model.otherwise((request) => {
			if (request.lastTool !== null) return { text: `Told: ${request.lastTool}` };
			const id = /(?:^please forget |Approved: forget \{"id":")([\w-]+)/.exec(request.lastUser)?.[1];
			return id ? { calls: [{ name: "forget", arguments: { id } }] } : { text: "Understood." };
		});
		program = await startProgram({
			OPENLANI_TOKEN: token,
			OPENAI_API_KEY: "sk-test-0123456789abcdef",
			OPENAI_BASE_URL: model.url,
			OPENLANI_MODEL: "scripted",
		});
		await call("POST", "/api/v1/setup", { code: program.setupLink?.split("#setup=")[1], ...account, timezone: "Asia/Shanghai" });
		browser = await launchBrowser();
		page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US", reducedMotion: "reduce" })).newPage();
		page.setDefaultTimeout(20_000);
		page.on("pageerror", (error) => faults.push(error.message));
		await page.goto(`${program.origin}/chat`);
		await page.getByLabel("Username").fill(account.username);
		await page.getByLabel("Password", { exact: true }).fill(account.password);
		await page.getByRole("button", { name: "Sign in" }).click();
		await composer().waitFor();
	});
	afterAll(async () => {
		await browser?.close();
		await program?.remove();
		await model?.close();
	});

	async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
		const response = await fetch(program.origin + path, {
			method,
			headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
			...(body === undefined ? {} : { body: JSON.stringify(body) }),
		});
		const text = await response.text();
		return (text === "" ? null : JSON.parse(text)) as T;
	}
	const thread = () => page.getByRole("log");
	const composer = () => page.getByRole("textbox", { name: "Message" });
	const facts = async () => (await call<{ facts: Fact[] }>("GET", "/api/v1/memory/facts")).facts.map(({ text }) => text);
	const card = () => page.locator("[data-approval]");

	async function askToForget(text: string): Promise<void> {
		const { id } = await call<Fact>("POST", "/api/v1/memory/facts", { text });
		await composer().fill(`please forget ${id}`);
		await composer().press("Enter");
		await card().waitFor();
	}

	it("a card says what would go; allowed by keyboard it goes, once", async () => {
		await askToForget("My boat is called Albatros");
		await thread().getByText("Told: Waiting for the master's approval").waitFor();
		expect(await card().textContent()).toContain("wants to forget this for good:");
		expect(await card().textContent()).toContain("My boat is called Albatros");
		expect(await card().textContent()).toMatch(/until \d/);
		await thread().getByRole("button", { name: "waiting for approval" }).waitFor();
		expect(await facts()).toContain("My boat is called Albatros");
		await card().getByRole("button", { name: "Allow once" }).focus();
		await page.keyboard.press("Enter");
		await thread().getByText("Told: Removed: 0 messages, 1 facts").waitFor();
		await card().waitFor({ state: "detached" });
		expect(await facts()).not.toContain("My boat is called Albatros");
		const decision = page.locator("article[data-decision]");
		expect(await decision.textContent()).toContain("Your decision");
		expect(await decision.textContent()).toContain("You approved: this is forgotten for good.");
		expect(await decision.textContent()).toContain("My boat is called Albatros");
		expect(await decision.textContent()).not.toContain("{");
		await thread().getByRole("button", { name: "approved" }).waitFor();
		expect(await decision.getByRole("button").count()).toBe(0);
		// The next card's other button is one Tab away.
		await askToForget("My cat is called Mia");
		await card().getByRole("button", { name: "Allow once" }).focus();
		await page.keyboard.press("Tab");
		await page.keyboard.press("Enter");
		await thread().getByText("You denied it: nothing is forgotten.").waitFor();
		await card().waitFor({ state: "detached" });
		expect(await facts()).toContain("My cat is called Mia");
		expect(faults).toEqual([]);
	});

	it("a card goes when it was decided elsewhere, and is there after a reload", async () => {
		await askToForget("My dog is called Rex");
		await page.reload();
		await card().waitFor();
		const [waiting] = (await call<{ approvals: Approval[] }>("GET", "/api/v1/approvals")).approvals;
		await call("POST", `/api/v1/approvals/${waiting?.id}`, { decision: "deny" });
		await card().waitFor({ state: "detached" });
		expect(await facts()).toContain("My dog is called Rex");
		expect(faults).toEqual([]);
	});
});
