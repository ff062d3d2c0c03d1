/** IDENTITY.md, MASTER.md, USER.md and Agent.md: what stands in them for a prompt, and lines put in by the agent. */
import type { PromptBlock } from "../agent/types.ts";
import type { MemoryKey } from "../store/memory-store.ts";
import { oneLine } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import { createStamps } from "./stamp.ts";

/** A section this long is more than a prompt should carry; it is cut there, visibly. */
const longestSection = 6000;
/** What a new home's files say before anything is known. */
const placeholder = /^(Nothing is known yet\..*|还不了解。.*)$/;

/** The text below `## name`, up to the next heading of that size. */
export function sectionOf(text: string, name: string): string {
	const rows = text.split("\n");
	const head = rows.findIndex((row) => /^##\s+/.test(row) && row.replace(/^##\s+/, "").trim() === name);
	if (head < 0) return "";
	const end = rows.findIndex((row, at) => at > head && /^#{1,2}\s/.test(row));
	return rows
		.slice(head + 1, end < 0 ? undefined : end)
		.join("\n")
		.trim();
}

const bullet = /^\s*[-*+]\s+/;
const same = (a: string, b: string): boolean => a.replace(bullet, "").trim().toLowerCase() === b.trim().toLowerCase();

export interface LineChange {
	/** The new line; empty removes what `replaces` names. */
	text: string;
	/** A line (or a part of one) that the new one takes the place of. */
	replaces?: string;
}

/** Puts a line into the section `## heading` (or, with none, at the end); null when it is there already or nothing was found to replace. */
export function withLine(text: string, heading: string | null, change: LineChange): string | null {
	const rows = text.split("\n");
	let from = 0;
	let to = rows.length;
	if (heading !== null) {
		const head = rows.findIndex((row) => /^##\s+/.test(row) && row.replace(/^##\s+/, "").trim() === heading);
		if (head < 0) {
			if (change.text === "") return null;
			const begun = text.trimEnd();
			return `${begun}${begun === "" ? "" : "\n\n"}## ${heading}\n\n- ${oneLine(change.text)}\n`;
		}
		from = head + 1;
		const next = rows.findIndex((row, at) => at > head && /^#{1,2}\s/.test(row));
		to = next < 0 ? rows.length : next;
	}
	const line = change.text === "" ? null : `- ${oneLine(change.text)}`;
	if (change.replaces !== undefined && change.replaces.trim() !== "") {
		const wanted = change.replaces.trim().toLowerCase();
		const at = rows.findIndex((row, index) => index >= from && index < to && !/^#/.test(row) && row.toLowerCase().includes(wanted));
		if (at >= 0) {
			rows.splice(at, 1, ...(line === null ? [] : [line]));
			return rows.join("\n");
		}
		if (line === null) return null;
	}
	if (line === null) return null;
	if (rows.slice(from, to).some((row) => bullet.test(row) && same(row, line.slice(2)))) return null;
	let end = from;
	for (let at = from; at < to; at++) if ((rows[at] as string).trim() !== "") end = at + 1;
	const before = rows.slice(0, end).filter((row, at) => at < from || !placeholder.test(row.trim()));
	while (before.at(-1)?.trim() === "") before.pop();
	const loose = before.length === 0 ? [] : bullet.test(before.at(-1) ?? "") ? [] : [""];
	const rest = rows.slice(end);
	return [...before, ...loose, line, ...(rest.length === 0 ? [""] : rest)].join("\n");
}

export interface PeopleFiles {
	blocks(key: MemoryKey): Promise<PromptBlock[]>;
	/** False when nothing changed. Throws `WorkspaceRefused` when the file cannot be written. */
	updatePerson(person: string, change: LineChange, reason: string): Promise<boolean>;
	updateIdentity(change: LineChange, reason: string): Promise<boolean>;
	updateAgentNotes(change: LineChange, reason: string): Promise<boolean>;
	/** The person's section as it stands. */
	profile(person: string): Promise<string>;
	/** Takes the person's section out of USER.md, or empties MASTER.md. */
	forgetPerson(person: string): Promise<void>;
	/** Takes lines that hold one of these texts out. */
	forgetTexts(person: string, texts: string[]): Promise<number>;
	/** Takes lines out that `tells` names: of the person's section, and of what everybody's prompt carries (IDENTITY.md, Agent.md). */
	forgetLines(person: string, tells: (line: string) => boolean): Promise<void>;
}

export function createPeopleFiles(options: MemoryOptions): PeopleFiles {
	const { workspace, log } = options;
	const stampOf = createStamps(workspace.paths.workspace);
	const cache = new Map<string, { stamp: string; text: string }>();
	const reported = new Set<string>();

	/** Read through the workspace only when the file has changed: every message asks. */
	async function read(path: string): Promise<string> {
		const stamp = stampOf(path);
		const known = cache.get(path);
		if (known?.stamp === stamp) return known.text;
		const file = await workspace.read(path);
		if (file.problem && !reported.has(file.problem)) {
			reported.add(file.problem);
			log.warn("memory.file-problem", { file: path, problem: file.problem });
			options.onProblem?.("file-problem", file.problem);
		}
		cache.set(path, { stamp, text: file.text });
		return file.text;
	}

	const block = (name: string, text: string, path: string): PromptBlock[] => {
		const clean = text.trim();
		if (clean === "") return [];
		if (clean.length <= longestSection) return [{ name, text: clean }];
		const characters = [...clean];
		if (characters.length <= longestSection) return [{ name, text: clean }];
		const once = `cut ${path}`;
		if (!reported.has(once)) {
			reported.add(once);
			options.onProblem?.(
				"file-long",
				`${path} is longer than a prompt should carry (${characters.length} characters); the model sees the first ${longestSection}`,
			);
		}
		return [
			{
				name,
				text: `${characters.slice(0, longestSection).join("")}\n[cut here: ${characters.length - longestSection} more characters in ${path}]`,
			},
		];
	};

	async function change(path: string, heading: string | null, given: LineChange, reason: string): Promise<boolean> {
		let changed = false;
		await workspace.update(
			path,
			(text) => {
				const put = withLine(text, heading, given);
				changed = put !== null && put !== text;
				return changed ? put : null;
			},
			{ by: "agent", reason },
		);
		return changed;
	}

	const fileOf = (person: string): string => (person === "master" ? "MASTER.md" : "USER.md");

	/** Drops lines of the whole file, or of the section `heading`. Answers how many. */
	async function without(path: string, heading: string | null, drop: (row: string) => boolean): Promise<number> {
		let removed = 0;
		await workspace.update(
			path,
			(text) => {
				removed = 0;
				let mine = heading === null;
				const rows = text.split("\n").filter((row) => {
					const found = /^##\s+(.+?)\s*$/.exec(row);
					if (found && heading !== null) mine = found[1] === heading;
					if (!mine || !drop(row)) return true;
					removed++;
					return false;
				});
				return removed === 0 ? null : rows.join("\n");
			},
			{ by: "person", reason: "forgotten" },
		);
		return removed;
	}

	return {
		async blocks(key) {
			const identity = block("identity", await read("IDENTITY.md"), "IDENTITY.md");
			// What is known of a person was often said in private: a group sees the group's own section, never the master's or a member's.
			if (key.owner === "master") return [...identity, ...block("master", await read("MASTER.md"), "MASTER.md")];
			return [...identity, ...block("user", sectionOf(await read("USER.md"), key.owner), "USER.md")];
		},
		updatePerson: (person, given, reason) =>
			person === "master" ? change("MASTER.md", null, given, reason) : change("USER.md", person, given, reason),
		updateIdentity: (given, reason) => change("IDENTITY.md", null, given, reason),
		updateAgentNotes: (given, reason) => change("Agent.md", "Notes", given, reason),
		profile: async (person) => (person === "master" ? (await read("MASTER.md")).trim() : sectionOf(await read("USER.md"), person)),
		async forgetPerson(person) {
			const path = person === "master" ? "MASTER.md" : "USER.md";
			await workspace.update(
				path,
				(text) => {
					if (person === "master")
						return text.trim() === "" ? null : `${text.split("\n").find((row) => row.startsWith("# ")) ?? "# Master"}\n`;
					const rows = text.split("\n");
					const head = rows.findIndex((row) => /^##\s+/.test(row) && row.replace(/^##\s+/, "").trim() === person);
					if (head < 0) return null;
					const next = rows.findIndex((row, at) => at > head && /^#{1,2}\s/.test(row));
					rows.splice(head, (next < 0 ? rows.length : next) - head);
					return rows.join("\n");
				},
				{ by: "person", reason: "forgotten" },
			);
		},
		async forgetTexts(person, texts) {
			const wanted = texts.map((text) => text.trim().toLowerCase()).filter((text) => text.length >= 6);
			if (wanted.length === 0) return 0;
			return without(fileOf(person), person === "master" ? null : person, (row) => {
				const bare = row.replace(bullet, "").trim().toLowerCase();
				return bare.length >= 6 && bullet.test(row) && wanted.some((one) => one.includes(bare) || bare.includes(one));
			});
		},
		async forgetLines(person, tells) {
			const told = (row: string): boolean => row.trim() !== "" && !/^#/.test(row) && tells(row);
			await without(fileOf(person), person === "master" ? null : person, told);
			for (const path of ["IDENTITY.md", "Agent.md"]) await without(path, null, told);
		},
	};
}
