import { z } from "zod";
import { type App, type Context, wellFormed } from "../context.ts";
import { Conversation, Message, SendAccepted, SendAnswered, SendMessage } from "../contract.ts";
import { toConversation } from "../present.ts";
import { createPresenter } from "../presenter.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { startWait } from "../wait.ts";
import { before, Id, limit, limitOf, Nothing } from "./schemas.ts";

/** A proxy or a client gives up earlier than this anyway. */
const MAX_WAIT_S = 600;

const title = z
	.string()
	.max(200)
	.transform((text) => wellFormed(text.replace(/\s+/g, " ").trim()));

export function conversationRoutes(app: App, { deps, submit, closing, live }: Context): void {
	const { store, gateway } = deps;
	const present = createPresenter(store);

	async function conversation(id: string): Promise<Conversation> {
		const row = await store.conversations.get(id);
		if (row === null) throw notFound("conversation");
		const open = await store.turns.open(id);
		const busy = open.some(({ state }) => state === "running") ? "running" : open.length > 0 ? "queued" : null;
		return toConversation({ ...row, busy });
	}

	app.get(
		"/api/v1/conversations",
		{
			schema: {
				querystring: z.object({
					query: z.string().max(200).optional(),
					before: z.iso.datetime({ offset: true }).optional(),
					limit: limitOf(200, 200),
				}),
				response: { 200: z.object({ conversations: z.array(Conversation) }) },
			},
		},
		async ({ query }) => {
			const rows = await store.conversations.list({
				limit: query.limit,
				...(query.query ? { query: query.query } : {}),
				...(query.before ? { before: Date.parse(query.before) } : {}),
			});
			return { conversations: rows.map(toConversation) };
		},
	);

	app.post(
		"/api/v1/conversations",
		{
			schema: {
				body: z.object({ title: title.nullish(), channel: z.enum(["web", "api", "cli"]).optional() }).nullish(),
				response: { 201: Conversation },
			},
		},
		async ({ body, identity }, reply) => {
			const channel = body?.channel ?? (identity?.kind === "session" ? "web" : "api");
			const { id } = await gateway.createConversation(body?.title || null, channel);
			return reply.code(201).send(await conversation(id));
		},
	);

	app.get("/api/v1/conversations/:id", { schema: { params: Id, response: { 200: Conversation } } }, async ({ params }) =>
		conversation(params.id),
	);

	app.patch(
		"/api/v1/conversations/:id",
		{
			schema: {
				params: Id,
				body: z.object({
					title: title.pipe(z.string().min(1)).optional(),
					pinned: z.boolean().optional(),
					model: z.string().max(200).nullable().optional(),
				}),
				response: { 200: Conversation },
			},
		},
		async ({ params, body }) => {
			if (body.model && !deps.models.list().some(({ id }) => id === body.model)) {
				throw new HttpProblem(400, "model-not-found", "There is no model of this name in the configuration.");
			}
			if ((await store.conversations.update(params.id, body)) === null) throw notFound("conversation");
			const value = await conversation(params.id);
			deps.bus.publish({ type: "conversation", conversation: params.id, change: "changed", value });
			return value;
		},
	);

	app.delete("/api/v1/conversations/:id", { schema: { params: Id, response: { 204: Nothing } } }, async ({ params }, reply) => {
		if (!(await gateway.removeConversation(params.id))) throw notFound("conversation");
		return reply.code(204).send(null);
	});

	app.get(
		"/api/v1/conversations/:id/messages",
		{
			schema: {
				params: Id,
				querystring: z.object({ before, limit, superseded: z.enum(["true", "false", "1", "0"]).optional() }),
				response: { 200: z.object({ messages: z.array(Message) }) },
			},
		},
		async ({ params, query }) => {
			if ((await store.conversations.get(params.id)) === null) throw notFound("conversation");
			if (query.before !== undefined && (await store.messages.get(query.before))?.conversationId !== params.id) {
				throw new HttpProblem(400, "bad-before", "`before` is not a message of this conversation.");
			}
			const rows = await store.messages.list(params.id, {
				limit: query.limit,
				superseded: query.superseded === "true" || query.superseded === "1",
				...(query.before ? { before: query.before } : {}),
			});
			return { messages: await present.messages(rows) };
		},
	);

	app.post(
		"/api/v1/conversations/:id/messages",
		{
			schema: {
				params: Id,
				querystring: z.object({ wait: z.coerce.number().min(0).default(0) }),
				body: SendMessage,
				response: { 200: SendAnswered, 202: SendAccepted },
			},
		},
		async ({ params, query, body }, reply) => {
			const { messageId, turnId } = await submit(params.id, body);
			if (query.wait > 0) {
				const wait = startWait(reply, closing, Math.min(query.wait, MAX_WAIT_S) * 1000);
				try {
					const answered = await gateway.whenAnswered(messageId, wait.signal);
					const row = answered?.replyId && !answered.reply ? await store.messages.get(answered.replyId) : null;
					const answer = answered?.reply ?? (row ? await present.message(row) : null);
					if (answered && answer) return reply.code(200).send({ reply: answer, turnId: answered.turnId, messageId });
				} finally {
					wait.end();
				}
			}
			return reply.code(202).send({ messageId, turnId });
		},
	);

	app.post(
		"/api/v1/conversations/:id/stop",
		{ schema: { params: Id, response: { 200: z.object({ stopped: z.boolean() }) } } },
		async ({ params }) => {
			if ((await store.conversations.get(params.id)) === null) throw notFound("conversation");
			return { stopped: await gateway.stop(params.id) };
		},
	);

	app.get("/api/v1/live", { config: { socket: true }, websocket: true, schema: { hide: true } as object }, (socket, request) => {
		// The door has checked who it is.
		if (request.identity) live.attach(socket, request.raw.socket, request.identity);
		else socket.close(4401, "not signed in");
	});
}
