/** One request from the first attempt to the last: keys, breakers, retries, fallback, and the meter around every attempt. */
import { createBeat } from "./beat.ts";
import type { Hosts } from "./breaker.ts";
import { type Target, targetOf } from "./candidates.ts";
import { DEMO_ID, type Demo } from "./demo/demo.ts";
import { joining } from "./joining.ts";
import type { KeyRing } from "./keys.ts";
import { type MeteredRun, metered } from "./metered.ts";
import { type Meter, ModelError, type ModelEvent, type ModelReply, type ModelRequest, type Usage } from "./model.ts";
import { AttemptFailed, type Client } from "./openai/client.ts";
import type { Learned } from "./openai/quirks.ts";
import { type Written, writeChat } from "./openai/writer.ts";
import { providerOf } from "./providers.ts";
import { recently } from "./recent.ts";
import { maskKey } from "./redact.ts";
import { DEFAULT_CONTEXT_TOKENS, type ModelSettings } from "./settings.ts";
import { type Emit, eventStream, type Halt } from "./stream.ts";
import type { TokenCounter } from "./tokens.ts";

export interface Prices {
	/** Null cost = price unknown. */
	cost(settings: ModelSettings, usage: Omit<Usage, "cost" | "currency">): { cost: number | null; currency: string };
}

export interface EngineDeps {
	client: Client;
	demo: Demo;
	ring: KeyRing;
	hosts: Hosts;
	learned: Learned;
	tokens: TokenCounter;
	meter: Meter;
	prices: Prices;
	readAsset(sha256: string): Promise<Uint8Array>;
	clock: { now(): number };
	newId(): string;
	random(): number;
	sleep(ms: number, signal: AbortSignal): Promise<void>;
	log: { info(event: string, data?: Record<string, unknown>): void; warn(event: string, data?: Record<string, unknown>): void };
}

export interface Engine {
	/** Streams one answer from the first of `list` that gives one. `once`: a single attempt, for tests of a model. */
	stream(request: ModelRequest, list: ModelSettings[], signal: AbortSignal, once?: boolean): AsyncIterable<ModelEvent>;
}

/** Failed attempts (server, network, time) of one request at one model. */
const MOST_FAILURES = 3;
const MOST_RATE_WAITS = 4;
const MOST_LESSONS = 5;
const MOST_ATTEMPTS = 16;
/** Another model begins within this time after the first refusal (the promise is 30 s). */
const FALLBACK_MS = 25_000;
/** All waiting of one request when no other model could answer. */
const ALONE_MS = 60_000;
/** A longer Retry-After is not waited for: that key is out until then. */
const LONG_WAIT_MS = 60_000;
const FIRST_BACKOFF_MS = 500;
const MOST_BACKOFF_MS = 8_000;
const IMAGE_TOKENS = 1_000;

/** What goes on over one request. */
interface Run extends MeteredRun {
	/** Clock time of the first refusal. */
	refusedAt: number | null;
	waitedMs: number;
	lastModel: string | null;
	lastReason: string;
}

export function createEngine(deps: EngineDeps): Engine {
	const { clock, ring, hosts, tokens, learned } = deps;
	/** What came with calls and must be sent back with them. */
	const extras = new Map<string, unknown>();
	const beat = createBeat();
	const quote = recently(JSON.stringify as (text: string) => string);

	async function answer(
		request: ModelRequest,
		list: ModelSettings[],
		signal: AbortSignal,
		once: boolean,
		emit: Emit,
		halt: Halt,
	): Promise<void> {
		const run: Run = {
			request,
			signal,
			halt,
			emit,
			attempts: 0,
			callIds: [],
			startedAt: performance.now(),
			refusedAt: null,
			waitedMs: 0,
			dirty: false,
			lastModel: null,
			lastReason: "",
		};
		const errors: ModelError[] = [];
		for (const [place, settings] of list.entries()) {
			if (settings.id === DEMO_ID) {
				await demoAttempt(settings, run);
				return;
			}
			const target = targetOf(settings);
			if ("problem" in target) {
				errors.push(new ModelError("no-model", `${settings.id}: ${target.problem}`));
				continue;
			}
			const others = list.slice(place + 1);
			const error = await tryModel(target, run, () => others.some(callable), once);
			if (error === null) return;
			errors.push(error);
			if (stopsTheWalk(error)) break;
			deps.log.warn("model.gave-up", { model: settings.id, kind: error.kind, status: error.status, error: error.message });
		}
		// The first model that could be asked says best what is wrong.
		throw (
			errors.find((error) => error.kind !== "no-model") ?? errors[0] ?? new ModelError("no-model", "no chat model is configured for this")
		);
	}

	function callable(settings: ModelSettings): boolean {
		if (settings.id === DEMO_ID) return true;
		const target = targetOf(settings);
		return !("problem" in target) && hosts.peek(target.origin) === 0 && ring.freeIn(target.origin, settings.model, target.keys) === null;
	}

	/** Null when the model answered. */
	async function tryModel(target: Target, run: Run, hasOther: () => boolean, once: boolean): Promise<ModelError | null> {
		const { settings, origin } = target;
		const turnId = run.request.context.turnId;
		let failures = 0;
		let rateWaits = 0;
		let lessons = 0;
		let last: ModelError | null = null;
		let written: Written | null = null;
		for (;;) {
			if (run.halt.why !== null) throw new ModelError("aborted", run.halt.why);
			const key = ring.take(origin, settings.model, target.keys, turnId);
			if (key === null) return last ?? setAsideError(target);
			const gate = hosts.enter(origin);
			if (gate.waitMs > 0) {
				const patience = gate.why === "open" ? 0 : remaining(run, hasOther());
				if (once || gate.waitMs > patience) {
					return (
						last ??
						new ModelError(gate.why === "paused" ? "rate-limited" : "server", `${origin} is left alone for ${gate.waitMs} ms`, {
							retryAfterMs: gate.waitMs,
						})
					);
				}
				await pause(gate.waitMs, run);
				continue;
			}
			const quirks = learned.of(target.baseUrl, settings.model, target.preset.quirks);
			let left = false;
			try {
				written ??= await writeChat(run.request, {
					modelName: settings.model,
					quirks,
					sendsImages: settings.kind === "multimodal",
					maxOutputTokens: Math.max(
						1,
						Math.min(run.request.maxOutputTokens ?? settings.limits.maxOutputTokens, settings.limits.maxOutputTokens),
					),
					readAsset: deps.readAsset,
					extraOf: (id) => extras.get(id),
					quote,
				});
				announce(settings, run);
				const reply = await attempt(target, key, written, run, hasOther);
				hosts.leave(origin, "ok");
				left = true;
				ring.good(origin, key, settings.model);
				run.emit({ type: "end", reply });
				return null;
			} catch (thrown) {
				if (!(thrown instanceof AttemptFailed)) throw thrown;
				const { error, refusal } = thrown.failure;
				last = error;
				const health = error.kind === "server" || error.kind === "network" || error.kind === "timeout" || error.kind === "protocol";
				hosts.leave(origin, health ? "failed" : "neutral", error.retryAfterMs);
				left = true;
				if (error.kind === "aborted") throw error;
				run.refusedAt ??= clock.now();
				run.lastReason = reasonOf(error);
				if (run.attempts >= MOST_ATTEMPTS) return error;
				switch (error.kind) {
					case "bad-request": {
						const sent = {
							hadReasoning: run.request.messages.some((message) => message.role === "assistant" && message.calls.length > 0),
							keys: written?.keys ?? [],
						};
						const status = error.status;
						if (
							refusal &&
							(status === 400 || status === 422 || status === null) &&
							lessons < MOST_LESSONS &&
							learned.learn(target.baseUrl, settings.model, target.preset.quirks, refusal, sent)
						) {
							deps.log.info("model.adapted", { model: settings.id, error: error.message });
							lessons++;
							written = null;
							continue;
						}
						return error;
					}
					case "auth":
					case "payment":
						ring.setAside(
							origin,
							key,
							error.kind === "payment"
								? `no credit (${error.status ?? "told in the answer"})`
								: `refused with ${error.status ?? error.kind}`,
							error.status === 403 ? { model: settings.model } : {},
						);
						deps.log.warn("model.key-set-aside", {
							model: settings.id,
							key: key ? maskKey(key) : null,
							status: error.status,
							kind: error.kind,
						});
						if (once || key === "") return error;
						continue;
					case "rate-limited": {
						if (once) return error;
						const asked = error.retryAfterMs;
						if (asked !== null && asked > LONG_WAIT_MS) {
							if (key === "") hosts.pause(origin, asked);
							ring.setAside(origin, key, "rate limited", { ms: asked });
							if (key === "") return error;
							continue;
						}
						if (++rateWaits > MOST_RATE_WAITS) return error;
						hosts.pause(origin, asked ?? backoff(rateWaits + 1));
						ring.rotate(origin, settings.model, turnId);
						continue;
					}
					case "server":
					case "network":
					case "timeout":
					case "protocol": {
						failures++;
						const other = hasOther();
						// A model that says nothing in time has had its chance when another can answer.
						if (once || failures >= MOST_FAILURES || (other && error.kind === "timeout")) return error;
						const ms = error.retryAfterMs ?? backoff(failures);
						if (ms > remaining(run, other)) return error;
						await pause(ms, run);
						continue;
					}
					default:
						return error;
				}
			} finally {
				// Left by the fuse or by a fault of ours.
				if (!left) hosts.leave(origin, "neutral");
			}
		}
	}

	/** One attempt with the meter around it. Throws `AttemptFailed`, or what the meter throws. */
	async function attempt(target: Target, key: string, written: Written, run: Run, hasOther: () => boolean): Promise<ModelReply> {
		const { settings } = target;
		const counted = tokens.countParts(settings.model, written.parts);
		const estimated = counted + written.images * IMAGE_TOKENS;
		const firstByteMs =
			run.refusedAt !== null && hasOther()
				? Math.max(1_000, Math.min(settings.limits.firstByteMs, run.refusedAt + FALLBACK_MS - clock.now()))
				: undefined;
		const { names } = written;
		const { answer, reply } = await metered(deps, settings, key, written, estimated, run, async (tell) => {
			const wired = await deps.client.chat(
				{
					baseUrl: target.baseUrl,
					key,
					json: written.json,
					limits: settings.limits,
					firstByteMs,
					names: names.wire,
					thinksUnopened: learned.thinksUnopened(target.baseUrl, settings.model),
					nearlyFull: estimated > (settings.contextTokens ?? DEFAULT_CONTEXT_TOKENS) * 0.9,
				},
				run.halt,
				tell,
			);
			wired.calls = wired.calls.map((call) => ({ ...call, name: names.fromWire(call.name) }));
			return wired;
		});
		if (answer.usage && answer.usage.inputTokens > 0 && written.images === 0)
			tokens.learn(settings.model, counted, answer.usage.inputTokens);
		if (answer.strayClose || learned.thinksUnopened(target.baseUrl, settings.model))
			learned.setThinksUnopened(target.baseUrl, settings.model, answer.strayClose);
		for (const [id, extra] of answer.extras) {
			if (extras.size >= 2_000) extras.delete(extras.keys().next().value ?? "");
			extras.set(id, extra);
		}
		return reply;
	}

	async function demoAttempt(settings: ModelSettings, run: Run): Promise<void> {
		announce(settings, run);
		// Recorded as every other call is, so that it can be read, reported and replayed like one.
		const written = await writeChat(run.request, {
			modelName: settings.model,
			quirks: providerOf(settings.provider).quirks,
			sendsImages: false,
			maxOutputTokens: settings.limits.maxOutputTokens,
			readAsset: deps.readAsset,
			extraOf: () => undefined,
			quote,
		});
		const estimated = tokens.countParts(settings.model, written.parts);
		const { reply } = await metered(deps, settings, null, written, estimated, run, (tell) => {
			const told = joining(beat, tell);
			return deps.demo.answer(run.request, run.halt, run.signal, told.emit).finally(told.end);
		});
		run.emit({ type: "end", reply });
	}

	function announce(settings: ModelSettings, run: Run): void {
		const changed = run.lastModel !== null && run.lastModel !== settings.id;
		if (run.dirty || changed) run.emit({ type: "restart", model: settings.id, reason: run.lastReason });
		run.dirty = false;
		run.lastModel = settings.id;
	}

	/** Ms that may still be waited. */
	function remaining(run: Run, other: boolean): number {
		if (!other) return ALONE_MS - run.waitedMs;
		return run.refusedAt === null ? FALLBACK_MS : run.refusedAt + FALLBACK_MS - clock.now();
	}

	async function pause(ms: number, run: Run): Promise<void> {
		run.refusedAt ??= clock.now();
		run.waitedMs += ms;
		await deps.sleep(ms, run.signal);
	}

	function backoff(failures: number): number {
		const full = Math.min(MOST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
		return Math.round(full * (0.5 + deps.random() / 2));
	}

	function setAsideError(target: Target): ModelError {
		const keys = ring.status(target.origin, target.settings.model, target.keys);
		const limited = keys.every((key) => key.reason === "rate limited");
		const ms = ring.freeIn(target.origin, target.settings.model, target.keys);
		return new ModelError(
			limited ? "rate-limited" : keys.some((key) => key.reason?.startsWith("no credit")) ? "payment" : "auth",
			`${target.settings.id}: every key is set aside (${keys[0]?.reason ?? ""})`,
			{
				retryAfterMs: ms,
			},
		);
	}

	return {
		stream: (request, list, signal, once = false) => eventStream(signal, (emit, halt) => answer(request, list, signal, once, emit, halt)),
	};
}

/** A request that is wrong in itself is wrong for every model; one that names a missing model is not. */
function stopsTheWalk(error: ModelError): boolean {
	if (error.kind === "context-length") return true;
	return error.kind === "bad-request" && error.status !== 404 && error.status !== 405 && error.status !== 410;
}

/** For people: which model answers instead, and why, without internals. */
function reasonOf(error: ModelError): string {
	return error.status === null ? error.kind : `${error.kind} (${error.status})`;
}
