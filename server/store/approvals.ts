/** Calls that wait for the master's word. Every change of state is one statement, so that two deciders, or two turns, never both win. */
import type { Kysely } from "kysely";
import type { Origin, Tier } from "../agent/types.ts";
import type { Database } from "./schema.ts";
import { all, first, run } from "./sql.ts";

export type ApprovalState = "pending" | "allowed" | "denied" | "expired";
export type ApprovalScope = "once" | "conversation" | "hour";

export interface ApprovalRow {
	id: string;
	tool: string;
	/** Canonical JSON. */
	arguments: string;
	conversationId: string;
	groupId: string | null;
	turnId: string;
	/** Record id of the call that asked. */
	callId: string;
	/** Whose turn asked: it goes on with the same rights and the same memory. */
	personId: string;
	tier: Tier;
	origin: Origin;
	tainted: boolean;
	state: ApprovalState;
	scope: ApprovalScope | null;
	createdAt: number;
	expiresAt: number;
	decidedAt: number | null;
	/** Until when an allowance may be used; null = as long as the conversation is there. */
	validUntil: number | null;
	/** Record id of the call that used a single allowance up. */
	usedBy: string | null;
	/** Turn that was told of the decision; null until then. */
	toldTurn: string | null;
}

export type NewApproval = Omit<ApprovalRow, "state" | "scope" | "decidedAt" | "validUntil" | "usedBy" | "toldTurn">;

export interface ApprovalStore {
	/** Stores a request. Answers the pending one of the same call when there is one (`asked: false`). */
	ask(row: NewApproval): Promise<{ row: ApprovalRow; asked: boolean }>;
	get(id: string): Promise<ApprovalRow | null>;
	/** Newest first. */
	list(filter: { state?: ApprovalState; limit: number; before?: string }): Promise<ApprovalRow[]>;
	/** How many wait in a conversation. */
	pending(conversationId: string): Promise<number>;
	/** Decisions on this tool in this conversation that still matter: allowances in force at `now`, or used by the call `callId`, and denials. */
	decided(conversationId: string, tool: string, now: number, callId: string): Promise<ApprovalRow[]>;
	/** Uses a single allowance up for one call; false when another call was first. Again for the same call is true. */
	use(id: string, callId: string): Promise<boolean>;
	/** Null when it is not pending any more, or its time is over. */
	decide(
		id: string,
		decision: { state: "allowed" | "denied"; scope: ApprovalScope | null; validUntil: number | null; at: number },
	): Promise<ApprovalRow | null>;
	/** Decisions that the conversation has not been told of, oldest first. */
	untold(): Promise<ApprovalRow[]>;
	told(id: string, turnId: string): Promise<void>;
	/** Pending ones whose time is over become `expired`; answers them. */
	expire(now: number): Promise<ApprovalRow[]>;
	/** Drops what was settled before `before` and allows nothing any more. */
	prune(before: number): Promise<void>;
}

interface Row {
	id: string;
	tool: string;
	arguments: string;
	conversation_id: string;
	group_id: string | null;
	turn_id: string;
	call_id: string;
	person_id: string;
	tier: string;
	origin: string;
	tainted: number;
	state: ApprovalState;
	scope: ApprovalScope | null;
	created_at: number;
	expires_at: number;
	decided_at: number | null;
	valid_until: number | null;
	used_by: string | null;
	told_turn: string | null;
}

const toApproval = (row: Row): ApprovalRow => ({
	id: row.id,
	tool: row.tool,
	arguments: row.arguments,
	conversationId: row.conversation_id,
	groupId: row.group_id,
	turnId: row.turn_id,
	callId: row.call_id,
	personId: row.person_id,
	tier: row.tier as Tier,
	origin: row.origin as Origin,
	tainted: row.tainted === 1,
	state: row.state,
	scope: row.scope,
	createdAt: row.created_at,
	expiresAt: row.expires_at,
	decidedAt: row.decided_at,
	validUntil: row.valid_until,
	usedBy: row.used_by,
	toldTurn: row.told_turn,
});

/** Denials that are looked at: the latest ones of a tool in a conversation. */
const denials = 20;

export function createApprovalStore(db: Kysely<Database>): ApprovalStore {
	async function get(id: string): Promise<ApprovalRow | null> {
		const row = await first<Row>(db, "select * from approvals where id = ?", id);
		return row ? toApproval(row) : null;
	}

	return {
		get,

		async ask(row) {
			const { id, tool, conversationId, personId } = row;
			const made = await first<Row>(
				db,
				`insert into approvals (id, tool, arguments, conversation_id, group_id, turn_id, call_id, person_id, tier, origin, tainted, state, created_at, expires_at)
				values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?)
				on conflict (conversation_id, person_id, tool, arguments) where state = 'pending' do update set tainted = max(tainted, excluded.tainted)
				returning *`,
				id,
				tool,
				row.arguments,
				conversationId,
				row.groupId,
				row.turnId,
				row.callId,
				personId,
				row.tier,
				row.origin,
				row.tainted ? 1 : 0,
				row.createdAt,
				row.expiresAt,
			);
			const stored = toApproval(made as Row);
			return { row: stored, asked: stored.id === id };
		},

		async list({ state, limit, before }) {
			const rows = await all<Row>(
				db,
				`select * from approvals where (? is null or state = ?)
				and (? is null or position < (select position from approvals where id = ?)) order by position desc limit ?`,
				state ?? null,
				state ?? null,
				before ?? null,
				before ?? null,
				limit,
			);
			return rows.map(toApproval);
		},

		async pending(conversationId) {
			const row = await first<{ count: number }>(
				db,
				"select count(*) as count from approvals where conversation_id = ? and state = 'pending'",
				conversationId,
			);
			return row?.count ?? 0;
		},

		async decided(conversationId, tool, now, callId) {
			const allowed = await all<Row>(
				db,
				`select * from approvals where conversation_id = ? and tool = ? and state = 'allowed'
				and (used_by = ? or (used_by is null and (valid_until is null or valid_until > ?))) order by position`,
				conversationId,
				tool,
				callId,
				now,
			);
			const denied = await all<Row>(
				db,
				`select * from approvals where conversation_id = ? and tool = ? and state = 'denied' order by position desc limit ${denials}`,
				conversationId,
				tool,
			);
			return [...allowed, ...denied].map(toApproval);
		},

		async use(id, callId) {
			return (await run(db, "update approvals set used_by = ? where id = ? and (used_by is null or used_by = ?)", callId, id, callId)) > 0;
		},

		async decide(id, { state, scope, validUntil, at }) {
			const row = await first<Row>(
				db,
				`update approvals set state = ?, scope = ?, valid_until = ?, decided_at = ?
				where id = ? and state = 'pending' and expires_at > ? returning *`,
				state,
				scope,
				validUntil,
				at,
				id,
				at,
			);
			return row ? toApproval(row) : null;
		},

		async untold() {
			const rows = await all<Row>(
				db,
				"select * from approvals where told_turn is null and state in ('allowed', 'denied') order by position limit 100",
			);
			return rows.map(toApproval);
		},

		async told(id, turnId) {
			await run(db, "update approvals set told_turn = ? where id = ?", turnId, id);
		},

		async expire(now) {
			const rows = await all<Row>(
				db,
				"update approvals set state = 'expired' where state = 'pending' and expires_at <= ? returning *",
				now,
			);
			return rows.map(toApproval);
		},

		async prune(before) {
			await run(
				db,
				`delete from approvals where id in (select id from approvals where created_at < ? and state <> 'pending'
				and not (state = 'allowed' and used_by is null and (valid_until is null or valid_until > ?)) order by position limit 500)`,
				before,
				before,
			);
		},
	};
}
