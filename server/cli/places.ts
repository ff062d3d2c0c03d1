/** Whether a command can read its home and write where it is told to: said before the work is begun, in a sentence that names the place. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { CliError, type Io, say, type Text } from "./command.ts";

/** Why the system refuses, in words that go behind a place. */
export interface Refusal extends Text {
	code: string;
}

export function refusal(code = "unknown"): Refusal {
	if (code === "EROFS") return { code, en: "it is on a read-only file system", zh: "它在只读的文件系统上" };
	if (code === "EACCES" || code === "EPERM") return { code, en: "this user has no right to write there", zh: "当前用户没有写入权限" };
	return { code, en: code, zh: code };
}

/** Null when files can be made in this folder and read there, else why not. */
export async function cannotWriteInto(folder: string): Promise<Refusal | null> {
	try {
		await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
		return null;
	} catch (error) {
		return refusal((error as NodeJS.ErrnoException).code);
	}
}

/** Throws a sentence when the home is not there, or is closed to this user. */
export async function needHome(io: Io): Promise<void> {
	const { home } = io.environment;
	try {
		if ((await stat(home)).isDirectory()) return await access(home, constants.R_OK | constants.X_OK);
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code === "EACCES" || code === "EPERM")
			throw new CliError(say(io, { en: `This user has no right to read the home ${home}.`, zh: `当前用户没有权限读取数据目录 ${home}。` }));
	}
	throw new CliError(
		say(io, { en: `There is no home ${home}; openlani init makes one.`, zh: `没有数据目录 ${home}；openlani init 可以建立。` }),
	);
}

/** Throws a sentence when the home, or what is missing on the way to it, can be neither made nor written. */
export async function needPlaceForHome(io: Io): Promise<void> {
	const { home } = io.environment;
	let folder = home;
	while (folder !== dirname(folder) && !(await stat(folder).catch(() => null))) folder = dirname(folder);
	if ((await stat(folder).catch(() => null))?.isDirectory() === false)
		throw new CliError(
			say(io, {
				en: `${folder} is not a folder. Choose another home with --home DIR.`,
				zh: `${folder} 不是文件夹。可以用 --home DIR 另选数据目录。`,
			}),
		);
	const why = await cannotWriteInto(folder);
	if (why)
		throw new CliError(
			say(io, {
				en: `The home ${home} cannot be written: ${why.en}. Choose another one with --home DIR.`,
				zh: `无法写入数据目录 ${home}：${why.zh}。可以用 --home DIR 另选一个。`,
			}),
		);
}

/** Throws a sentence when no file can be put at `target`. Answers whether one is there already. */
export async function needTarget(io: Io, target: string): Promise<boolean> {
	const found = await stat(target).catch(() => null);
	const folder = dirname(target);
	if (found?.isDirectory())
		throw new CliError(say(io, { en: `${target} is a folder; name a file.`, zh: `${target} 是文件夹，请给出文件名。` }));
	if (found && !found.isFile())
		throw new CliError(
			say(io, {
				en: `${target} is no plain file and is not replaced; name another.`,
				zh: `${target} 不是普通文件，不会替换；请换一个文件名。`,
			}),
		);
	if (!(await stat(folder).catch(() => null))?.isDirectory())
		throw new CliError(say(io, { en: `There is no folder ${folder}.`, zh: `没有文件夹 ${folder}。` }));
	const why = await cannotWriteInto(folder);
	if (why)
		throw new CliError(
			say(io, {
				en: `Nothing can be written into the folder ${folder}: ${why.en}. Name a file elsewhere.`,
				zh: `无法写入文件夹 ${folder}：${why.zh}。请换一个位置。`,
			}),
		);
	return found !== null;
}
