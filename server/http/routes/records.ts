/** What happened, to read: turns, model calls, events, the outbox. */
import { z } from "zod";
import type { OutboxState } from "../../store/store.ts";
import type { App, Context } from "../context.ts";
import { Call, CallDetail, Delivery, EventItem, OutboxItem, Turn, TurnSummary } from "../contract.ts";
import { toCall, toCallDetail, toEvent, toOutboxItem, toTurn, toTurnSummary } from "../present.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { before, Id, limit, limitOf } from "./schemas.ts";

export function recordRoutes(app: App, { deps }: Context): void {
	const { store, gateway, bus } = deps;

	app.get(
		"/api/v1/turns",
		{
			schema: {
				querystring: z.object({ conversation: z.string().min(1).max(200).optional(), before, limit }),
				response: { 200: z.object({ turns: z.array(TurnSummary) }) },
			},
		},
		async ({ query }) => {
			if (query.before !== undefined && (await store.turns.get(query.before)) === null)
				throw new HttpProblem(400, "bad-before", "`before` is not a turn.");
			const rows = await store.turns.list({
				limit: query.limit,
				...(query.conversation ? { conversationId: query.conversation } : {}),
				...(query.before ? { before: query.before } : {}),
			});
			return { turns: rows.map(toTurnSummary) };
		},
	);

	app.get("/api/v1/turns/:id", { schema: { params: Id, response: { 200: Turn } } }, async ({ params }) => {
		const row = await store.turns.get(params.id);
		if (row === null) throw notFound("turn");
		const [steps, messageIds, calls] = await Promise.all([
			store.turns.steps(row.id),
			store.turns.messageIds(row.id),
			store.calls.list({ turnId: row.id, limit: 500 }),
		]);
		return toTurn(row, { steps, messageIds, calls: calls.reverse() });
	});

	app.get(
		"/api/v1/calls",
		{
			schema: {
				querystring: z.object({ turn: z.string().min(1).max(200).optional(), source: z.string().max(40).optional(), before, limit }),
				response: { 200: z.object({ calls: z.array(Call) }) },
			},
		},
		async ({ query }) => {
			if (query.before !== undefined && (await store.calls.get(query.before)) === null)
				throw new HttpProblem(400, "bad-before", "`before` is not a call.");
			const rows = await store.calls.list({
				limit: query.limit,
				...(query.turn ? { turnId: query.turn } : {}),
				...(query.source ? { source: query.source } : {}),
				...(query.before ? { before: query.before } : {}),
			});
			return { calls: rows.map(toCall) };
		},
	);

	app.get("/api/v1/calls/:id", { schema: { params: Id, response: { 200: CallDetail } } }, async ({ params }) => {
		const row = await store.calls.get(params.id);
		if (row === null) throw notFound("call");
		return toCallDetail(row);
	});

	app.get(
		"/api/v1/events",
		{
			schema: {
				querystring: z.object({
					after: z.coerce.number().int().min(0).default(0),
					level: EventItem.shape.level.optional(),
					type: z.string().min(1).max(60).optional(),
					limit: limitOf(200, 1000),
				}),
				response: { 200: z.object({ events: z.array(EventItem) }) },
			},
		},
		async ({ query }) => {
			await bus.flush();
			const rows = await store.events.list({
				after: query.after,
				limit: query.limit,
				...(query.type ? { type: query.type } : {}),
				...(query.level ? { minLevel: query.level } : {}),
			});
			return { events: rows.map(toEvent) };
		},
	);

	app.get(
		"/api/v1/outbox",
		{
			schema: {
				querystring: z.object({ state: Delivery.or(z.literal("dropped")).optional(), before, limit }),
				response: { 200: z.object({ outbox: z.array(OutboxItem) }) },
			},
		},
		async ({ query }) => {
			if (query.before !== undefined && (await store.outbox.get(query.before)) === null)
				throw new HttpProblem(400, "bad-before", "`before` is not in the outbox.");
			const rows = await store.outbox.list({
				limit: query.limit,
				...(query.state ? { state: query.state as OutboxState } : {}),
				...(query.before ? { before: query.before } : {}),
			});
			return { outbox: rows.map(toOutboxItem) };
		},
	);

	for (const decision of ["retry", "release", "drop"] as const) {
		app.post(`/api/v1/outbox/:id/${decision}`, { schema: { params: Id, response: { 200: OutboxItem } } }, async ({ params }) => {
			if ((await store.outbox.get(params.id)) === null) throw notFound("outbox-item");
			const row = await store.outbox.decide(params.id, decision, deps.clock.now());
			if (row === null) throw new HttpProblem(409, "wrong-state", "The message is in no state for this.");
			gateway.outboxChanged({ channel: row.channel, account: row.account });
			return toOutboxItem(row);
		});
	}
}
