import type { Kysely } from "kysely";
import type { Database } from "./schema.ts";

const dayMs = 24 * 60 * 60 * 1000;
/** Rows touched in one pass, so that a pass never holds up a turn for long. */
const batch = 500;

/**
 * One retention pass. Events go by age and by number; bodies of old model calls are emptied (their sums stay); log-ins
 * that have run out go. Messages are never pruned: they are what the person said.
 */
export async function prune(
	db: Kysely<Database>,
	now: number,
	keep: { eventDays: number; callDays: number; bytes: number },
): Promise<void> {
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

	await emptyCalls(db, (query) => query.where("at", "<", now - keep.callDays * dayMs));
	const { bytes } = await db
		.selectFrom("calls")
		.select((eb) => eb.fn.coalesce(eb.fn.sum<number>(eb.fn("length", ["request"])), eb.lit(0)).as("bytes"))
		.where("request", "!=", "null")
		.executeTakeFirstOrThrow();
	if (bytes > keep.bytes) await emptyCalls(db, (query) => query);

	await db.deleteFrom("sessions").where("expires_at", "<", now).execute();
}

async function emptyCalls(db: Kysely<Database>, narrow: (query: ReturnType<typeof olds>) => ReturnType<typeof olds>): Promise<void> {
	const ids = (await narrow(olds(db)).execute()).map((row) => row.id);
	if (ids.length > 0) await db.updateTable("calls").set({ request: "null", response: null }).where("id", "in", ids).execute();
}

function olds(db: Kysely<Database>) {
	return db.selectFrom("calls").select("id").where("request", "!=", "null").where("state", "!=", "open").orderBy("position").limit(batch);
}
