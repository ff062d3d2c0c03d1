import { describe, expect, it } from "vitest";
import { clockTime, dayKey, duration, fileSize, money, nameInText, shortCount, usageTokens } from "../../web/src/lib/format.ts";
import { isSendKey, type KeyPress } from "../../web/src/lib/keys.ts";
import { setupCodeOf } from "../../web/src/lib/setup-code.ts";
import { hasColouredCode, hasMath, linkTarget, normalizeMath } from "../../web/src/ui/markdown-text.ts";

const press = (part: Partial<KeyPress> = {}): KeyPress => ({
	key: "Enter",
	shiftKey: false,
	altKey: false,
	keyCode: 13,
	isComposing: false,
	timeStamp: 10_000,
	...part,
});

describe("the key that sends", () => {
	it("is Enter alone", () => {
		expect(isSendKey(press(), null)).toBe(true);
		expect(isSendKey(press({ shiftKey: true }), null)).toBe(false);
		expect(isSendKey(press({ altKey: true }), null)).toBe(false);
		expect(isSendKey(press({ key: "a" }), null)).toBe(false);
	});

	it("is never an Enter that belongs to an input method", () => {
		expect(isSendKey(press({ isComposing: true }), null)).toBe(false);
		expect(isSendKey(press({ keyCode: 229 }), null)).toBe(false);
	});

	it("is not the Enter that WebKit delivers after the composition has ended, but the next one", () => {
		expect(isSendKey(press({ timeStamp: 10_000 }), 9_998)).toBe(false);
		expect(isSendKey(press({ timeStamp: 10_300 }), 9_998)).toBe(true);
	});
});

describe("math in a model's text", () => {
	it("comes in every usual notation", () => {
		expect(normalizeMath("so \\(a+b\\) is")).toBe("so $$a+b$$ is");
		expect(normalizeMath("\\[x^2\\]")).toBe("\n$$\nx^2\n$$\n");
		expect(normalizeMath("let $x^2$ be $n$")).toBe("let $$x^2$$ be $$n$$");
		expect(normalizeMath("$$\nx\n$$")).toBe("$$\nx\n$$");
	});

	it("is not money", () => {
		for (const text of ["costs $5 and $10", "US$3 或 $4", "$HOME and $PATH", "价格 $5,共 $6"]) expect(normalizeMath(text)).toBe(text);
	});

	it("is not touched in code", () => {
		const text = "`$x^2$`\n\n```sh\necho $a=$b\n```\n\n~~~\n\\(y\\)\n~~~";
		expect(normalizeMath(text)).toBe(text);
		expect(normalizeMath(`${text}\n$y_1$`)).toBe(`${text}\n$$y_1$$`);
	});

	it("and colours are loaded only when there are some", () => {
		expect([
			hasMath("a $$x$$"),
			hasMath("no"),
			hasColouredCode("```ts\n1\n```"),
			hasColouredCode("```\n1\n```"),
			hasColouredCode("`ts`"),
		]).toEqual([true, false, true, false, false]);
	});
});

describe("a link of the model's", () => {
	const origin = "http://127.0.0.1:7717";
	it("goes to the web or to a mail, and says where", () => {
		expect(linkTarget("https://example.test/a?b", origin)).toEqual({ kind: "web", href: "https://example.test/a?b", host: "example.test" });
		expect(linkTarget("mailto:a@example.test", origin)).toMatchObject({ kind: "mail", host: "a@example.test" });
	});

	it("never runs anything, and never reaches into our own API", () => {
		for (const href of [
			undefined,
			"",
			"javascript:alert(1)",
			" JaVaScRiPt:alert(1)",
			"data:text/html,x",
			"vbscript:x",
			"blob:x",
			"file:///etc/passwd",
			"/api/v1/conversations",
			`${origin}/api/v1/logout`,
			"http://[bad",
		])
			expect(linkTarget(href, origin)).toEqual({ kind: "none" });
	});

	it("may show a stored asset", () => {
		const path = `/api/v1/assets/${"a".repeat(64)}`;
		expect(linkTarget(path, origin)).toEqual({ kind: "own", href: path });
	});
});

describe("numbers and times", () => {
	it("are short where they must be", () => {
		expect([0, 950, 18_400, 418_000, 999_600, 2_000_000, 1_250_000].map(shortCount)).toEqual([
			"0",
			"950",
			"18.4k",
			"418k",
			"1M",
			"2M",
			"1.3M",
		]);
		expect([12, 400, 4100, 65_000].map(duration)).toEqual(["12 ms", "0.4 s", "4.1 s", "1 m 05 s"]);
		expect([12, 1200, 3_400_000].map(fileSize)).toEqual(["12 B", "1.2 kB", "3.4 MB"]);
	});

	it("show small money as money, not as nothing", () => {
		expect(money(0.0006, "USD", "en")).toBe("$0.0006");
		expect(money(0.21, "USD", "en")).toBe("$0.21");
		expect(money(0, "CNY", "zh-CN")).toBe("¥0.00");
		expect(money(1, "not-a-currency", "en")).toBe("1.00 not-a-currency");
	});

	it("stand beside names as each language writes them", () => {
		expect(["Lani", "小岚"].map((name) => nameInText(name, "zh-CN"))).toEqual([" Lani ", "小岚"]);
		expect(nameInText("Lani", "en")).toBe("Lani");
	});

	it("mark a guess", () => {
		const usage = {
			inputTokens: 3000,
			cachedTokens: 0,
			outputTokens: 214,
			reasoningTokens: 0,
			estimated: false,
			cost: null,
			currency: "USD",
			calls: 1,
		};
		expect(usageTokens(usage, "en")).toBe("3,214");
		expect(usageTokens({ ...usage, estimated: true }, "en")).toBe("≈ 3,214");
	});

	it("are put under the viewer's day", () => {
		const now = new Date(2026, 10, 30, 0, 30);
		const at = (...parts: [number, number, number, number]) => new Date(...parts).toISOString();
		expect(dayKey(at(2026, 10, 30, 0), now, "en")).toEqual({ kind: "today" });
		expect(dayKey(at(2026, 10, 29, 23), now, "en")).toEqual({ kind: "yesterday" });
		expect(dayKey(at(2026, 10, 26, 12), now, "en")).toEqual({ kind: "day", label: "Thursday, Nov 26" });
		expect(dayKey(at(2026, 9, 20, 12), now, "zh-CN")).toEqual({ kind: "month", label: "2026年10月" });
		expect(clockTime(at(2026, 10, 30, 0), "zh-CN")).toBe("00:00");
	});
});

describe("the set-up code", () => {
	it("is taken from the link, its fragment, or as it is", () => {
		expect(setupCodeOf("http://127.0.0.1:7717/#setup=AbC-123_x")).toBe("AbC-123_x");
		expect(setupCodeOf("#setup=a%2Fb")).toBe("a/b");
		expect(setupCodeOf("  AbC-123_x ")).toBe("AbC-123_x");
		expect(setupCodeOf("what?")).toBeNull();
	});
});
