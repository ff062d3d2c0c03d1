/** Traces as OTLP over HTTP in JSON, named after the GenAI semantic conventions. A turn is a trace; its model calls and tools are spans in it. */
import { createHash, randomBytes } from "node:crypto";
import type { LiveFrame } from "../http/contract.ts";
import type { EventBus } from "./bus.ts";
import type { MeteredCall } from "./meter.ts";

export interface TracerOptions {
	/** Base address of the collector; `/v1/traces` is added unless it is there. */
	endpoint: string;
	headers?: Record<string, string>;
	serviceName?: string;
	bus: Pick<EventBus, "subscribe">;
	log: { warn(event: string, data?: Record<string, unknown>): void };
	/** How long spans are gathered, ms. Default 5,000. */
	everyMs?: number;
	fetch?: typeof fetch;
}

export interface Tracer {
	called(call: MeteredCall): void;
	flush(): Promise<void>;
	stop(): Promise<void>;
}

type Value = { stringValue: string } | { intValue: string } | { doubleValue: number } | { boolValue: boolean };
interface Span {
	traceId: string;
	spanId: string;
	parentSpanId?: string;
	name: string;
	/** 1 internal, 3 client. */
	kind: number;
	startTimeUnixNano: string;
	endTimeUnixNano: string;
	attributes: { key: string; value: Value }[];
	status: { code: number; message?: string };
}

/** Spans that wait for a collector that is away; the oldest go first. */
const mostWaiting = 2_000;

const nanoseconds = (ms: number): string => `${Math.round(ms)}000000`;
const traceOf = (turnId: string): string => createHash("sha256").update(turnId).digest("hex").slice(0, 32);
const rootOf = (turnId: string): string => createHash("sha256").update(`root ${turnId}`).digest("hex").slice(0, 16);
const fresh = (bytes: number): string => randomBytes(bytes).toString("hex");

function attributes(values: Record<string, string | number | boolean | null | undefined>): Span["attributes"] {
	return Object.entries(values).flatMap(([key, value]): Span["attributes"] => {
		if (value === null || value === undefined) return [];
		if (typeof value === "string") return [{ key, value: { stringValue: value } }];
		if (typeof value === "boolean") return [{ key, value: { boolValue: value } }];
		return [{ key, value: Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value } }];
	});
}

export function createTracer(options: TracerOptions): Tracer {
	const { everyMs = 5_000 } = options;
	const post = options.fetch ?? fetch;
	const base = options.endpoint.replace(/\/+$/, "");
	const url = base.endsWith("/v1/traces") ? base : `${base}/v1/traces`;
	const turns = new Map<string, number>();
	let waiting: Span[] = [];
	let complained = false;

	function add(span: Span): void {
		waiting.push(span);
		if (waiting.length > mostWaiting) waiting = waiting.slice(-mostWaiting);
	}

	async function flush(): Promise<void> {
		if (waiting.length === 0) return;
		const spans = waiting;
		waiting = [];
		const body = {
			resourceSpans: [
				{
					resource: { attributes: attributes({ "service.name": options.serviceName ?? "openlani" }) },
					scopeSpans: [{ scope: { name: "openlani" }, spans }],
				},
			],
		};
		try {
			const answer = await post(url, {
				method: "POST",
				headers: { "content-type": "application/json", ...options.headers },
				body: JSON.stringify(body),
				signal: AbortSignal.timeout(10_000),
				redirect: "error",
			});
			await answer.arrayBuffer();
			if (!answer.ok) throw new Error(`the collector answered ${answer.status}`);
			complained = false;
		} catch (error) {
			waiting = [...spans, ...waiting].slice(-mostWaiting);
			if (!complained) options.log.warn("traces.not-sent", { error: (error as Error).message });
			complained = true;
		}
	}

	function onFrame(frame: LiveFrame): void {
		const at = Date.parse(frame.at);
		if (frame.type === "turn") {
			if (frame.state === "running") {
				if (!turns.has(frame.turnId)) turns.set(frame.turnId, at);
				return;
			}
			const from = turns.get(frame.turnId);
			if (frame.state === "queued" || from === undefined) return;
			turns.delete(frame.turnId);
			add({
				traceId: traceOf(frame.turnId),
				spanId: rootOf(frame.turnId),
				name: "invoke_agent openlani",
				kind: 1,
				startTimeUnixNano: nanoseconds(from),
				endTimeUnixNano: nanoseconds(at),
				attributes: attributes({
					"gen_ai.operation.name": "invoke_agent",
					"gen_ai.agent.name": "openlani",
					"gen_ai.conversation.id": frame.conversation,
					"openlani.turn.id": frame.turnId,
					"openlani.turn.origin": frame.origin,
					"openlani.turn.state": frame.state,
				}),
				status: frame.state === "failed" ? { code: 2 } : { code: 1 },
			});
		} else if (frame.type === "tool" && (frame.tool.state === "done" || frame.tool.state === "failed")) {
			add({
				traceId: traceOf(frame.turnId),
				spanId: fresh(8),
				parentSpanId: rootOf(frame.turnId),
				name: `execute_tool ${frame.tool.name}`,
				kind: 1,
				startTimeUnixNano: nanoseconds(at - (frame.tool.ms ?? 0)),
				endTimeUnixNano: nanoseconds(at),
				attributes: attributes({
					"gen_ai.operation.name": "execute_tool",
					"gen_ai.tool.name": frame.tool.name,
					"gen_ai.tool.call.id": frame.tool.recordId,
					"gen_ai.conversation.id": frame.conversation,
				}),
				status: frame.tool.state === "failed" ? { code: 2 } : { code: 1 },
			});
		}
	}

	const end = options.bus.subscribe(onFrame);
	const timer = setInterval(() => void flush(), everyMs);
	timer.unref();

	return {
		called(call) {
			const { turnId, conversationId, source } = call.context;
			const operation = source === "embedding" ? "embeddings" : "chat";
			add({
				traceId: turnId ? traceOf(turnId) : fresh(16),
				spanId: fresh(8),
				...(turnId ? { parentSpanId: rootOf(turnId) } : {}),
				name: `${operation} ${call.modelName}`,
				kind: 3,
				startTimeUnixNano: nanoseconds(call.startedAt),
				endTimeUnixNano: nanoseconds(call.startedAt + call.ms),
				attributes: attributes({
					"gen_ai.operation.name": operation,
					"gen_ai.provider.name": call.provider,
					"gen_ai.request.model": call.modelName,
					"gen_ai.conversation.id": conversationId,
					"gen_ai.usage.input_tokens": call.usage.inputTokens,
					"gen_ai.usage.cache_read.input_tokens": call.usage.cachedTokens,
					"gen_ai.usage.output_tokens": call.usage.outputTokens,
					"error.type": call.error?.kind,
					"openlani.source": source,
					"openlani.attempt": call.attempt,
					"openlani.cost": call.usage.cost,
					"openlani.usage.estimated": call.usage.estimated,
				}),
				status: call.error ? { code: 2, message: call.error.kind } : { code: 1 },
			});
		},
		flush,
		async stop() {
			clearInterval(timer);
			end();
			await flush();
		},
	};
}
