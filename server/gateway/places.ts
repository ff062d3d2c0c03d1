/** The conversations as the gateway needs them: where a message goes, and where one comes from that nobody has talked in before. */
import type { Address, InboundMessage } from "../../channels/channel.ts";
import type { LiveBody } from "../http/contract.ts";
import { GatewayError } from "../http/deps.ts";
import type { EventBus } from "../observe/bus.ts";
import type { ConversationRow, Store } from "../store/store.ts";
import { type Identity, master } from "./people.ts";

export interface PlacesOptions {
	store: Pick<Store, "conversations">;
	bus: Pick<EventBus, "publish">;
	clock: { now(): number };
	newId(): string;
	present(row: ConversationRow, change?: "created" | "changed"): LiveBody;
}

export interface Places {
	/** Throws `GatewayError` when there is no such conversation. Known ones are not read again: storing a message notices when one is gone. */
	of(conversationId: string): Promise<ConversationRow>;
	/** The conversation that a channel's message belongs to; made with its first one. */
	at(message: InboundMessage, identity: Identity): Promise<ConversationRow>;
	/** Makes a conversation of the master in the web channel. An empty title is given by its first message. */
	create(title: string, from: "web" | "api" | "cli"): Promise<ConversationRow>;
	/** The conversation that a program calls by this name; made when it is not there. */
	named(name: string): Promise<ConversationRow>;
	/** A conversation's first message has given it its title: tells the page. */
	titled(conversationId: string): Promise<void>;
	/** It may be gone: from now on it is read again. */
	forget(conversationId: string): void;
}

const most = 1_000;
const ours = { personId: master.personId, groupId: null };

const inWeb = (conversation: string): Address => ({ channel: "web", account: "default", conversation });

export function createPlaces(options: PlacesOptions): Places {
	const { store, bus, clock, newId, present } = options;
	/** Conversations that were written to. Where a message goes never changes. */
	const known = new Map<string, ConversationRow>();

	async function make(id: string, title: string, titled: boolean, address: Address, whose: { personId: string; groupId: string | null }) {
		const { personId, groupId } = whose;
		const row = await store.conversations.create({
			id,
			title,
			titled,
			channel: address.channel,
			address,
			personId,
			groupId,
			at: clock.now(),
		});
		// Somebody else's may have been made in the same moment: theirs is the one.
		if (row.id === id) bus.publish(present(row));
		return row;
	}

	return {
		async of(conversationId) {
			const there = known.get(conversationId);
			if (there) return there;
			const row = await store.conversations.get(conversationId);
			if (!row) throw new GatewayError("conversation-not-found", `there is no conversation ${conversationId}`);
			// Without a title it is looked at again: its first message gives it one.
			if (row.title === "") return row;
			if (known.size >= most) known.delete(known.keys().next().value as string);
			known.set(conversationId, row);
			return row;
		},
		async at({ address, group, sender }, identity) {
			const there = await store.conversations.byAddress(address.channel, address.account, address.conversation);
			if (there) return there;
			const { replyTo: _replyTo, replyToAt: _replyToAt, ...home } = address;
			return make(newId(), group?.title ?? sender.name, true, home, identity);
		},
		create(title, from) {
			const id = newId();
			// The page, the API and the command line are one channel; the place tells them apart in lists.
			return make(id, title, title !== "", inWeb(from === "web" ? id : `${from}:${id}`), ours);
		},
		async named(name) {
			const address = inWeb(`api:${name}`);
			const there = await store.conversations.byAddress(address.channel, address.account, address.conversation);
			return there ?? make(newId(), name, name !== "", address, ours);
		},
		async titled(conversationId) {
			const row = await store.conversations.get(conversationId);
			if (row) bus.publish(present(row, "changed"));
		},
		forget: (conversationId) => void known.delete(conversationId),
	};
}
