import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchSources } from "../../scripts/lib/watching.mjs";

let root: string;
let unwatch: () => void;
let changes: string[];
beforeEach(async () => {
	root = await mkdtemp(join(tmpdir(), "openlani-watching-"));
	await mkdir(join(root, "old", "deep"), { recursive: true });
	changes = [];
	unwatch = watchSources([root], (path: string) => void changes.push(path));
});
afterEach(async () => {
	unwatch();
	await rm(root, { recursive: true, force: true });
});

async function seen(path: string): Promise<void> {
	await vi.waitUntil(() => changes.includes(path), { timeout: 10_000 });
	changes = [];
}

it("sees a file that is written, replaced again and again, or in a folder that is new", async () => {
	const file = join(root, "old", "deep", "file.ts");
	await writeFile(file, "1");
	await seen(file);
	for (let count = 0; count < 3; count += 1) {
		await writeFile(`${file}.part`, "2");
		await rename(`${file}.part`, file);
		await seen(file);
	}
	await mkdir(join(root, "new"));
	await seen(join(root, "new"));
	const other = join(root, "new", "other.ts");
	await vi.waitUntil(
		async () => {
			await writeFile(other, "3");
			return changes.includes(other);
		},
		{ timeout: 10_000, interval: 200 },
	);
});

it("many files at once are not as many changes, and what is no source is none", async () => {
	await writeFile(join(root, "notes.txt"), "x");
	await writeFile(join(root, ".hidden.ts"), "x");
	const files = Array.from({ length: 20 }, (_, at) => join(root, "old", `${at}.ts`));
	await Promise.all(files.map((file) => writeFile(file, "x")));
	await vi.waitUntil(() => changes.length > 0, { timeout: 10_000 });
	expect(files).toEqual(expect.arrayContaining(changes));
	expect(changes.length).toBeLessThan(files.length);
});
