/** A person goes, with all that is theirs. What is gone already is passed over, so that it may be begun again after a crash. */
import { rm } from "node:fs/promises";
import type { Forgotten } from "./admin.ts";
import { removeConversationFiles } from "./conversation-files.ts";
import { createObstacles, type createRemover, leastCopy, type RemovalParts } from "./forget-apply.ts";
import { parseLine } from "./lines.ts";
import { keyOfOwner, personFolder, summaryPath } from "./scope.ts";

/** Shorter texts of files stand in too much that has nothing to do with the person. */
const leastText = 6;
const messagesAtOnce = 200;

export function createPersonRemover(parts: RemovalParts, remover: ReturnType<typeof createRemover>) {
	const { options, shortTerm, facts, people, vectors, background, removeEntries } = parts;
	const { store, workspace } = options;

	return {
		/** Facts and lines about the person: copies of them are looked for in what is not the person's alone. */
		async textsOf(owner: string): Promise<string[]> {
			const known = (await facts.history(keyOfOwner(owner))).map((fact) => fact.text);
			const lines = (await people.profile(owner)).split("\n").map((row) => row.replace(/^\s*[-*+]\s+/, ""));
			return [...new Set([...known, ...lines].map((text) => text.trim()).filter((text) => text.length >= leastText))];
		},

		/**
		 * Removes everything of the owner; `texts` are what `textsOf` found before anything was removed. A file that cannot be written stops
		 * nothing else; when all else is done, it is thrown.
		 */
		async remove(owner: string, texts: string[], report: Forgotten): Promise<void> {
			const obstacles = createObstacles();
			const { passing } = obstacles;
			const key = keyOfOwner(owner);
			await background.removed(key, true);
			const conversations = await store.conversationsOf(key);
			report.facts = (await facts.history(key)).length;
			report.memories = await store.countEntries(key);
			for (;;) {
				const ids = await store.messagesOf(owner, messagesAtOnce);
				if (ids.length === 0) break;
				const rows = await store.messageTexts(ids);
				const turns = [...new Set(rows.flatMap((row) => row.turnId ?? []))];
				const said = [...new Set(rows.map((row) => row.text).filter((text) => text.trim().length >= leastCopy))];
				for (const record of await store.redactTraces(key, said, turns)) await workspace.remove(`files/results/${record}.txt`);
				await remover.unlog(said);
				await store.redactMessages(ids);
				report.messages += ids.length;
			}
			report.exchanges = (await store.removeOwner(owner)) - report.facts - report.memories;
			// What was recorded until now is looked through; what is gone is sent to no model any more.
			await vectors.removed(key);
			await store.redactPlaces(key);
			await removeEntries(key, { refs: [] });
			for (const conversationId of conversations) {
				shortTerm.evict(conversationId);
				await passing(() => removeConversationFiles(workspace, conversationId));
			}
			for (const path of await remover.diaryPages(owner)) {
				report.diaryLines += (await workspace.read(path)).text.split("\n").filter((row) => parseLine(row)).length;
				await workspace.remove(path);
			}
			report.summaryLines = (await workspace.read(summaryPath(owner))).text.split("\n").filter((row) => parseLine(row)).length;
			if (owner === "master") await workspace.remove(summaryPath(owner));
			else if (!(await workspace.remove(personFolder(owner))))
				await passing(async () => rm(await workspace.resolve(personFolder(owner)), { recursive: true, force: true }));
			await passing(() => facts.removeOwner(owner));
			await passing(() => people.forgetPerson(owner));
			await remover.scrubVersions((row) => texts.some((text) => row.includes(text)));
			await store.redactTraces(key, texts, []);
			await remover.unlog(texts);
			obstacles.raise();
		},
	};
}
