import type { GroupInfo, InboundMessage } from "../../channels/channel.ts";
import type { Tier } from "../agent/types.ts";
import type { PeopleStore } from "../store/store.ts";

/** Who is behind a message, what they may cause, and under which filter profile they are answered. */
export interface Identity {
	personId: string;
	tier: Tier;
	/** Ours: two platforms may call their groups the same. */
	groupId: string | null;
	profile: string;
	/** Name as the model should see it; null for the master in private. */
	from: string | null;
}

/** What a channel's settings say about people: the owner's accounts there, who needs no pairing, which profile. */
export interface ChannelPolicy {
	masters: string[];
	/** Account ids, or "*". */
	allow: string[];
	profile: string | null;
}

export const masterId = "master";

/** The master as the page, the API and the command line know them: whoever holds the login or the token. */
export const master: Identity = { personId: masterId, tier: "master", groupId: null, profile: "private", from: null };

function profileFor(tier: Tier, group: GroupInfo | null, policy: ChannelPolicy): string {
	if (policy.profile) return policy.profile;
	if (group) return "public";
	return tier === "master" ? "private" : "social";
}

/**
 * Says who a message is from. Only the platform's account id and our own settings count: names and texts claim, they do not prove.
 * A sender who can be forged (`verified: false`) is a stranger whatever the account says.
 */
export async function identify(people: PeopleStore, message: InboundMessage, policy: ChannelPolicy): Promise<Identity> {
	const { address, sender, group } = message;
	const isMaster = sender.verified && policy.masters.includes(sender.account);
	const known = isMaster ? null : await people.byAccount(address.channel, sender.account);
	const allowed = policy.allow.includes("*") || policy.allow.includes(sender.account);
	const personId = isMaster ? masterId : (known?.id ?? `${address.channel}-${sender.account}`);
	if (!isMaster && !known) {
		await people.upsert({
			id: personId,
			name: sender.name,
			tier: allowed ? "known" : "stranger",
			account: { channel: address.channel, account: sender.account },
		});
	}
	const own: Tier = isMaster ? "master" : !sender.verified ? "stranger" : (known?.tier ?? (allowed ? "known" : "stranger"));
	// In a group others read along and speak in between: nobody's private rights apply there, but the master's word counts as theirs.
	const tier: Tier = group && own !== "master" ? "group" : own;
	return {
		personId,
		tier,
		groupId: group ? `${address.channel}-${group.id}` : null,
		profile: profileFor(own, group, policy),
		from: isMaster && !group ? null : sender.name,
	};
}
