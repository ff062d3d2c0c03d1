import type { Kysely } from "kysely";
import type { Database } from "./schema.ts";
import type { AuthStore } from "./store.ts";

export function createAuth(db: Kysely<Database>): AuthStore {
	return {
		async user(username) {
			const row = await db.selectFrom("users").selectAll().where("username", "=", username).executeTakeFirst();
			return row ? { username: row.username, passwordHash: row.password_hash } : null;
		},
		async hasUser() {
			return (await db.selectFrom("users").select("username").limit(1).execute()).length > 0;
		},
		async setUser(username, passwordHash) {
			await db
				.insertInto("users")
				.values({ username, password_hash: passwordHash })
				.onConflict((conflict) => conflict.column("username").doUpdateSet({ password_hash: passwordHash }))
				.execute();
		},
		async createSession(row) {
			await db
				.insertInto("sessions")
				.values({
					token_hash: row.tokenHash,
					username: row.username,
					created_at: row.createdAt,
					expires_at: row.expiresAt,
					user_agent: row.userAgent.slice(0, 200),
				})
				.execute();
		},
		async session(tokenHash, now) {
			const row = await db
				.selectFrom("sessions")
				.select(["username", "expires_at"])
				.where("token_hash", "=", tokenHash)
				.where("expires_at", ">", now)
				.executeTakeFirst();
			return row ? { username: row.username, expiresAt: row.expires_at } : null;
		},
		async endSession(tokenHash) {
			await db.deleteFrom("sessions").where("token_hash", "=", tokenHash).execute();
		},
		async endSessions(username) {
			await db.deleteFrom("sessions").where("username", "=", username).execute();
		},
	};
}
