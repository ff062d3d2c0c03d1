import type { Address, Attachment, Channel, InboundMessage } from "../../channels/channel.ts";
import type { Tier } from "../agent/types.ts";
import type { LiveBody, Message } from "../http/contract.ts";
import { type GatewayDoor, GatewayError, type Submission } from "../http/deps.ts";
import type { Scope } from "../memory/memory.ts";
import type { EventBus } from "../observe/bus.ts";
import { ConversationGone } from "../store/inbox-accept.ts";
import type { Claim, ConversationRow, MessageRow, NewInbound, Store } from "../store/store.ts";
import { createDelivery } from "./delivery.ts";
import { createDoors } from "./doors.ts";
import { createEarlyRecall } from "./early.ts";
import { createInOrder } from "./in-order.ts";
import { createLanes, type RunningLane } from "./lanes.ts";
import { type ChannelPolicy, type Identity, identify, master } from "./people.ts";
import { createPlaces } from "./places.ts";
import { sentence } from "./sentences.ts";
import { createTurnRunner, type TurnRunnerOptions } from "./turn.ts";
import { createWaiters } from "./waiters.ts";

export interface GatewayOptions
	extends Omit<
		TurnRunnerOptions,
		"recalledEarly" | "kickDelivery" | "sendsAtOnce" | "send" | "onEnded" | "journal" | "profile" | "present"
	> {
	store: Store;
	bus: EventBus;
	owner: string;
	channel(id: string): Channel | undefined;
	policy(channel: string): ChannelPolicy;
	locale(): string;
	present: TurnRunnerOptions["present"] & {
		plain(row: MessageRow): Message;
		conversation(row: ConversationRow, change?: "created" | "changed"): LiveBody;
	};
	keepFullText(recordId: string, text: string): Promise<string>;
	plan: TurnRunnerOptions["journal"]["plan"];
	/**
	 * A conversation is being deleted, and nothing runs in it any more: what was made of it goes. Before its own rows do, so that where a
	 * crash comes between, it is there to be deleted once more.
	 */
	onRemoving?(id: string): Promise<void>;
	maxTurns?: number;
}

export interface Gateway extends GatewayDoor {
	/** A channel's way in: stores the message, then resolves. */
	accept(channel: string, message: InboundMessage): Promise<{ duplicate: boolean; messageId: string; turnId: string }>;
	/** Takes up what an earlier process left, then begins to claim. */
	start(): Promise<{ resumed: number }>;
	/** Ends: no new turns, running ones leave at a stored step within `graceMs`. */
	close(graceMs: number): Promise<void>;
	running(): number;
	/** The claim of a turn that runs here, or null. */
	claimOf(turnId: string): Claim | null;
	/** The page is shown what an outbox row carries; `text` is what passed the filter. */
	show(outboxId: string, text: string): Promise<void>;
	/** Sends a sentence of the service itself (an alert). False when there is no such place. */
	notify(target: { conversation: string } | { channel: string; to: string }, text: string): Promise<boolean>;
	/** Turns that wait for the fuse may be tried again. */
	retryHeld(): Promise<void>;
	/**
	 * A decision of the master goes on where it was asked for: stored once for each `externalId` as a message that wakes the agent,
	 * with the rights and the memory of the person whose turn asked. Clients know it by its `clientId`, which is the `externalId`.
	 */
	resume(message: {
		conversationId: string;
		personId: string;
		tier: Tier;
		text: string;
		note: string;
		externalId: string;
	}): Promise<{ messageId: string; turnId: string }>;
}

type Entering = Omit<NewInbound, "personId" | "tier" | "from" | "conversationId" | "newTurnId" | "at" | "priority">;
type Taken = { messageId: string; turnId: string; duplicate: boolean };

/** How long a stopped turn may take to end before `stop` answers all the same. */
const stopWaitMs = 1_000;

/** The one way in and the one way out. */
export function createGateway(options: GatewayOptions): Gateway {
	const { store, bus, clock, newId, log } = options;
	const waiters = createWaiters();
	/** Replies without tools that have not been shown yet, by outbox id. */
	const fresh = new Map<string, MessageRow>();
	const places = createPlaces({ store, bus, clock, newId, present: options.present.conversation });
	/** Messages that take others back are stored one after the other in each conversation. */
	const takingBack = createInOrder();
	let closing = false;

	const delivery = createDelivery({
		store,
		channel: options.channel,
		filter: options.filter,
		clock,
		blockedText: () => sentence("blocked", options.locale()),
		onSettled(row) {
			if (row.state === "sending" || row.state === "pending") return;
			waiters.sent(row.id);
			fresh.delete(row.id);
			if (row.state !== "sent") log.warn("outbox.not-sent", { outboxId: row.id, channel: row.channel, state: row.state, error: row.error });
			// The web channel has shown its message already; elsewhere the page follows what became of it.
			if (row.messageId && (row.channel !== "web" || row.state !== "sent")) void showDelivery(row.messageId);
		},
		onError: (error) => log.error("delivery.failed", { error: (error as Error).message }),
	});

	async function showDelivery(messageId: string): Promise<void> {
		try {
			const row = await store.messages.get(messageId);
			if (row) bus.publish({ type: "message", conversation: row.conversationId, message: await options.present.message(row) });
		} catch (error) {
			log.error("delivery.not-shown", { messageId, error: (error as Error).message });
		}
	}

	async function resolve(
		channel: string,
		to: string,
	): Promise<{ address: Address; conversationId: string | null; profile: string } | null> {
		if (channel === "web") {
			const row = await store.conversations.get(to);
			return row ? { address: row.address, conversationId: row.id, profile: "private" } : null;
		}
		if (!options.channel(channel)) return null;
		const row = await store.conversations.byAddress(channel, "default", to);
		return {
			address: row?.address ?? { channel, account: "default", conversation: to },
			conversationId: row?.id ?? null,
			profile: options.policy(channel).profile ?? "social",
		};
	}

	const doors = createDoors();
	const early = createEarlyRecall(options.memory);
	const run = createTurnRunner({
		...options,
		recalledEarly: early.take,
		profile: (claim) =>
			claim.conversation.groupId
				? "public"
				: claim.turn.tier === "master"
					? "private"
					: (options.policy(claim.conversation.channel).profile ?? "social"),
		journal: { resolve, keepFullText: options.keepFullText, plan: options.plan },
		kickDelivery: delivery.kick,
		// Showing on the page is not sending: nothing paces it.
		sendsAtOnce: (channel) => options.channel(channel)?.type === "web",
		send: delivery.send,
		onEnded(ended) {
			const answer = { replyId: ended.reply?.id ?? null, turnId: ended.turnId };
			// Most answers are of one step and go to the page at once: what was just written need not be read again.
			if (ended.outboxId && ended.reply && ended.oneStep) fresh.set(ended.outboxId, ended.reply);
			if (ended.outboxId) waiters.whenSent(ended.outboxId, ended.messageIds, answer);
			else waiters.tell(ended.messageIds, answer);
		},
	});

	const lanes = createLanes({
		store,
		owner: options.owner,
		clock,
		run,
		onError: (error) => log.error("lanes.failed", { error: (error as Error).message }),
		...(options.maxTurns ? { maxTurns: options.maxTurns } : {}),
	});

	const take = (identity: Identity, conversation: ConversationRow, message: Entering): Promise<Taken> =>
		doors.through(conversation.id, () => takeIn(identity, conversation, message));

	/** Stores one inbound message, makes it durable, wakes the lanes. */
	async function takeIn(identity: Identity, conversation: ConversationRow, message: Entering): Promise<Taken> {
		if (message.origin === "human" && message.message.text !== "") {
			const { groupId } = conversation;
			const scope: Scope = {
				owner: groupId ? `group:${groupId}` : identity.personId,
				conversationId: conversation.id,
				audience: groupId ? "group" : "private",
			};
			early.begin(message.id, scope, message.message.text);
		}
		const inbound: NewInbound = {
			id: message.id,
			channel: message.channel,
			account: message.account,
			externalId: message.externalId,
			origin: message.origin,
			address: message.address,
			model: message.model,
			limits: message.limits,
			message: message.message,
			clientId: message.clientId,
			replaces: message.replaces,
			personId: identity.personId,
			tier: identity.tier,
			from: identity.from,
			conversationId: conversation.id,
			newTurnId: newId(),
			at: clock.now(),
			priority: message.origin === "human" ? 0 : 1,
		};
		const room = message.origin === "human" ? lanes.room() : null;
		const accepted = await store.inbox.accept(inbound, room?.start).catch((error: unknown) => {
			room?.giveBack();
			places.forget(conversation.id);
			if (error instanceof ConversationGone) throw new GatewayError("conversation-not-found", error.message);
			throw error;
		});
		const { messageId, turnId, duplicate, claim } = accepted;
		if (!claim) room?.giveBack();
		if (!duplicate) {
			waiters.open.add(messageId);
			if (accepted.supersededIds.length > 0) {
				options.memory.takenBack(conversation.id);
				bus.publish({ type: "superseded", conversation: conversation.id, messageIds: accepted.supersededIds });
				// Nobody answers these any more.
				waiters.tell(accepted.supersededIds, { replyId: null, turnId });
			}
			bus.publish({ type: "message", conversation: conversation.id, message: options.present.plain(accepted.message) });
			if (claim) room?.begin(claim);
			else lanes.kick();
			if (conversation.title === "") await places.titled(conversation.id);
		}
		await store.durable();
		return { messageId, turnId, duplicate };
	}

	async function carriedBy(outboxId: string): Promise<MessageRow | null> {
		const row = await store.outbox.get(outboxId);
		return row?.messageId ? store.messages.get(row.messageId) : null;
	}

	async function attachmentsOf(list: Submission["attachments"]) {
		return Promise.all(
			list.map(async (wanted) => {
				const attachment = await store.assets.get(wanted.sha256);
				if (!attachment) throw new GatewayError("attachment-not-found", `there is no stored file ${wanted.sha256}: upload it first`);
				return wanted.name ? { ...attachment, name: wanted.name } : attachment;
			}),
		);
	}

	async function halt(lane: RunningLane): Promise<void> {
		lane.stop.abort(new Error("stopped by a person"));
		const until = clock.now() + stopWaitMs;
		while (lanes.of(lane.conversationId)?.turnId === lane.turnId && clock.now() < until)
			await new Promise((resolve) => setTimeout(resolve, 5));
	}

	async function stop(conversationId: string): Promise<boolean> {
		let any = false;
		for (const turn of await store.turns.open(conversationId)) {
			if (turn.state === "queued" && (await store.turns.cancelQueued(turn.id, clock.now()))) {
				any = true;
				bus.publish({ type: "turn", conversation: conversationId, turnId: turn.id, state: "stopped", origin: turn.origin, model: null });
				waiters.tell(await store.turns.messageIds(turn.id), { replyId: null, turnId: turn.id });
			}
		}
		const lane = lanes.of(conversationId);
		if (lane) {
			any = true;
			await halt(lane);
		}
		return any;
	}

	return {
		async submit(submission) {
			if (closing) throw new GatewayError("stopping", "the service is stopping; send it again in a moment");
			const conversation = await places.of(submission.conversationId);
			if (submission.text.trim() === "" && submission.attachments.length === 0)
				throw new GatewayError("empty-message", "the message has neither text nor attachments");
			const attachments = await attachmentsOf(submission.attachments);
			const id = newId();
			const externalId = submission.clientId ? `${conversation.id}:${submission.clientId}` : id;
			const { channel } = conversation;
			const { account } = conversation.address;
			const enter = () =>
				take(master, conversation, {
					id,
					channel,
					account,
					externalId,
					origin: "human",
					address: conversation.address,
					model: submission.model,
					limits: submission.limits,
					message: { id, text: submission.text, from: null, at: clock.now(), attachments, notes: [] },
					clientId: submission.clientId,
					replaces: submission.replaces,
				});
			if (!submission.replaces) return enter();
			const replaced = await store.messages.get(submission.replaces);
			if (replaced?.conversationId !== conversation.id)
				throw new GatewayError("message-not-found", `there is no message ${submission.replaces} in this conversation`);
			return takingBack.run(conversation.id, async () => {
				// Sent once more because its acknowledgement was lost, it must not stop its own answer.
				if (!(await store.inbox.knows(channel, account, externalId))) await stop(conversation.id);
				return enter();
			});
		},

		async resume({ conversationId, personId, tier, text, note, externalId }) {
			if (closing) throw new GatewayError("stopping", "the service is stopping");
			const conversation = await store.conversations.get(conversationId);
			if (!conversation) throw new GatewayError("conversation-not-found", `there is no conversation ${conversationId}`);
			const id = newId();
			return take({ ...master, personId, tier }, conversation, {
				id,
				channel: conversation.channel,
				account: conversation.address.account,
				externalId: `${conversation.id}:${externalId}`,
				origin: "human",
				address: conversation.address,
				model: null,
				limits: {},
				message: { id, text, from: null, at: clock.now(), attachments: [], notes: [note] },
				clientId: externalId,
				replaces: null,
			});
		},

		async accept(channelId, message) {
			if (closing) throw new GatewayError("stopping", "the service is stopping");
			const identity = await identify(store.people, message, options.policy(channelId));
			const attachments: Attachment[] = [];
			for (const one of message.attachments)
				attachments.push({ ...(await store.assets.put(one.data, { name: one.name, mimeType: one.mimeType })), kind: one.kind });
			const id = newId();
			const enter = async (): Promise<Taken> => {
				const conversation = await places.at(message, identity);
				await doors.opened(conversation.id);
				return take(identity, conversation, {
					id,
					channel: message.address.channel,
					account: message.address.account,
					externalId: message.externalId,
					origin: message.sender.isBot ? "bot" : "human",
					address: message.address,
					model: null,
					limits: {},
					message: { id, text: message.text, from: identity.from, at: message.sentAt, attachments, notes: message.notes },
					clientId: null,
					replaces: null,
				});
			};
			return enter().catch((error: unknown) => {
				// Deleted in this moment: what comes now begins it anew.
				if (error instanceof GatewayError && error.code === "conversation-not-found") return enter();
				throw error;
			});
		},

		async whenAnswered(messageId, signal) {
			const waited = waiters.wait(messageId, signal);
			if (waiters.open.has(messageId)) return waited;
			const outcome = await store.inbox.outcome(messageId);
			if (!outcome) return null;
			if (outcome.state === "done" || outcome.state === "failed") {
				const reply = await store.messages.replyOf(outcome.turnId);
				if (!reply?.delivery || (reply.delivery !== "pending" && reply.delivery !== "sending"))
					waiters.tell([messageId], { replyId: reply?.id ?? null, turnId: outcome.turnId });
			}
			return waited;
		},

		stop,

		async createConversation(title, channel) {
			const { id } = await places.create(title ?? "", channel);
			return { id };
		},

		async namedConversation(name) {
			const { id } = await places.named(name);
			return { id };
		},

		removeConversation: (id) =>
			doors.close(id, async () => {
				const open = await store.turns.open(id);
				const waited = await Promise.all(
					open.map(async (turn) => ({ turnId: turn.id, messageIds: await store.turns.messageIds(turn.id) })),
				);
				await stop(id);
				// One that was being claimed has begun meanwhile.
				for (const until = clock.now() + stopWaitMs; (await store.turns.open(id)).length > 0 && clock.now() < until; ) {
					await new Promise((resolve) => setTimeout(resolve, 5));
					await stop(id);
				}
				// Events on their way to the table would come after the rest has gone.
				await bus.flush();
				if (await store.conversations.get(id)) await options.onRemoving?.(id);
				places.forget(id);
				const removed = await store.conversations.remove(id);
				if (removed) {
					// An answer on its way went with the rest: nobody will see it leave.
					for (const { turnId, messageIds } of waited) waiters.tell(messageIds, { replyId: null, turnId });
					bus.publish({ type: "conversation", conversation: id, change: "deleted", value: null });
				}
				return removed;
			}),

		outboxChanged: (row) => delivery.kick(row.channel, row.account),

		async addressOf(conversationId) {
			return (await store.conversations.get(conversationId))?.address ?? null;
		},

		async start() {
			const resumed = await store.inbox.recover(clock.now());
			// Frames that died with the last process are said again; who has seen them knows them by the message's id.
			for (const row of await store.events.unannounced())
				bus.publish({ type: "message", conversation: row.conversationId, message: await options.present.message(row) });
			await delivery.start();
			lanes.kick();
			return { resumed };
		},

		async close(graceMs) {
			closing = true;
			await lanes.close(graceMs);
			await delivery.close(2_000);
		},

		running: () => lanes.running().length,
		claimOf: (turnId) => lanes.byTurn(turnId)?.claim ?? null,

		async show(outboxId, text) {
			const known = fresh.get(outboxId);
			const row = known ?? (await carriedBy(outboxId));
			if (!row) return;
			const shown = { ...row, text, delivery: "sent" as const };
			const message = known ? options.present.plain(shown) : await options.present.message(shown);
			waiters.shown(outboxId, message);
			bus.publish({ type: "message", conversation: row.conversationId, message });
		},

		async notify(target, text) {
			const place = await ("conversation" in target ? resolve("web", target.conversation) : resolve(target.channel, target.to));
			if (!place) return false;
			const message = place.conversationId
				? { id: newId(), turnId: null, role: "system" as const, model: null, modelName: null, usage: null }
				: null;
			const { address, conversationId, profile } = place;
			await store.outbox.add({
				id: newId(),
				conversationId,
				turnId: null,
				address,
				profile,
				text,
				attachments: [],
				at: clock.now(),
				message,
			});
			delivery.kick(address.channel, address.account);
			return true;
		},

		async retryHeld() {
			await store.inbox.unhold();
			lanes.kick();
		},
	};
}
