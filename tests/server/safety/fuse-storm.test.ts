import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let dir: string;
beforeEach(async () => {
	dir = await mkdtemp(join(tmpdir(), "openlani-storm-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const count = (file: string): number[] => (existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : []);
const sum = (numbers: number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Runs the storm; kills it with -9 once the server has counted `killAt` tokens. Answers what it printed. */
function storm(seed: number, killAt: number | null): Promise<string> {
	const counted = join(dir, "counted");
	return new Promise((resolve, reject) => {
		const child = spawn(
			process.execPath,
			["--import", "tsx", join(import.meta.dirname, "fuse-storm.worker.ts"), join(dir, "openlani.db"), counted, String(seed)],
			{ stdio: ["ignore", "pipe", "inherit"] },
		);
		let printed = "";
		child.stdout.on("data", (data: Buffer) => {
			printed += data.toString();
		});
		const watch = setInterval(() => {
			if (killAt !== null && sum(count(counted)) >= killAt) child.kill("SIGKILL");
		}, 2);
		child.on("error", reject);
		child.on("exit", () => {
			clearInterval(watch);
			resolve(printed);
		});
	});
}

describe("a limit of 100,000 with fifty conversations at once and two kills", () => {
	it("is never exceeded by more than two per cent, by the server's own count", async () => {
		await storm(1, 20_000);
		await storm(2, 55_000);
		const printed = await storm(3, null);
		const total = sum(count(join(dir, "counted")));
		const state = JSON.parse(printed.split("\n")[1] ?? "{}") as { usedTokens: number; reservedTokens: number; state: string };
		expect(state.state).toBe("blown");
		expect(state.reservedTokens).toBe(0);
		expect(total).toBeLessThanOrEqual(102_000);
		// What was in flight at a kill counts as spent, though the server may never have answered it.
		expect(state.usedTokens).toBeGreaterThanOrEqual(total);
		expect(state.usedTokens).toBeLessThanOrEqual(102_000);
		// Up to fifty calls were in flight at each kill and count as spent; the rest of the day was really used.
		expect(total).toBeGreaterThan(20_000);
	}, 60_000);
});
