import { describe, expect, it } from "vitest";
import { createThinkFilter } from "../../../server/model/openai/think.ts";

/** Feeds `text` in pieces of `size` characters; void makes what came before nothing. */
function filter(text: string, size: number, assume = false): { text: string; thought: string; voided: boolean } {
	const think = createThinkFilter(assume);
	let shown = "";
	let thought = "";
	let voided = false;
	const take = (piece: { text: string; thought: string; void: boolean }) => {
		if (piece.void) {
			voided = true;
			thought += shown;
			shown = "";
		}
		shown += piece.text;
		thought += piece.thought;
	};
	for (let at = 0; at < text.length; at += size) take(think.push(text.slice(at, at + size)));
	take(think.end());
	return { text: shown, thought, voided };
}

const sizes = [1, 2, 3, 5, 8, 1_000];

const stripped: [string, string, string][] = [
	["plain", "<think>secret</think>\n\nHello", "Hello"],
	["upper case and spaces", "<THINK >secret</ think >Hello", "Hello"],
	["attributes", '<think mode="deep">secret</think>Hello', "Hello"],
	["other names", "<thinking>secret</thinking>Hello <reasoning>secret</reasoning>you", "Hello you"],
	["thought", "<thought>secret</thought>Hello", "Hello"],
	["in the middle", "Hello <think>secret</think>world", "Hello world"],
	["several", "<think>secret</think>a<think>secret</think>b", "ab"],
	["never closed", "Hello <think>secret and secret", "Hello "],
	["empty", "<think></think>Hello", "Hello"],
	["within thinking", "<think>secret<think>secret</think>secret</think>\n\nHello", "Hello"],
	["three deep", "Hello <think>secret<think>secret<think>secret</think>secret</think>secret</think>world", "Hello world"],
	["talk about the tag", "<think>secret: the <think> tag</think>\n\nHello", "Hello"],
	["talk about the tag, then again", "<think>secret <think> tag</think>Hello <think>secret</think>world", "Hello world"],
	["Mistral", "[THINK]secret[/THINK]Hello", "Hello"],
	["Kimi", "◁think▷secret◁/think▷Hello", "Hello"],
	["Seed", "<seed:think>secret</seed:think>Hello", "Hello"],
	["begin_of_thought", "<|begin_of_thought|>secret<|end_of_thought|><|begin_of_solution|>Hello<|end_of_solution|>", "Hello"],
	["harmony", "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Hello", "Hello"],
	["Chinese", "<think>secret 思考</think>你好，<b>世界</b>", "你好，<b>世界</b>"],
	["with code inside", "<think>secret ```js\nsecret\n``` secret</think>Hello", "Hello"],
	["after an unmatched backtick", "a ` b <think>secret</think>\nHello", "a ` b \nHello"],
	["no opening tag", "secret thoughts\n\nmore secret</think>\n\nHello", "Hello"],
];

const kept = [
	"a < b and c > d [x] ~ 5",
	"```html\n<think>literal</think>\n```\nafter",
	"~~~\n<think>literal</think>\n~~~",
	"````\n```\n<think>literal</think>\n```\n````\nafter",
	"The tag `<think>` is literal, `</think>` too.",
	"Use ``<think>`x`</think>`` here",
	"<thinker>no tag</thinker> <b>bold</b> <thin",
	"1. ```\n   <think>x</think>\n   ```",
	"half <thi",
	"`open code span <b",
	"| a | b |\n|---|---|\n| [l](x) | ~~s~~ |",
];

describe("thinking in text", () => {
	it.each(stripped)("%s is taken out, however it is cut", (_, input, output) => {
		for (const size of sizes) {
			const result = filter(input, size);
			expect({ size, text: result.text }).toEqual({ size, text: output });
			expect(result.thought).toContain(input.includes("secret") ? "secret" : "");
		}
	});

	it.each(kept)("%j survives", (input) => {
		for (const size of sizes) expect({ size, text: filter(input, size).text }).toEqual({ size, text: input });
	});

	it("thinking after a code block is still taken out", () => {
		for (const size of sizes)
			expect(filter("```\n<think>literal</think>\n```\n<think>secret</think>x", size).text).toBe("```\n<think>literal</think>\n```\nx");
	});

	it("says that streamed text was thinking when only a closing tag comes", () => {
		expect(filter("secret</think>Hello", 4).voided).toBe(true);
	});

	it("a model known for that is not shown before its closing tag", () => {
		for (const size of sizes) {
			expect(filter("secret</think>Hello", size, true)).toEqual({ text: "Hello", thought: "secret", voided: false });
			expect(filter("just an answer", size, true)).toEqual({ text: "just an answer", thought: "", voided: false });
		}
	});

	it("streams on: nothing is held back that cannot be a tag", () => {
		const think = createThinkFilter();
		expect(think.push("Hello world").text).toBe("Hello world");
		expect(think.push(" 1 < 2").text).toBe(" 1 < 2");
		expect(think.push(" and <b").text).toBe(" and <b");
		expect(think.push(" more <t").text).toBe(" more ");
		expect(think.push("able>").text).toBe("<table>");
	});
});
