/** A real store in a temporary home, and the few rows that most tests need. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v7 } from "uuid";
import { openStore } from "../../server/store/open.ts";
import type { Accepted, ConversationRow, NewInbound, Store } from "../../server/store/store.ts";

export interface Clock {
	now(): number;
	set(at: number): void;
	forward(ms: number): void;
}

/** A clock that stands until it is moved. */
export function standingClock(at = Date.UTC(2026, 10, 30, 7, 4)): Clock {
	let now = at;
	return {
		now: () => now,
		set(next) {
			now = next;
		},
		forward(ms) {
			now += ms;
		},
	};
}

export interface TestHome {
	dir: string;
	file: string;
	clock: Clock;
	open(): Promise<Store>;
	remove(): Promise<void>;
}

export async function testHome(clock = standingClock()): Promise<TestHome> {
	const dir = await mkdtemp(join(tmpdir(), "openlani-test-"));
	const file = join(dir, "data", "openlani.db");
	return {
		dir,
		file,
		clock,
		open: () => openStore({ file, assetsDir: join(dir, "data", "assets"), clock, newId: () => v7() }),
		remove: () => rm(dir, { recursive: true, force: true }),
	};
}

export function conversation(
	store: Store,
	change: { id?: string; channel?: string; place?: string; personId?: string; groupId?: string | null } = {},
): Promise<ConversationRow> {
	const id = change.id ?? v7();
	const channel = change.channel ?? "web";
	return store.conversations.create({
		id,
		title: "",
		titled: false,
		channel,
		address: { channel, account: "default", conversation: change.place ?? id },
		personId: change.personId ?? "master",
		groupId: change.groupId ?? null,
		at: Date.UTC(2026, 10, 30, 7, 4),
	});
}

export function say(
	store: Store,
	to: ConversationRow,
	text: string,
	change: Partial<NewInbound> = {},
	start?: { owner: string; leaseMs: number },
): Promise<Accepted> {
	const id = v7();
	const at = change.at ?? Date.UTC(2026, 10, 30, 7, 4);
	const inbound: NewInbound = {
		id,
		channel: to.channel,
		account: "default",
		externalId: id,
		conversationId: to.id,
		personId: "master",
		tier: "master",
		origin: "human",
		priority: 0,
		address: to.address,
		model: null,
		limits: {},
		message: { id, text, from: null, at, attachments: [], notes: [] },
		clientId: null,
		from: null,
		replaces: null,
		newTurnId: v7(),
		at,
		...change,
	};
	return store.inbox.accept(inbound, start);
}

export const usage = {
	inputTokens: 10,
	cachedTokens: 0,
	outputTokens: 5,
	reasoningTokens: 0,
	estimated: false,
	cost: 0.001,
	currency: "USD",
	calls: 1,
};

/** The end of a turn that answers `text` in its conversation. */
export function ending(conversation: ConversationRow, turnId: string, text: string, at = Date.UTC(2026, 10, 30, 7, 5)) {
	return {
		state: "done" as const,
		rounds: 1,
		usage,
		model: "main",
		modelName: "scripted",
		guard: null,
		taint: [],
		error: null,
		at,
		reply: {
			id: v7(),
			conversationId: conversation.id,
			turnId,
			address: conversation.address,
			profile: "private",
			text,
			attachments: [],
			at,
			message: { id: v7(), turnId, role: "assistant" as const, model: "main", modelName: "scripted", usage },
		},
	};
}
