import fastify from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { toBody, toProblem } from "../../../../server/http/problem.ts";
import { ledgerRoutes } from "../../../../server/http/routes/ledger.ts";
import { createFuse } from "../../../../server/safety/fuse.ts";
import { fakeClock, openLedger } from "../../store/open-ledger.ts";

let home: Awaited<ReturnType<typeof openLedger>>;
beforeEach(async () => {
	home = await openLedger();
});
afterEach(() => home.close());

async function make() {
	const clock = fakeClock();
	const fuse = createFuse({
		ledger: home.ledger,
		budget: () => ({
			dailyTokens: 1_000,
			dailyCost: null,
			warnAt: [0.5],
			reserveForPeople: 0.2,
			dailyShare: { stranger: null, known: null, group: null },
		}),
		calendar: home.calendar,
		timezone: () => "Asia/Shanghai",
		clock,
	});
	const app = fastify();
	app.setValidatorCompiler(validatorCompiler);
	app.setSerializerCompiler(() => (data) => JSON.stringify(data));
	app.setErrorHandler((error, _request, reply) => {
		const { problem } = toProblem(error);
		void reply.code(problem.status).send(toBody(problem));
	});
	app.decorateRequest("identity", null);
	app.addHook("onRequest", async (request) => {
		request.identity = { kind: "session", tokenHash: "", username: "lani" };
	});
	let changed = 0;
	ledgerRoutes(app.withTypeProvider<ZodTypeProvider>() as never, {
		ledger: home.ledger,
		fuse,
		calendar: home.calendar,
		clock,
		metrics: async () => "# HELP x y\nx 1\n",
		prices: async () => [{ model: "main", price: null }],
		changed: () => {
			changed += 1;
		},
	});
	const call = async (id: string, at: string, tokens: number) => {
		const context = { source: "chat" as const, conversationId: "c1", turnId: null, personId: "master" };
		await home.ledger.open(id, {
			context,
			model: "main",
			modelName: "m",
			key: null,
			attempt: 1,
			request: {},
			estimatedInputTokens: 1,
			maxOutputTokens: 1,
			startedAt: Date.parse(at),
		});
		await home.ledger.close(id, {
			response: null,
			error: null,
			usage: { inputTokens: tokens, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0, estimated: false, cost: null, currency: "USD" },
			ms: 1,
			firstByteMs: 1,
		});
	};
	const get = async (url: string) => {
		const answer = await app.inject({ method: "GET", url });
		return { status: answer.statusCode, body: answer.json() };
	};
	return { app, clock, fuse, call, get, changes: () => changed };
}

describe("GET /api/v1/usage", () => {
	it("takes days of the configured zone, both ends included, and instants", async () => {
		const { call, get } = await make();
		await call("a", "2026-11-28T15:59:59Z", 1);
		await call("b", "2026-11-28T16:00:00Z", 2);
		await call("c", "2026-11-30T02:00:00Z", 4);
		expect((await get("/api/v1/usage?from=2026-11-29&to=2026-11-30")).body.rows).toMatchObject([
			{ key: "2026-11-29", inputTokens: 2, cost: null, unpricedTokens: 3 },
			{ key: "2026-11-30", inputTokens: 4 },
		]);
		expect((await get("/api/v1/usage?by=source")).body.rows).toMatchObject([{ key: "chat", calls: 3, inputTokens: 7 }]);
		expect((await get("/api/v1/usage?from=2026-11-28T15:59:59Z&to=2026-11-28T16:00:00Z&by=model")).body.rows).toMatchObject([
			{ key: "main", inputTokens: 1 },
		]);
	});

	it("refuses a bad time and a span that ends before it begins", async () => {
		const { get } = await make();
		expect(await get("/api/v1/usage?from=yesterday")).toMatchObject({ status: 400, body: { code: "bad-time" } });
		expect(await get("/api/v1/usage?from=2026-11-30&to=2026-11-28")).toMatchObject({ status: 400, body: { code: "bad-span" } });
		expect((await get("/api/v1/usage?by=person")).status).toBe(400);
	});
});

describe("the fuse over HTTP", () => {
	it("is raised for today by whoever is logged in, and keeps who it was", async () => {
		const { app, get, changes } = await make();
		const raised = await app.inject({ method: "POST", url: "/api/v1/fuse/raise", payload: { tokens: 500 } });
		expect(raised.statusCode).toBe(200);
		expect(raised.json()).toMatchObject({ limitTokens: 1_500, state: "ok", resetsAt: "2026-11-30T16:00:00.000Z" });
		expect(changes()).toBe(1);
		expect((await get("/api/v1/fuse")).body.raises).toMatchObject([{ tokens: 500, by: "lani" }]);
		for (const payload of [{}, { tokens: -1 }, { tokens: 0 }, { cost: "much" }])
			expect((await app.inject({ method: "POST", url: "/api/v1/fuse/raise", payload })).statusCode).toBe(400);
	});
});

describe("alerts and metrics over HTTP", () => {
	it("lists alerts newest first, filters, and takes an acknowledgement", async () => {
		const { app, get } = await make();
		const alert = { severity: "warn" as const, message: { en: "a", zh: "b" }, conversationId: null, turnId: null };
		await home.ledger.alerts.open({ ...alert, id: "1", kind: "k", incident: "x", at: 1 });
		await home.ledger.alerts.open({ ...alert, id: "2", kind: "k", incident: "y", at: 2 });
		await home.ledger.alerts.resolve("k", "x", 3);
		expect((await get("/api/v1/alerts")).body.alerts.map((row: { id: string }) => row.id)).toEqual(["2", "1"]);
		expect((await get("/api/v1/alerts?state=open")).body.alerts).toMatchObject([{ id: "2", message: { en: "a", zh: "b" }, ackedAt: null }]);
		expect((await app.inject({ method: "POST", url: "/api/v1/alerts/2/ack" })).json().ackedAt).toBe("2026-11-30T04:00:00.000Z");
		expect((await app.inject({ method: "POST", url: "/api/v1/alerts/9/ack" })).statusCode).toBe(404);
	});

	it("gives each model's price, unknown as null", async () => {
		const { get } = await make();
		expect((await get("/api/v1/prices")).body).toEqual({ prices: [{ model: "main", price: null }] });
	});

	it("gives metrics as text", async () => {
		const { app } = await make();
		const answer = await app.inject({ method: "GET", url: "/metrics" });
		expect(answer.headers["content-type"]).toContain("text/plain; version=0.0.4");
		expect(answer.body).toBe("# HELP x y\nx 1\n");
	});
});
