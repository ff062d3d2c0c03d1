import type { Kysely } from "kysely";
import type { Tier } from "../agent/types.ts";
import type { Database } from "./schema.ts";
import type { PeopleStore, PersonRow } from "./store.ts";

export function createPeople(db: Kysely<Database>, clock: { now(): number }): PeopleStore {
	async function get(id: string): Promise<PersonRow | null> {
		const row = await db.selectFrom("people").selectAll().where("id", "=", id).executeTakeFirst();
		if (!row) return null;
		const accounts = await db.selectFrom("accounts").select(["channel", "account"]).where("person_id", "=", id).execute();
		return { id: row.id, name: row.name, tier: row.tier as Tier, accounts };
	}

	return {
		get,
		async byAccount(channel, account) {
			const row = await db
				.selectFrom("accounts")
				.select("person_id")
				.where("channel", "=", channel)
				.where("account", "=", account)
				.executeTakeFirst();
			return row ? get(row.person_id) : null;
		},
		async list() {
			const rows = await db.selectFrom("people").selectAll().orderBy("created_at").execute();
			const accounts = await db.selectFrom("accounts").selectAll().execute();
			return rows.map((row) => ({
				id: row.id,
				name: row.name,
				tier: row.tier as Tier,
				accounts: accounts.filter((one) => one.person_id === row.id).map(({ channel, account }) => ({ channel, account })),
			}));
		},
		async upsert(row) {
			await db.transaction().execute(async (trx) => {
				await trx
					.insertInto("people")
					.values({ id: row.id, name: row.name, tier: row.tier, created_at: clock.now() })
					.onConflict((conflict) => conflict.column("id").doUpdateSet({ name: row.name, tier: row.tier }))
					.execute();
				if (row.account) {
					await trx
						.insertInto("accounts")
						.values({ ...row.account, person_id: row.id })
						.onConflict((conflict) => conflict.columns(["channel", "account"]).doUpdateSet({ person_id: row.id }))
						.execute();
				}
			});
			return (await get(row.id)) as PersonRow;
		},
	};
}
