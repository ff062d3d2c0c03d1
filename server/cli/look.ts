/** A home's store for a command that only looks: the daemon may be running on it, and it may be one of another version. */
import { type OpenStore, openStore, type StoreOptions } from "../store/open.ts";
import { NewerSchemaError, OlderSchemaError } from "../store/sqlite.ts";
import { CliError, type Io, say } from "./command.ts";

/** Opens it as it is. Throws a sentence when this version cannot read it so. */
export async function openToLook(io: Io, options: StoreOptions): Promise<OpenStore> {
	try {
		return await openStore({ ...options, asItIs: true });
	} catch (error) {
		if (error instanceof OlderSchemaError)
			throw new CliError(
				say(io, {
					en: `The database is of an older version of OpenLani (schema ${error.found}, this one works with ${error.known}): start this version once, which brings it up to date.`,
					zh: `数据库由较旧版本的 OpenLani 写成（结构版本 ${error.found}，本版本为 ${error.known}）：请先启动一次本版本，它会把数据库升级。`,
				}),
			);
		if (error instanceof NewerSchemaError)
			throw new CliError(
				say(io, {
					en: "The database was written by a newer version of OpenLani: use that one.",
					zh: "数据库由更新版本的 OpenLani 写成：请使用那个版本。",
				}),
			);
		throw error;
	}
}
