/** What keeps a daemon from starting, in words: for `serve`, and for a command that starts one in its own process. */
import type { Text } from "./command.ts";
import { refusal } from "./places.ts";

const same = (text: string): Text => ({ en: text, zh: text });

/** Faults that are said in words of their own, by name: what they are made of is loaded with the daemon alone. */
const worded = new Set(["StartRefused", "HomeLocked", "NewerSchemaError"]);

/** Null for a fault of ours. */
export function whyNotStarted(error: unknown, home: string): Text | null {
	const given = error as Error;
	if (worded.has(given.name)) return same(given.message);
	const { code, path, syscall } = (given.cause instanceof Error ? given.cause : given) as NodeJS.ErrnoException;
	// Making a folder inside a read-only one ends with ENOENT when its parents are to be made as well.
	if (code === "EACCES" || code === "EPERM" || code === "EROFS" || (code === "ENOENT" && syscall === "mkdir")) {
		const why = refusal(code);
		return {
			en: `The home ${home} cannot be written: ${why.en} (${code}). Use another one with --home DIR.`,
			zh: `无法写入数据目录 ${home}：${why.zh}（${code}）。可以用 --home DIR 另选一个。`,
		};
	}
	if (code === "ENOSPC" || code === "SQLITE_FULL")
		return { en: "The disk is full: OpenLani cannot start.", zh: "磁盘已满，OpenLani 无法启动。" };
	if (code === "ENOTDIR" || code === "EISDIR" || code === "EEXIST")
		return {
			en: `Something else stands where OpenLani keeps its files${path ? ` (${path})` : ""}: ${code}. Move it away, or use another home with --home DIR.`,
			zh: `OpenLani 存放文件的位置被别的东西占用${path ? `（${path}）` : ""}：${code}。请把它移开，或用 --home DIR 另选数据目录。`,
		};
	if (code?.startsWith("SQLITE_CANTOPEN") || code?.startsWith("SQLITE_READONLY"))
		return {
			en: "The database data/openlani.db in the home cannot be opened for writing: it must be a file that this user may write, in a folder likewise.",
			zh: "无法以写入方式打开数据目录里的数据库 data/openlani.db：它必须是当前用户可写的文件，所在文件夹也一样。",
		};
	if (code?.startsWith("SQLITE_BUSY"))
		return {
			en: "The database data/openlani.db in the home is locked by another program. Close that one and start again.",
			zh: "数据目录里的数据库 data/openlani.db 被别的程序锁住了。请关闭那个程序后重新启动。",
		};
	return null;
}
