/** The meter around every attempt: opened before a byte is sent, closed exactly once with what became of it. */
import { DEMO_ID } from "./demo/demo.ts";
import type { EngineDeps } from "./engine.ts";
import type { WireEvent } from "./joining.ts";
import { type CallStart, ModelError, type ModelReply, type ModelRequest, type Usage } from "./model.ts";
import { AttemptFailed, type WireAnswer } from "./openai/client.ts";
import type { RawUsage } from "./openai/collect.ts";
import type { Written } from "./openai/writer.ts";
import { maskKey } from "./redact.ts";
import type { ModelSettings } from "./settings.ts";
import type { Emit, Halt } from "./stream.ts";

/** The part of a request's run that an attempt adds to. */
export interface MeteredRun {
	request: ModelRequest;
	signal: AbortSignal;
	halt: Halt;
	emit: Emit;
	attempts: number;
	callIds: string[];
	startedAt: number;
	/** Something was streamed that a new attempt makes void. */
	dirty: boolean;
}

/** Makes one attempt. Throws `AttemptFailed`, or what the meter throws (then nothing was sent). */
export async function metered(
	deps: Pick<EngineDeps, "meter" | "clock" | "tokens" | "prices">,
	settings: ModelSettings,
	key: string | null,
	written: Pick<Written, "shown" | "head">,
	estimated: number,
	run: MeteredRun,
	wire: (tell: (event: WireEvent) => void) => Promise<WireAnswer>,
): Promise<{ answer: WireAnswer; reply: ModelReply }> {
	const started = performance.now();
	const maxOutputTokens = Math.min(run.request.maxOutputTokens ?? settings.limits.maxOutputTokens, settings.limits.maxOutputTokens);
	const start: CallStart = {
		context: run.request.context,
		model: settings.id,
		modelName: settings.model,
		key: key ? maskKey(key) : null,
		attempt: ++run.attempts,
		request: written.shown,
		requestHead: written.head,
		estimatedInputTokens: estimated,
		maxOutputTokens,
		startedAt: deps.clock.now(),
	};
	const id = await deps.meter.open(start, run.signal);
	run.callIds.push(id);
	let received = "";
	const ms = () => Math.round(performance.now() - started);
	let answer: WireAnswer;
	try {
		answer = await wire((event) => {
			if (event.type === "void") {
				run.emit({ type: "restart", model: settings.id, reason: "thinking" });
				return;
			}
			received += event.text;
			run.dirty = true;
			run.emit(event);
		});
	} catch (thrown) {
		const failed = thrown instanceof AttemptFailed ? thrown : null;
		const error = failed?.failure.error ?? (thrown instanceof ModelError ? thrown : new ModelError("protocol", "a fault of ours"));
		await deps.meter.close(id, {
			response: received === "" ? null : { text: received, partial: true },
			error: { kind: error.kind, message: error.message, status: error.status },
			usage: received !== "" || (failed?.failure.mayHaveCost ?? false) ? usageOf(deps, settings, null, estimated, received) : null,
			firstByteMs: failed?.firstByteMs == null ? null : Math.round(failed.firstByteMs),
			ms: ms(),
		});
		throw thrown;
	}
	const { text, reasoning, calls, finish } = answer;
	const output = received + calls.map((call) => call.name + call.arguments).join("");
	const usage = usageOf(deps, settings, answer.usage, estimated, output);
	const firstByteMs = Math.round(answer.firstByteMs);
	await deps.meter.close(id, { response: { text, reasoning, calls, finish }, error: null, usage, firstByteMs, ms: ms() });
	const reply: ModelReply = {
		text,
		reasoning,
		calls,
		finish,
		usage,
		model: settings.id,
		modelName: settings.model,
		callIds: run.callIds,
		ms: Math.round(performance.now() - run.startedAt),
		firstByteMs,
	};
	return { answer, reply };
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
	if (!whole && reported?.inputTokens) {
		counted.inputTokens = reported.inputTokens;
		counted.cachedTokens = reported.cachedTokens;
	}
	if (!whole && reported?.outputTokens) counted.outputTokens = reported.outputTokens;
	const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = whole ? reported : counted;
	const usage = { inputTokens, cachedTokens, outputTokens, reasoningTokens, estimated: !whole };
	const { cost, currency } = settings.id === DEMO_ID ? { cost: 0, currency: "USD" } : deps.prices.cost(settings, usage);
	return { inputTokens, cachedTokens, outputTokens, reasoningTokens, estimated: !whole, cost, currency };
}
