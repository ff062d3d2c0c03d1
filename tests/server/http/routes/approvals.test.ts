import fastify from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { toBody, toProblem } from "../../../../server/http/problem.ts";
import { approvalRoutes } from "../../../../server/http/routes/approvals.ts";
import { openApprovals } from "../../safety/approvals-setup.ts";

let room: Awaited<ReturnType<typeof openApprovals>>;
beforeEach(async () => {
	room = await openApprovals();
});
afterEach(() => room.close());

function make() {
	const app = fastify();
	app.setValidatorCompiler(validatorCompiler);
	app.setSerializerCompiler(() => (data) => JSON.stringify(data));
	app.setErrorHandler((error, _request, reply) => {
		const { problem } = toProblem(error);
		void reply.code(problem.status).send(toBody(problem));
	});
	approvalRoutes(app.withTypeProvider<ZodTypeProvider>() as never, {
		approvals: room.approvals,
		about: async (row) => (row.arguments.includes("m1") ? `My boat is called Albatros${"!".repeat(600)}` : null),
	});
	return {
		list: async (query = "") => (await app.inject({ url: `/api/v1/approvals${query}` })).json().approvals,
		decide: async (id: string, payload: object) => {
			const response = await app.inject({ method: "POST", url: `/api/v1/approvals/${id}`, payload });
			return { status: response.statusCode, body: response.json() };
		},
		get: (url: string) => app.inject({ url }),
	};
}

describe("the routes of approvals", () => {
	it("list what waits, with what it would touch", async () => {
		const app = make();
		expect(await app.list()).toEqual([]);
		await room.gate({ tainted: ["web:example.test"] });
		await room.gate({ arguments: '{"id":"m2"}', personId: "bob" });
		const [second, first] = await app.list();
		expect(first).toEqual({
			id: expect.any(String),
			tool: "forget",
			arguments: { id: "m1" },
			about: expect.stringMatching(/^My boat is called Albatros!{474}$/),
			conversation: "c1",
			turnId: "t1",
			origin: "human",
			tainted: true,
			person: "master",
			state: "pending",
			scope: null,
			createdAt: "2026-11-30T07:04:00.000Z",
			expiresAt: "2026-11-30T07:19:00.000Z",
			decidedAt: null,
		});
		expect(second).toMatchObject({ arguments: { id: "m2" }, about: null, person: "bob", tainted: false });
		expect(await app.list(`?before=${second.id}`)).toHaveLength(1);
		expect((await app.get("/api/v1/approvals?before=nobody")).statusCode).toBe(400);
		expect((await app.get("/api/v1/approvals?state=some")).statusCode).toBe(400);
	});

	it("take a decision once and keep it", async () => {
		const app = make();
		await room.gate();
		const id = await room.one();
		expect((await app.decide(id, { decision: "perhaps" })).status).toBe(400);
		expect((await app.decide(id, { decision: "allow", scope: "ever" })).status).toBe(400);
		expect(await app.decide(id, { decision: "allow", scope: "hour" })).toMatchObject({
			status: 200,
			body: { id, state: "allowed", scope: "hour", decidedAt: "2026-11-30T07:04:00.000Z" },
		});
		expect(await app.decide(id, { decision: "deny" })).toMatchObject({ status: 409, body: { code: "already-decided" } });
		expect(await app.decide("nobody", { decision: "deny" })).toMatchObject({ status: 404, body: { code: "approval-not-found" } });
		expect(await app.list()).toEqual([]);
		expect(await app.list("?state=all")).toMatchObject([{ id, state: "allowed", about: null }]);
	});

	it("say what has expired", async () => {
		const app = make();
		await room.gate();
		const id = await room.one();
		room.home.clock.forward(900_000);
		expect(await app.list()).toEqual([]);
		expect(await app.list("?state=all")).toMatchObject([{ id, state: "expired" }]);
		expect(await app.decide(id, { decision: "allow" })).toMatchObject({ status: 409, body: { code: "approval-expired" } });
	});
});
