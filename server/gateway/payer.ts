/** On whose account a turn's model calls go. */
import type { Tier } from "../agent/types.ts";
import type { CallContext } from "../model/model.ts";
import type { Claim, Store } from "../store/store.ts";
import { masterId } from "./people.ts";

/** The source that a turn's calls are booked under. */
export function sourceOf(claim: Claim): "chat" | "heartbeat" | "alarm" | "job" {
	const { origin } = claim.turn;
	return origin === "heartbeat" || origin === "alarm" || origin === "job" ? origin : "chat";
}

/** Who pays for a call: the master for themselves, everybody else with their own or their group's share. */
export async function payerOf(
	store: Pick<Store, "turns" | "conversations" | "people">,
	running: (turnId: string) => Claim | null,
	context: CallContext,
): Promise<{ tier: Tier; groupId: string | null; background?: boolean }> {
	const claim = context.turnId ? running(context.turnId) : null;
	if (claim)
		return { tier: claim.turn.tier, groupId: claim.conversation.groupId, ...(sourceOf(claim) === "chat" ? {} : { background: true }) };
	const turn = context.turnId ? await store.turns.get(context.turnId) : null;
	const conversation = context.conversationId ? await store.conversations.get(context.conversationId) : null;
	const person = !turn && context.personId ? await store.people.get(context.personId) : null;
	const tier: Tier = turn?.tier ?? person?.tier ?? (context.personId === null || context.personId === masterId ? "master" : "known");
	const background = turn !== null && turn.origin !== "human" && turn.origin !== "bot";
	return { tier, groupId: conversation?.groupId ?? null, ...(background ? { background } : {}) };
}
