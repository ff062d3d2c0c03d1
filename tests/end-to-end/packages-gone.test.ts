import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningDaemon, startDaemonProcess } from "../helpers/daemon.ts";

let root: string;
let daemon: RunningDaemon | undefined;

/** A clone of its own: the build is copied, its packages are links that can be taken away. */
beforeEach(async () => {
	root = await mkdtemp(join(tmpdir(), "openlani-packages-"));
	const { files } = JSON.parse(await readFile("dist/server/.files.json", "utf8")) as { files: string[] };
	await mkdir(join(root, "dist"), { recursive: true });
	for (const file of files.filter((name) => !name.endsWith(".map"))) await cp(join("dist/server", file), join(root, "dist/server", file));
	for (const file of ["package.json", "workspace-template"]) await symlink(resolve(file), join(root, file));
	await mkdir(join(root, "node_modules", "@node-rs"), { recursive: true });
	for (const name of ["better-sqlite3", "sqlite-vec", "@node-rs/argon2", "@node-rs/jieba"])
		await symlink(resolve("node_modules", name), join(root, "node_modules", name));
});
afterEach(async () => {
	await daemon?.kill();
	daemon = undefined;
	await rm(root, { recursive: true, force: true });
});

const start = async () => {
	daemon = await startDaemonProcess({ home: join(root, "home"), program: join(root, "dist/server/main.js") });
	return daemon;
};
const take = (name: string) => rename(join(root, name), join(root, `${name}-gone`));
const putBack = (name: string) => rename(join(root, `${name}-gone`), join(root, name));
const person = { username: "ada", password: "correct horse" };
const unavailable = (code: string) => ({ status: 503, body: { code } });

it("without what checks passwords nobody is told that theirs is wrong, and it goes on when that is there", async () => {
	await take("node_modules/@node-rs/argon2");
	const { setupCode, call, output } = await start();
	const account = { code: await setupCode(), ...person };
	expect(await call("POST", "/api/v1/setup", account)).toMatchObject(unavailable("passwords-unavailable"));
	for (let tries = 0; tries < 10; tries += 1)
		expect(await call("POST", "/api/v1/login", person)).toMatchObject(unavailable("passwords-unavailable"));
	expect(output().match(/passwords\.not-loaded.*argon2/g)).toHaveLength(1);
	await putBack("node_modules/@node-rs/argon2");
	expect((await call("POST", "/api/v1/setup", account)).status).toBe(204);
	expect((await call("POST", "/api/v1/login", person)).status).toBe(204);
	expect((await call("POST", "/api/v1/login", { ...person, password: "wrong" })).status).toBe(401);
});

it("a running daemon answers and lets people in while its packages are installed anew, and says what cannot be searched meanwhile", async () => {
	const { setupCode, call, output, stop } = await start();
	expect((await call("POST", "/api/v1/setup", { code: await setupCode(), ...person })).status).toBe(204);
	await take("node_modules");
	expect((await call("POST", "/api/v1/login", person)).status).toBe(204);
	expect((await call("POST", "/api/v1/login", { ...person, password: "wrong" })).status).toBe(401);
	expect((await call("POST", "/api/v1/memory/entries", [{ text: "我喜欢喝绿茶", at: "2025-01-01T00:00:00Z" }])).status).toBe(200);
	expect(await call("GET", "/api/v1/memory/search?q=绿茶")).toMatchObject(unavailable("memory-search-unavailable"));
	expect(output()).toMatch(/memory\.engine-ended.*Cannot find module/);
	const { id } = (await call<{ id: string }>("POST", "/api/v1/conversations", {})).body;
	expect(await call("POST", `/api/v1/conversations/${id}/messages?wait=30`, { text: "绿茶还是咖啡?" })).toMatchObject({
		status: 200,
		body: { reply: { role: "assistant" } },
	});
	await putBack("node_modules");
	const found = await call("GET", "/api/v1/memory/search?q=绿茶");
	expect(found).toMatchObject({ status: 200, body: { keyword: [{ text: "我喜欢喝绿茶" }] } });
	expect(await stop()).toBe(0);
	expect(await readdir(join(root, "node_modules"))).toContain("better-sqlite3");
});
