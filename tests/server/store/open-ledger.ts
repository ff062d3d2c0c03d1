/** A real database file with the ledger's tables, for tests. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { createCalendar } from "../../../server/observe/day.ts";
import { createLedger } from "../../../server/store/ledger.ts";
import { migration } from "../../../server/store/migrations/0003-ledger.ts";
import { migrations } from "../../../server/store/migrations/index.ts";
import { openSqlite } from "../../../server/store/sqlite.ts";

export function fakeClock(at = Date.parse("2026-11-30T04:00:00Z")) {
	return {
		at,
		now() {
			return this.at;
		},
		to(iso: string) {
			this.at = Date.parse(iso);
		},
	};
}

export async function openLedger(options: { timezone?: string; file?: string; clock?: { now(): number } } = {}) {
	const dir = options.file ? null : await mkdtemp(join(tmpdir(), "openlani-ledger-"));
	const file = options.file ?? join(dir as string, "openlani.db");
	const { db, raw } = await openSqlite(file, Date.now());
	const known = raw.prepare("select count(*) as n from sqlite_master where name = 'reservations'").get() as { n: number };
	if (known.n === 0 && !migrations.some((one) => one.version === migration.version)) await migration.up(db as unknown as Kysely<unknown>);
	const calendar = createCalendar(() => options.timezone ?? "Asia/Shanghai");
	return {
		file,
		db,
		raw,
		calendar,
		ledger: createLedger({ db, dayOf: calendar.dayOf }),
		async close() {
			await db.destroy();
			if (dir) await rm(dir, { recursive: true, force: true });
		},
	};
}
