import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createGate, type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { browserNote, launchBrowser, noBrowser } from "../helpers/browser.ts";
import { type Program, setUpAccount, signIn, startProgram } from "./page-program.ts";

describe.skipIf(noBrowser)(`tabs that stay open ${browserNote}`, () => {
	let browser: Browser;
	let program: Program;
	let model: FakeOpenAI;
	let context: BrowserContext;
	let one: Page;
	let other: Page;
	let faults: string[] = [];

	async function call(method: string, path: string, body?: unknown): Promise<Response> {
		const token = (await readFile(join(program.home, "data", "token"), "utf8")).trim();
		return fetch(program.origin + path, {
			method,
			headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
			...(body === undefined ? {} : { body: JSON.stringify(body) }),
		});
	}

	beforeAll(async () => {
		browser = await launchBrowser();
		model = await startFakeOpenAI();
		program = await startProgram({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: model.url, OPENLANI_MODEL: "scripted-model" });
		await setUpAccount(program);
	});
	beforeEach(async () => {
		context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-US", reducedMotion: "reduce" });
		[one, other] = [await context.newPage(), await context.newPage()];
		for (const page of [one, other]) {
			page.setDefaultTimeout(20_000);
			page.on("pageerror", (error) => faults.push(error.message));
		}
		await signIn(one, program);
	});
	afterEach(async () => {
		await context.close();
		expect(faults).toEqual([]);
		faults = [];
	});
	afterAll(async () => {
		await browser?.close();
		await program?.remove();
		await model?.close();
	});

	const composer = (page: Page) => page.getByRole("textbox", { name: "Message" });
	const log = (page: Page) => page.getByRole("log");

	/** Says something in a new conversation and opens it in the other tab as well. Answers its id. */
	async function begin(text: string): Promise<string> {
		await composer(one).fill(text);
		await composer(one).press("Enter");
		await one.waitForURL(/\/chat\/(?!new)/);
		await other.goto(one.url());
		await log(other).getByText(text).waitFor();
		return one.url().split("/").at(-1) ?? "";
	}

	it.each(["answered", "being answered"])("a conversation that is deleted elsewhere is said to be gone: one that is %s", async (state) => {
		const gate = createGate();
		if (state === "answered") model.script({ text: "one two" });
		else model.script({ text: ["one ", "two ", "three"], gate, gateAfter: 3 });
		const id = await begin("count");
		for (const page of [one, other]) await log(page).getByText("one two").waitFor();
		expect((await call("DELETE", `/api/v1/conversations/${id}`)).status).toBe(204);
		gate.open();
		for (const page of [one, other]) await page.getByText("This conversation does not exist").waitFor();
		expect(await other.locator("body").textContent()).not.toContain("one two");
	});

	it("keeps nothing of what is forgotten, and offers nothing to do with it", async () => {
		model.script({ text: "So your cat is called Whiskers" });
		const id = await begin("My cat is called Whiskers");
		for (const page of [one, other]) await log(page).getByText("So your cat").waitFor();
		const { messages } = (await (await call("GET", `/api/v1/conversations/${id}/messages`)).json()) as { messages: { id: string }[] };
		expect((await call("POST", "/api/v1/memory/forget", { messageId: messages[0]?.id })).status).toBe(200);
		for (const page of [one, other]) {
			await expect.poll(() => log(page).getByText("forgotten").count(), { timeout: 20_000 }).toBe(2);
			await expect
				.poll(() => page.evaluate<boolean>("document.documentElement.outerHTML.includes('Whiskers')"), { timeout: 20_000 })
				.toBe(false);
			expect(await log(page).getByRole("button", { name: "Why" }).count()).toBe(1);
			for (const name of ["Copy", "Edit", "Again"]) expect(await log(page).getByRole("button", { name }).count()).toBe(0);
			await composer(page).press("ArrowUp");
			expect(await composer(page).inputValue()).toBe("");
		}
	});

	it("a part of the page that a new build has under another name is fetched with the page, and the draft stays", async () => {
		model.script({ text: "yes" });
		await begin("are you there?");
		await log(one).getByText("yes").waitFor();
		let isGone = true;
		await one.route(/\/assets\/why-panel-[^/]*\.js$/, (route) => (isGone ? route.fulfill({ status: 404, body: "" }) : route.continue()));
		one.on("load", () => {
			isGone = false;
		});
		await composer(one).fill("half a thought");
		const loaded = one.waitForEvent("load");
		await log(one).getByRole("button", { name: "Why" }).click();
		await loaded;
		expect(await composer(one).inputValue()).toBe("half a thought");
		await log(one).getByRole("button", { name: "Why" }).click();
		await one.getByRole("heading", { name: "What this answer rests on" }).waitFor();
	});

	it("a part that is asked for while the daemon is away comes when it is back", async () => {
		await composer(one).waitFor();
		await program.stop();
		await one.getByRole("link", { name: "Settings" }).click();
		await one
			.getByText(/not reachable|Reconnecting/)
			.first()
			.waitFor();
		expect(await one.getByRole("alert").filter({ hasText: "Load again" }).count()).toBe(0);
		await program.restart();
		await one.getByRole("heading", { name: "Settings" }).waitFor();
	});
});
