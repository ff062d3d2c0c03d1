/** The meter around every attempt: opened before a byte is sent, closed exactly once with what became of it. */
import { DEMO_ID } from "./demo/demo.ts";
import type { EngineDeps } from "./engine.ts";
import { type CallEnd, type CallStart, ModelError, type ModelEvent, type ModelReply, type ModelRequest, type Usage } from "./model.ts";
import { AttemptFailed, type Client, type WireAnswer } from "./openai/client.ts";
import type { RawUsage } from "./openai/collect.ts";
import { maskKey } from "./redact.ts";
import type { ModelSettings } from "./settings.ts";

/** The part of a request's run that an attempt adds to. */
export interface MeteredRun {
	request: ModelRequest;
	signal: AbortSignal;
	attempts: number;
	callIds: string[];
	startedAt: number;
	/** Something was streamed that a new attempt makes void. */
	dirty: boolean;
}

/** Streams one attempt. Throws `AttemptFailed`, or what the meter throws (then nothing was sent). Ends well only with an answer. */
export async function* metered(
	deps: Pick<EngineDeps, "meter" | "clock" | "tokens" | "prices">,
	settings: ModelSettings,
	key: string | null,
	shown: unknown,
	estimated: number,
	run: MeteredRun,
	wire: ReturnType<Client["chat"]>,
): AsyncGenerator<ModelEvent, { answer: WireAnswer; reply: ModelReply }> {
	const started = performance.now();
	const maxOutputTokens = Math.min(run.request.maxOutputTokens ?? settings.limits.maxOutputTokens, settings.limits.maxOutputTokens);
	const start: CallStart = {
		context: run.request.context,
		model: settings.id,
		modelName: settings.model,
		key: key ? maskKey(key) : null,
		attempt: ++run.attempts,
		request: shown,
		estimatedInputTokens: estimated,
		maxOutputTokens,
		startedAt: deps.clock.now(),
	};
	const id = await deps.meter.open(start, run.signal);
	run.callIds.push(id);
	let received = "";
	let end: CallEnd | null = null;
	const close = (part: Omit<CallEnd, "ms">) => {
		end = { ...part, ms: Math.round(performance.now() - started) };
		return deps.meter.close(id, end);
	};
	try {
		for await (const event of wire) {
			switch (event.type) {
				case "text":
				case "reasoning":
					received += event.text;
					run.dirty = true;
					yield event;
					break;
				case "void":
					yield { type: "restart", model: settings.id, reason: "thinking" };
					break;
				case "end": {
					const { answer } = event;
					const usage = usageOf(
						deps,
						settings,
						answer.usage,
						estimated,
						received + answer.calls.map((call) => call.name + call.arguments).join(""),
					);
					const firstByteMs = Math.round(answer.firstByteMs);
					await close({
						response: { text: answer.text, reasoning: answer.reasoning, calls: answer.calls, finish: answer.finish },
						error: null,
						usage,
						firstByteMs,
					});
					const reply: ModelReply = {
						text: answer.text,
						reasoning: answer.reasoning,
						calls: answer.calls,
						finish: answer.finish,
						usage,
						model: settings.id,
						modelName: settings.model,
						callIds: run.callIds,
						ms: Math.round(performance.now() - run.startedAt),
						firstByteMs,
					};
					return { answer, reply };
				}
			}
		}
		throw new AttemptFailed(
			{ error: new ModelError("protocol", "the answer ended without an end"), refusal: null, mayHaveCost: true },
			received,
			null,
		);
	} catch (thrown) {
		if (end === null) {
			const failed = thrown instanceof AttemptFailed ? thrown : null;
			const error = failed?.failure.error ?? (thrown instanceof ModelError ? thrown : new ModelError("protocol", "a fault of ours"));
			await close({
				response: received === "" ? null : { text: received, partial: true },
				error: { kind: error.kind, message: error.message, status: error.status },
				usage: received !== "" || (failed?.failure.mayHaveCost ?? false) ? usageOf(deps, settings, null, estimated, received) : null,
				firstByteMs: failed?.firstByteMs == null ? null : Math.round(failed.firstByteMs),
			});
		}
		throw thrown;
	} finally {
		// The reader went away in the middle.
		if (end === null) {
			await close({
				response: received === "" ? null : { text: received, partial: true },
				error: { kind: "aborted", message: "the answer was not read to its end", status: null },
				usage: usageOf(deps, settings, null, estimated, received),
				firstByteMs: null,
			});
		}
	}
}

function usageOf(
	deps: Pick<EngineDeps, "tokens" | "prices">,
	settings: ModelSettings,
	reported: RawUsage | null,
	estimatedInput: number,
	output: string,
): Usage {
	const counted = {
		inputTokens: estimatedInput,
		cachedTokens: 0,
		outputTokens: deps.tokens.count(settings.model, output),
		reasoningTokens: 0,
	};
	const whole = reported !== null && reported.inputTokens > 0 && (reported.outputTokens > 0 || output === "");
	const used = whole
		? reported
		: {
				...counted,
				...(reported?.inputTokens ? { inputTokens: reported.inputTokens, cachedTokens: reported.cachedTokens } : {}),
				...(reported?.outputTokens ? { outputTokens: reported.outputTokens } : {}),
			};
	const usage = { ...used, estimated: !whole };
	const price = settings.id === DEMO_ID ? { cost: 0, currency: "USD" } : deps.prices.cost(settings, usage);
	return { ...usage, ...price };
}
