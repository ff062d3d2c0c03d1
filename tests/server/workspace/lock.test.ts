import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HomeLocked, homeHolder, lockHome, readRuntime, writeRuntime } from "../../../server/workspace/lock.ts";
import { ensureToken, readToken, tokenPath } from "../../../server/workspace/token.ts";

let home: string;
const lockFile = () => join(home, "data", "daemon.lock");
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), "lani-lock-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

describe("the lock of a home", () => {
	it("is held by one, given back, and says who has it", async () => {
		const lock = await lockHome(home);
		const refusal = await lockHome(home).catch((error: unknown) => error);
		expect(refusal).toBeInstanceOf(HomeLocked);
		expect((refusal as Error).message).toContain(`process ${process.pid}`);
		expect(await homeHolder(home)).toEqual({ pid: process.pid, host: hostname() });
		await lock.release();
		expect(await homeHolder(home)).toBeNull();
		await (await lockHome(home)).release();
	});
	it("is taken from a process that is gone, from a torn file, and from a process id that another uses now", async () => {
		const child = spawn(process.execPath, ["-e", ""]);
		await once(child, "exit");
		await mkdir(join(home, "data"));
		for (const left of [
			{ pid: child.pid, processStart: null, host: hostname(), nonce: "a", at: "" },
			"",
			"{",
			{ pid: process.pid, processStart: "another boot 1", host: hostname(), nonce: "b", at: "" },
		]) {
			await writeFile(lockFile(), typeof left === "string" ? left : JSON.stringify(left));
			await (await lockHome(home)).release();
		}
	});
	it("of another machine counts while it is touched", async () => {
		await mkdir(join(home, "data"));
		await writeFile(lockFile(), JSON.stringify({ pid: 1, processStart: "x", host: "somewhere-else", nonce: "c", at: "" }));
		await expect(lockHome(home)).rejects.toThrow("somewhere-else");
		const long = Date.now() / 1000 - 3600;
		await utimes(lockFile(), long, long);
		await (await lockHome(home)).release();
	});
	it("goes to exactly one of many that want it at once, after a crash too", async () => {
		await mkdir(join(home, "data"));
		for (let round = 0; round < 10; round++) {
			await writeFile(lockFile(), JSON.stringify({ pid: 999_999_999, processStart: null, host: hostname(), nonce: "stale", at: "" }));
			const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockHome(home)));
			const held = results.filter((result) => result.status === "fulfilled");
			expect(held).toHaveLength(1);
			await held[0]?.value.release();
			await expect(stat(lockFile())).rejects.toThrow();
		}
	});
	it("shows where the daemon is only while it runs", async () => {
		const lock = await lockHome(home);
		await writeRuntime(home, { pid: process.pid, url: "http://127.0.0.1:1", startedAt: "x" });
		expect((await readRuntime(home))?.url).toBe("http://127.0.0.1:1");
		await lock.release();
		expect(await readRuntime(home)).toBeNull();
		await writeRuntime(home, { pid: 999_999_999, url: "http://127.0.0.1:1", startedAt: "x" });
		expect(await readRuntime(home)).toBeNull();
	});
});

describe("the token", () => {
	it("is made once, closed to others, and made anew when its file is torn", async () => {
		const { token, own } = await ensureToken(home, null);
		expect(token.length).toBeGreaterThanOrEqual(32);
		expect(own).toBe(false);
		expect((await stat(tokenPath(home))).mode & 0o777).toBe(0o600);
		expect((await ensureToken(home, null)).token).toBe(token);
		expect(await ensureToken(home, "0123456789abcdef")).toEqual({ token: "0123456789abcdef", own: true });
		await writeFile(tokenPath(home), "");
		expect(await readToken(home)).toBeNull();
		const next = await ensureToken(home, null);
		expect(next.token).not.toBe(token);
		expect(await readFile(tokenPath(home), "utf8")).toBe(`${next.token}\n`);
	});
});
