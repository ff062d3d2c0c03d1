import type { Kysely } from "kysely";
import { migration as core } from "./0001-core.ts";
import { migration as memory } from "./0002-memory.ts";
import { migration as ledger } from "./0003-ledger.ts";
import { migration as approvals } from "./0004-approvals.ts";
import { migration as callRequests } from "./0005-call-requests.ts";
import { migration as callHeads } from "./0006-call-heads.ts";

/** One step of the schema. Versions count from 1 without gaps; a migration that has landed is never changed. */
export interface Migration {
	version: number;
	name: string;
	/** Runs inside one transaction together with the new version number. */
	up(db: Kysely<unknown>): Promise<void>;
}

export const migrations: Migration[] = [core, memory, ledger, approvals, callRequests, callHeads];
