/** Tests a model for real: one small request, no retries, no memory of earlier failures. */
import { createHosts } from "./breaker.ts";
import { targetOf } from "./candidates.ts";
import { DEMO_ID } from "./demo/demo.ts";
import { embedTexts } from "./embed.ts";
import { createEngine, type EngineDeps } from "./engine.ts";
import { createKeyRing } from "./keys.ts";
import { type CallContext, ModelError, type ModelErrorKind, type ModelRequest } from "./model.ts";
import { AttemptFailed } from "./openai/client.ts";
import type { ModelSettings } from "./settings.ts";

export interface TestResult {
	ok: boolean;
	/** One sentence for people. */
	message: string;
	kind: ModelErrorKind | null;
	ms: number | null;
	reply: string | null;
}

const TEST_TOKENS = 512;
const TEST_MS = 30_000;

const REASONS: Record<ModelErrorKind, string> = {
	"bad-request": "The server refused the request; check the model name and the base URL.",
	"context-length": "The server says the request is too long for this model.",
	auth: "The server did not accept the API key.",
	payment: "The account has no credit left.",
	"rate-limited": "The server is limiting requests right now; try again later.",
	server: "The server has a fault right now.",
	network: "The server could not be reached; check the base URL and the network.",
	timeout: "The server did not answer in time.",
	protocol: "What answered is not an OpenAI-compatible server; check the base URL.",
	aborted: "The test was stopped.",
	fuse: "Today's token or cost limit is reached, so the model could not be tested.",
	"no-model": "This model cannot be called.",
};

export async function testModel(settings: ModelSettings, shared: EngineDeps, signal: AbortSignal): Promise<TestResult> {
	const deps: EngineDeps = { ...shared, hosts: createHosts(shared.clock), ring: createKeyRing(shared.clock) };
	const context: CallContext = { source: "chat", conversationId: null, turnId: null, personId: null };
	const hurried: ModelSettings = {
		...settings,
		limits: {
			...settings.limits,
			firstByteMs: Math.min(settings.limits.firstByteMs, TEST_MS),
			totalMs: Math.min(settings.limits.totalMs, TEST_MS),
		},
	};
	const started = performance.now();
	const fine = (message: string, reply: string | null): TestResult => ({
		ok: true,
		message,
		kind: null,
		ms: Math.round(performance.now() - started),
		reply,
	});
	try {
		if (settings.kind === "embedding") {
			const { dimensions } = await embedTexts(["test"], hurried, context, deps, signal);
			return fine(`The model answered with vectors of ${dimensions} numbers.`, null);
		}
		if (settings.kind !== "text" && settings.kind !== "multimodal") return await listed(hurried, deps, signal, fine);
		const request: ModelRequest = {
			messages: [{ role: "user", content: [{ type: "text", text: "Reply with the single word: ready" }] }],
			tools: [],
			context,
			model: null,
			role: "chat",
			maxOutputTokens: TEST_TOKENS,
		};
		// Every key is tried until one works: that is what a call would do.
		for await (const event of createEngine(deps).stream(request, [hurried], signal, true)) {
			if (event.type !== "end") continue;
			const { reply } = event;
			if (reply.text.trim() === "" && reply.reasoning === "" && reply.finish === "stop") {
				return { ok: false, message: "The model answered with nothing.", kind: "protocol", ms: reply.ms, reply: "" };
			}
			return fine(settings.id === DEMO_ID ? "The demo model answers." : "The model answered.", reply.text.slice(0, 200));
		}
		return { ok: false, message: REASONS.protocol, kind: "protocol", ms: null, reply: null };
	} catch (thrown) {
		const error =
			thrown instanceof AttemptFailed
				? thrown.failure.error
				: thrown instanceof ModelError
					? thrown
					: new ModelError("protocol", "a fault of ours");
		const detail = error.kind === "bad-request" || error.kind === "no-model" || error.kind === "network" ? ` (${error.message})` : "";
		return { ok: false, message: REASONS[error.kind] + detail, kind: error.kind, ms: Math.round(performance.now() - started), reply: null };
	}
}

/** Models that make pictures or speech are not run for a test: their name must be in the server's list. */
async function listed(
	settings: ModelSettings,
	deps: EngineDeps,
	signal: AbortSignal,
	fine: (message: string, reply: string | null) => TestResult,
): Promise<TestResult> {
	const target = targetOf(settings);
	if ("problem" in target) throw new ModelError("no-model", target.problem);
	const value = (await deps.client.json(
		"/models",
		{ baseUrl: target.baseUrl, key: target.keys[0] ?? "", limits: settings.limits },
		signal,
	)) as { data?: { id?: unknown }[] };
	if (!Array.isArray(value?.data)) throw new ModelError("protocol", "no list of models");
	const there = value.data.some((model) => model?.id === settings.model);
	return fine(there ? "The server lists this model." : "The server answers, but does not list this model.", null);
}
