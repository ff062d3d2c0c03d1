/** Vectors from an OpenAI-compatible `/embeddings`, in batches, every batch through the meter. */
import { targetOf } from "./candidates.ts";
import type { EngineDeps } from "./engine.ts";
import { type CallContext, type CallStart, ModelError, type Usage } from "./model.ts";
import { AttemptFailed } from "./openai/client.ts";
import { readUsage } from "./openai/collect.ts";
import { wellFormed } from "./openai/schema.ts";
import { maskKey } from "./redact.ts";
import type { ModelSettings } from "./settings.ts";

export interface Embedded {
	/** One for each text, in order, all of one length. */
	vectors: Float32Array[];
	model: string;
	modelName: string;
	dimensions: number;
}

const MOST_FAILURES = 3;
const FIRST_BACKOFF_MS = 500;
const LONG_WAIT_MS = 60_000;

/** Throws `ModelError`. An empty text is embedded as a space: servers refuse "". */
export async function embedTexts(
	texts: string[],
	settings: ModelSettings,
	context: CallContext,
	deps: EngineDeps,
	signal: AbortSignal,
): Promise<Embedded> {
	const target = targetOf(settings);
	if ("problem" in target) throw new ModelError("no-model", `${settings.id}: ${target.problem}`);
	const vectors: Float32Array[] = [];
	const size = target.preset.quirks.embeddingBatch;
	for (let at = 0; at < texts.length; at += size) {
		const input = texts.slice(at, at + size).map((text) => wellFormed(text).trim() || " ");
		vectors.push(...(await batch(input, target, context, deps, signal)));
	}
	const dimensions = vectors[0]?.length ?? 0;
	if (vectors.some((vector) => vector.length !== dimensions))
		throw new ModelError("protocol", "the embedding server sent vectors of different lengths");
	return { vectors, model: settings.id, modelName: settings.model, dimensions };
}

type Target = Exclude<ReturnType<typeof targetOf>, { problem: string }>;

async function batch(
	input: string[],
	target: Target,
	context: CallContext,
	deps: EngineDeps,
	signal: AbortSignal,
): Promise<Float32Array[]> {
	const { settings, origin } = target;
	let last: ModelError | null = null;
	for (let attempt = 1; ; attempt++) {
		if (signal.aborted) throw new ModelError("aborted", "stopped");
		const key = deps.ring.take(origin, settings.model, target.keys, null);
		if (key === null) throw last ?? new ModelError("auth", `${settings.id}: every key is set aside`);
		const gate = deps.hosts.enter(origin);
		if (gate.waitMs > 0) {
			if (gate.why === "open" || gate.waitMs > LONG_WAIT_MS || attempt > MOST_FAILURES)
				throw last ?? new ModelError("server", `${origin} is left alone for ${gate.waitMs} ms`, { retryAfterMs: gate.waitMs });
			await deps.sleep(gate.waitMs, signal);
			continue;
		}
		let outcome: "ok" | "failed" | "neutral" = "neutral";
		let retryAfter: number | null = null;
		try {
			const vectors = await once(input, target, key, context, attempt, deps, signal);
			outcome = "ok";
			return vectors;
		} catch (thrown) {
			if (!(thrown instanceof AttemptFailed)) throw thrown;
			const { error } = thrown.failure;
			last = error;
			retryAfter = error.retryAfterMs;
			if (error.kind === "auth" || error.kind === "payment") {
				deps.ring.setAside(origin, key, `refused with ${error.status ?? error.kind}`);
				if (key === "") throw error;
				continue;
			}
			const bad = error.kind === "server" || error.kind === "network" || error.kind === "timeout" || error.kind === "protocol";
			if (bad) outcome = "failed";
			if ((!bad && error.kind !== "rate-limited") || attempt >= MOST_FAILURES) throw error;
			const ms = retryAfter ?? FIRST_BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + deps.random() / 2);
			if (error.kind === "rate-limited") deps.hosts.pause(origin, ms);
			if (ms > LONG_WAIT_MS) throw error;
			await deps.sleep(ms, signal);
		} finally {
			deps.hosts.leave(origin, outcome, retryAfter);
		}
	}
}

async function once(
	input: string[],
	target: Target,
	key: string,
	context: CallContext,
	attempt: number,
	deps: EngineDeps,
	signal: AbortSignal,
): Promise<Float32Array[]> {
	const { settings } = target;
	// Base64 is the SDK's default, and a server that ignores it would silently give empty vectors.
	const body = { model: settings.model, encoding_format: "float", input };
	const estimated = input.reduce((sum, text) => sum + deps.tokens.count(settings.model, text), 0);
	const call: CallStart = {
		context: { ...context, source: "embedding" },
		model: settings.id,
		modelName: settings.model,
		key: key ? maskKey(key) : null,
		attempt,
		request: body,
		estimatedInputTokens: estimated,
		maxOutputTokens: 0,
		startedAt: deps.clock.now(),
	};
	const id = await deps.meter.open(call, signal);
	const started = performance.now();
	const ms = () => Math.round(performance.now() - started);
	const usageOf = (inputTokens: number, isEstimate: boolean): Usage => {
		const usage = { inputTokens, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, estimated: isEstimate };
		return { ...usage, ...deps.prices.cost(settings, usage) };
	};
	try {
		const value = await deps.client.json("/embeddings", { baseUrl: target.baseUrl, key, body, limits: settings.limits }, signal);
		const vectors = readVectors(value, input.length);
		const reported = readUsage((value as { usage?: unknown }).usage);
		await deps.meter.close(id, {
			response: { vectors: vectors.length, dimensions: vectors[0]?.length ?? 0 },
			error: null,
			usage: usageOf(reported?.inputTokens ?? estimated, !reported?.inputTokens),
			ms: ms(),
			firstByteMs: null,
		});
		return vectors;
	} catch (thrown) {
		const failed =
			thrown instanceof AttemptFailed
				? thrown
				: new AttemptFailed(
						{
							error: thrown instanceof ModelError ? thrown : new ModelError("protocol", "a fault of ours"),
							refusal: null,
							mayHaveCost: true,
						},
						"",
						null,
					);
		const { error, mayHaveCost } = failed.failure;
		await deps.meter.close(id, {
			response: null,
			error: { kind: error.kind, message: error.message, status: error.status },
			usage: mayHaveCost ? usageOf(estimated, true) : null,
			ms: ms(),
			firstByteMs: failed.firstByteMs,
		});
		throw failed;
	}
}

/** In the order of `index`; anything but `count` vectors of numbers is an error. */
function readVectors(value: unknown, count: number): Float32Array[] {
	const data = (value as { data?: unknown } | null)?.data;
	if (!Array.isArray(data) || data.length !== count)
		throw new ModelError("protocol", `the embedding server sent ${Array.isArray(data) ? data.length : "no"} vectors for ${count} texts`);
	const out: Float32Array[] = new Array(count);
	for (const [place, item] of data.entries()) {
		const { index, embedding } = item as { index?: unknown; embedding?: unknown };
		if (
			!Array.isArray(embedding) ||
			embedding.length === 0 ||
			!embedding.every((part) => typeof part === "number" && Number.isFinite(part))
		) {
			throw new ModelError("protocol", "the embedding server sent a vector that is none");
		}
		out[typeof index === "number" && index >= 0 && index < count ? index : place] = Float32Array.from(embedding as number[]);
	}
	if (out.some((vector) => vector === undefined) || Object.keys(out).length !== count)
		throw new ModelError("protocol", "the embedding server left a vector out");
	return out;
}
