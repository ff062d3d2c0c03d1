/** `openlani restore FILE`: unpacked beside the home and put in its place in one go; nothing is ever mixed. */
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { checkDatabase } from "../store/inspect.ts";
import { syncFolder } from "../workspace/atomic.ts";
import { HomeLocked, homeHolder, lockHome } from "../workspace/lock.ts";
import { ArchiveProblem, checkArchive, unpackArchive } from "./archive.ts";
import { CliError, type Command, note, say } from "./command.ts";
import { needPlaceForHome } from "./places.ts";

export const command: Command = {
	name: "restore",
	usage: "FILE [--force]",
	about: { en: "put a backup back", zh: "恢复备份" },
	details: {
		en: "Refuses a home that is not empty; with --force the old one is moved aside, not deleted. The daemon must be stopped.",
		zh: "数据目录不为空时会拒绝；加 --force 则把原来的移到一旁（不删除）。请先停掉守护进程。",
	},
	flags: { force: { type: "switch", about: { en: "replace a home that is not empty", zh: "替换不为空的数据目录" } } },
	words: [1, 1],
	async run(io, input) {
		const { home } = io.environment;
		const file = resolve(input.words[0] ?? "");
		if (!(await stat(file).catch(() => null))?.isFile())
			throw new CliError(say(io, { en: `There is no file ${file}.`, zh: `没有文件 ${file}。` }));
		const holder = await homeHolder(home);
		if (holder)
			throw new CliError(
				say(io, {
					en: `OpenLani is running with this home (process ${holder.pid}). Stop it first.`,
					zh: `OpenLani 正在使用这个数据目录（进程 ${holder.pid}），请先停掉它。`,
				}),
			);
		await needPlaceForHome(io);
		const before = await readdir(home).catch((error: NodeJS.ErrnoException) => {
			if (error.code === "ENOENT") return null;
			throw error;
		});
		const isUsed = before?.some((name) => name !== "logs" && name !== "lost+found") ?? false;
		if (isUsed && !input.on("force"))
			throw new CliError(
				say(io, {
					en: `${home} is not empty. With --force it is moved aside and the backup put in its place.`,
					zh: `${home} 不是空的。加 --force 会把它移到一旁，再放入备份。`,
				}),
			);

		const place = join(dirname(home), `.${basename(home)}.restore-${randomBytes(6).toString("hex")}`);
		try {
			await checkArchive(file);
			await mkdir(dirname(home), { recursive: true });
			const staged = await unpackBeside(file, place, home);
			try {
				const check = checkDatabase(join(staged, "data", "openlani.db"));
				if (check.state === "newer")
					throw new ArchiveProblem(`its database (schema ${check.schema}) was written by a newer version of OpenLani`);
				if (check.state === "damaged" || check.state === "unreadable")
					throw new ArchiveProblem(`its database is damaged (${check.problem})`);
				const kept = await putInPlace(staged, home, isUsed);
				note(io, say(io, { en: `Restored to ${home}.`, zh: `已恢复到 ${home}。` }));
				if (kept) note(io, say(io, { en: `What was there before is in ${kept}.`, zh: `原来的内容在 ${kept}。` }));
			} finally {
				await rm(staged, { recursive: true, force: true });
			}
		} catch (error) {
			if (error instanceof ArchiveProblem)
				throw new CliError(
					say(io, {
						en: `${file} was not restored: ${error.message}. Nothing was changed.`,
						zh: `没有恢复 ${file}：${error.message}。什么都没有改动。`,
					}),
				);
			if (error instanceof HomeLocked) throw new CliError(error.message);
			throw error;
		}
		return 0;
	},
};

/** Beside the home; inside it where its parent may not be written (a mounted volume). */
async function unpackBeside(file: string, place: string, home: string): Promise<string> {
	const unpack = async (folder: string) => {
		try {
			await unpackArchive(file, folder);
			return folder;
		} catch (error) {
			await rm(folder, { recursive: true, force: true });
			throw error;
		}
	};
	try {
		await mkdir(place, { mode: 0o700 });
	} catch {
		return unpack(join(home, basename(place)));
	}
	const sameDisk = (await stat(place)).dev === (await stat(home).catch(() => null))?.dev || !(await stat(home).catch(() => null));
	if (sameDisk) return unpack(place);
	await rm(place, { recursive: true, force: true });
	return unpack(join(home, basename(place)));
}

/** Answers where the old contents are kept, or null when there were none. */
async function putInPlace(staged: string, home: string, isUsed: boolean): Promise<string | null> {
	const stamp = new Date().toISOString().replace(/[:.]/g, "-");
	if (dirname(staged) === dirname(home)) {
		if ((await stat(home).catch(() => null)) === null) {
			await rename(staged, home);
			await syncFolder(dirname(home));
			return null;
		}
		const lock = isUsed ? await lockHome(home) : null;
		const aside = `${home}.before-restore-${stamp}`;
		try {
			await rename(home, aside);
		} catch (error) {
			await lock?.release();
			if (!["EBUSY", "EXDEV", "EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
			return moveEntries(staged, home, stamp);
		}
		try {
			await rename(staged, home);
		} catch (error) {
			await rename(aside, home);
			await lock?.release();
			throw error;
		}
		await syncFolder(dirname(home));
		await lock?.release();
		await rm(join(aside, "data", "daemon.lock"), { force: true });
		// Older backups and logs belong to the home, not to its contents.
		for (const name of ["backups", "logs"]) await rename(join(aside, name), join(home, name)).catch(() => undefined);
		if (isUsed) return aside;
		await rm(aside, { recursive: true, force: true });
		return null;
	}
	return moveEntries(staged, home, stamp);
}

/** A home that cannot be renamed: its entries change places one by one; when one cannot, all go back. */
async function moveEntries(staged: string, home: string, stamp: string): Promise<string | null> {
	const lock = await lockHome(home);
	const aside = join(home, "backups", `before-restore-${stamp}`);
	await mkdir(aside, { recursive: true, mode: 0o700 });
	const done: [string, string][] = [];
	const move = async (from: string, to: string) => {
		await rename(from, to);
		done.push([from, to]);
	};
	try {
		for (const name of await readdir(home))
			if (!["backups", "logs", "lost+found", basename(staged)].includes(name)) await move(join(home, name), join(aside, name));
		for (const name of await readdir(staged)) await move(join(staged, name), join(home, name));
	} catch (error) {
		for (const [from, to] of done.reverse()) await rename(to, from);
		throw error;
	} finally {
		await lock.release();
	}
	await rm(join(aside, "data", "daemon.lock"), { force: true });
	await syncFolder(home);
	return aside;
}
