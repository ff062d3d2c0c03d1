import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCodeOf } from "../../../server/cli/follow.ts";
import { takeImages } from "../../../server/cli/images.ts";
import { plainText } from "../../../server/cli/terminal.ts";
import type { Turn } from "../../../server/http/contract.ts";
import { createTestProgram, type TestProgram } from "./helpers.ts";

let test: TestProgram;
beforeEach(async () => {
	test = await createTestProgram();
});
afterEach(() => test.remove());

const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");

describe("run", () => {
	it("puts the answer on stdout and what happens on stderr, in this process when no daemon runs", async () => {
		const { code, out, err } = await test.run(["run", "what", "time", "is", "it?"]);
		expect(code).toBe(0);
		expect(out).toMatch(/\d{4}-\d\d-\d\d/);
		expect(err).toContain("· now");
		expect(test.started).toBe(1);
	});
	it("goes through the running daemon, and answers as JSON", async () => {
		const daemon = await test.daemon();
		const { code, out } = await test.run(["run", "--json", "-q", "what time is it?"]);
		expect(code).toBe(0);
		const result = JSON.parse(out) as Record<string, unknown>;
		expect(result).toMatchObject({ status: "done", state: "done", model: "demo", guard: null, error: null });
		expect(test.started).toBe(0);
		const response = await fetch(`${daemon.url}/api/v1/conversations/${String(result.conversationId)}/messages`, {
			headers: { authorization: `Bearer ${daemon.token}` },
		});
		expect(((await response.json()) as { messages: { role: string }[] }).messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
	});
	it("takes the task from stdin, and an image", async () => {
		const image = join(test.root, "a picture.png");
		await writeFile(image, pixel);
		await test.daemon();
		expect((await test.run(["run", "-", "-q"], { input: "what time is it?\n" })).out).toMatch(/\d{4}/);
		expect((await test.run(["run", "-q", "--image", image, "hello"])).code).toBe(0);
		expect((await test.run(["run", "--image", join(test.root, "none.png"), "hello"])).err).toContain("There is no file");
	});
	it("says what is wrong in one sentence: no task, no such model, bad limits", async () => {
		await test.daemon();
		expect(await test.run(["run"])).toMatchObject({ code: 1, err: expect.stringContaining("There is no task") });
		expect(await test.run(["run", "--model", "nope", "hi"])).toMatchObject({ code: 1, err: 'There is no model "nope"; there is: demo\n' });
		expect((await test.run(["run", "--max-steps", "0", "hi"])).code).toBe(1);
		expect((await test.run(["run", "--timeout", "soon", "hi"])).code).toBe(1);
	});
	it("ends with 2 when the time is up, and the turn is stopped", async () => {
		const daemon = await test.daemon();
		const { code, out } = await test.run(["run", "--json", "--timeout", "1ms", "what time is it?"]);
		expect(code).toBe(2);
		const { turnId } = JSON.parse(out) as { turnId: string };
		const turn = (await (
			await fetch(`${daemon.url}/api/v1/turns/${turnId}`, { headers: { authorization: `Bearer ${daemon.token}` } })
		).json()) as Turn;
		expect(["stopped", "done"]).toContain(turn.state);
	});
	it("tells done, failed and not finished apart", () => {
		const turn = (change: Partial<Turn>, finish?: string) =>
			({
				state: "done",
				guard: null,
				steps: finish === undefined ? [] : [{ calls: [{ name: "finish", arguments: finish }] }],
				...change,
			}) as unknown as Turn;
		expect(exitCodeOf(turn({}))).toBe(0);
		expect(exitCodeOf(turn({}, '{"status":"done"}'))).toBe(0);
		expect(exitCodeOf(turn({}, '{"status":"blocked"}'))).toBe(2);
		expect(exitCodeOf(turn({ state: "failed" }))).toBe(1);
		expect(exitCodeOf(turn({ state: "stopped" }))).toBe(2);
		expect(exitCodeOf(turn({ guard: "steps" }))).toBe(2);
	});
	it("names the token when the daemon has one of its own", async () => {
		await test.daemon({ OPENLANI_TOKEN: "a-token-of-its-own-0001" });
		expect(await test.run(["run", "hi"])).toMatchObject({ code: 1, err: expect.stringContaining("OPENLANI_TOKEN") });
		expect(await test.run(["run", "-q", "hi"], { env: { OPENLANI_TOKEN: "a-token-of-its-own-0001" } })).toMatchObject({ code: 0 });
		expect((await test.run(["token"])).code).toBe(1);
	});
});

describe("chat", () => {
	it("streams, shows tools and plans, obeys its commands, and goes on where it was", async () => {
		await test.daemon();
		const first = await test.run(["chat"], {
			input: "what time is it?\nplan a weekend in Kyoto\n/plan\n/model\n/stop\n/bogus\n/hlep\n/exit\nnever sent\n",
		});
		expect(first.code).toBe(0);
		expect(first.out).toContain("new conversation");
		expect(first.out).toContain("· now");
		expect(first.out).toMatch(/\[[x ]\] /);
		expect(first.out).toContain("Nothing is running.");
		expect(first.out).toContain("There is no /bogus");
		expect(first.out).toContain("did you mean /help?");
		expect(first.out).not.toContain("never sent");
		const second = await test.run(["chat"], { input: "/plan\n" });
		expect(second.out).toContain("plan a weekend in Kyoto");
		expect(second.out).toMatch(/\[[x ]\] /);
		const third = await test.run(["chat", "--new"], { input: "/resume\n/resume 2\n/resume 99\n" });
		expect(third.out).toContain("There is no conversation 99");
		expect(third.out.match(/plan a weekend in Kyoto/g)?.length).toBeGreaterThanOrEqual(1);
		expect((await test.run(["chat", "--model", "nope"], { input: "" })).err).toContain('There is no model "nope"');
	});
	it("joins lines, sends images by their path, keeps commands apart from paths", async () => {
		const image = join(test.root, "cat picture.png");
		await writeFile(image, pixel);
		const daemon = await test.daemon();
		const { out } = await test.run(["chat", "--new"], {
			input: `hello \\\nsecond line\nlook at "${image}" please\n/image ${join(test.root, "gone.png")}\nhm\n/tmp/not-a-command is a path\n`,
		});
		expect(out).toContain("+ cat picture.png");
		expect(out).toContain("gone.png cannot be read (ENOENT)");
		expect(out).not.toContain("There is no /tmp");
		const list = (await (
			await fetch(`${daemon.url}/api/v1/conversations`, { headers: { authorization: `Bearer ${daemon.token}` } })
		).json()) as { conversations: { id: string }[] };
		const { messages } = (await (
			await fetch(`${daemon.url}/api/v1/conversations/${list.conversations[0]?.id}/messages`, {
				headers: { authorization: `Bearer ${daemon.token}` },
			})
		).json()) as { messages: { role: string; text: string; attachments: unknown[] }[] };
		const said = messages.filter(({ role }) => role === "user");
		expect(said.map(({ text }) => text)).toEqual(["hello \nsecond line", "look at please", "/tmp/not-a-command is a path"]);
		expect(said[1]?.attachments).toHaveLength(1);
	});
	it("takes only paths of files that are there", async () => {
		const image = join(test.root, "b.png");
		await writeFile(image, pixel);
		expect(await takeImages(`see ${image} and logo.png and ./none.png`)).toEqual({
			text: "see and logo.png and ./none.png",
			paths: [image],
		});
		expect(await takeImages("it's  fine")).toEqual({ text: "it's  fine", paths: [] });
		const spaced = join(test.root, "c d.png");
		await writeFile(spaced, pixel);
		expect((await takeImages(spaced.replaceAll(" ", "\\ "))).paths).toEqual([spaced]);
	});
	it("lets no text steer the terminal", () => {
		expect(plainText("a\u001b[31mred\u001b[0m\u001b]0;title\u0007b\u001b]52;c;aGk=\u001b\\c\rd\u0007\u009b2Je\u202ef\tg\n")).toBe(
			"aredbc\nd2Jef\tg\n",
		);
	});
});

describe("token", () => {
	it("is printed alone on its line, the environment's before the home's", async () => {
		await test.run(["init", "--yes"]);
		const { out } = await test.run(["token"]);
		expect(out).toBe(await readFile(join(test.home, "data", "token"), "utf8"));
		expect((await test.run(["token"], { env: { OPENLANI_TOKEN: "0123456789abcdef" } })).out).toBe("0123456789abcdef\n");
	});
});
