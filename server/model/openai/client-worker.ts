/**
 * The thread in which model connections live: it writes and reads them, and tells the main thread what came. A thread rather than a
 * process, because it shares nothing that is worth keeping apart, and a message to it costs less.
 */
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { createIds } from "../../ids.ts";
import type { WireEvent } from "../joining.ts";
import type { ModelErrorKind } from "../model.ts";
import { createHalt } from "../stream.ts";
import { type Attempt, AttemptFailed, type Client, createClient, type JsonRequest, type WireAnswer } from "./client.ts";
import type { ProxySettings } from "./transport.ts";

export interface ClientWorkerData {
	proxy: ProxySettings | null;
}

export type ClientCall =
	| { type: "chat"; id: number; attempt: Attempt }
	| { type: "json"; id: number; path: string; request: JsonRequest }
	| { type: "halt"; id: number; why: string }
	| { type: "warm"; id: number }
	/** Is answered with an empty list. */
	| { type: "ping" };

/** `AttemptFailed` in plain values: errors do not keep their fields on the way between threads. */
export interface PlainFailure {
	kind: ModelErrorKind;
	message: string;
	status: number | null;
	retryAfterMs: number | null;
	refusal: { message: string; param: string | null } | null;
	mayHaveCost: boolean;
	received: string;
	firstByteMs: number | null;
}

export type ClientReply =
	| { id: number; event: WireEvent }
	| { id: number; answer: WireAnswer }
	| { id: number; value: unknown }
	| { id: number; failed: PlainFailure }
	/** A fault of ours. */
	| { id: number; fault: string };

const plain = ({ failure, received, firstByteMs }: AttemptFailed): PlainFailure => {
	const { kind, message, status, retryAfterMs } = failure.error;
	return { kind, message, status, retryAfterMs, refusal: failure.refusal, mayHaveCost: failure.mayHaveCost, received, firstByteMs };
};

function serve(client: Client, send: (replies: ClientReply[]) => void): (call: ClientCall) => void {
	const halts = new Map<number, (why: string) => void>();
	let waiting: ClientReply[] = [];

	/** What comes in one round of the event loop leaves together: waking the other thread costs more than its work on one of them. */
	function reply(one: ClientReply): void {
		if (waiting.length === 0) setImmediate(flush);
		waiting.push(one);
	}

	function flush(): void {
		const replies = waiting;
		waiting = [];
		send(replies);
	}

	async function run(call: Exclude<ClientCall, { type: "halt" } | { type: "ping" }>): Promise<void> {
		const { id } = call;
		try {
			if (call.type === "warm") {
				await client.warm();
				reply({ id, value: null });
			} else if (call.type === "chat") {
				const halt = createHalt();
				halts.set(id, halt.halt);
				reply({ id, answer: await client.chat(call.attempt, halt, (event) => reply({ id, event })) });
			} else {
				const stop = new AbortController();
				halts.set(id, () => stop.abort());
				reply({ id, value: await client.json(call.path, call.request, stop.signal) });
			}
		} catch (error) {
			if (error instanceof AttemptFailed) reply({ id, failed: plain(error) });
			else reply({ id, fault: String((error as Error)?.stack ?? error) });
		} finally {
			halts.delete(id);
		}
	}

	return (call) => {
		if (call.type === "halt") halts.get(call.id)?.(call.why);
		else if (call.type === "ping") send([]);
		else void run(call);
	};
}

if (!isMainThread && parentPort) {
	const port = parentPort;
	const { proxy } = workerData as ClientWorkerData;
	const client = createClient({ proxy, newId: createIds(), clock: Date });
	port.on(
		"message",
		serve(client, (replies) => port.postMessage(replies)),
	);
	// Says that it is up.
	port.postMessage([]);
}
