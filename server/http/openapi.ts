/** The OpenAPI document, made from the routes' schemas when somebody asks for it: at start it costs nothing. */
import type { RouteOptions } from "fastify";
import type { App } from "./context.ts";

type Listed = Pick<RouteOptions, "method" | "url" | "schema">;

async function build(routes: Listed[], version: string): Promise<string> {
	const [{ default: fastify }, { default: swagger }, zod] = await Promise.all([
		import("fastify"),
		import("@fastify/swagger"),
		import("fastify-type-provider-zod"),
	]);
	const app = fastify({ logger: false, exposeHeadRoutes: false });
	app.setValidatorCompiler(zod.validatorCompiler);
	app.setSerializerCompiler(() => (data) => JSON.stringify(data));
	await app.register(swagger, {
		openapi: {
			openapi: "3.1.0",
			info: { title: "OpenLani", version, description: "Errors are application/problem+json with a stable `code`." },
			components: {
				securitySchemes: {
					token: { type: "http", scheme: "bearer" },
					session: { type: "apiKey", in: "cookie", name: "openlani" },
				},
			},
			security: [{ token: [] }, { session: [] }],
		},
		transform: zod.jsonSchemaTransform,
	});
	for (const { method, url, schema } of routes) app.route({ method, url, ...(schema ? { schema } : {}), handler: () => null });
	await app.ready();
	const document = JSON.stringify(app.swagger());
	await app.close();
	return document;
}

/** To be called before the other routes: it takes note of them. */
export function openapiRoute(app: App, version: string): void {
	const routes: Listed[] = [];
	let document: Promise<string> | null = null;

	app.addHook("onRoute", ({ method, url, schema }) => {
		if ((schema as { hide?: boolean } | undefined)?.hide) return;
		routes.push({ method, url, ...(schema ? { schema } : {}) });
	});

	app.get("/api/v1/openapi.json", { schema: { hide: true } as object }, async (_request, reply) => {
		document ??= build(routes, version);
		return reply.type("application/json; charset=utf-8").send(await document);
	});
}
