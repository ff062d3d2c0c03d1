/** The files of one conversation: its last exchanges and the running task's plan. */
import { rmdir } from "node:fs/promises";
import type { Workspace } from "../workspace/workspace.ts";
import { conversationFolder, exchangesPath, planPath } from "./scope.ts";

/** Removes them, and their folder unless a person keeps something else in it. */
export async function removeConversationFiles(workspace: Workspace, conversationId: string): Promise<void> {
	for (const path of [exchangesPath(conversationId), planPath(conversationId)]) await workspace.remove(path);
	try {
		await rmdir(await workspace.resolve(conversationFolder(conversationId)));
	} catch {
		// Not empty, not there, or no folder of ours.
	}
}
