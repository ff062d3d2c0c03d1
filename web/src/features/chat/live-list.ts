/** The conversation list as live frames change it. Pure, but for the reads that are under way. */
import type { Conversation, LiveFrame } from "../../../../server/http/contract.ts";

export interface ConversationPage {
	conversations: Conversation[];
}

/** The list after a frame. Any frame may come twice, or be older than the list: those that follow it set it right. */
export function changeList(list: Conversation[], frame: LiveFrame): Conversation[] {
	switch (frame.type) {
		case "conversation": {
			// What is known of it already came later than its making.
			if (frame.change === "created" && list.some((one) => one.id === frame.conversation)) return list;
			const others = list.filter((one) => one.id !== frame.conversation);
			return frame.change === "deleted" || frame.value === null ? others : [frame.value, ...others];
		}
		case "message": {
			const { message } = frame;
			return changeOne(list, frame.conversation, (one) =>
				message.at < one.updatedAt || message.superseded ? one : { ...one, updatedAt: message.at, preview: message.text.slice(0, 200) },
			);
		}
		case "turn":
			return changeOne(list, frame.conversation, (one) => ({
				...one,
				busy: frame.state === "queued" || frame.state === "running" ? frame.state : null,
			}));
		default:
			return list;
	}
}

function changeOne(list: Conversation[], id: string, change: (one: Conversation) => Conversation): Conversation[] {
	return list.map((one) => (one.id === id ? change(one) : one));
}

export interface LiveReads {
	frame(frame: LiveFrame): void;
	/** What `fetch` answers, with every frame that came meanwhile applied: an answer never undoes what a later frame said. */
	read(fetch: () => Promise<ConversationPage>): Promise<ConversationPage>;
}

export function createLiveReads(): LiveReads {
	const reading = new Set<LiveFrame[]>();
	return {
		frame(frame) {
			if (frame.type !== "conversation" && frame.type !== "message" && frame.type !== "turn") return;
			for (const frames of reading) frames.push(frame);
		},
		async read(fetch) {
			const frames: LiveFrame[] = [];
			reading.add(frames);
			try {
				const page = await fetch();
				return { conversations: frames.reduce(changeList, page.conversations) };
			} finally {
				reading.delete(frames);
			}
		},
	};
}
