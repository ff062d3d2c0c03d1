/** Forgetting in what turns left behind: steps, tool calls, recall, recorded model calls, kept events, approvals, titles. */
import { type Kysely, type RawBuilder, sql } from "kysely";
import { fromJson } from "./json.ts";
import type { MemoryKey, MemoryStore } from "./memory-store.ts";
import type { Database } from "./schema.ts";

/** What stands where a forgotten text was. */
export const mark = "[removed]";
/** Shorter texts ("ok") would match what has nothing to do with them. */
const leastNeedle = 4;
const longestNeedle = 200;
/** Needles of one statement, rows of one look: so that no statement holds the event loop for long. */
const needlesAtOnce = 100;
const rowsAtOnce = 500;

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const markJson = JSON.stringify(mark);
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A text as it may stand in a row: plain, on one line, inside JSON, and inside JSON that is a string in JSON. */
export function needlesOf(texts: string[]): string[] {
	const found = new Set<string>();
	for (const text of texts) {
		for (const form of [text.trim(), text.replace(/\s+/g, " ").trim()]) {
			const needle = [...form.slice(0, longestNeedle)].join("").toWellFormed();
			if (needle.length < leastNeedle) continue;
			found.add(needle);
			found.add(inJson(needle));
			found.add(inJson(inJson(needle)));
		}
	}
	return [...found];
}

/** The owner's turns: a group's are those in its place, a person's those in private. */
export function turnsOf(key: MemoryKey): RawBuilder<unknown> {
	return key.owner.startsWith("group:")
		? sql`select turns.id from turns join conversations on conversations.id = turns.conversation_id where conversations.group_id = ${key.owner.slice("group:".length)}`
		: sql`select turns.id from turns join conversations on conversations.id = turns.conversation_id where conversations.group_id is null and turns.person_id = ${key.owner}`;
}

/** Where the owner talks: conversations, and those that only the memory knows of. */
function placesOf(key: MemoryKey): RawBuilder<unknown> {
	const remembered = sql`select conversation_id from memory_exchanges where owner = ${key.owner} and audience = ${key.audience}`;
	return key.owner.startsWith("group:")
		? sql`select id from conversations where group_id = ${key.owner.slice("group:".length)} union ${remembered}`
		: sql`select id from conversations where group_id is null and (person_id = ${key.owner}
			or id in (select conversation_id from turns where person_id = ${key.owner})) union ${remembered}`;
}

export function turnRedaction(
	db: Kysely<Database>,
): Pick<MemoryStore, "redactTraces" | "redactPlaces" | "unfinishedTurns" | "plansOf" | "turnsForgetting" | "factCalls" | "messagesIn"> {
	/** Runs `work` on every stretch of a table's rows. */
	async function stretches(table: "calls" | "events", work: (from: number, to: number) => Promise<void>): Promise<void> {
		const column = sql.ref(table === "calls" ? "position" : "seq");
		for (let from = -1; ; ) {
			const { rows } = await sql<{ at: number | null }>`select max(at) as at from (select ${column} as at from ${sql.table(table)}
				where ${column} > ${from} order by ${column} limit ${rowsAtOnce})`.execute(db);
			const to = rows[0]?.at ?? null;
			if (to === null) return;
			await work(from, to);
			from = to;
			await breathe();
		}
	}

	const holding = (columns: string[], needles: string[]): RawBuilder<boolean> =>
		sql.join(
			columns.flatMap((column) => needles.map((needle) => sql`instr(${sql.ref(column)}, ${needle}) > 0`)),
			sql` or `,
		) as RawBuilder<boolean>;

	async function redactCalls(rows: { position: number }[]): Promise<void> {
		if (rows.length === 0) return;
		const among = JSON.stringify(rows.map((row) => row.position));
		// In this order: as long as the request is there, it is found again after a crash.
		await sql`update calls set response = null, head = null where position in (select value from json_each(${among}))`.execute(db);
		await sql`update call_requests set request = ${markJson} where position in (select value from json_each(${among}))`.execute(db);
	}

	async function byTurn(turnIds: string[], records: Set<string>): Promise<void> {
		const ids = sql.join(turnIds);
		await sql`update steps set text = ${mark}, reasoning = '', note = null where turn_id in (${ids})`.execute(db);
		const calls = await sql<{
			record_id: string;
		}>`update tool_calls set arguments = '{}', result = ${mark}, attachments = '[]'
			where name <> 'forget' and turn_id in (${ids}) returning record_id`.execute(db);
		for (const row of calls.rows) records.add(row.record_id);
		await sql`update turns set why = '{}', plan = '[]' where id in (${ids})`.execute(db);
		await redactCalls((await sql<{ position: number }>`select position from calls where turn_id in (${ids})`.execute(db)).rows);
		await sql`delete from events where type not in ('turn', 'message', 'conversation') and turn_id in (${ids})`.execute(db);
		await sql`update approvals set arguments = '{}', state = case state when 'pending' then 'expired' else state end
			where tool <> 'forget' and turn_id in (${ids})`.execute(db);
	}

	async function byText(key: MemoryKey, needles: string[], records: Set<string>): Promise<void> {
		const turns = turnsOf(key);
		const places = placesOf(key);
		// A turn that runs still needs its records; it is looked at again when it has ended.
		const ended = sql`turn_id in (${turns}) and turn_id not in (select id from turns where state in ('queued', 'running'))`;
		await sql`update steps set text = ${mark}, reasoning = '', note = null where ${ended} and (${holding(["text", "reasoning", "note"], needles)})`.execute(
			db,
		);
		const calls = await sql<{ record_id: string }>`update tool_calls set arguments = '{}', result = ${mark}, attachments = '[]'
			where ${ended} and (${holding(["arguments", "result"], needles)}) returning record_id`.execute(db);
		for (const row of calls.rows) records.add(row.record_id);
		const told = await sql<{ id: string; why: string; plan: string }>`select id, why, plan from turns
			where id in (${turns}) and (${holding(["why", "plan"], needles)})`.execute(db);
		const has = (text: string): boolean => needles.some((needle) => text.includes(needle));
		for (const row of told.rows) {
			const why = fromJson<{ recalled?: { text?: string }[] }>(row.why, {});
			if (Array.isArray(why.recalled)) why.recalled = why.recalled.filter((one) => !has(JSON.stringify(one)));
			const kept = JSON.stringify(why);
			const plan = fromJson<unknown[]>(row.plan, []).filter((item) => !has(JSON.stringify(item)));
			await sql`update turns set why = ${has(kept) ? "{}" : kept}, plan = ${JSON.stringify(plan)} where id = ${row.id}`.execute(db);
		}
		await sql`update approvals set arguments = '{}', state = case state when 'pending' then 'expired' else state end
			where tool <> 'forget' and conversation_id in (${places}) and (${holding(["arguments"], needles)})`.execute(db);
		await sql`update conversations set preview = null where id in (${places}) and (${holding(["preview"], needles)})`.execute(db);
		await sql`update conversations set title = '', titled = 0 where id in (${places}) and (${holding(["title"], needles)})`.execute(db);
		await stretches("calls", async (from, to) => {
			const found = await sql<{
				position: number;
			}>`select calls.position from calls left join call_requests on call_requests.position = calls.position
				where calls.position > ${from} and calls.position <= ${to} and (${holding(["call_requests.request", "calls.response"], needles)})
				and (conversation_id in (${places}) or (conversation_id is null and (person_id is null or person_id = ${key.owner})))`.execute(db);
			await redactCalls(found.rows);
		});
		await stretches("events", async (from, to) => {
			await sql`delete from events where seq > ${from} and seq <= ${to} and (${holding(["body"], needles)})
				and (conversation_id is null or conversation_id in (${places}))`.execute(db);
		});
	}

	return {
		async redactTraces(key, texts, turnIds) {
			const records = new Set<string>();
			for (let at = 0; at < turnIds.length; at += needlesAtOnce) await byTurn(turnIds.slice(at, at + needlesAtOnce), records);
			const needles = needlesOf(texts);
			for (let at = 0; at < needles.length; at += needlesAtOnce) await byText(key, needles.slice(at, at + needlesAtOnce), records);
			// A title is the beginning of the first message: only its own beginning can be looked for.
			for (const text of texts) {
				const whole = text.replace(/\s+/g, " ").trim();
				if (whole.length < leastNeedle) continue;
				await sql`update conversations set title = '', titled = 0 where titled = 0 and length(title) >= 4
					and id in (${placesOf(key)}) and substr(${whole}, 1, length(title)) = title`.execute(db);
				await sql`update conversations set preview = null where length(preview) >= 4
					and id in (${placesOf(key)}) and instr(${whole}, substr(preview, 1, 40)) > 0`.execute(db);
			}
			return [...records];
		},

		async redactPlaces(key) {
			const places = placesOf(key);
			await sql`update conversations set preview = null, title = '', titled = 0 where id in (${places})`.execute(db);
			await stretches("calls", async (from, to) => {
				const found = await sql<{
					position: number;
				}>`select calls.position from calls join call_requests on call_requests.position = calls.position
					where calls.position > ${from} and calls.position <= ${to} and call_requests.request <> ${markJson}
					and (conversation_id in (${places}) or (conversation_id is null and person_id = ${key.owner}))`.execute(db);
				await redactCalls(found.rows);
			});
			await stretches("events", async (from, to) => {
				await sql`delete from events where seq > ${from} and seq <= ${to} and type not in ('turn', 'message')
					and conversation_id in (${places})`.execute(db);
			});
		},

		async unfinishedTurns(key, ids) {
			const among = ids ? sql`turns.id in (${sql.join(ids.length > 0 ? ids : [""])})` : sql`turns.id in (${turnsOf(key)})`;
			const { rows } = await sql<{ id: string }>`select id from turns where ${among} and (state in ('queued', 'running')
				or exists (select 1 from inbox where inbox.turn_id = turns.id and inbox.state = 'waiting')
				or exists (select 1 from outbox where outbox.turn_id = turns.id and outbox.state in ('pending', 'sending')))`.execute(db);
			return rows.map((row) => row.id);
		},

		async plansOf(turnIds) {
			const { rows } = await sql<{ conversation_id: string; plan: string }>`select conversation_id, plan from turns
				where id in (select value from json_each(${JSON.stringify(turnIds)})) and plan <> '[]'`.execute(db);
			return rows.flatMap(({ conversation_id, plan }) =>
				fromJson<{ text?: unknown }[]>(plan, []).flatMap(({ text }) =>
					typeof text === "string" && text.trim() !== ""
						? [{ conversationId: conversation_id, item: text.replace(/\s*\n\s*/g, " ").trim() }]
						: [],
				),
			);
		},

		async turnsForgetting(key, ids) {
			if (ids.length === 0) return [];
			const { rows } = await sql<{ id: string }>`select distinct turn_id as id from tool_calls where name = 'forget'
				and turn_id in (${turnsOf(key)}) and (${holding(["arguments"], ids)})`.execute(db);
			return rows.map((row) => row.id);
		},

		async factCalls(key) {
			const { rows } = await sql<{ turn_id: string; arguments: string }>`select turn_id, arguments from tool_calls
				where name = 'remember_fact' and turn_id in (${turnsOf(key)})`.execute(db);
			return rows.flatMap((row) => {
				const { text } = fromJson<{ text?: unknown }>(row.arguments, {});
				return typeof text === "string" ? [{ turnId: row.turn_id, text }] : [];
			});
		},

		async messagesIn(key, after, limit) {
			const { rows } = await sql<{ position: number; id: string; turn_id: string | null; text: string }>`select position, id, turn_id, text
				from messages where position > ${after} and turn_id in (${turnsOf(key)}) order by position limit ${limit}`.execute(db);
			return rows.map((row) => ({ position: row.position, id: row.id, turnId: row.turn_id, text: row.text }));
		},
	};
}
