import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { keyOfOwner } from "../../../server/memory/scope.ts";
import { openMemory } from "./setup.ts";

/** Runs until `count` numbers were printed (or it is done) and a random moment more, then kills it. Answers the last number. */
function runAndKill(dir: string, from: number, to: number, afterMs: number): Promise<number> {
	return new Promise((resolve, reject) => {
		const child = spawn(
			process.execPath,
			["--import", "tsx", fileURLToPath(new URL("./crash-process.ts", import.meta.url)), dir, String(from), String(to)],
			{ stdio: ["ignore", "pipe", "inherit"] },
		);
		let last = from - 1;
		let begun = false;
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (text: string) => {
			for (const row of text.split("\n")) if (/^\d+$/.test(row)) last = Number(row);
			if (!begun) setTimeout(() => child.kill("SIGKILL"), afterMs);
			begun = true;
		});
		child.on("error", reject);
		child.on("exit", () => resolve(last));
	});
}

describe("kill -9 while exchanges come and are compressed", () => {
	it("loses nothing and doubles nothing, wherever it hits", async () => {
		const dir = await mkdtemp(join(tmpdir(), "openlani-crash-"));
		try {
			let last = 0;
			// Moments spread over talking, compressing, archiving and writing.
			for (const afterMs of [35, 140, 60, 260, 90]) last = await runAndKill(dir, last + 1, last + 60, afterMs);
			const test = await openMemory({ dir, timezone: () => "UTC" });
			await test.memory.history({ owner: "master", conversationId: "c1", audience: "private" });
			await test.memory.settled();
			const rows = (await test.store.exchangesOfOwner(keyOfOwner("master"), 0, 5000)).map((row) => row.exchange.said);
			expect(new Set(rows).size).toBe(rows.length);
			expect(rows.length).toBeGreaterThanOrEqual(last);
			const files = await Promise.all((await test.workspace.list("diary")).map(async (one) => (await test.workspace.read(one.path)).text));
			files.push(
				(await test.workspace.read("people/master/SUMMARY.md")).text,
				(await test.workspace.read("conversations/c1/Memory.json")).text,
			);
			const everywhere = files.join("\n");
			for (const said of rows) expect(everywhere.split(said).length - 1, said).toBe(1);
			expect((await test.store.waitingJobs()).dueAt ?? Number.POSITIVE_INFINITY).toBeGreaterThan(test.now.value);
			await test.remove();
		} finally {
			await rm(dir, { recursive: true, force: true });
		}
	}, 300_000);
});
