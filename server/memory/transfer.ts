/** Taking a person's memory out, and another agent's workspace in. */
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NewEntry } from "../store/memory-store.ts";
import { decodeText } from "../workspace/text.ts";
import type { ImportReport, MemoryAdmin } from "./admin.ts";
import { entryOf } from "./entry.ts";
import type { Facts } from "./facts.ts";
import { addToDiary, type MemoryLine, oneLine, shortHash } from "./lines.ts";
import type { MemoryOptions } from "./options.ts";
import type { PeopleFiles } from "./people-files.ts";
import { diaryFolder, diaryPath, keyOfOwner, keyText, summaryPath } from "./scope.ts";
import { instantOf, minuteOf } from "./times.ts";

export interface TransferParts {
	options: MemoryOptions;
	facts: Facts;
	people: PeopleFiles;
	addEntries(entries: NewEntry[]): Promise<void>;
}

const page = 500;
const largestFile = 4_000_000;
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The paragraphs and list items of a Markdown text, each under the headings it stands below. */
export function piecesOf(text: string): { text: string; item: boolean; heading: string }[] {
	const pieces: { text: string; item: boolean; heading: string }[] = [];
	let heading = "";
	let paragraph: string[] = [];
	const flush = () => {
		const whole = oneLine(paragraph.join(" "));
		if (whole !== "") pieces.push({ text: whole, item: false, heading });
		paragraph = [];
	};
	for (const raw of text.replace(/^---\n[\s\S]*?\n---\n/, "").split("\n")) {
		const head = /^#{1,6}\s+(.*)$/.exec(raw);
		const item = /^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$/.exec(raw);
		if (head || item || raw.trim() === "") flush();
		// The title of the page says nothing about its parts.
		if (head) heading = raw.startsWith("# ") ? "" : oneLine(head[1] ?? "");
		else if (item) {
			const whole = oneLine(item[1] ?? "");
			if (whole !== "") pieces.push({ text: whole, item: true, heading });
		} else if (raw.trim() !== "") paragraph.push(raw.trim());
	}
	flush();
	return pieces;
}

export function createTransfer(parts: TransferParts): Pick<MemoryAdmin, "exportPerson" | "importWorkspace"> {
	const { options, facts, people, addEntries } = parts;
	const { store, workspace, clock } = options;

	return {
		async exportPerson(key) {
			const files: Record<string, string> = {};
			const known = await facts.list(key);
			const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());
			files["facts.json"] = `${JSON.stringify(
				(await facts.history(key)).map((fact) => ({
					id: fact.id,
					text: fact.text,
					state: fact.state,
					source: fact.source,
					messageId: fact.messageId,
					at: iso(fact.at),
					refreshedAt: iso(fact.refreshedAt),
					expiresAt: iso(fact.expiresAt),
					supersededBy: fact.supersededBy,
				})),
				null,
				"\t",
			)}\n`;
			files["facts.md"] = `# Facts\n\n${known.map((fact) => `- ${fact.text}`).join("\n")}\n`;
			const profile = await people.profile(key.owner);
			if (profile !== "") files["profile.md"] = `${profile}\n`;
			const summary = await workspace.read(summaryPath(key.owner));
			if (summary.exists) files["SUMMARY.md"] = summary.text;
			for (const entry of await workspace.list(diaryFolder(key.owner), 20_000))
				files[`diary/${entry.path.split("/").at(-1)}`] = (await workspace.read(entry.path)).text;
			const memories: unknown[] = [];
			for (let after = 0; ; ) {
				const rows = await store.entriesOf(key, after, page);
				if (rows.length === 0) break;
				for (const row of rows) memories.push({ id: row.id, at: iso(row.at), source: row.source, text: row.text });
				after = rows.at(-1)?.position ?? after;
				await breathe();
			}
			files["memories.json"] = `${JSON.stringify(memories, null, "\t")}\n`;
			const exchanges: unknown[] = [];
			for (let after = 0; ; ) {
				const rows = await store.exchangesOfOwner(key, after, page);
				if (rows.length === 0) break;
				for (const row of rows) exchanges.push({ ...row.exchange, at: iso(row.exchange.at), conversation: row.conversationId });
				after = rows.at(-1)?.position ?? after;
				await breathe();
			}
			files["exchanges.json"] = `${JSON.stringify(exchanges, null, "\t")}\n`;
			return files;
		},

		async importWorkspace(folder) {
			const report: ImportReport = { taken: [], skipped: [] };
			const master = keyOfOwner("master");
			const timezone = options.timezone();

			async function textOf(name: string): Promise<string | null> {
				const path = join(folder, name);
				const found = await lstat(path).catch(() => null);
				if (!found) return null;
				if (!found.isFile()) {
					report.skipped.push({ from: name, why: "not a plain file" });
					return null;
				}
				if (found.size > largestFile) {
					report.skipped.push({ from: name, why: `too large (${found.size} bytes)` });
					return null;
				}
				const decoded = decodeText(await readFile(path));
				if (decoded.damaged) report.skipped.push({ from: name, why: "some bytes are not text; they were left out" });
				return decoded.text;
			}
			async function profile(name: string, put: (text: string) => Promise<boolean>, to: string): Promise<void> {
				const text = await textOf(name);
				if (text === null) return;
				let items = 0;
				for (const piece of piecesOf(text)) if (await put(piece.text)) items++;
				report.taken.push({ from: name, to, items });
			}

			if ((await textOf("SOUL.md")) !== null)
				report.skipped.push({ from: "SOUL.md", why: "who the agent is, a person decides: copy what you want into SOUL.md by hand" });
			await profile("USER.md", (text) => people.updatePerson("master", { text }, "import"), "MASTER.md");
			await profile("IDENTITY.md", (text) => people.updateIdentity({ text }, "import"), "IDENTITY.md");

			const memory = (await textOf("MEMORY.md")) ?? (await textOf("memory.md"));
			if (memory !== null) {
				const at = clock.now();
				let items = 0;
				const entries: NewEntry[] = [];
				for (const piece of piecesOf(memory)) {
					if (piece.item) {
						await facts.add(master, {
							text: piece.heading && piece.text.length < 30 ? `${piece.heading}: ${piece.text}` : piece.text,
							source: "import",
							messageId: null,
							conversationId: null,
							expiresAt: null,
							at,
						});
						items++;
					} else
						entries.push(
							entryOf(master, {
								id: `m-${shortHash(`${keyText(master)}|${piece.text}`)}`,
								at,
								source: "import",
								ref: null,
								conversationId: null,
								text: piece.heading ? `${piece.heading}: ${piece.text}` : piece.text,
							}),
						);
				}
				await addEntries(entries);
				report.taken.push({ from: "MEMORY.md", to: "Fact.md", items });
				if (entries.length > 0) report.taken.push({ from: "MEMORY.md", to: "vector store", items: entries.length });
			}

			for (const name of (await readdir(join(folder, "memory")).catch(() => [])).sort()) {
				const date = /^(\d{4}-\d{2}-\d{2})\.md$/.exec(name)?.[1];
				const at = date ? instantOf(`${date} 12:00`, timezone) : null;
				if (!date || at === null) {
					report.skipped.push({ from: `memory/${name}`, why: "not named after a day" });
					continue;
				}
				const text = await textOf(`memory/${name}`);
				if (text === null) continue;
				const pieces = piecesOf(text);
				const lines = pieces.map(
					(piece): MemoryLine => ({
						id: `i${shortHash(`${date} ${piece.text}`)}`,
						when: minuteOf(at, timezone),
						text: piece.heading && piece.heading !== date ? `${piece.heading}: ${piece.text}` : piece.text,
					}),
				);
				await workspace.update(diaryPath("master", date), (old) => addToDiary(old, date, lines), { by: "person", reason: "import" });
				await addEntries(
					lines.map((line) =>
						entryOf(master, {
							id: `s-${keyText(master)}-${line.id}`,
							at,
							source: "import",
							ref: line.id,
							conversationId: null,
							text: line.text,
						}),
					),
				);
				report.taken.push({ from: `memory/${name}`, to: diaryPath("master", date), items: lines.length });
			}
			for (const name of ["AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"]) {
				if (await lstat(join(folder, name)).catch(() => null))
					report.skipped.push({ from: name, why: "instructions of another agent; read it and put what you want into Agent.md" });
			}
			return report;
		},
	};
}
