import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SQLite from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fact, Message } from "../../server/http/contract.ts";
import { type FakeOpenAI, startFakeOpenAI } from "../fakes/openai-server.ts";
import { homeWithModel, type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

/** Modes bind everybody but a root with its capabilities: as root the program is run as a root without any. */
const unprivileged = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] : [];
const probe = `new (require(${JSON.stringify(createRequire(import.meta.url).resolve("better-sqlite3"))}))(":memory:")`;
const [command = "", ...rest] = [...unprivileged, process.execPath, "-e", probe];
/** Whether such a user may read the program and its native parts: not where they belong to somebody else alone. */
const reads = spawnSync(command, rest, { cwd: tmpdir() }).status === 0;

let dir: string;
let home: string;
let model: FakeOpenAI;
let daemon: RunningDaemon;
beforeAll(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-protected-"));
	home = join(dir, "home");
	model = await startFakeOpenAI();
	model.memory((request) => ({ text: `They spoke of ${request.lastUser.match(/note\d+/g)?.join(", ") ?? "little"}.` }));
	model.otherwise((request) => {
		const said = (request.body.messages as { role: string; content: string }[]).findLast(
			({ role, content }) => role === "user" && !content.startsWith("<"),
		)?.content;
		const kept = /^remember that (.+?)\s*\[/s.exec(said ?? "")?.[1];
		if (kept && request.lastTool === null) return { calls: [{ name: "remember_fact", arguments: { text: kept.trim() } }] };
		return { text: "Noted." };
	});
	await homeWithModel(home, model.url, "memory: { exchanges: 4, compress: 2, summaryLines: 2, archive: 1 }\n");
	if (reads) daemon = await startDaemonProcess({ home, under: unprivileged });
});
afterAll(async () => {
	await daemon?.kill();
	await model?.close();
	await rm(dir, { recursive: true, force: true });
});

const workspace = (path: string) => join(home, "workspace", path);
const say = async (id: string, text: string) =>
	(await daemon.call<{ reply: Message }>("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text })).body.reply;
const facts = async () => (await daemon.call<{ facts: Fact[] }>("GET", "/api/v1/memory/facts")).body.facts.map(({ text }) => text);
const alerts = async () =>
	(await daemon.call<{ alerts: { message: { en: string } }[] }>("GET", "/api/v1/alerts?limit=200")).body.alerts
		.map(({ message }) => message.en)
		.join(" | ");
const text = (path: string) => readFile(workspace(path), "utf8").catch(() => null);

async function pages(): Promise<string> {
	const names = (await readdir(workspace("diary"))).filter((name) => name.endsWith(".md"));
	return (await Promise.all(names.map((name) => text(`diary/${name}`)))).join("\n");
}

function exchanges(): { said: string; state: string }[] {
	const db = new SQLite(join(home, "data", "openlani.db"), { readonly: true, timeout: 5000 });
	try {
		const rows = db.prepare("select body, state from memory_exchanges order by position").all() as { body: string; state: string }[];
		return rows.map((row) => ({ said: JSON.parse(row.body).said, state: row.state }));
	} finally {
		db.close();
	}
}

describe.skipIf(!reads)(
	`files and folders that may not be written, for a user whom modes bind${reads ? "" : " (such a user cannot read this clone)"}`,
	() => {
		it("are said, left as they are, and written again once they may be; nothing is lost and everybody is answered", async () => {
			const { id } = (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body;
			for (let number = 1; number <= 3; number++) expect((await say(id, `note${number}`)).text).toBe("Noted.");
			expect((await daemon.call("POST", "/api/v1/memory/facts", { text: "The boat is blue" })).status).toBe(201);
			const file = `conversations/${id}/Memory.json`;
			await expect.poll(() => text(file), { timeout: 20_000 }).toContain("note3");
			await mkdir(workspace("people/master"), { recursive: true });

			const protectedFiles = [file, "Fact.md", "MASTER.md"];
			const protectedFolders = ["people/master", "diary"];
			for (const path of protectedFiles) await chmod(workspace(path), 0o444);
			for (const path of protectedFolders) await chmod(workspace(path), 0o555);
			const before = await Promise.all(protectedFiles.map(text));
			for (let number = 4; number <= 16; number++) expect((await say(id, `note${number}`)).text).toBe("Noted.");
			expect((await say(id, "remember that the shed is locked")).text).toBe("Noted.");
			expect(await daemon.call("POST", "/api/v1/memory/facts", { text: "The roof is red" })).toMatchObject({
				status: 409,
				body: { code: "not-writable", detail: expect.stringContaining("Fact.md is read-only") },
			});
			// The next request knows the last ones all the same.
			await say(id, "note17");
			expect(model.chats.at(-1)?.raw).toContain("note16");
			expect(await facts()).toEqual(["The boat is blue"]);
			await expect
				.poll(alerts, { timeout: 20_000 })
				.toMatch(
					/(?=.*Memory\.json is read-only)(?=.*Fact\.md is read-only)(?=.*people\/master\/SUMMARY\.md cannot be written \(EACCES\))/,
				);
			expect(await Promise.all(protectedFiles.map(text))).toEqual(before);
			expect(await readdir(workspace("people/master"))).toEqual([]);

			for (const path of protectedFiles) await chmod(workspace(path), 0o600);
			for (const path of protectedFolders) await chmod(workspace(path), 0o700);
			let number = 17;
			await expect
				.poll(
					async () => {
						await say(id, `note${++number}`);
						return (await text("people/master/SUMMARY.md")) ?? "";
					},
					{ timeout: 90_000, interval: 1000 },
				)
				.toMatch(/note\d+/);
			await expect
				.poll(facts, { timeout: 90_000, interval: 500 })
				.toEqual(expect.arrayContaining(["The boat is blue", "the shed is locked"]));
			await expect.poll(() => text(file), { timeout: 20_000 }).toContain(`note${number}`);
			expect(await text("Fact.md")).toContain("the shed is locked");
			await expect.poll(pages, { timeout: 90_000, interval: 500 }).toMatch(/note\d+/);
			// Everything that was said is in the window, or summed up.
			const unkept = async () => {
				const window = (await text(file)) ?? "";
				return exchanges().filter(({ said, state }) => state !== "summed" && !window.includes(JSON.stringify(said)));
			};
			await expect.poll(unkept, { timeout: 90_000, interval: 500 }).toEqual([]);
			const told = `${await text("people/master/SUMMARY.md")}\n${await pages()}\n${await text(file)}`;
			for (let one = 1; one <= number; one++) expect(told, `note${one}`).toMatch(new RegExp(`note${one}\\b`));
			expect(model.refused).toEqual([]);
		}, 240_000);

		it("a damaged file that cannot be moved aside stays as it is, and the talk goes on", async () => {
			const { id } = (await daemon.call<{ id: string }>("POST", "/api/v1/conversations", {})).body;
			await say(id, "note901");
			const file = `conversations/${id}/Memory.json`;
			await expect.poll(() => text(file), { timeout: 20_000 }).toContain("note901");
			await chmod(workspace(`conversations/${id}`), 0o555);
			await chmod(workspace(""), 0o555);
			// In place: nothing else may happen to them between the damage and the protection.
			await writeFile(workspace(file), "[{ torn");
			await writeFile(workspace("Fact.md"), "");
			try {
				expect((await say(id, "note902")).text).toBe("Noted.");
				expect((await say(id, "note903")).text).toBe("Noted.");
				expect(model.chats.at(-1)?.raw).toContain("note902");
				expect(model.chats.at(-1)?.raw).toContain("note901");
				expect(await facts()).toContain("The boat is blue");
				expect(await text(file)).toBe("[{ torn");
				await expect.poll(alerts, { timeout: 20_000 }).toMatch(/(?=.*Memory\.json is damaged)(?=.*Fact\.md is damaged)/);
			} finally {
				await chmod(workspace(""), 0o700);
				await chmod(workspace(`conversations/${id}`), 0o700);
			}
			await say(id, "note904");
			await expect.poll(() => text(file), { timeout: 20_000 }).toMatch(/note901[\s\S]*note902[\s\S]*note903[\s\S]*note904/);
			const kept = await readdir(join(home, "backups", "damaged"));
			expect(kept.some((name) => name.endsWith("Memory.json"))).toBe(true);
			expect(await facts()).toContain("The boat is blue");
			expect(await text("Fact.md")).toContain("The boat is blue");
		}, 120_000);
	},
);
