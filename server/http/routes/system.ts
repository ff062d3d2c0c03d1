/** Health, status, configuration, models, filter. */
import { z } from "zod";
import type { App, Context } from "../context.ts";
import { FilterResult, ModelChoice, ModelEntry, ModelTestResult, Status } from "../contract.ts";
import { startWait } from "../wait.ts";

const MODEL_TEST_MS = 120_000;
const HEALTH_FRESH_MS = 1000;
const Json = z.record(z.string(), z.unknown());

export function systemRoutes(app: App, { deps, closing }: Context): void {
	let health: { at: number; state: Promise<Status["state"]> } | null = null;

	app.get(
		"/healthz",
		{ config: { open: true }, schema: { response: { 200: z.object({ status: Status.shape.state, version: z.string() }) } } },
		async () => {
			const now = deps.clock.now();
			// Anybody may ask; the work behind it is done once a second at most.
			if (health === null || now - health.at >= HEALTH_FRESH_MS || now < health.at) {
				const state = deps.status().then(
					(status) => status.state,
					() => "degraded" as const,
				);
				health = { at: now, state };
			}
			return { status: await health.state, version: deps.version };
		},
	);

	app.get("/api/v1/status", { schema: { response: { 200: Status } } }, async () => deps.status());

	app.get("/api/v1/config", { schema: { response: { 200: Json } } }, async () => deps.config.read());

	app.put(
		"/api/v1/config",
		{ schema: { body: Json, response: { 200: z.object({ restartNeeded: z.array(z.string()), config: Json }) } } },
		async ({ body }) => {
			const { restartNeeded } = await deps.config.write(body);
			deps.log.info("config.written", { restartNeeded });
			return { restartNeeded, config: deps.config.read() };
		},
	);

	app.get("/api/v1/models", { schema: { response: { 200: z.object({ models: z.array(ModelChoice) }) } } }, async () => ({
		models: deps.models.list(),
	}));

	app.post(
		"/api/v1/models/test",
		{
			config: { setupCode: true },
			schema: { body: z.union([ModelEntry, z.strictObject({ id: z.string().min(1).max(200) })]), response: { 200: ModelTestResult } },
		},
		async ({ body }, reply) => {
			const wait = startWait(reply, closing, MODEL_TEST_MS);
			try {
				return await deps.models.test(body, wait.signal);
			} finally {
				wait.end();
			}
		},
	);

	app.post(
		"/api/v1/filter/test",
		{
			schema: {
				body: z.object({ text: z.string().max(200_000), profile: z.string().min(1).max(64).default("private") }),
				response: { 200: FilterResult },
			},
		},
		async ({ body }) => {
			const { verdict, text, matches } = deps.filter.check(body.text, body.profile);
			return { verdict, text, matches };
		},
	);
}
