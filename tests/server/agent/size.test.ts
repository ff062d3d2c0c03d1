import { encode } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { rulesBlock } from "../../../server/agent/rules.ts";
import { createBuiltinTools } from "../../../server/tools/tool-box.ts";
import { run } from "./scripted.ts";

const tools = createBuiltinTools({ files: "/nowhere", keep: () => Promise.reject(new Error("unused")) });

describe("what “hi” costs", () => {
	it.each(["en", "zh-CN"])("stays small with rules and tools (%s)", async (locale) => {
		const { model } = await run([{ text: "hi" }], { tools, input: { locale, blocks: [rulesBlock(locale)] } });
		const request = model.requests[0];
		const wire = JSON.stringify([request?.messages, request?.tools.map((tool) => ({ type: "function", function: tool }))]);
		// The rest of the budget (9,000 characters, 2,500 tokens) is for SOUL, Agent, memory and further tools.
		expect(wire.length).toBeLessThan(4_600);
		expect(encode(wire).length).toBeLessThan(1_250);
	});
});
