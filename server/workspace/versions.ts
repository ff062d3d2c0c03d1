/** What prompt files held before: one small file a change, kept in `data/versions/`, oldest thrown away. */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomic } from "./atomic.ts";
import { safeName } from "./names.ts";

/** `hand`: changed on disk by somebody, noticed later. */
export type ChangedBy = "person" | "agent" | "program" | "hand";

export interface VersionInfo {
	version: string;
	/** Ms since the epoch. */
	at: number;
	by: ChangedBy;
	reason: string;
	/** Version that it replaced; null for the first one known. */
	before: string | null;
}

export interface VersionRecord extends VersionInfo {
	text: string;
}

const keptVersions = 200;

export interface VersionShelf {
	/** Newest first. A damaged record is left out and harms no other. */
	list(file: string): Promise<VersionInfo[]>;
	read(file: string, version: string): Promise<VersionRecord | null>;
	latest(file: string): Promise<VersionInfo | null>;
	add(file: string, record: VersionRecord): Promise<void>;
}

export function createVersionShelf(folder: string): VersionShelf {
	const shelf = (file: string) => join(folder, safeName(file));
	const namesOf = async (file: string) =>
		(await readdir(shelf(file)).catch(() => []))
			.filter((name) => /^\d{8}-[0-9a-f]{16}\.json$/.test(name))
			.sort()
			.reverse();
	const load = async (file: string, name: string): Promise<VersionRecord | null> => {
		try {
			const record = JSON.parse(await readFile(join(shelf(file), name), "utf8")) as VersionRecord;
			return typeof record.text === "string" && typeof record.version === "string" ? record : null;
		} catch {
			return null;
		}
	};

	return {
		async list(file) {
			const records = await Promise.all((await namesOf(file)).map((name) => load(file, name)));
			return records.flatMap((record) =>
				record ? [{ version: record.version, at: record.at, by: record.by, reason: record.reason, before: record.before }] : [],
			);
		},
		async read(file, version) {
			for (const name of await namesOf(file)) if (name.includes(`-${version}.`)) return load(file, name);
			return null;
		},
		async latest(file) {
			for (const name of await namesOf(file)) {
				const record = await load(file, name);
				if (record) return record;
			}
			return null;
		},
		async add(file, record) {
			await mkdir(shelf(file), { recursive: true, mode: 0o700 });
			const names = await namesOf(file);
			const number = Number(names[0]?.slice(0, 8) ?? 0) + 1;
			await writeFileAtomic(join(shelf(file), `${String(number).padStart(8, "0")}-${record.version}.json`), `${JSON.stringify(record)}\n`, {
				mode: 0o600,
			});
			for (const name of names.slice(keptVersions - 1)) await rm(join(shelf(file), name), { force: true });
		},
	};
}
