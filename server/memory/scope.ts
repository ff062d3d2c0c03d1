/** Whose memory a call is about, and where its files are. */
import type { MemoryKey } from "../store/memory-store.ts";
import { safeName } from "../workspace/names.ts";
import type { Scope } from "./memory.ts";

/**
 * The key of the rows that may be read and written in this place. In a group it is the group's memory, whoever speaks:
 * what a person said in private stays out of it.
 */
export function keyOf(scope: Scope): MemoryKey {
	if (scope.owner.startsWith("group:")) return { owner: scope.owner, audience: "group" };
	if (scope.audience === "group") return { owner: `group:${scope.conversationId}`, audience: "group" };
	return { owner: scope.owner, audience: "private" };
}

/** The key of a person id or `group:<id>`, as the API and the tools name it. */
export const keyOfOwner = (owner: string): MemoryKey => ({ owner, audience: owner.startsWith("group:") ? "group" : "private" });

export const keyText = (key: MemoryKey): string => `${key.audience}|${key.owner}`;

export const conversationFolder = (conversationId: string): string => `conversations/${safeName(conversationId)}`;
export const exchangesPath = (conversationId: string): string => `${conversationFolder(conversationId)}/Memory.json`;
export const planPath = (conversationId: string): string => `${conversationFolder(conversationId)}/Plan.md`;
export const personFolder = (owner: string): string => `people/${safeName(owner)}`;
export const summaryPath = (owner: string): string => `${personFolder(owner)}/SUMMARY.md`;
export const diaryFolder = (owner: string): string => (owner === "master" ? "diary" : `${personFolder(owner)}/diary`);
export const diaryPath = (owner: string, day: string): string => `${diaryFolder(owner)}/${day}.md`;
