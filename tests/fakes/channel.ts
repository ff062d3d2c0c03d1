/**
 * A whole channel without a platform: what people say goes in by `say`, what is sent to them is kept by place. It counts as a platform does:
 * a message is told apart by its id, and a place (a private chat, a group) by its name.
 *
 *     const one = createFakeChannel("one");
 *     ... startDaemon({ channels: [{ channel: one.channel, policy: { masters: ["boss"], allow: ["*"], profile: null } }] }) ...
 *     await one.ask({ account: "ana", text: "hello" });             // resolves with the answer
 *     await one.ask({ account: "ana", text: "hello", group: "club" });
 */
import type { Channel, ChannelHost, OutboundMessage } from "../../channels/channel.ts";

export interface Spoken {
	account: string;
	text: string;
	/** Name of the group it is said in; left out: in private. */
	group?: string;
	/** Default: a new one. */
	externalId?: string;
}

export interface FakeChannel {
	readonly channel: Channel;
	/** Everything that was sent, in order. */
	readonly sent: OutboundMessage[];
	say(message: Spoken): Promise<{ duplicate: boolean }>;
	/** Says it and resolves with the next thing sent to that place. Rejects after `timeoutMs` (60,000). */
	ask(message: Spoken, timeoutMs?: number): Promise<string>;
	/** What was sent to a place: an account, or a group's name. */
	toPlace(place: string): string[];
}

export function createFakeChannel(id: string): FakeChannel {
	let host: ChannelHost | null = null;
	let count = 0;
	const sent: OutboundMessage[] = [];
	const waiting = new Set<{ place: string; take(text: string): void }>();

	const channel: Channel = {
		id,
		type: "fake",
		async start(given) {
			host = given;
			host.report("up");
		},
		async stop() {
			host?.report("off");
			host = null;
		},
		async send(message, signal) {
			if (signal.aborted) return { state: "unknown", reason: "aborted" };
			sent.push(message);
			for (const one of waiting) {
				if (one.place !== message.address.conversation) continue;
				waiting.delete(one);
				one.take(message.text);
				break;
			}
			return { state: "sent", platformIds: [`${id}-${sent.length}`] };
		},
	};

	async function say({ account, text, group, externalId }: Spoken): Promise<{ duplicate: boolean }> {
		if (!host) throw new Error("the channel has not been started");
		count++;
		return host.accept({
			externalId: externalId ?? `${id}-in-${count}`,
			address: { channel: id, account: "default", conversation: group ?? account },
			sender: { account, name: account, isBot: false, verified: true },
			group: group ? { id: group, title: group, addressed: "mention" } : null,
			text,
			attachments: [],
			sentAt: Date.now(),
			notes: [],
		});
	}

	return {
		channel,
		sent,
		say,
		async ask(message, timeoutMs = 60_000) {
			const place = message.group ?? message.account;
			let timer: NodeJS.Timeout | undefined;
			const answer = new Promise<string>((resolve, reject) => {
				const one = { place, take: resolve };
				waiting.add(one);
				timer = setTimeout(() => {
					waiting.delete(one);
					reject(new Error(`no answer to ${JSON.stringify(message)}`));
				}, timeoutMs);
			});
			try {
				await say(message);
				return await answer;
			} finally {
				clearTimeout(timer);
			}
		},
		toPlace: (place) => sent.filter((message) => message.address.conversation === place).map((message) => message.text),
	};
}
