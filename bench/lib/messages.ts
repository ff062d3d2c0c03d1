/** What the processes of a benchmark say to each other. */
export interface ModelMessage {
	url?: string;
	times?: { arrivedAt: number; endedAt: number; lastUser: string }[];
	bodies?: string[];
}

export type ModelCommand = { note: "times" | "bodies" | "nothing" } | { get: "times" | "bodies" };

export interface FloorMessage {
	url: string;
}

/** The answer that every plain message gets, as the chunks in which it is streamed. */
export const REPLY = "Good to hear from you. Here is a short answer of about twenty words, streamed word by word, as a model would.";

/** Beginnings of messages that ask the scripted server for something else than `REPLY`. */
export const ASKS = { tool: "[tool]", short: "[short stream]", long: "[long stream]" };

/** Slow streams: so many tokens, so far apart. */
export const STREAM = { shortTokens: 50, longTokens: 200, everyMs: 20 };
