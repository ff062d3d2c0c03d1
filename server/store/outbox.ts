import type { Kysely, Selectable } from "kysely";
import { clean } from "./json.ts";
import { insertOutbox, toOutboxRow } from "./outbox-rows.ts";
import type { Database, OutboxTable } from "./schema.ts";
import { all, type Executor, first, marks, run } from "./sql.ts";
import type { OutboxRow, OutboxStore } from "./store.ts";
import type { Write } from "./writer.ts";

/** Of each place only its oldest unsent row counts, so that an answer never overtakes another. (The wider state condition is the index's.) */
const firstOfPlace = `from outbox where channel = ? and account = ? and state in ('pending', 'sending') and state = 'pending' and not exists (
	select 1 from outbox earlier where earlier.channel = outbox.channel and earlier.account = outbox.account and earlier.place = outbox.place
	and earlier.position < outbox.position and earlier.state in ('pending', 'sending'))`;

/** How far a lane is looked through row by row. */
const looked = 200;

/** The rows that may be sent now: of each place the oldest, if it is due and not being sent. */
function firstOfEach(lane: Selectable<OutboxTable>[], now: number): Selectable<OutboxTable>[] {
	const places = new Set<string>();
	return lane.filter((row) => {
		if (places.has(row.place)) return false;
		places.add(row.place);
		return row.state === "pending" && row.not_before <= now;
	});
}

export function createOutbox(db: Kysely<Database>, write: Write): OutboxStore {
	const get = async (id: string) => {
		const row = await db.selectFrom("outbox").selectAll().where("id", "=", id).executeTakeFirst();
		return row ? toOutboxRow(row) : null;
	};
	return {
		get,

		async add(row) {
			await write((trx) => insertOutbox(trx, row));
			return (await get(row.id)) as OutboxRow;
		},

		async claim(channel, account, now, most) {
			const due = async (on: Executor) => {
				const lane = await all<Selectable<OutboxTable>>(
					on,
					"select * from outbox where channel = ? and account = ? and state in ('pending', 'sending') order by position limit ?",
					channel,
					account,
					looked,
				);
				const found = firstOfEach(lane, now).slice(0, most);
				// A long row of messages that wait for one place must not hide what is behind it.
				if (found.length > 0 || lane.length < looked) return found;
				return all<Selectable<OutboxTable>>(
					on,
					`select * ${firstOfPlace} and not_before <= ? order by position limit ?`,
					channel,
					account,
					now,
					most,
				);
			};
			// Asked after every send, and mostly in vain: look before taking the write lock.
			if ((await due(db)).length === 0) return [];
			return write(async (trx) => {
				const rows = await due(trx);
				const ids = rows.map((row) => row.id);
				if (ids.length > 0)
					await run(trx, `update outbox set state = 'sending', attempts = attempts + 1 where id in (${marks(ids)})`, ...ids);
				return rows.map((row) => toOutboxRow({ ...row, state: "sending", attempts: row.attempts + 1 }));
			});
		},

		async nextDue(channel, account) {
			const row = await first<{ due: number | null }>(db, `select min(not_before) as due ${firstOfPlace}`, channel, account);
			return row?.due ?? null;
		},

		async settle(id, receipt) {
			if (receipt.state === "sent" && receipt.text === undefined) {
				const sent = (trx: Executor) =>
					run(
						trx,
						"update outbox set state = 'sent', error = null, platform_ids = ?, sent_at = ? where id = ? and state != 'dropped'",
						JSON.stringify(receipt.platformIds ?? []),
						receipt.at,
						id,
					);
				await write(sent);
				return;
			}
			await write(async (trx) => {
				const row = await trx
					.updateTable("outbox")
					.set({
						state: receipt.state,
						error: receipt.error ?? null,
						...(receipt.platformIds ? { platform_ids: JSON.stringify(receipt.platformIds) } : {}),
						...(receipt.notBefore === undefined ? {} : { not_before: receipt.notBefore }),
						...(receipt.text === undefined ? {} : { text: clean(receipt.text) }),
						...(receipt.state === "sent" ? { sent_at: receipt.at } : {}),
					})
					.where("id", "=", id)
					// A person may have dropped it meanwhile: that decision stands.
					.where("state", "!=", "dropped")
					.returning(["message_id"])
					.executeTakeFirst();
				// What the filter changed is what was said: the conversation shows the same.
				if (row?.message_id && receipt.text !== undefined)
					await trx
						.updateTable("messages")
						.set({ text: clean(receipt.text) })
						.where("id", "=", row.message_id)
						.execute();
			});
		},

		async recover(now) {
			return write(async (trx) => {
				await trx
					.updateTable("outbox")
					.set({ state: "unknown", error: "the service stopped twice while this was being sent" })
					.where("state", "=", "sending")
					.where("repeated", "=", 1)
					.execute();
				const again = await trx
					.updateTable("outbox")
					.set({
						state: "pending",
						repeated: 1,
						not_before: now,
						error: "the service stopped while this was being sent; it is sent once more",
					})
					.where("state", "=", "sending")
					.executeTakeFirst();
				return Number(again.numUpdatedRows);
			});
		},

		async lanes() {
			return all(db, "select distinct channel, account from outbox where state in ('pending', 'sending')");
		},

		async list(filter) {
			let query = db.selectFrom("outbox").selectAll().orderBy("position", "desc").limit(filter.limit);
			if (filter.state) query = query.where("state", "=", filter.state);
			if (filter.before)
				query = query.where("position", "<", (eb) =>
					eb
						.selectFrom("outbox as b")
						.select("b.position")
						.where("b.id", "=", filter.before as string),
				);
			return (await query.execute()).map(toOutboxRow);
		},

		async decide(id, decision, now) {
			const from = { retry: ["failed", "unknown", "dropped"], release: ["held"], drop: ["pending", "held", "failed", "unknown"] } as const;
			const result = await db
				.updateTable("outbox")
				.set(
					decision === "drop"
						? { state: "dropped" }
						: { state: "pending", not_before: now, attempts: 0, error: null, ...(decision === "release" ? { profile: "released" } : {}) },
				)
				.where("id", "=", id)
				.where("state", "in", [...from[decision]])
				.executeTakeFirst();
			return result.numUpdatedRows > 0n ? get(id) : null;
		},
	};
}
