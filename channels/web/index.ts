import type { Channel, ChannelHost, OutboundMessage, Receipt } from "../channel.ts";

/**
 * The page, the API and the command line as one channel. They read from the store and listen on the live socket, so
 * sending is showing: `show` publishes the message to whoever listens.
 */
export function createWebChannel(options: { show(message: OutboundMessage): Promise<void> }): Channel {
	let host: ChannelHost | null = null;
	return {
		id: "web",
		type: "web",
		async start(given) {
			host = given;
			host.report("up");
		},
		async stop() {
			host?.report("off");
			host = null;
		},
		async send(message): Promise<Receipt> {
			await options.show(message);
			return { state: "sent", platformIds: [message.id] };
		},
	};
}
