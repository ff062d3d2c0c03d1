/** The tools with which the agent keeps, finds and changes what it knows. */
import type { MemoryAdmin } from "../../memory/admin.ts";
import type { Memory } from "../../memory/memory.ts";
import type { MemoryKey } from "../../store/memory-store.ts";
import type { Workspace } from "../../workspace/workspace.ts";
import type { Tool, ToolContext } from "../tool.ts";
import { createPromptFileTools } from "./prompt-files.ts";
import { createRecallTools } from "./recall.ts";

export interface MemoryToolOptions {
	memory: Memory & MemoryAdmin;
	workspace: Workspace;
	/**
	 * What people said in this turn, and whether the turn has read text from others. A fact that is kept in a tainted turn must be found in what people
	 * said. Left out: only the turn's origin is checked.
	 */
	turn?(turnId: string): Promise<{ said: string[]; tainted: boolean }>;
	/** What a memory, a fact or a message of this owner says: shown to the master before it is forgotten. Null when there is none. */
	textOf?(key: MemoryKey, id: string): Promise<string | null>;
	/** Shows a proposed change of SOUL.md to the master (an alert, a message); the proposal itself is a file. */
	proposed?(path: string, reason: string): void;
}

/** Whose memory a call is about: the group's in a group, else the person's. */
export const ownerOf = (context: Pick<ToolContext, "personId" | "groupId">): string =>
	context.groupId ? `group:${context.groupId}` : context.personId;

/** `core` is for every request; `further` is looked up when needed. */
export function createMemoryTools(options: MemoryToolOptions): { core: Tool[]; further: Tool[] } {
	const recall = createRecallTools(options);
	const files = createPromptFileTools(options);
	return {
		core: [recall.rememberFact, recall.recall, files.updateUser, files.updateIdentity, files.updateAgentNotes, recall.forget],
		further: [files.listVersions, files.readVersion, files.restore, files.proposeSoulChange],
	};
}
