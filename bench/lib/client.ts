import { randomUUID } from "node:crypto";
import { WebSocket } from "ws";
import { now } from "./processes.ts";

export interface Timing {
	sentAt: number;
	/** First streamed text. */
	firstAt: number;
	/** The whole answer has been delivered. */
	doneAt: number;
	text: string;
}

export interface ChatClient {
	/** Sends one message and resolves when its answer is there. One at a time in each conversation. */
	ask(conversation: string, text: string): Promise<Timing>;
	close(): void;
}

interface Frame {
	type: string;
	conversation?: string;
	text?: string;
	problem?: { detail?: string; code?: string };
	message?: { role: string; text: string };
}

const ANSWER_MS = 60_000;

/** Talks over the live socket, to the daemon or to the floor: both speak `send`, `delta` and `message`. */
export async function connect(url: string, path: string, token?: string): Promise<ChatClient> {
	const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, { headers: token ? { authorization: `Bearer ${token}` } : {} });
	const open = new Map<string, { timing: Timing; resolve(timing: Timing): void; reject(error: Error): void }>();
	const failAll = (error: Error) => {
		for (const one of open.values()) one.reject(error);
		open.clear();
	};
	socket.on("message", (data) => {
		const frame = JSON.parse(String(data)) as Frame;
		if (frame.type === "refused") return failAll(new Error(`refused: ${frame.problem?.code} ${frame.problem?.detail}`));
		const waiting = open.get(frame.conversation ?? "");
		if (!waiting) return;
		if (frame.type === "delta" && Number.isNaN(waiting.timing.firstAt)) waiting.timing.firstAt = now();
		if (frame.type !== "message" || frame.message?.role === "user") return;
		open.delete(frame.conversation ?? "");
		if (frame.message?.role === "system") return waiting.reject(new Error(`no answer: ${frame.message.text}`));
		waiting.resolve({ ...waiting.timing, doneAt: now(), text: frame.message?.text ?? "" });
	});
	await new Promise<void>((resolve, reject) => {
		socket.once("open", () => resolve());
		socket.once("error", reject);
	});
	socket.on("error", failAll);
	socket.on("close", () => failAll(new Error("the live socket was closed")));
	if (token) {
		const ready = new Promise<void>((resolve) => {
			const look = (data: unknown) => {
				if ((JSON.parse(String(data)) as Frame).type !== "hello") return;
				socket.off("message", look);
				resolve();
			};
			socket.on("message", look);
		});
		socket.send(JSON.stringify({ type: "hello", since: 0 }));
		await ready;
	}
	const prefix = randomUUID();
	let count = 0;
	return {
		ask(conversation, text) {
			return new Promise<Timing>((resolve, reject) => {
				const late = setTimeout(() => reject(new Error(`no answer in ${conversation} within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
				const settle =
					<T>(call: (value: T) => void) =>
					(value: T) => {
						clearTimeout(late);
						call(value);
					};
				const timing = { sentAt: now(), firstAt: Number.NaN, doneAt: Number.NaN, text: "" };
				open.set(conversation, { timing, resolve: settle(resolve), reject: settle(reject) });
				socket.send(JSON.stringify({ type: "send", clientId: `${prefix}-${++count}`, conversation, text }));
			});
		},
		close: () => socket.close(),
	};
}

/** Makes conversations through the API. */
export async function makeConversations(daemon: { url: string; token: string }, count: number): Promise<string[]> {
	const ids: string[] = [];
	for (let n = 0; n < count; n++) {
		const response = await fetch(`${daemon.url}/api/v1/conversations`, {
			method: "POST",
			headers: { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" },
			body: JSON.stringify({ title: `bench ${n}` }),
		});
		if (response.status !== 201) throw new Error(`creating a conversation answered ${response.status}: ${await response.text()}`);
		ids.push(((await response.json()) as { id: string }).id);
	}
	return ids;
}
