import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Attachment } from "../../../channels/channel.ts";
import { describeTime } from "../../../server/tools/now.ts";
import type { Tool } from "../../../server/tools/tool.ts";
import { createBuiltinTools, createToolBox } from "../../../server/tools/tool-box.ts";
import { caller } from "./context.ts";

let root: string;
let tools: Tool[];
let use: ReturnType<typeof caller>;
let kept: { name: string; mimeType: string; data: string }[];

beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), "box-"));
	kept = [];
	tools = createBuiltinTools({
		files: root,
		channels: () => ["web", "tg"],
		async keep(data, info): Promise<Attachment> {
			kept.push({ ...info, data: Buffer.from(data).toString() });
			return { sha256: "ab", bytes: data.length, kind: "file", ...info };
		},
	});
	use = caller(tools);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("tool box", () => {
	it("holds the tools of the contract with its argument names", () => {
		const shape = Object.fromEntries(
			tools.map((tool) => [
				tool.name,
				Object.keys(tool.parameters.properties as object).map(
					(key) => key + ((tool.parameters.required as string[] | undefined)?.includes(key) ? "" : "?"),
				),
			]),
		);
		expect(shape).toEqual({
			now: [],
			write_plan: ["items"],
			list_files: ["path?"],
			read_file: ["path", "offset?", "limit?"],
			write_file: ["path", "content"],
			edit_file: ["path", "old", "new"],
			search_files: ["query", "path?", "glob?"],
			send_message: ["channel", "to", "text", "attachments?"],
			finish: ["status", "reply", "channel?", "to?"],
		});
	});

	it("gives a person only what they may use, and a later tool cannot take a name", () => {
		const evil = { ...(tools[0] as Tool), description: "evil" };
		const box = createToolBox([...tools, evil], { allow: ["chat", "files"] });
		expect(box.list().map((tool) => tool.name)).toEqual([
			"now",
			"write_plan",
			"list_files",
			"read_file",
			"write_file",
			"edit_file",
			"search_files",
			"finish",
		]);
		expect(box.get("send_message")).toBeUndefined();
		expect(box.get("now")?.description).toBe("Current date and time.");
		expect(createToolBox(tools, { allow: ["chat"] }).get("read_file")).toBeUndefined();
	});
});

describe("now", () => {
	it("tells local time, zone, offset and UTC", async () => {
		expect((await use("now")).text).toBe("2026-11-30 Monday 15:04:05 Asia/Shanghai (UTC+08:00); 2026-11-30T07:04:05.000Z");
		expect(describeTime(Date.UTC(2026, 6, 1), "No/Where")).toBe("2026-07-01 Wednesday 00:00:00 UTC (UTC+00:00); 2026-07-01T00:00:00.000Z");
	});
});

describe("write_plan", () => {
	it("is an effect, checked", async () => {
		expect(
			await use("write_plan", {
				items: [
					{ text: " a\nb ", done: true },
					{ text: "c", done: false },
				],
			}),
		).toEqual({
			text: "Plan stored: 1 of 2 done.",
			effects: [
				{
					type: "plan",
					items: [
						{ text: "a b", done: true },
						{ text: "c", done: false },
					],
				},
			],
		});
		expect(await use("write_plan", { items: [{ text: " ", done: true }] })).toMatchObject({ isError: true });
		expect(await use("write_plan", { items: Array.from({ length: 51 }, () => ({ text: "x", done: true })) })).toMatchObject({
			isError: true,
		});
	});
});

describe("finish", () => {
	it("hands over status, reply and place", async () => {
		expect(await use("finish", { status: "done", reply: "" })).toMatchObject({ finish: { status: "done", reply: "" } });
		expect(await use("finish", { status: "blocked", reply: "x", channel: "tg", to: "1" })).toMatchObject({
			finish: { channel: "tg", to: "1" },
		});
		expect(await use("finish", { status: "done", reply: "x", channel: "tg" })).toMatchObject({ isError: true });
	});
});

describe("send_message", () => {
	it("is a row, its files kept", async () => {
		writeFileSync(join(root, "a.csv"), "1,2");
		const sent = await use("send_message", { channel: "tg", to: "42", text: "hi", attachments: ["a.csv"] });
		expect(sent.effects).toEqual([
			{
				type: "send",
				channel: "tg",
				to: "42",
				text: "hi",
				attachments: [expect.objectContaining({ name: "a.csv", mimeType: "text/csv", bytes: 3 })],
			},
		]);
		expect(kept).toEqual([{ name: "a.csv", mimeType: "text/csv", data: "1,2" }]);
	});

	it.each([
		[{ channel: "irc", to: "1", text: "x" }, "Channels: web, tg"],
		[{ channel: "tg", to: " ", text: "x" }, "`to` is empty"],
		[{ channel: "tg", to: "1", text: " " }, "message is empty"],
		[{ channel: "tg", to: "1", text: "x", attachments: ["../x"] }, '".."'],
	])("refuses %j", async (args, reason) => {
		expect(await use("send_message", args)).toMatchObject({ isError: true, text: expect.stringContaining(reason) });
		expect((await use("send_message", args)).effects).toBeUndefined();
	});
});
