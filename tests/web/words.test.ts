import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { en } from "../../web/src/lib/locales/en.ts";
import { zhCn } from "../../web/src/lib/locales/zh-cn.ts";

type Tree = { [key: string]: string | Tree };

function flat(tree: Tree, prefix = ""): Map<string, string> {
	return new Map(
		Object.entries(tree).flatMap(([key, value]) =>
			typeof value === "string" ? [[prefix + key, value] as [string, string]] : [...flat(value, `${prefix}${key}.`)],
		),
	);
}

const english = flat(en);
const chinese = flat(zhCn);
const root = fileURLToPath(new URL("../../web/src", import.meta.url));
const sources = readdirSync(root, { recursive: true, encoding: "utf8" })
	.filter((name) => /\.tsx?$/.test(name) && !name.includes("locales"))
	.map((name) => readFileSync(join(root, name), "utf8"));

describe("the words of the page", () => {
	it("are the same set in both languages, each with the same values to fill in", () => {
		const holes = (text: string | undefined) => [...(text ?? "").matchAll(/{{(\w+)}}/g)].map((hole) => hole[1]).sort();
		expect([...chinese.keys()]).toEqual([...english.keys()]);
		for (const [key, text] of english) expect([key, holes(chinese.get(key))]).toEqual([key, holes(text)]);
	});

	it("are all used, and all that are used exist", () => {
		const code = sources.join("\n");
		const used = new Set([...code.matchAll(/["`]([a-zA-Z]+\.[a-zA-Z.]*[a-zA-Z])["`]/g)].map((found) => found[1] as string));
		const families = [...code.matchAll(/`([a-zA-Z]+\.(?:[a-zA-Z]+\.)?)([a-zA-Z]*)\$\{[^}]+\}([a-zA-Z]*)`/g)].map(
			([, start, before, after]) => new RegExp(`^${start}${before}[\\w-]+${after}$`),
		);
		const sections = new Set(Object.keys(en));
		const missing = [...used].filter(
			(key) => sections.has(key.split(".")[0] ?? "") && !english.has(key) && !/\.(ts|tsx|css|svg)$/.test(key),
		);
		const idle = [...english.keys()].filter((key) => !used.has(key.replace(/_one$/, "")) && !families.some((family) => family.test(key)));
		expect({ missing, idle }).toEqual({ missing: [], idle: [] });
	});

	it("stand in these files alone: no sentence in the code", () => {
		const strays = sources.flatMap((code) => [...code.matchAll(/>\s*([A-Z][a-z]+(?: [a-z]+)+[.?!]?)\s*</g)].map((found) => found[1]));
		expect(strays).toEqual([]);
	});
});
