import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WorkspaceFile, WorkspaceFolder, WorkspaceVersion, WorkspaceVersionText } from "../../../server/http/contract.ts";
import { createWorkspace, type Workspace } from "../../../server/workspace/workspace.ts";
import { type House, openHouse, TOKEN } from "./house.ts";

let dir: string;
let now: number;
let workspace: Workspace;
let house: House;
let changed: string[];
beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-editor-"));
	now = Date.UTC(2026, 10, 30, 7, 4);
	workspace = createWorkspace({ home: dir, clock: { now: () => now }, log: { info: () => undefined, warn: () => undefined } });
	await workspace.ensure("en");
	changed = [];
	house = await openHouse({ workspace: { workspace, changed: (path) => changed.push(path) } });
});
afterEach(async () => {
	await house.close();
	await rm(dir, { recursive: true, force: true });
});

const base = "/api/v1/workspace/files";
async function call(method: "GET" | "PUT" | "POST", path: string, body?: unknown) {
	const answer = await house.call(method, `${base}/${path}`, body);
	return { status: answer.statusCode, type: String(answer.headers["content-type"]), body: answer.json() };
}
const onDisk = (path: string) => readFile(join(dir, "workspace", path), "utf8");

describe("the editor", () => {
	it("reads and writes files, SOUL.md included", async () => {
		const soul = WorkspaceFile.strict().parse((await call("GET", "SOUL.md")).body);
		expect(soul).toMatchObject({ path: "SOUL.md", content: await onDisk("SOUL.md"), problem: null });
		const written = await call("PUT", "SOUL.md", { content: "I am Lani.\n", base: soul.version });
		expect(written.status).toBe(200);
		expect(WorkspaceFile.strict().parse(written.body)).toMatchObject({ path: "SOUL.md", content: "I am Lani.\n" });
		expect(written.body.version).not.toBe(soul.version);
		expect(await onDisk("SOUL.md")).toBe("I am Lani.\n");
		expect(changed).toEqual(["SOUL.md"]);
		// A file of its own name, in folders that were not there.
		const made = await call("PUT", "files/%E7%AC%94%E8%AE%B0/a%20b.md", { content: "你好", base: null });
		expect([made.status, made.body.path]).toEqual([201, "files/笔记/a b.md"]);
		expect(await onDisk("files/笔记/a b.md")).toBe("你好");
		expect(await call("GET", "files/none.md")).toMatchObject({ status: 404, body: { code: "file-not-found" } });
		expect(await call("PUT", "SOUL.md", {})).toMatchObject({ status: 400, body: { code: "invalid-request" } });
		expect(await call("PUT", "SOUL.md", { content: "x".repeat(4_000_001) })).toMatchObject({ status: 413, body: { code: "too-large" } });
	});

	it("never writes over what was changed meanwhile", async () => {
		const { version } = (await call("GET", "Agent.md")).body;
		await writeFile(join(dir, "workspace", "Agent.md"), "# By hand\n");
		const refused = await call("PUT", "Agent.md", { content: "# Mine\n", base: version });
		expect(refused).toMatchObject({ status: 409, type: "application/problem+json; charset=utf-8", body: { code: "version-conflict" } });
		expect(await onDisk("Agent.md")).toBe("# By hand\n");
		const fresh = (await call("GET", "Agent.md")).body;
		expect(refused.body.errors[0]).toEqual({ path: "base", message: `the version is ${fresh.version}` });
		expect((await call("PUT", "Agent.md", { content: "# Mine\n", base: fresh.version })).status).toBe(200);
		expect((await call("PUT", "Agent.md", { content: "# New\n", base: null })).status).toBe(409);
		expect((await call("PUT", "Agent.md", { content: "# Whatever was there\n" })).status).toBe(200);
		expect(changed).toEqual(["Agent.md", "Agent.md"]);
	});

	it("of two who save the same version at once, one is told", async () => {
		const { version } = (await call("GET", "SOUL.md")).body;
		const both = await Promise.all(["one", "two"].map((content) => call("PUT", "SOUL.md", { content, base: version })));
		expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
		expect(await onDisk("SOUL.md")).toBe(both[0]?.status === 200 ? "one" : "two");
	});

	it("lists a folder with what is below it", async () => {
		await call("PUT", "skills/tea/SKILL.md", { content: "tea" });
		const skills = WorkspaceFolder.strict().parse((await call("GET", "skills")).body);
		expect(skills).toEqual({
			path: "skills",
			files: [{ path: "skills/tea/SKILL.md", bytes: 3, changedAt: expect.stringMatching(/^2.*Z$/) }],
			more: false,
		});
		expect((await call("GET", "conversations/")).body).toEqual({ path: "conversations", files: [], more: false });
		const all = [await house.call("GET", base), await house.call("GET", `${base}/`)].map((answer) => answer.json());
		expect(all[0]).toEqual(all[1]);
		expect(all[0].files.map(({ path }: { path: string }) => path)).toEqual(expect.arrayContaining(["SOUL.md", "skills/tea/SKILL.md"]));
	});

	it("says what cannot be read, and leaves it alone", async () => {
		await writeFile(join(dir, "workspace", "files", "odd.bin"), Buffer.from([0xff, 0xfe, 0xfd]));
		expect((await call("GET", "files/odd.bin")).body.problem).toContain("not text");
		await writeFile(join(dir, "workspace", "files", "huge.txt"), Buffer.alloc(4_000_100, "a"));
		expect((await call("GET", "files/huge.txt")).body).toMatchObject({
			version: null,
			content: "",
			problem: expect.stringContaining("too large"),
		});
		expect(await call("PUT", "files/huge.txt", { content: "small" })).toMatchObject({ status: 409, body: { code: "not-writable" } });
		expect(await call("PUT", "skills", { content: "x" })).toMatchObject({ status: 409, body: { code: "not-writable" } });
		expect(await call("PUT", "SOUL.md/below.md", { content: "x" })).toMatchObject({ status: 409, body: { code: "not-writable" } });
	});
});

describe("versions", () => {
	it("are listed newest first, read and restored", async () => {
		const first = (await call("GET", "SOUL.md")).body;
		now += 1000;
		await call("PUT", "SOUL.md", { content: "two\n" });
		now += 1000;
		const third = (await call("PUT", "SOUL.md", { content: "three\n" })).body;
		const { versions } = (await call("GET", "SOUL.md/versions")).body;
		for (const version of versions) WorkspaceVersion.strict().parse(version);
		expect(versions.map(({ version, by }: { version: string; by: string }) => [version, by])).toEqual([
			[third.version, "person"],
			[versions[1].version, "person"],
			[first.version, "hand"],
		]);
		expect(versions[0]).toMatchObject({ at: new Date(now).toISOString(), before: versions[1].version });
		const old = WorkspaceVersionText.strict().parse((await call("GET", `SOUL.md/versions/${first.version}`)).body);
		expect(old.content).toBe(first.content);
		const back = await call("POST", "SOUL.md/restore", { version: first.version });
		expect(back).toMatchObject({ status: 200, body: { path: "SOUL.md", version: first.version, content: first.content } });
		expect(await onDisk("SOUL.md")).toBe(first.content);
		expect((await call("GET", "SOUL.md/versions")).body.versions).toHaveLength(4);
	});

	it("that do not exist are said to be so", async () => {
		expect(await call("POST", "SOUL.md/restore", { version: "0123456789abcdef" })).toMatchObject({
			status: 404,
			body: { code: "version-not-found" },
		});
		expect(await call("POST", "SOUL.md/restore", { version: ".*" })).toMatchObject({ status: 404, body: { code: "version-not-found" } });
		expect(await call("GET", "SOUL.md/versions/0123456789abcdef")).toMatchObject({ status: 404, body: { code: "version-not-found" } });
		expect(await call("GET", "none.md/versions")).toMatchObject({ status: 404, body: { code: "file-not-found" } });
		expect(await call("POST", "SOUL.md", { version: "0123456789abcdef" })).toMatchObject({ status: 404, body: { code: "not-found" } });
	});

	it("a file that is itself called versions is a file", async () => {
		await call("PUT", "files/versions", { content: "mine" });
		expect((await call("GET", "files/versions")).body.content).toBe("mine");
	});
});

describe("paths", () => {
	/** As it stands: the usual clients tidy an address before they send it. */
	function raw(port: number, method: string, path: string, body?: string): Promise<{ status: number; text: string }> {
		return new Promise((resolve, reject) => {
			const call = request(
				{ host: "127.0.0.1", port, method, path, headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" } },
				(answer) => {
					let text = "";
					answer.on("data", (chunk) => (text += String(chunk)));
					answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
				},
			);
			call.on("error", reject);
			call.end(body);
		});
	}

	it("that lead outside are refused, however they are written", async () => {
		await writeFile(join(dir, "config.yaml"), "canary: markcanary\n");
		await symlink(dir, join(dir, "workspace", "files", "out"));
		await symlink(join(dir, "config.yaml"), join(dir, "workspace", "files", "config"));
		await symlink(join(dir, "nothing"), join(dir, "workspace", "files", "dangling"));
		const { port } = await house.listen();
		for (const path of [
			"../config.yaml",
			"%2e%2e/config.yaml",
			"..%2fconfig.yaml",
			"files/../../config.yaml",
			"files%2f..%2f..%2fconfig.yaml",
			"..%5cconfig.yaml",
			"%2fetc%2fpasswd",
			"/etc/passwd",
			"~/config.yaml",
			"C:%5cconfig.yaml",
			"SOUL.md%00.txt",
			"files/out/config.yaml",
			"files/config",
			"files/dangling",
			"files/out",
			"../config.yaml/versions",
			`files/${"a".repeat(300)}`,
		]) {
			for (const method of ["GET", "PUT"]) {
				const answer = await raw(port, method, `${base}/${path}`, method === "PUT" ? '{"content":"hacked"}' : undefined);
				expect([400, 404], `${method} ${path} ${answer.text}`).toContain(answer.status);
				expect(JSON.parse(answer.text).code, `${method} ${path}`).toBe("path-refused");
				expect(answer.text).not.toContain("markcanary");
				expect(answer.text).not.toContain(dir);
			}
		}
		expect(await readFile(join(dir, "config.yaml"), "utf8")).toBe("canary: markcanary\n");
		const restored = await raw(port, "POST", `${base}/..%2fconfig.yaml/restore`, '{"version":"0123456789abcdef"}');
		expect([restored.status, JSON.parse(restored.text).code]).toEqual([400, "path-refused"]);
	});

	it("none of it without signing in, and all of it in the OpenAPI document", async () => {
		await mkdir(join(dir, "workspace", "files"), { recursive: true });
		for (const method of ["GET", "PUT", "POST"] as const)
			expect((await house.app.inject({ method, url: `${base}/SOUL.md` })).statusCode, method).toBe(401);
		const { paths } = (await house.call("GET", "/api/v1/openapi.json")).json();
		expect(Object.keys(paths).filter((path) => path.startsWith(base)).length).toBeGreaterThanOrEqual(2);
	});
});
