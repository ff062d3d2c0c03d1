/** `conversations/<id>/Plan.md`: the running task's plan as a Markdown task list, in step with the plan in the store, and open to a person's pen. */
import { statSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeFileAtomic } from "./atomic.ts";
import { safeName } from "./names.ts";
import { decodeText } from "./text.ts";

interface Item {
	text: string;
	done: boolean;
}

export interface PlanFile {
	/** Writes the plan; an empty one leaves an empty list. */
	write(conversationId: string, items: Item[]): Promise<void>;
	/** The plan as a person changed it since we wrote it in this process; null when nobody did. */
	edited(conversationId: string): Promise<Item[] | null>;
}

const mostItems = 100;
const line = /^\s*[-*+]\s+\[([ xX])\]\s+(.+?)\s*$/;

export function planText(items: Item[]): string {
	return items.map(({ text, done }) => `- [${done ? "x" : " "}] ${text.replace(/\s*\n\s*/g, " ")}\n`).join("");
}

export function parsePlan(text: string): Item[] {
	return text
		.split(/\r?\n/)
		.flatMap((row) => {
			const found = line.exec(row);
			return found ? [{ text: found[2] as string, done: found[1] !== " " }] : [];
		})
		.slice(0, mostItems);
}

/** `workspace` is the folder of the home's Markdown files. */
export function createPlanFile(workspace: string): PlanFile {
	/** Stamp of what we wrote last, by conversation: what differs from it is a person's. */
	const written = new Map<string, string>();
	const pathOf = (conversationId: string) => join(workspace, "conversations", safeName(conversationId), "Plan.md");

	function stampOf(path: string): string | null {
		try {
			const found = statSync(path, { throwIfNoEntry: false });
			return found?.isFile() ? `${found.mtimeMs} ${found.size} ${found.ino}` : null;
		} catch {
			return null;
		}
	}

	return {
		async write(conversationId, items) {
			const path = pathOf(conversationId);
			await mkdir(dirname(path), { recursive: true, mode: 0o700 });
			await writeFileAtomic(path, planText(items), { mode: 0o600 });
			if (written.size > 1000) written.clear();
			written.set(conversationId, stampOf(path) ?? "");
		},
		async edited(conversationId) {
			const ours = written.get(conversationId);
			if (ours === undefined) return null;
			const path = pathOf(conversationId);
			const stamp = stampOf(path);
			if (stamp === null || stamp === ours) return null;
			const { text } = decodeText(await readFile(path));
			written.set(conversationId, stamp);
			return parsePlan(text);
		},
	};
}
