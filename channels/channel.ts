/**
 * The contract between OpenLani and the places where people reach it. Everything here is plain data
 * (it is stored in rows), and this file imports nothing.
 */

/** One place on one channel: where a message came from and where an answer goes. */
export interface Address {
	/** Channel id from the configuration ("tg"), or the built-in `web` and `internal`. */
	channel: string;
	/** Our own account on that channel (bot id, mailbox); `default` where a channel has just one. */
	account: string;
	/** The platform's id of the place: chat id, group id, mail thread; for `web` the conversation id. */
	conversation: string;
	/** Platform id of the message that is answered, where the platform needs or shows it. */
	replyTo?: string;
	/** When that message arrived (ms since the epoch): passive replies have a deadline on some platforms. */
	replyToAt?: number;
}

export type AttachmentKind = "image" | "audio" | "video" | "file";

/** A stored attachment: its bytes live in `data/assets/<sha256>.*`. */
export interface Attachment {
	sha256: string;
	name: string;
	mimeType: string;
	bytes: number;
	kind: AttachmentKind;
}

/** An attachment that a channel has fetched but that is not stored yet. */
export interface InboundAttachment {
	name: string;
	mimeType: string;
	kind: AttachmentKind;
	data: Uint8Array;
}

/** Who wrote a message, as the platform says it. `verified` is false where a sender can be forged (mail). */
export interface Sender {
	account: string;
	name: string;
	isBot: boolean;
	verified: boolean;
}

/** Present when the message was written in a group. */
export interface GroupInfo {
	id: string;
	title: string;
	/** How the message addressed us, if it did: decides with the group's `trigger` whether it wakes the agent. */
	addressed: "mention" | "reply" | "command" | "all" | null;
}

/** One message from outside, translated by a channel's pure `inbound.ts`. */
export interface InboundMessage {
	/** Unique for (channel, account): a second message with the same id is dropped. */
	externalId: string;
	address: Address;
	sender: Sender;
	group: GroupInfo | null;
	text: string;
	attachments: InboundAttachment[];
	/** The platform's time of the message, ms since the epoch. */
	sentAt: number;
	/** What a channel could not bring along ("video of 48 MB: too large"), told to the model. */
	notes: string[];
}

/** One message to be sent. `text` is Markdown from the agent that has passed the filter; the channel makes its own markup of it. */
export interface OutboundMessage {
	/** The outbox row's id: the same for every attempt. */
	id: string;
	address: Address;
	text: string;
	attachments: Attachment[];
	/** Reads an attachment's bytes. */
	read(attachment: Attachment): Promise<Uint8Array>;
}

/** What became of an attempt to send. `unknown`: it may or may not have arrived (the link broke after the request). */
export type Receipt =
	| { state: "sent"; platformIds: string[] }
	| { state: "failed"; reason: string; permanent: boolean; retryAfterMs?: number }
	| { state: "unknown"; reason: string };

export type ChannelState = "up" | "connecting" | "down" | "off";

/** What a channel is handed when it starts. */
export interface ChannelHost {
	/** Resolves when the message is stored (or known already): only then may it be acknowledged to the platform. Rejects when it could not be stored. */
	accept(message: InboundMessage): Promise<{ duplicate: boolean }>;
	/** Reports the connection's state; `error` is one plain sentence without secrets. */
	report(state: ChannelState, error?: string): void;
}

/** A way to reach people. Created by `createX(options)` in each channel's index.ts. */
export interface Channel {
	readonly id: string;
	readonly type: string;
	/** Opens the connection; returns when it is being kept up, throws only for settings that can never work. */
	start(host: ChannelHost): Promise<void>;
	/** Stops taking messages and closes the connection. Safe to call twice. */
	stop(): Promise<void>;
	/** One attempt to send. Never throws for what the platform answers: that is a receipt. Aborting gives `unknown` if the request may have left. */
	send(message: OutboundMessage, signal: AbortSignal): Promise<Receipt>;
}
