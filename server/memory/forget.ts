/**
 * Forgetting: a message, a fact, a memory or a person, with everything that was made of it. What is to go is worked out first and noted
 * as a job, so that a crash on the way is made good at the next start, and turns that still run are looked at again when they have ended.
 */
import type { Exchange } from "../agent/types.ts";
import type { FactRow, JobRow, MemoryKey } from "../store/memory-store.ts";
import type { Forgotten, MemoryAdmin } from "./admin.ts";
import type { Background } from "./background.ts";
import { normOf } from "./fact-rules.ts";
import { addTo, createObstacles, createRemover, leastCopy, nothing, type Removal, type RemovalParts, removedMark } from "./forget-apply.ts";
import { createPersonRemover } from "./forget-person.ts";
import { createTeller, type Teller } from "./forget-words.ts";
import { addToDiary, shortHash } from "./lines.ts";
import { diaryPath, keyOfOwner } from "./scope.ts";
import { dayOf } from "./text/dates.ts";
import { minuteOf } from "./times.ts";

export interface ForgetParts extends RemovalParts {
	background: Pick<Background, "facts" | "alone" | "removed">;
	/** Resolves when the search index knows what is gone. */
	indexed(): Promise<void>;
}

export interface Forgetting extends Pick<MemoryAdmin, "forget"> {
	/** Takes up what an earlier process had not finished. Before any turn runs. */
	load(): Promise<void>;
	/** True for an exchange that says what was forgotten while its turn ran: it must not become a memory. */
	refuses(exchange: Exchange): boolean;
	/** What was removed leaves the database's log as well: after a forgetting, and again later where a reader held it back. */
	tidy(): Promise<void>;
	/** Does a noted job. False while a turn that it waits for has not ended. */
	resume(job: JobRow): Promise<boolean>;
}

const page = 500;
const empty: Removal = {
	facts: [],
	factIds: [],
	turns: [],
	messages: [],
	exchanges: [],
	asking: [],
	copies: [],
	open: [],
	everything: false,
	heard: [],
	entries: [],
	person: false,
};
const long = (texts: string[]): string[] => [...new Set(texts.filter((text) => text.trim().length >= leastCopy))];
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function createForget(parts: ForgetParts): Forgetting {
	const { options, background, facts } = parts;
	const { store, workspace, clock } = options;
	const remover = createRemover(parts);
	const person = createPersonRemover(parts, remover);
	const by = { by: "person", reason: "forgotten" } as const;
	/** Turns that ran while something was forgotten, by id, until they have been looked at. */
	const held = new Map<string, { teller: Teller; everything: boolean }[]>();
	let soiled = false;

	const same = (one: MemoryKey, two: MemoryKey): boolean => one.owner === two.owner && one.audience === two.audience;

	function hold(what: Removal): void {
		const teller = createTeller(what.facts);
		for (const id of what.open) held.set(id, [...(held.get(id) ?? []), { teller, everything: what.everything }]);
	}

	/** Notes it and holds turns that run, before anything is changed; does it; leaves the job waiting for turns that have not ended, and for the index. */
	async function carryOut(key: MemoryKey, wanted: Removal, report: Forgotten): Promise<void> {
		const now = clock.now();
		const name = `forget:${options.newId()}`;
		hold(wanted);
		const heard = (await Promise.all(wanted.open.map((id) => store.turnOfMessage(id)))).flatMap((turn) => turn?.messageIds ?? []);
		const what: Removal = { ...wanted, heard };
		await store.addJob({ ...key, key: name, kind: "forget", conversationId: null, payload: what, notBefore: now, createdAt: now });
		await perform(key, name, what, report);
		const position = await store.jobPosition(name);
		if (position === null) return;
		await store.setJobPayload(position, afterwards(what));
		await tidy();
	}

	async function tidy(): Promise<void> {
		if (soiled) soiled = !(await store.scrub());
	}

	/** Does what is noted. Done twice, it changes nothing more. */
	async function perform(key: MemoryKey, name: string, what: Removal, report: Forgotten): Promise<void> {
		soiled = true;
		// What is on its way to a table or a log would come after its forgetting.
		await options.settle?.();
		if (what.person) await person.remove(key.owner, what.copies, report);
		else await remover.apply(key, what, report);
		const something = Object.values(report).some((count) => count > 0);
		// What is removed is removed, also where the page cannot say so.
		if (what.person ? something : report.diaryLines === 0) await createObstacles().passing(() => markDay(key.owner, shortHash(name)));
	}

	/** The day's page says that something was removed. */
	async function markDay(owner: string, id: string): Promise<void> {
		const timezone = options.timezone();
		const now = clock.now();
		const today = dayOf(now, timezone);
		await workspace.update(
			diaryPath(owner, today),
			(text) => addToDiary(text, today, [{ id: `r${id}`, when: minuteOf(now, timezone), text: removedMark }]),
			by,
		);
	}

	/** What is left to do once everything but the open turns is gone; without such turns, nothing but the index. */
	const afterwards = (what: Removal): Removal =>
		what.open.length === 0
			? empty
			: { ...empty, facts: what.facts, copies: what.copies, open: what.open, everything: what.everything, heard: what.heard };

	async function resume(job: JobRow): Promise<boolean> {
		const what = { ...empty, ...(job.payload as Partial<Removal>) };
		const rest = afterwards(what);
		const noted = [what.turns, what.messages, what.exchanges, what.factIds, what.asking, what.entries];
		if (what.person || noted.some((ids) => ids.length > 0)) {
			await background.alone(async () => {
				await perform(job, job.key, what, nothing());
				await store.setJobPayload(job.position, rest);
			});
		}
		if (rest.open.length === 0) {
			await parts.indexed();
			return true;
		}
		const now = await Promise.all(rest.heard.map(async (id) => (await store.turnOfMessage(id))?.turnId ?? []));
		const open = [...new Set([...rest.open, ...now.flat()])];
		if ((await store.unfinishedTurns(job, open)).length > 0) return false;
		await background.alone(() => lookAgain(job, { ...rest, open }));
		await parts.indexed();
		return true;
	}

	/** At turns that ran meanwhile and have ended. */
	async function lookAgain(key: MemoryKey, what: Removal): Promise<void> {
		const teller = createTeller(what.facts);
		const asking = new Set(await store.turnsForgetting(key, [""]));
		const turns: string[] = [];
		for (const id of what.open) {
			const texts = (await store.messageTexts((await store.turnOfMessage(id))?.messageIds ?? [])).map((row) => row.text);
			const told = teller.repeatsTalk(texts.join("\n"), "") || (asking.has(id) && texts.some((text) => teller.touches(text)));
			if (what.everything || told) turns.push(id);
		}
		const asked = what.open.filter((id) => asking.has(id) && !turns.includes(id));
		await remover.apply(key, { ...what, turns, asking: asked, open: [] }, nothing());
		for (const id of what.open) held.delete(id);
		soiled = true;
	}

	/** The fact, the versions before it, and what says the same in other words. */
	function versionsOf(fact: FactRow, all: FactRow[]): FactRow[] {
		const found = new Map([[fact.id, fact]]);
		for (let size = 0; size !== found.size; ) {
			size = found.size;
			for (const one of all) if (one.supersededBy !== null && found.has(one.supersededBy)) found.set(one.id, one);
		}
		const teller = createTeller([...found.values()].map((one) => one.text));
		for (const one of all) if (teller.repeats(one.text)) found.set(one.id, one);
		return [...found.values()];
	}

	/** Every turn and exchange of the owner in which the facts were told, or told again. */
	async function toldIn(key: MemoryKey, versions: FactRow[]): Promise<Pick<Removal, "turns" | "messages" | "exchanges" | "copies">> {
		const teller = createTeller(versions.map((one) => one.text));
		const norms = new Set(versions.map((one) => one.norm));
		const sources = new Set(versions.flatMap((one) => one.messageId ?? []));
		for (const call of await store.factCalls(key)) if (norms.has(normOf(call.text))) sources.add(call.turnId);
		const turns = new Set<string>();
		const messages = new Set<string>();
		const exchanges = new Set<string>();
		const copies: string[] = [];
		const own = await ownTurns(key, [...sources]);
		for (const id of sources) {
			const turn = own.get(id);
			if (turn?.turnId) turns.add(turn.turnId);
			else if (turn) messages.add(id);
			exchanges.add(id);
		}
		for (let after = 0; ; ) {
			const rows = await store.exchangesOfOwner(key, after, page);
			if (rows.length === 0) break;
			after = rows.at(-1)?.position ?? after;
			for (const { exchange } of rows) {
				if (!sources.has(exchange.id) && !turns.has(exchange.id) && !teller.repeatsTalk(exchange.said, exchange.replied)) continue;
				exchanges.add(exchange.id);
				if (await store.turnOfMessage(exchange.id)) turns.add(exchange.id);
				copies.push(exchange.said, ...(teller.touches(exchange.replied) ? [exchange.replied] : []));
			}
			await breathe();
		}
		for (let after = 0; ; ) {
			const rows = await store.messagesIn(key, after, page);
			if (rows.length === 0) break;
			after = rows.at(-1)?.position ?? after;
			for (const row of rows) if (row.turnId && teller.repeats(row.text)) turns.add(row.turnId);
			await breathe();
		}
		const texts = await textsOf([...turns], [...messages]);
		copies.push(...texts.filter((row) => row.asked || teller.touches(row.text)).map((row) => row.text));
		return { turns: [...turns], messages: [...messages], exchanges: [...exchanges], copies: long(copies) };
	}

	/** The sources that are messages or turns of this owner: what is another's stays, whatever a row says. */
	async function ownTurns(key: MemoryKey, ids: string[]) {
		const found = new Map<string, { turnId: string | null; messageIds: string[] }>();
		for (const id of ids) {
			const turn = await store.turnOfMessage(id);
			const owner = turn && (await store.ownerOf(turn.conversationId, turn.turnId));
			if (turn && owner && same(owner, key)) found.set(id, turn);
		}
		return found;
	}

	async function textsOf(turnIds: string[], messageIds: string[]): Promise<{ text: string; asked: boolean }[]> {
		const mates = (await Promise.all(turnIds.map((id) => store.turnOfMessage(id)))).flatMap((turn) => turn?.messageIds ?? []);
		return (await store.messageTexts([...mates, ...messageIds])).map((row) => ({ text: row.text, asked: row.role === "user" }));
	}

	async function forgetFact(id: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		const key = await store.factOwner(id);
		if (!key || (within && !same(key, within))) return null;
		const fact = await store.fact(key, id);
		if (!fact) return null;
		const versions = versionsOf(fact, await facts.history(key));
		const told = await toldIn(key, versions);
		const open = await store.unfinishedTurns(key, null);
		const factIds = versions.map((one) => one.id);
		const asking = await store.turnsForgetting(key, factIds);
		const ended = (turn: string): boolean => !open.includes(turn);
		const report = nothing();
		await carryOut(
			key,
			{
				...empty,
				...told,
				facts: versions.map((one) => one.text),
				factIds,
				turns: told.turns.filter(ended),
				exchanges: told.exchanges.filter(ended),
				asking: asking.filter((turn) => ended(turn) && !told.turns.includes(turn)),
				open,
				everything: false,
				person: false,
			},
			report,
		);
		return report;
	}

	async function forgetMessage(messageId: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		const turn = await store.turnOfMessage(messageId);
		const ids = [...new Set([messageId, ...(turn?.messageIds ?? []), ...(turn?.turnId ? [turn.turnId] : [])])];
		const rows = await store.exchangesOf(ids);
		if (within && !rows.some((row) => same(row, within))) return null;
		const [first] = rows;
		const key =
			within ??
			(first ? { owner: first.owner, audience: first.audience } : turn && (await store.ownerOf(turn.conversationId, turn.turnId)));
		if (!key) return null;
		const copies = [
			...rows.flatMap((row) => [row.exchange.said, row.exchange.replied]),
			...(await textsOf([], turn?.messageIds ?? [])).map((row) => row.text),
		];
		const factIds: string[] = [];
		for (const fact of await facts.history(key)) {
			if (!fact.messageId || !ids.includes(fact.messageId)) continue;
			copies.push(fact.text);
			factIds.push(fact.id);
		}
		const open = turn?.turnId ? await store.unfinishedTurns(key, [turn.turnId]) : [];
		const report = nothing();
		await carryOut(
			key,
			{
				...empty,
				factIds,
				turns: turn?.turnId && open.length === 0 ? [turn.turnId] : [],
				messages: turn?.messageIds ?? [],
				exchanges: ids,
				copies: long(copies),
				open,
				everything: true,
			},
			report,
		);
		return report;
	}

	/** The facts that an exchange told: whoever wants it forgotten means what it says, wherever that was said again. */
	async function toldBy(key: MemoryKey, exchangeId: string): Promise<string[]> {
		const turn = await store.turnOfMessage(exchangeId);
		const ids = new Set([exchangeId, ...(turn?.messageIds ?? []), ...(turn?.turnId ? [turn.turnId] : [])]);
		return (await facts.history(key)).filter((fact) => fact.messageId && ids.has(fact.messageId)).map((fact) => fact.id);
	}

	async function forgetEntry(id: string, within: MemoryKey | undefined): Promise<Forgotten | null> {
		for (const key of within ? [within] : await store.owners()) {
			const [entry] = await store.entries(key, [id]);
			if (!entry) continue;
			if (entry.source === "fact" && entry.ref) return forgetFact(entry.ref, key);
			const report = nothing();
			if (entry.source === "conversation" && entry.ref) {
				for (const id of await toldBy(key, entry.ref)) addTo(report, await forgetFact(id, key));
				addTo(report, await forgetMessage(entry.ref, key));
			}
			const lines = entry.source === "summary" && entry.ref ? await remover.rewriteLine(key, entry.ref, "", report) : [];
			await carryOut(key, { ...empty, entries: [id], copies: long([entry.text, ...lines]) }, report);
			return report;
		}
		return null;
	}

	async function forgetPerson(owner: string): Promise<Forgotten> {
		const key = keyOfOwner(owner);
		const report = nothing();
		const copies = await person.textsOf(owner);
		const open = await store.unfinishedTurns(key, null);
		await carryOut(key, { ...empty, copies, open, everything: true, person: true }, report);
		return report;
	}

	return {
		resume,
		tidy,
		async load() {
			for (const job of await store.forgetJobs()) hold({ ...empty, ...(job.payload as Partial<Removal>) });
		},
		refuses: (exchange) =>
			(held.get(exchange.id) ?? []).some(
				(one) =>
					one.everything ||
					one.teller.repeatsTalk(exchange.said, exchange.replied) ||
					(/\bforget\b/.test(exchange.tools ?? "") && (one.teller.touches(exchange.said) || one.teller.touches(exchange.replied))),
			),
		async forget(what, within) {
			// A fact that was told a moment ago must not come after its forgetting.
			const key = "factId" in what ? await store.factOwner(what.factId) : within;
			if (key) await background.facts(key);
			return background.alone(async () => {
				if ("messageId" in what) return forgetMessage(what.messageId, within);
				if ("factId" in what) return forgetFact(what.factId, within);
				if ("entryId" in what) return forgetEntry(what.entryId, within);
				if (within && within.owner !== what.person) return null;
				return forgetPerson(what.person);
			});
		},
	};
}
