import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createGate, type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { browserNote, launchBrowser, noBrowser } from "../helpers/browser.ts";
import { account, type Program, startProgram } from "./page-program.ts";

let browser: Browser;
let contexts: BrowserContext[] = [];

async function open(part: Parameters<Browser["newContext"]>[0] = {}): Promise<{ page: Page; faults: string[]; outside: string[] }> {
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
	const faults: string[] = [];
	const outside: string[] = [];
	page.on("pageerror", (error) => faults.push(error.message));
	page.on("request", (request) => {
		const { hostname, protocol } = new URL(request.url());
		if (protocol.startsWith("http") && hostname !== "127.0.0.1") outside.push(request.url());
	});
	return { page, faults, outside };
}

async function setUp(page: Page, program: Program): Promise<void> {
	await page.goto(program.setupLink ?? "");
	await page.getByRole("button", { name: "Next" }).click();
	await page.getByRole("radio", { name: /Demo model|Go on with/, checked: true }).waitFor();
	await page.getByRole("button", { name: "Next" }).click();
	await page.getByLabel("Username").fill(account.username);
	await page.getByLabel("Password", { exact: true }).fill(account.password);
	await page.getByLabel("Password again").fill(account.password);
	await page.getByRole("button", { name: "Next" }).click();
	await page.getByRole("button", { name: "Start" }).click();
	await page.waitForURL("**/chat");
}

async function signIn(page: Page, program: Program): Promise<void> {
	await page.goto(`${program.origin}/chat`);
	await page.getByLabel("Username").fill(account.username);
	await page.getByLabel("Password", { exact: true }).fill(account.password);
	await page.getByRole("button", { name: "Sign in" }).click();
	await composer(page).waitFor();
}

const composer = (page: Page) => page.getByRole("textbox", { name: "Message" });
const answers = (page: Page) => page.locator('[role="log"] article[aria-busy="false"]');
const asked = (page: Page) => page.locator('[role="log"] article[aria-label="You"]');

async function say(page: Page, text: string): Promise<void> {
	await composer(page).fill(text);
	await composer(page).press("Enter");
}

describe.skipIf(noBrowser)(`the page ${browserNote}`, () => {
	beforeAll(async () => {
		browser = await launchBrowser();
	});
	afterEach(async () => {
		for (const context of contexts) await context.close();
		contexts = [];
	});
	afterAll(async () => {
		await browser?.close();
	});

	describe("from the first start, with the demo model", () => {
		let program: Program;
		beforeAll(async () => {
			program = await startProgram();
		});
		afterAll(async () => {
			await program?.remove();
		});

		it("takes the one-time code out of the address bar, sets up, chats with plan and tools, and has everything after a restart", async () => {
			const { page, faults, outside } = await open();
			await page.goto(program.setupLink ?? "");
			await page.getByRole("button", { name: "Next" }).waitFor();
			expect(page.url()).toBe(`${program.origin}/setup`);
			const code = (program.setupLink ?? "").split("#setup=")[1] ?? "?";
			expect(
				await page.evaluate<string>("JSON.stringify([document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }])"),
			).not.toContain(code);
			await setUp(page, program);

			await say(page, "Plan a weekend by the sea for two");
			await page.waitForURL(/\/chat\/(?!new)/);
			await answers(page).getByText("demo model", { exact: false }).first().waitFor();
			await page.getByRole("region", { name: /^Plan: \d of \d done/ }).waitFor();
			const tool = page.getByRole("button", { name: /write_file/ });
			await tool.click();
			expect(await tool.getAttribute("aria-expanded")).toBe("true");
			await page.getByRole("button", { name: "Why" }).first().click();
			await page.getByRole("heading", { name: "What this answer rests on" }).waitFor();
			await page.getByText(/tokens in .* characters/).waitFor();
			const before = await answers(page).first().locator("p").allTextContents();
			expect(before.length).toBeGreaterThan(2);
			// What a screen reader is told, once and without marks.
			expect(await page.getByTestId("announcer").textContent()).toMatch(/answered: /);

			await program.stop();
			await page
				.getByText(/not reachable|Reconnecting/)
				.first()
				.waitFor();
			await say(page, "What time is it?");
			await page.getByText("waiting for the connection").waitFor();
			await program.restart();
			await page.getByText("waiting for the connection").waitFor({ state: "detached" });
			await expect.poll(() => asked(page).count(), { timeout: 20_000 }).toBe(2);
			await expect.poll(() => answers(page).count(), { timeout: 20_000 }).toBe(2);
			await page.reload();
			await expect.poll(() => asked(page).count(), { timeout: 20_000 }).toBe(2);
			await expect.poll(() => answers(page).count(), { timeout: 20_000 }).toBe(2);
			await expect.poll(() => answers(page).first().locator("p").allTextContents(), { timeout: 20_000 }).toEqual(before);
			expect(faults).toEqual([]);
			expect(outside).toEqual([]);
		});

		it("renames, pins, finds and deletes a conversation", async () => {
			const { page, faults } = await open();
			await signIn(page, program);
			const list = page.getByRole("region", { name: "Conversations" });
			await say(page, "list my files");
			await page.waitForURL(/\/chat\/(?!new)/);
			await answers(page).first().waitFor();
			const menu = async (item: string) => {
				await list
					.locator("li", { has: page.locator('a[aria-current="page"]') })
					.getByRole("button")
					.click();
				await page.getByRole("menuitem", { name: item }).click();
			};
			await menu("Rename");
			await page.getByRole("textbox", { name: "Name" }).fill("Files of mine");
			await page.getByRole("button", { name: "Save" }).click();
			await list.getByText("Files of mine").waitFor();
			await menu("Pin");
			await list.getByRole("heading", { name: "Pinned" }).waitFor();
			await list.getByRole("searchbox").fill("mine files");
			await expect.poll(() => list.getByRole("link", { name: /Plan a weekend/ }).count()).toBe(0);
			expect(await list.getByRole("link", { name: /Files of mine/ }).count()).toBe(1);
			await list.getByRole("searchbox").fill("");
			await menu("Delete");
			await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
			await list.getByText("Files of mine").waitFor({ state: "detached" });
			await page.waitForURL("**/chat");
			expect(faults).toEqual([]);
		});

		it("works on a phone: list and conversation are pages, nothing is wider than the screen", async () => {
			const { page } = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
			await page.goto(`${program.origin}/login`);
			await page.getByLabel("Username").fill(account.username);
			await page.getByLabel("Password", { exact: true }).fill(account.password);
			await page.getByRole("button", { name: "Sign in" }).click();
			await page.getByRole("link", { name: /Plan a weekend/ }).click();
			await answers(page).first().waitFor();
			const fits = () => page.evaluate<boolean>("document.documentElement.scrollWidth <= window.innerWidth");
			expect(await fits()).toBe(true);
			expect(await page.getByRole("region", { name: "Conversations" }).count()).toBe(0);
			await page.getByRole("link", { name: "All conversations" }).click();
			await page.getByRole("region", { name: "Conversations" }).waitFor();
			await page.getByRole("link", { name: "Settings" }).click();
			await page.getByRole("heading", { name: "Settings" }).waitFor();
			await page.getByRole("combobox", { name: "Time zone" }).waitFor();
			expect(await fits()).toBe(true);
		});

		it("speaks Chinese to a Chinese browser, and switches", async () => {
			const { page } = await open({ locale: "zh-CN" });
			await page.goto(`${program.origin}/login`);
			await page.getByRole("button", { name: "登录" }).waitFor();
			expect(await page.locator("html").getAttribute("lang")).toBe("zh-CN");
			await page.getByRole("button", { name: "菜单" }).click();
			await page.getByRole("menuitem", { name: "English" }).click();
			await page.getByRole("button", { name: "Sign in" }).waitFor();
			expect(await page.locator("html").getAttribute("lang")).toBe("en");
		});

		it("says that a wrong password is wrong, and lets nobody in", async () => {
			const { page } = await open();
			await page.goto(`${program.origin}/chat`);
			await page.getByLabel("Username").fill(account.username);
			await page.getByLabel("Password", { exact: true }).fill("wrong");
			await page.getByRole("button", { name: "Sign in" }).click();
			await page.getByText("Username or password is not right.").waitFor();
			expect(page.url()).toContain("/login");
		});
	});

	describe("with a scripted model", () => {
		let program: Program;
		let model: FakeOpenAI;
		beforeAll(async () => {
			model = await startFakeOpenAI();
			program = await startProgram({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: model.url, OPENLANI_MODEL: "scripted-model" });
			const { page } = await open();
			await setUp(page, program);
		});
		afterAll(async () => {
			await program?.remove();
			await model?.close();
		});

		it("shows a model's text as text: nothing in it runs, nothing remote is loaded", async () => {
			const { page, faults, outside } = await open();
			await signIn(page, program);
			model.script({
				text: [
					'<script>window.pwned=1</script><img src=x onerror="window.pwned=2"><iframe srcdoc="<script>parent.pwned=3</script>"></iframe>\n\n',
					"![pixel](https://tracker.example.test/p.png) [run](javascript:window.pwned=4) [go](https://example.test/x) [api](/api/v1/logout)\n\n",
					'<svg onload="window.pwned=5"></svg> <style>body{display:none}</style>\n\n',
					"| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nconst answer = 42;\n```\n\n$$\\href{javascript:window.pwned=6}{x} + \\frac{1}{2}$$ The end.",
				],
			});
			await say(page, "show me");
			await answers(page).getByText("The end.").waitFor();
			await page.locator(".katex").first().waitFor();
			await page.locator(".hljs-keyword").first().waitFor();
			const log = page.locator('[role="log"]');
			expect(await log.locator("table td").allTextContents()).toEqual(["1", "2"]);
			expect(await log.textContent()).toContain("<script>window.pwned=1</script>");
			expect(await log.locator("script, iframe, object, embed, img, style, svg[onload]").count()).toBe(0);
			const links = await page.evaluate<string[][]>(
				"[...document.querySelectorAll('[role=log] article a')].map((a) => [a.getAttribute('href'), a.getAttribute('rel'), a.textContent])",
			);
			expect(links.map(([href]) => href)).toEqual(["https://tracker.example.test/p.png", "https://example.test/x"]);
			for (const [, rel, text] of links) {
				expect(rel).toContain("noopener");
				expect(text).toContain("example.test");
			}
			expect(await page.evaluate<unknown>("window.pwned")).toBeUndefined();
			expect(faults).toEqual([]);
			expect(outside).toEqual([]);
		});

		it("has exactly one message and the whole answer when the socket breaks in the middle of it", async () => {
			const { page } = await open();
			let sockets = 0;
			let cut = () => {};
			await page.routeWebSocket(/\/api\/v1\/live/, (socket) => {
				sockets += 1;
				const server = socket.connectToServer();
				cut = () => {
					void server.close();
					void socket.close({ code: 1012 });
				};
			});
			await signIn(page, program);
			const gate = createGate();
			const words = Array.from({ length: 40 }, (_, index) => `word${index} `);
			model.script({ text: words, gate, gateAfter: 15 });
			await say(page, "tell me");
			await page.getByText("word8").waitFor();
			cut();
			gate.open();
			await answers(page).getByText("word39").waitFor();
			expect(sockets).toBeGreaterThan(1);
			expect(await asked(page).count()).toBe(1);
			expect(await answers(page).count()).toBe(1);
			expect((await answers(page).locator("p").textContent())?.match(/word\d+/g)).toEqual(words.map((word) => word.trim()));
		});

		it("stops, goes on, edits and asks again", async () => {
			const { page } = await open();
			await signIn(page, program);
			const gate = createGate();
			model.script({ text: ["half ", "an ", "answer ", "never ", "finished"], gate, gateAfter: 4 });
			await say(page, "first question");
			await page.getByText("half an").waitFor();
			await page.getByRole("button", { name: "Stop" }).click();
			await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
			gate.open();
			model.script({ text: "second answer" });
			await say(page, "second question");
			await answers(page).getByText("second answer").waitFor();

			model.script({ text: "another second answer" });
			await page.getByRole("button", { name: "Again" }).click();
			await answers(page).getByText("another second answer").waitFor();
			await expect.poll(() => asked(page).count()).toBe(2);
			expect(await answers(page).getByText("second answer", { exact: true }).count()).toBe(0);

			model.script({ text: "answer to the edited one" });
			await asked(page).last().hover();
			await asked(page).last().getByRole("button", { name: "Edit" }).click();
			await composer(page).fill("edited question");
			await composer(page).press("Enter");
			await answers(page).getByText("answer to the edited one").waitFor();
			await expect.poll(() => asked(page).count()).toBe(2);
			expect(model.chats.at(-1)?.raw).toContain("edited question");
		});

		it("does not send the Enter that chooses a candidate of an input method", async () => {
			const { page } = await open();
			await signIn(page, program);
			const chats = model.chats.length;
			await composer(page).focus();
			const client = await page.context().newCDPSession(page);
			await client.send("Input.imeSetComposition", { text: "ni'hao", selectionStart: 6, selectionEnd: 6 });
			await client.send("Input.dispatchKeyEvent", { type: "rawKeyDown", key: "Enter", code: "Enter", windowsVirtualKeyCode: 229 });
			await client.send("Input.insertText", { text: "你好" });
			expect(await composer(page).inputValue()).toBe("你好");
			// WebKit's order: the composition ends first, its Enter comes right after.
			await page.evaluate(`(() => {
				const field = document.querySelector("textarea");
				field.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
				field.dispatchEvent(new CompositionEvent("compositionend", { bubbles: true, data: "你好" }));
				field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", bubbles: true, cancelable: true }));
			})()`);
			await composer(page).press("Shift+Enter");
			expect(await composer(page).inputValue()).toBe("你好\n");
			expect(page.url()).toBe(`${program.origin}/chat`);
			expect(model.chats).toHaveLength(chats);
			model.script({ text: "好的" });
			await composer(page).press("Enter");
			await answers(page).getByText("好的").waitFor();
			expect(model.chats).toHaveLength(chats + 1);
		});

		it("takes files by button and by paste, and sends them along", async () => {
			const { page } = await open();
			await signIn(page, program);
			await page
				.locator('input[type="file"]')
				.setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("some notes") });
			await page.getByText("notes.txt").waitFor();
			await page.evaluate(`(() => {
				const field = document.querySelector("textarea");
				const data = new DataTransfer();
				data.items.add(new File([new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0])], "shot.png", { type: "image/png" }));
				field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
			})()`);
			await page.getByText("shot.png").waitFor();
			await page.getByRole("button", { name: "Remove shot.png" }).click();
			model.script({ text: "I have read it" });
			await say(page, "read this");
			await answers(page).getByText("I have read it").waitFor();
			expect(
				await asked(page)
					.getByRole("link", { name: /notes\.txt/ })
					.count(),
			).toBe(1);
		});

		it("can be used with the keyboard alone", async () => {
			const { page } = await open();
			await signIn(page, program);
			await page.locator("body").press("Tab");
			for (let count = 0; count < 40; count += 1) {
				const name = await page.evaluate<string>(
					"document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? ''",
				);
				if (name === "Message") break;
				await page.keyboard.press("Tab");
			}
			model.script({ text: "by keyboard" });
			await page.keyboard.type("hello");
			await page.keyboard.press("Enter");
			await answers(page).getByText("by keyboard").waitFor();
			// Up in an empty field opens the last message again, Escape leaves it.
			await composer(page).press("ArrowUp");
			await expect.poll(() => composer(page).inputValue()).toBe("hello");
			await composer(page).press("Escape");
			await expect.poll(() => composer(page).inputValue()).toBe("");
		});
	});
});
