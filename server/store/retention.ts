import type { Kysely } from "kysely";
import type { Database } from "./schema.ts";

const dayMs = 24 * 60 * 60 * 1000;
/** Rows touched in one pass, so that a pass never holds up a turn for long. */
const batch = 500;

/**
 * One retention pass. Events go by age and by number; log-ins that have run out go (model calls are the ledger's). Messages are never pruned: they are what the person said.
 */
export async function prune(db: Kysely<Database>, now: number, keep: { eventDays: number }): Promise<void> {
	const eventsBefore = now - keep.eventDays * dayMs;
	const maxEvents = 200_000;
	await db
		.deleteFrom("events")
		.where("seq", "in", db.selectFrom("events").select("seq").where("at", "<", eventsBefore).orderBy("seq").limit(batch))
		.execute();
	const newest = await db
		.selectFrom("events")
		.select((eb) => eb.fn.max<number | null>("seq").as("seq"))
		.executeTakeFirst();
	const floor = (newest?.seq ?? 0) - maxEvents;
	if (floor > 0)
		await db
			.deleteFrom("events")
			.where("seq", "in", db.selectFrom("events").select("seq").where("seq", "<", floor).orderBy("seq").limit(batch))
			.execute();

	await db.deleteFrom("sessions").where("expires_at", "<", now).execute();
}
