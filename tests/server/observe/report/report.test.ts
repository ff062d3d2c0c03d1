import { afterEach, describe, expect, it } from "vitest";
import { diffLines, hunks } from "../../../../server/observe/report/diff.ts";
import { gatherDay, gatherTurn } from "../../../../server/observe/report/gather.ts";
import { escapeHtml, renderReport } from "../../../../server/observe/report/html.ts";
import { recordTurn } from "../recorded-turn.ts";

let recorded: Awaited<ReturnType<typeof recordTurn>> | null = null;
afterEach(async () => {
	await recorded?.close();
	recorded = null;
});

const evil = `<script>alert(1)</script><img src=x onerror=alert(2)> "'&`;

describe("a report", () => {
	it("shows what was asked, done, answered and paid, in both languages, with everything escaped and nothing from outside", async () => {
		recorded = await recordTurn({
			said: `Read it ${evil}`,
			answers: [{ text: "I look.", reasoning: "SECRET THOUGHTS", calls: [["read_file", { path: evil }]] }, { text: `Done: ${evil}` }],
			tools: { read_file: () => `contents ${evil}` },
		});
		const { store, calendar, clock } = recorded;
		await store.events.append(
			[1, 2].map((seq) => ({
				seq,
				at: Date.parse("2026-11-30T04:00:00.012Z"),
				type: "plan",
				level: "debug" as const,
				conversationId: "c1",
				turnId: "turn-1",
				body: { items: [{ text: `find ${evil}`, done: seq === 2 }] },
			})),
		);
		const options = {
			store,
			ledger: store.ledger,
			calendar,
			timezone: "Asia/Shanghai",
			clock,
			changes: async () => [
				{ file: "Agent.md", at: clock.now(), by: "agent", reason: "tidy", before: "a\nold\nz", after: `a\n${evil}\nz` },
				{ file: "Fact.md", at: clock.now(), by: "agent", reason: "told", before: "", after: "- likes plums <!--f:fd1510-ab-->" },
			],
		};
		const data = await gatherTurn(options, "turn-1");
		if (!data) throw new Error("no turn");
		for (const [locale, words] of [
			["en", ["Step 1", "Answer", "What it was for", "arguments"]],
			["zh-CN", ["步骤 1", "回答", "按用途", "参数"]],
		] as const) {
			const html = renderReport(data, locale);
			for (const word of [...words, "I look.", "contents", "Agent.md", "likes tea", "0.00036 USD", "some-model"])
				expect(html, word).toContain(word);
			for (const tag of html.match(/<[^>]*>/g) ?? []) expect(tag).not.toMatch(/^<(script|img|a|link|iframe)\b|\s(href|src|on\w+)=/i);
			expect(html).not.toMatch(/url\(|@import|https?:\/\//);
			expect(html).toMatch(/likes plums</);
			expect(html).not.toContain("fd1510");
			expect(html).not.toContain("SECRET THOUGHTS");
			expect(html).toContain(escapeHtml(evil));
			expect(html).toContain("default-src 'none'");
			expect(html).toContain('<span class="removed">− - [ ] find');
			expect(html).toContain('<span class="removed">− old</span>');
		}
		const day = await gatherDay(options, "2026-11-30");
		expect(day.turns).toHaveLength(1);
		expect(day.bars).toHaveLength(24);
		expect(day.bars[12]).toMatchObject({ input: 240, output: 60 });
		expect(renderReport(day, "zh")).toContain("日报 2026-11-30");
		expect((await gatherDay(options, "2026-11-29")).turns).toEqual([]);
		expect(await gatherTurn(options, "nowhere")).toBeNull();
	});
});

describe("a diff", () => {
	it("keeps what is common and shows what came and went", () => {
		const lines = diffLines("a\nb\nc\nd", "a\nx\nc\nd\ne");
		expect(lines.map((line) => `${line.kind[0]}${line.text}`)).toEqual(["sa", "rb", "ax", "sc", "sd", "ae"]);
		expect(diffLines("", "")).toEqual([]);
		expect(diffLines("same", "same")).toEqual([{ kind: "same", text: "same" }]);
	});

	it("leaves out what is far from a change", () => {
		const before = Array.from({ length: 50 }, (_, i) => `line ${i}`);
		const after = before.with(25, "changed");
		const shown = hunks(diffLines(before.join("\n"), after.join("\n")));
		expect(shown).toHaveLength(8);
		expect(shown[0]).toBeNull();
		expect(shown.at(-1)).toBeNull();
	});
});
