import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { maskLogs } from "../../../server/memory/forget-logs.ts";
import { createTeller } from "../../../server/memory/forget-words.ts";

describe("what says a fact again", () => {
	it.each([
		["My PIN is 4711", "remember that my PIN is 4711!"],
		["The user's PIN is 4711", "By the way, 4711 is still the pin of my card"],
		["Anna moved to Rotterdam", "Yesterday was long. Anna is moving to Rotterdam, with a cat"],
		["I smoke", "well, i smoke, you know"],
		["我对花生过敏", "你好，记住我对花生过敏。"],
		["我对花生过敏", "我对花生一直过敏"],
		["用户的密码是 8812", "我的密码还是 8812"],
	])("%s: %s", (fact, text) => {
		expect(createTeller([fact]).repeats(text)).toBe(true);
		expect(createTeller([fact]).sentences(text)).not.toEqual([]);
	});

	it.each([
		["My PIN is 4711", "my PIN is 4712"],
		["My PIN is 4711", "the room is 4711"],
		["My PIN is 4711", "My PIN is secret. The bus 4711 is late."],
		["Anna lives in Rotterdam", "Rotterdam is windy. Anna called."],
		["I smoke", "The smoke alarm rang"],
		["我对花生过敏", "我对芒果过敏"],
		["我喜欢爬山", "我喜欢爬树"],
	])("%s: not %s", (fact, text) => {
		expect(createTeller([fact]).repeats(text)).toBe(false);
	});

	it("question and answer say it together; where it is about forgetting, the news alone does", () => {
		const teller = createTeller(["My PIN is 4711", "My PIN is 3999"]);
		expect(teller.repeatsTalk("What was my PIN again?", "It is 4711.")).toBe(true);
		expect(teller.repeatsTalk("What was my PIN again?", "I do not know.")).toBe(false);
		expect(teller.touches("Done: 3999 is forgotten")).toBe(true);
		expect(teller.touches("Shall I forget your PIN?")).toBe(false);
		expect(createTeller([]).repeats("anything")).toBe(false);
	});
});

describe("the log's files", () => {
	it("lose a text as it stands there, plain, in JSON and shortened, and keep their length and their other lines", async () => {
		const dir = await mkdtemp(join(tmpdir(), "openlani-logs-"));
		try {
			const long = `my "secret" place is behind the ${"very ".repeat(20)}old mill`;
			const other = JSON.stringify({ text: "nothing of it" });
			const lines = [
				other,
				JSON.stringify({ text: `said: ${long}` }),
				JSON.stringify({ arguments: JSON.stringify({ text: long.slice(0, 70) }) }),
			];
			await writeFile(join(dir, "openlani.log"), `${lines.join("\n")}\n`);
			await writeFile(join(dir, "openlani.1.log"), `${long}\n`);
			expect(await maskLogs(dir, [long])).toEqual([]);
			const now = await readFile(join(dir, "openlani.log"), "utf8");
			expect(now).toHaveLength(lines.join("\n").length + 1);
			expect(now.split("\n")[0]).toBe(other);
			for (const line of now.trim().split("\n")) JSON.parse(line);
			expect(now + (await readFile(join(dir, "openlani.1.log"), "utf8"))).not.toMatch(/secret|behind|very|mill/);
		} finally {
			await rm(dir, { recursive: true, force: true });
		}
	});
});
