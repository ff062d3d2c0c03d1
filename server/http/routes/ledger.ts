/** Usage, alerts, the fuse and metrics. Takes its own small dependencies, so that it can be built and tested alone. */
import { z } from "zod";
import type { Price } from "../../model/prices.ts";
import type { Calendar } from "../../observe/day.ts";
import type { Fuse, FuseState } from "../../safety/fuse.ts";
import type { AlertRow, Ledger } from "../../store/ledger-store.ts";
import type { App } from "../context.ts";
import { AlertItem, FuseDay, PriceItem, UsageRow } from "../contract.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { before, Id, limit } from "./schemas.ts";

export interface LedgerRouteDeps {
	ledger: Pick<Ledger, "usage" | "alerts" | "raises">;
	fuse: Pick<Fuse, "state" | "raise">;
	calendar: Calendar;
	clock: { now(): number };
	metrics(): Promise<string>;
	/** The configured models with their prices; null = unknown. Without it there is no such route. */
	prices?(): Promise<{ model: string; price: Price | null }[]>;
	/** Told after a raise, so that status goes out. */
	changed?(): void;
}

const FuseAnswer = FuseDay.omit({ raises: true });

const iso = (at: number): string => new Date(at).toISOString();
const toAlert = (row: AlertRow): AlertItem => ({
	id: row.id,
	kind: row.kind,
	severity: row.severity,
	state: row.state,
	message: row.message,
	conversation: row.conversationId,
	turnId: row.turnId,
	openedAt: iso(row.openedAt),
	lastAt: iso(row.lastAt),
	resolvedAt: row.resolvedAt === null ? null : iso(row.resolvedAt),
	ackedAt: row.ackedAt === null ? null : iso(row.ackedAt),
	count: row.count,
});
const toFuse = ({ day: _day, reservedCost: _reserved, resetsAt, ...rest }: FuseState): z.infer<typeof FuseAnswer> => ({
	...rest,
	resetsAt: iso(resetsAt),
});

const Moment = z.string().min(1).max(40).optional();

export function ledgerRoutes(app: App, deps: LedgerRouteDeps): void {
	const { ledger, fuse, calendar, clock } = deps;

	/** A day (its beginning in the configured zone; as the end of a span: the end of that day) or an instant. */
	function momentOf(text: string, name: string, isEnd: boolean): number {
		if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return calendar.startOf(isEnd ? calendar.shift(text, 1) : text);
		const at = /^\d{10,}$/.test(text) ? Number(text) : Date.parse(text);
		if (!Number.isFinite(at) || Math.abs(at) > 8.64e15)
			throw new HttpProblem(400, "bad-time", `\`${name}\` is neither a day (YYYY-MM-DD) nor an ISO instant.`);
		return at;
	}

	app.get(
		"/api/v1/usage",
		{
			schema: {
				querystring: z.object({ from: Moment, to: Moment, by: z.enum(["day", "source", "model", "conversation"]).default("day") }),
				response: { 200: z.object({ rows: z.array(UsageRow), from: z.string(), to: z.string(), by: z.string() }) },
			},
		},
		async ({ query }) => {
			const now = clock.now();
			const to = query.to === undefined ? now + 1 : momentOf(query.to, "to", true);
			const from =
				query.from === undefined ? calendar.startOf(calendar.shift(calendar.dayOf(now), -29)) : momentOf(query.from, "from", false);
			if (from >= to) throw new HttpProblem(400, "bad-span", "`from` must be before `to`.");
			const rows = await ledger.usage({ from, to, by: query.by, dayOf: calendar.dayOf, startOfDay: calendar.startOf });
			return { rows, from: iso(from), to: iso(to), by: query.by };
		},
	);

	app.get(
		"/api/v1/alerts",
		{
			schema: {
				querystring: z.object({ state: z.enum(["open", "resolved"]).optional(), before, limit }),
				response: { 200: z.object({ alerts: z.array(AlertItem) }) },
			},
		},
		async ({ query }) => {
			if (query.before !== undefined && (await ledger.alerts.get(query.before)) === null)
				throw new HttpProblem(400, "bad-before", "`before` is not an alert.");
			return { alerts: (await ledger.alerts.list({ state: query.state, limit: query.limit, before: query.before })).map(toAlert) };
		},
	);

	app.post("/api/v1/alerts/:id/ack", { schema: { params: Id, response: { 200: AlertItem } } }, async ({ params }) => {
		const row = await ledger.alerts.ack(params.id, clock.now());
		if (row === null) throw notFound("alert");
		return toAlert(row);
	});

	app.get(
		"/api/v1/fuse",
		{
			schema: {
				response: {
					200: FuseDay,
				},
			},
		},
		async () => {
			const state = await fuse.state();
			return { ...toFuse(state), raises: (await ledger.raises(state.day)).map(({ at, ...raise }) => ({ ...raise, at: iso(at) })) };
		},
	);

	app.post(
		"/api/v1/fuse/raise",
		{
			schema: {
				body: z
					.object({ tokens: z.number().int().min(0).max(1e12).optional(), cost: z.number().min(0).max(1e9).optional() })
					.refine((body) => (body.tokens ?? 0) > 0 || (body.cost ?? 0) > 0, "`tokens` or `cost` must be more than 0"),
				response: { 200: FuseAnswer },
			},
		},
		async ({ body, identity }: { body: { tokens?: number; cost?: number }; identity?: { kind: string; username?: string } | null }) => {
			// Whoever passes the guard is the master: logged in on the page, or with the token.
			const by = identity?.kind === "session" ? (identity.username ?? "page") : "token";
			const state = await fuse.raise({ ...body, by });
			deps.changed?.();
			return toFuse(state);
		},
	);

	const { prices } = deps;
	if (prices)
		app.get("/api/v1/prices", { schema: { response: { 200: z.object({ prices: z.array(PriceItem) }) } } }, async () => ({
			prices: await prices(),
		}));

	app.get("/metrics", { schema: { hide: true } }, async (_request, reply) => {
		const text = await deps.metrics();
		return reply
			.type("text/plain; version=0.0.4; charset=utf-8")
			.serializer((body: unknown) => body as string)
			.send(text);
	});
}
