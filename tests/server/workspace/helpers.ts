import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWorkspace, type Workspace } from "../../../server/workspace/workspace.ts";

export interface TestWorkspace {
	home: string;
	workspace: Workspace;
	/** A second look at the same home, as after a restart. */
	again(): Workspace;
	at(path: string): string;
	logged: { event: string; data?: Record<string, unknown> }[];
	remove(): Promise<void>;
}

export async function createTestWorkspace(locale: "zh-CN" | "en" = "en"): Promise<TestWorkspace> {
	const home = await mkdtemp(join(tmpdir(), "lani-workspace-"));
	const logged: TestWorkspace["logged"] = [];
	const log = (event: string, data?: Record<string, unknown>) => void logged.push(data ? { event, data } : { event });
	let now = Date.UTC(2026, 10, 30);
	const again = () => createWorkspace({ home, clock: { now: () => (now += 1000) }, log: { info: log, warn: log } });
	const workspace = again();
	await workspace.ensure(locale);
	return {
		home,
		workspace,
		again,
		at: (path) => join(home, "workspace", path),
		logged,
		remove: () => rm(home, { recursive: true, force: true }),
	};
}
