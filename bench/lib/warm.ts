/** Warming up: the service is left running for years, so it is measured as it is then, not while its code is being compiled. */
import type { ChatClient } from "./client.ts";
import { now } from "./processes.ts";

const TOGETHER = 50;

/** Messages that make a process warm: after them the rate does not grow any more. */
export const warmMessages = (quick: boolean): number => (quick ? 3_000 : 6_000);

/** Sends `count` messages over these conversations, up to fifty at once. Answers how many were answered a second. */
export async function warm(client: ChatClient, conversations: string[], count: number): Promise<number> {
	let sent = 0;
	const startedAt = now();
	await Promise.all(
		conversations.slice(0, TOGETHER).map(async (conversation) => {
			while (sent < count) await client.ask(conversation, `warm up ${sent++}`);
		}),
	);
	return (sent / (now() - startedAt)) * 1000;
}
