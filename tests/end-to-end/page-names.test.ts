/** What somebody is told who hears the page, and has no mouse. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { browserNote, launchBrowser, noBrowser } from "../helpers/browser.ts";
import { type Program, startProgram } from "./page-program.ts";

describe.skipIf(noBrowser)(`the page by ear ${browserNote}`, () => {
	let browser: Browser;
	let program: Program;
	let model: FakeOpenAI;
	let page: Page;

	beforeAll(async () => {
		browser = await launchBrowser();
		model = await startFakeOpenAI();
		program = await startProgram({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: model.url, OPENLANI_MODEL: "scripted-model" });
		page = await browser.newPage({ viewport: { width: 1280, height: 800 }, locale: "zh-CN", reducedMotion: "reduce" });
		page.setDefaultTimeout(20_000);
	});
	afterAll(async () => {
		await browser?.close();
		await program?.remove();
		await model?.close();
	});

	const focused = () =>
		page.evaluate<string>("document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.ariaLabel ?? ''");

	it("the set-up takes the focus to what is wrong, and shows a password to who has only keys, in Chinese", async () => {
		await page.goto(program.setupLink ?? "");
		await page.getByRole("button", { name: "下一步" }).click();
		await page.getByRole("button", { name: "下一步" }).click();
		expect(await page.title()).toBe("欢迎使用 OpenLani");
		await page.getByLabel("用户名").fill("robin");
		await page.getByLabel("密码", { exact: true }).fill("short");
		await page.getByRole("button", { name: "下一步" }).click();
		await expect.poll(focused).toBe("密码");
		await page.keyboard.press("Tab");
		expect(await focused()).toBe("显示或隐藏输入的内容");
		await page.keyboard.press("Enter");
		expect(await page.getByLabel("密码", { exact: true }).getAttribute("type")).toBe("text");
		await page.getByLabel("密码", { exact: true }).fill("correct horse battery");
		await page.getByRole("button", { name: "下一步" }).click();
		await expect.poll(focused).toBe("再输一遍密码");
		await page.keyboard.type("correct horse battery");
		await page.keyboard.press("Enter");
		await page.getByRole("button", { name: "开始" }).click();
		await page.waitForURL("**/chat");
	});

	it("each page has a name of its own", async () => {
		await expect.poll(() => page.title()).toBe("对话 · OpenLani");
		await page.getByRole("link", { name: /^控制台/ }).click();
		await expect.poll(() => page.title()).toBe("控制台 · OpenLani");
		await page.getByRole("link", { name: "设置" }).click();
		await expect.poll(() => page.title()).toBe("设置 · OpenLani");
		await page.getByRole("link", { name: "对话" }).click();
	});

	it("the state in the header is told when it stays, and not when it comes and goes", async () => {
		const told = page.getByTestId("agent-state");
		await page.getByRole("link", { name: "对话", exact: true }).click();
		await expect.poll(() => told.textContent(), { timeout: 15_000 }).toMatch(/空闲$/);
		// Every word that it is given from now on.
		await page.evaluate(`(() => {
			const region = document.querySelector('[data-testid="agent-state"]');
			window.told = [];
			new MutationObserver(() => window.told.push(region.textContent)).observe(region, { subtree: true, characterData: true, childList: true });
		})()`);
		model.script({ text: "好" });
		await page.getByRole("textbox", { name: "消息" }).fill("你好");
		await page.keyboard.press("Enter");
		await page.locator('[role="log"] article[aria-busy="false"]').getByText("好", { exact: true }).waitFor();
		await program.stop();
		await expect.poll(() => told.textContent(), { timeout: 15_000 }).toMatch(/无法连接$/);
		await program.restart();
		await expect.poll(() => told.textContent(), { timeout: 30_000 }).toMatch(/空闲$/);
		const words = (await page.evaluate<string[]>("window.told")).map((text) => text.split(" · ").at(-1));
		expect(words).toEqual(["无法连接", "空闲"]);
	});

	it("words stand apart, numbers are said once, and waiting is said once", async () => {
		model.script({ text: "see [there](https://example.test/a)" });
		await page.getByRole("textbox", { name: "消息" }).fill("hi");
		await page.getByRole("textbox", { name: "消息" }).press("Enter");
		await page.getByRole("link", { name: "there example.test 在新标签页打开", exact: true }).waitFor();
		model.script({ status: 401, error: { message: "bad key" } });
		await page.getByRole("textbox", { name: "消息" }).fill("again");
		await page.getByRole("textbox", { name: "消息" }).press("Enter");
		await page.getByRole("link", { name: "控制台 1 条未处理的警报", exact: true }).waitFor();
		await program.stop();
		const alert = page.getByRole("alert").filter({ hasText: /\d 秒后重连/ });
		await alert.waitFor();
		const said = await alert.ariaSnapshot();
		expect(said).toContain("服务端没有响应");
		expect(said).not.toMatch(/\d/);
	});
});
