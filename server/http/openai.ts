/**
 * The OpenAI-compatible endpoint: the last user message goes into a conversation like any other message, and the turn's reply
 * comes back. An aborted request stops its turn, unless somebody else waits for an answer in the same conversation.
 */
import { z } from "zod";
import type { App, Context } from "./context.ts";
import { createConversationFeed } from "./feed.ts";
import { keptType, safeName } from "./files.ts";
import { type Answer, completionOf, NO_RETRY } from "./openai-answer.ts";
import { ChatRequest, conversationName, inputOf } from "./openai-input.ts";
import { streamAnswer } from "./openai-stream.ts";
import { HttpProblem } from "./problem.ts";
import { startWait, type Wait } from "./wait.ts";

/** Pictures come inside the JSON. */
const BODY_BYTES = 32 * 1024 * 1024;
const MODEL = "openlani";

const Model = z.object({ id: z.string(), object: z.literal("model"), created: z.number().int(), owned_by: z.string() });
const ModelList = z.object({ object: z.literal("list"), data: z.array(Model) });

export function openaiRoutes(app: App, context: Context): void {
	const { deps, submit, closing } = context;
	const { store, gateway, log } = deps;
	const feed = createConversationFeed(deps.bus);
	/** How many requests wait in each conversation. */
	const inFlight = new Map<string, number>();

	async function send(
		body: ChatRequest,
		conversationId: string,
		clientId: string | undefined,
	): Promise<{ messageId: string; turnId: string }> {
		const { text, files } = inputOf(body);
		const attachments = await Promise.all(
			files.map(async (file) => {
				const stored = await store.assets.put(file.data, { name: safeName(file.name), mimeType: keptType(file.mimeType, file.data) });
				return { sha256: stored.sha256, name: stored.name };
			}),
		);
		const model = deps.models.list().some(({ id }) => id === body.model) ? (body.model ?? null) : null;
		return submit(conversationId, { text, attachments, model, ...(clientId ? { clientId } : {}) });
	}

	/** The client is gone: nobody will read the answer, so nobody pays for the rest of it. */
	async function abandon(conversationId: string, turnId: string): Promise<void> {
		if (inFlight.has(conversationId)) return;
		const open = await store.turns.open(conversationId);
		if (open.length > 0 && open.every(({ id }) => id === turnId)) await gateway.stop(conversationId);
	}

	async function answerTo(messageId: string, wait: Wait): Promise<Answer> {
		const answered = await gateway.whenAnswered(messageId, wait.signal);
		if (answered === null)
			throw new HttpProblem(503, "stopping", "This server is closing; the answer will be in the conversation.", { headers: NO_RETRY });
		const [row, turn] = await Promise.all([
			answered.replyId === null ? null : store.messages.get(answered.replyId),
			store.turns.get(answered.turnId),
		]);
		return { row, turn };
	}

	/** Stores the message, lets `work` wait for its answer, and tidies up however that ends. */
	async function converse<T>(
		{ body, conversationId, clientId, wait }: { body: ChatRequest; conversationId: string; clientId: string | undefined; wait: Wait },
		work: (turnId: string, answer: () => Promise<Answer>) => Promise<T>,
	): Promise<T> {
		let turn: string | null = null;
		inFlight.set(conversationId, (inFlight.get(conversationId) ?? 0) + 1);
		try {
			const { messageId, turnId } = await send(body, conversationId, clientId);
			turn = turnId;
			return await work(turnId, () => answerTo(messageId, wait));
		} finally {
			const left = (inFlight.get(conversationId) ?? 1) - 1;
			if (left > 0) inFlight.set(conversationId, left);
			else inFlight.delete(conversationId);
			wait.end();
			if (wait.clientGone() && turn !== null) {
				await abandon(conversationId, turn).catch((error: unknown) =>
					log.warn("openai.abandon-failed", { message: (error as Error).message }),
				);
			}
		}
	}

	function listModels(): z.output<typeof Model>[] {
		const created = Math.floor(deps.clock.now() / 1000);
		const ids = new Set([MODEL, ...deps.models.list().map(({ id }) => id)]);
		return [...ids].map((id) => ({ id, object: "model" as const, created, owned_by: MODEL }));
	}

	app.get("/v1/models", { schema: { response: { 200: ModelList } } }, async () => ({ object: "list" as const, data: listModels() }));

	app.get("/v1/models/:id", { schema: { params: z.object({ id: z.string() }), response: { 200: Model } } }, async (request) => {
		const model = listModels().find(({ id }) => id === request.params.id);
		if (!model) throw new HttpProblem(404, "model-not-found", `There is no model ${request.params.id}.`);
		return model;
	});

	app.post("/v1/chat/completions", { bodyLimit: BODY_BYTES, schema: { body: ChatRequest } }, async (request, reply) => {
		const { body, headers } = request;
		const { id: conversationId } = await gateway.namedConversation(conversationName(headers["x-openlani-conversation"]));
		const key = headers["idempotency-key"];
		const clientId = typeof key === "string" && key !== "" ? key.slice(0, 100) : undefined;
		const wait = startWait(reply, closing);
		const exchange = { body, conversationId, clientId, wait };
		const shown = { created: Math.floor(deps.clock.now() / 1000), model: body.model || MODEL };
		if (!body.stream) return converse(exchange, async (turnId, answer) => completionOf(turnId, await answer(), shown));
		const includeUsage = body.stream_options?.include_usage === true;
		return streamAnswer({ ...shown, feed, reply, wait, conversationId, includeUsage, log, run: (work) => converse(exchange, work) });
	});
}
