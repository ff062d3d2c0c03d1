import type { Kysely } from "kysely";
import type { Database } from "./schema.ts";
import type { MetaStore } from "./store.ts";

export function createMeta(db: Kysely<Database>): MetaStore {
	return {
		async get(key) {
			return (await db.selectFrom("meta").select("value").where("key", "=", key).executeTakeFirst())?.value ?? null;
		},
		async set(key, value) {
			await db
				.insertInto("meta")
				.values({ key, value })
				.onConflict((conflict) => conflict.column("key").doUpdateSet({ value }))
				.execute();
		},
		async remove(key) {
			await db.deleteFrom("meta").where("key", "=", key).execute();
		},
	};
}
