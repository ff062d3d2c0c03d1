/** Calls as rows: what many requests begin with (parameters and tools, the longer part of most) is written once. */
import { createHash } from "node:crypto";
import type { CallStart } from "../model/model.ts";
import { clean } from "./json.ts";
import { all, type Executor, run } from "./sql.ts";

/** A shorter head is not worth a row of its own. */
const leastHead = 1_000;
/** Heads whose hash is remembered: a house has a few models and a few lists of tools. */
const mostHashes = 12;

export const toText = (body: unknown): string => clean(typeof body === "string" ? body : (JSON.stringify(body) ?? "null"));

/** The hash of a text, found without hashing it where the text came lately. */
function createHashes(): (text: string) => string {
	const latest: { text: string; hash: string }[] = [];
	return (text) => {
		const place = latest.findIndex((one) => one.text.length === text.length && one.text === text);
		const known = latest[place];
		if (!known) {
			const bytes = Buffer.from(text);
			const made = { text: bytes.toString(), hash: createHash("sha256").update(bytes).digest("hex") };
			latest.unshift(made);
			if (latest.length > mostHashes) latest.pop();
			return made.hash;
		}
		if (place > 0) {
			latest.splice(place, 1);
			latest.unshift(known);
		}
		return known.hash;
	};
}

/** How much of the request is kept with those of other calls; 0 = it is kept whole. */
function sharedLength(start: CallStart, request: string): number {
	const length = start.requestHead ?? 0;
	return length >= leastHead && length < request.length && request === start.request ? length : 0;
}

/**
 * Stores a call that is about to be made, inside the caller's transaction. Of a head it remembers nothing but the hash: whether and where
 * the head is stored is seen in the statement that stores the call, so nothing that was undone or pruned is ever referred to.
 */
export function createCallRows(): (db: Executor, id: string, start: CallStart) => Promise<void> {
	const hashOf = createHashes();

	return async (db, id, start) => {
		const { context } = start;
		const request = toText(start.request);
		const shared = sharedLength(start, request);
		const head = shared > 0 ? request.slice(0, shared) : null;
		const hash = head === null ? null : hashOf(head);
		const rest = request.slice(shared);
		const rows = await all<{ position: number; head: number | null }>(
			db,
			`insert into calls (id, turn_id, conversation_id, person_id, source, model, model_name, at, input_tokens, output_tokens, estimated, attempt, key, state,
				bytes, head)
				values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, 'open', ?, (select id from call_heads where hash = ?)) returning position, head`,
			id,
			context.turnId,
			context.conversationId,
			context.personId,
			context.source,
			start.model,
			start.modelName,
			start.startedAt,
			start.estimatedInputTokens,
			start.maxOutputTokens,
			start.attempt,
			start.key,
			rest.length,
			hash,
		);
		const row = rows[0] as { position: number; head: number | null };
		if (head !== null && row.head === null) {
			await run(db, "insert into call_heads (hash, text) values (?, ?)", hash, head);
			await run(db, "update calls set head = (select id from call_heads where hash = ?) where position = ?", hash, row.position);
		}
		await run(db, "insert into call_requests (position, request) values (?, ?)", row.position, rest);
	};
}

/** Removes the heads that no call begins with any more; answers how many. Reads an index only: see `calls_bodies`. */
export function dropHeads(db: Executor): Promise<number> {
	return run(db, "delete from call_heads where id not in (select head from calls where bytes > 0 and head is not null)");
}
