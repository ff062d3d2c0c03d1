import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { AlertItem, FuseDay, PriceItem, UsageRow } from "../../server/http/contract.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { browserNote, launchBrowser, noBrowser } from "../helpers/browser.ts";
import { type Program, setUpAccount, signIn, startProgram } from "./page-program.ts";

describe.skipIf(noBrowser)(`the console ${browserNote}`, () => {
	let browser: Browser;
	let program: Program;
	let model: FakeOpenAI;
	let contexts: BrowserContext[] = [];
	let faults: string[] = [];

	beforeAll(async () => {
		browser = await launchBrowser();
		model = await startFakeOpenAI();
		program = await startProgram({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: model.url, OPENLANI_MODEL: "scripted-model" });
		await setUpAccount(program, { dailyTokens: 100_000 });
	});
	afterEach(async () => {
		for (const context of contexts) await context.close();
		contexts = [];
		expect(faults).toEqual([]);
		faults = [];
	});
	afterAll(async () => {
		await browser?.close();
		await program?.remove();
		await model?.close();
	});

	async function open(part: Parameters<Browser["newContext"]>[0] = {}): Promise<Page> {
		const context = await browser.newContext({
			viewport: { width: 1280, height: 800 },
			locale: "en-US",
			timezoneId: "Asia/Shanghai",
			reducedMotion: "reduce",
			...part,
		});
		contexts.push(context);
		const page = await context.newPage();
		page.setDefaultTimeout(20_000);
		page.on("pageerror", (error) => faults.push(error.message));
		await signIn(page, program);
		return page;
	}

	const used = async (page: Page) => Number((await page.getByTestId("fuse-used").textContent())?.replaceAll(",", ""));
	const answers = (page: Page) => page.locator('[role="log"] article[aria-busy="false"]');
	const view = (page: Page, name: string) => page.getByRole("navigation", { name: "Views of the console" }).getByRole("link", { name });
	const badge = (page: Page) => page.getByRole("navigation", { name: "Main navigation" }).getByText(/open alerts?$/);

	async function say(page: Page, text: string): Promise<void> {
		await page.getByRole("textbox", { name: "Message" }).fill(text);
		await page.getByRole("textbox", { name: "Message" }).press("Enter");
	}

	it("shows use as it grows, unpriced tokens loudly, and every call as text", async () => {
		const page = await open();
		await page.getByRole("link", { name: "Console" }).click();
		await page.waitForURL("**/console/usage");
		await page.getByText("20 % kept for people").waitFor();
		await page.getByText("resets 00:00 Asia/Shanghai").waitFor();
		expect(await used(page)).toBe(0);
		expect(await badge(page).count()).toBe(0);

		const markup = '<img src="x" onerror="window.pwned=1"><b>bold</b>';
		model.script({ text: `heard ${markup}`, usageNumbers: { prompt_tokens: 1200, completion_tokens: 34, total_tokens: 1234 } });
		// From elsewhere: this page hears of it by itself.
		const other = await open();
		await say(other, `see ${markup}`);
		await answers(other).first().waitFor();
		await expect.poll(() => used(page), { timeout: 20_000 }).toBeGreaterThanOrEqual(1234);
		await page.getByText(/^[\d,]+ tokens unpriced\.$/).waitFor();
		const chat = page.getByRole("region", { name: "By source" }).getByRole("row", { name: /^chat/ });
		await chat.getByText("unpriced").waitFor();
		await page.getByRole("table", { name: "last 14 days" }).getByRole("row", { name: /[1-9]/ }).first().waitFor({ state: "attached" });

		await view(page, "Model calls").click();
		await page
			.getByRole("button", { name: /chat.*unpriced/ })
			.last()
			.click();
		const call = page.getByRole("dialog", { name: "Model call" });
		expect(await call.getByRole("region", { name: "Request" }).locator("pre").textContent()).toContain(markup);
		expect(await call.locator("img, b").count()).toBe(0);
		expect(await page.evaluate<unknown>("window.pwned")).toBeUndefined();
		expect(await call.textContent()).not.toContain("sk-test");
		await call.getByRole("link", { name: "Open the turn" }).click();
		await page
			.getByRole("dialog", { name: "Turn" })
			.getByText(/tokens in .* characters/)
			.waitFor();
		await page.keyboard.press("Escape");
		await expect.poll(() => page.url()).toBe(`${program.origin}/console/turns`);
	});

	it("answers in the shapes of the contract", async () => {
		const page = await open();
		const read = async (path: string) => (await page.request.get(`${program.origin}${path}`)).json();
		z.strictObject(FuseDay.shape).parse(await read("/api/v1/fuse"));
		for (const by of ["day", "source", "model", "conversation"])
			expect(
				z
					.array(z.strictObject(UsageRow.shape))
					.min(1)
					.parse((await read(`/api/v1/usage?by=${by}`)).rows),
			).not.toEqual([]);
		z.array(z.strictObject(PriceItem.shape)).parse((await read("/api/v1/prices")).prices);
	});

	it("tells of a blown fuse everywhere, lets the master raise it, and what waited is answered", async () => {
		const page = await open();
		model.script({ text: "that was much", usageNumbers: { prompt_tokens: 97_500, completion_tokens: 500, total_tokens: 98_000 } });
		await say(page, "something large");
		await answers(page).getByText("that was much").waitFor();
		await badge(page).waitFor({ state: "attached" });
		await page.getByText(/% of today's limit is used\. It resets at 00:00/).waitFor();

		model.script({ text: "answered after the raise" });
		await say(page, "and now this");
		await page.getByText("Today's limit is used up.", { exact: false }).waitFor();
		await page.getByRole("status").getByRole("link", { name: "Raise for today" }).click();
		const dialog = page.getByRole("dialog", { name: "Raise today's limit" });
		await dialog.getByLabel("More tokens").fill("200000");
		await dialog.getByText("Then today's limit is 300,000 tokens.").waitFor();
		// The alert with its cause is there while the question is open.
		const { alerts } = await (await page.request.get(`${program.origin}/api/v1/alerts?state=open`)).json();
		expect(
			z
				.array(z.strictObject(AlertItem.shape))
				.parse(alerts)
				.map((alert) => alert.kind),
		).toContain("fuse-blown");
		await dialog.getByRole("button", { name: "Raise" }).click();
		await page.getByText("of 300,000 tokens").waitFor();
		await page.getByText(/Raised by 200,000 tokens at \d\d:\d\d, by robin/).waitFor();
		const { raises } = await (await page.request.get(`${program.origin}/api/v1/fuse`)).json();
		expect(raises).toMatchObject([{ tokens: 200_000, by: "robin" }]);

		await view(page, "Alerts").click();
		const over = page.getByRole("region", { name: "Over" });
		await over.getByText(/Today's token limit is reached .* until \w{3} \d+, 00:00\. /).waitFor();
		const still = page.getByRole("region", { name: "Open", exact: true });
		const count = await still.getByRole("button", { name: "Acknowledge" }).count();
		for (let left = count; left > 0; left -= 1) {
			await still.getByRole("button", { name: "Acknowledge" }).first().click();
			await expect.poll(() => still.getByRole("button", { name: "Acknowledge" }).count(), { timeout: 20_000 }).toBe(left - 1);
		}
		await expect.poll(() => badge(page).count(), { timeout: 20_000 }).toBe(0);

		await view(page, "Log").click();
		await page.getByRole("log").getByText("fuse.blown").waitFor();
		await page.getByRole("log").getByText("fuse.raised").waitFor();
		await page.getByText("Errors", { exact: true }).click();
		await page.getByRole("log").getByText("fuse.raised").waitFor({ state: "detached" });

		await page.getByRole("link", { name: "Chat", exact: true }).click();
		await page
			.getByRole("link", { name: /something large/ })
			.first()
			.click();
		await answers(page).getByText("answered after the raise").waitFor();
	});

	it("fits a phone and reads in Chinese", async () => {
		const page = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: "zh-CN" });
		await page.evaluate("localStorage.setItem('openlani.locale', 'zh-CN')");
		for (const [path, name] of [
			["usage", "今日保险丝"],
			["alerts", "已结束"],
			["calls", "模型调用"],
			["turns", "回合"],
			["log", "日志"],
			["health", "渠道"],
		]) {
			await page.goto(`${program.origin}/console/${path}`);
			await page.getByRole("region", { name, exact: true }).waitFor();
			expect([path, await page.evaluate<boolean>("document.documentElement.scrollWidth <= window.innerWidth")]).toEqual([path, true]);
		}
		await page.goto(`${program.origin}/console/nowhere`);
		await page.waitForURL("**/console/usage");
	});
});
