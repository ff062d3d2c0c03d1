/** Calls that wait for the master's word, and the word. Takes its own small dependencies, so that it can be built and tested alone. */
import { z } from "zod";
import type { Approvals } from "../../safety/approvals.ts";
import type { ApprovalRow } from "../../store/approvals.ts";
import type { App } from "../context.ts";
import { Approval } from "../contract.ts";
import { HttpProblem, notFound } from "../problem.ts";
import { before, Id, limit } from "./schemas.ts";

export interface ApprovalRouteDeps {
	approvals: Pick<Approvals, "list" | "get" | "decide">;
	/** What a call would touch, in its own words; null when that is not known. */
	about(row: ApprovalRow): Promise<string | null>;
}

const mostAbout = 500;
const iso = (at: number): string => new Date(at).toISOString();

function argumentsOf(json: string): Record<string, unknown> {
	const value: unknown = JSON.parse(json);
	return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function approvalRoutes(app: App, { approvals, about }: ApprovalRouteDeps): void {
	async function toApproval(row: ApprovalRow): Promise<Approval> {
		const text = row.state === "pending" ? await about(row) : null;
		return {
			id: row.id,
			tool: row.tool,
			arguments: argumentsOf(row.arguments),
			about: text === null ? null : [...text].slice(0, mostAbout).join(""),
			conversation: row.conversationId,
			turnId: row.turnId,
			origin: row.origin,
			tainted: row.tainted,
			person: row.personId,
			state: row.state,
			scope: row.scope,
			createdAt: iso(row.createdAt),
			expiresAt: iso(row.expiresAt),
			decidedAt: row.decidedAt === null ? null : iso(row.decidedAt),
		};
	}

	app.get(
		"/api/v1/approvals",
		{
			schema: {
				querystring: z.object({ state: z.enum(["pending", "all"]).default("pending"), before, limit }),
				response: { 200: z.object({ approvals: z.array(Approval) }) },
			},
		},
		async ({ query }) => {
			if (query.before !== undefined && (await approvals.get(query.before)) === null)
				throw new HttpProblem(400, "bad-before", "`before` is not an approval.");
			const rows = await approvals.list({
				state: query.state,
				limit: query.limit,
				...(query.before ? { before: query.before } : {}),
			});
			return { approvals: await Promise.all(rows.map(toApproval)) };
		},
	);

	app.post(
		"/api/v1/approvals/:id",
		{
			schema: {
				params: Id,
				body: z.object({ decision: z.enum(["allow", "deny"]), scope: z.enum(["once", "conversation", "hour"]).default("once") }),
				response: { 200: Approval },
			},
		},
		async ({ params, body }) => {
			const made = await approvals.decide(params.id, body.decision, body.scope);
			if (made === null) throw notFound("approval");
			if (!made.decided)
				throw made.row.state === "expired"
					? new HttpProblem(409, "approval-expired", "Its time is over; the agent asks again when it is wanted again.")
					: new HttpProblem(409, "already-decided", `It was ${made.row.state} before.`);
			return toApproval(made.row);
		},
	);
}
