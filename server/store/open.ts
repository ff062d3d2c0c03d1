import { statSync } from "node:fs";
import { sql } from "kysely";
import { type ApprovalStore, createApprovalStore } from "./approvals.ts";
import { createAssets } from "./assets.ts";
import { createAuth } from "./auth.ts";
import { createConversations } from "./conversations.ts";
import { createEvents } from "./events.ts";
import { createInbox } from "./inbox.ts";
import { createLedger } from "./ledger.ts";
import type { Ledger } from "./ledger-store.ts";
import { createMemoryStore } from "./memory.ts";
import { writeFactEffect } from "./memory-jobs.ts";
import type { MemoryStore } from "./memory-store.ts";
import { createMessages } from "./messages.ts";
import { createMeta } from "./meta.ts";
import { createOutbox } from "./outbox.ts";
import { createPeople } from "./people.ts";
import { prune } from "./retention.ts";
import { createDurability, type OpenHow, openSqlite, writeBack } from "./sqlite.ts";
import type { Store } from "./store.ts";
import { createTurns } from "./turns.ts";
import { createWriter } from "./writer.ts";

export interface StoreOptions extends OpenHow {
	/** Path of `openlani.db`; its folder is made. */
	file: string;
	assetsDir: string;
	clock: { now(): number };
	newId(): string;
	/** The day (YYYY-MM-DD, in the configured zone) that pays for a call made at this instant. Default: the day in UTC. */
	dayOf?(at: number): string;
}

/** The store with the parts that only some rooms use. */
export interface OpenStore extends Store {
	ledger: Ledger;
	memory: MemoryStore;
	approvals: ApprovalStore;
}

/**
 * Opens the store: makes or migrates the database, sets a damaged file aside (`health().problem` says so). Throws
 * `NewerSchemaError` for a database of a newer version, and what the system says when the file cannot be used. With `asItIs` it does
 * none of that and throws `OlderSchemaError` for one of an older version.
 */
export async function openStore(options: StoreOptions): Promise<OpenStore> {
	const { file, clock } = options;
	const { raw, db, prepare, damage } = await openSqlite(file, clock.now(), options);
	const durability = createDurability(file);
	const write = createWriter(db, prepare);
	const ledger = createLedger({ db, write, dayOf: options.dayOf ?? ((at) => new Date(at).toISOString().slice(0, 10)) });

	return {
		conversations: createConversations(db),
		messages: createMessages(db),
		inbox: createInbox(db, write, options.newId),
		turns: createTurns(db, write, { fact: writeFactEffect }),
		outbox: createOutbox(db, write),
		calls: ledger,
		ledger,
		memory: createMemoryStore(db, file, write),
		approvals: createApprovalStore(db),
		events: createEvents(db, write),
		people: createPeople(db, clock),
		auth: createAuth(db),
		assets: createAssets(db, options.assetsDir, clock),
		meta: createMeta(db),
		durable: durability.durable,
		async idle() {
			writeBack(raw);
		},
		prune: (now, keep) => prune(db, now, keep),
		async backup(target) {
			await raw.backup(target);
		},
		async health() {
			const schema = Number(raw.pragma("user_version", { simple: true }));
			const bytes = statSync(file).size;
			try {
				await sql`select 1 from meta limit 1`.execute(db);
				return { ok: damage === null, problem: damage, bytes, schema };
			} catch (error) {
				return { ok: false, problem: (error as Error).message, bytes, schema };
			}
		},
		async close() {
			await durability.close();
			await db.destroy();
		},
	};
}
