/** The door in front of every route and upgrade: headers, Host, Origin, then who is asking. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Auth, Identity } from "./auth.ts";
import type { HttpDeps } from "./deps.ts";
import { SECURITY_HEADERS } from "./headers.ts";
import { hostAllowed, type Listening, originAllowed } from "./hosts.ts";
import { isPagePath } from "./page.ts";
import { HttpProblem } from "./problem.ts";

declare module "fastify" {
	interface FastifyRequest {
		/** Who is asking; null on open routes when nobody is signed in. */
		identity: Identity | null;
	}
	interface FastifyContextConfig {
		/** Answers without authentication. */
		open?: boolean;
		/** The only kind of route that may be upgraded. */
		socket?: boolean;
		/** The page's wildcard: open for page paths, closed for everything under the API's prefixes. */
		page?: boolean;
		/** While no user exists, the one-time code in `X-OpenLani-Setup` is enough. */
		setupCode?: boolean;
	}
}

export function pathOf(request: FastifyRequest): string {
	const at = request.url.indexOf("?");
	return at === -1 ? request.url : request.url.slice(0, at);
}

/** The address of the one who asks; behind a proxy on this machine, the one the proxy names. */
export function clientAddress(request: FastifyRequest, publicUrl: string | null): string {
	const remote = request.socket.remoteAddress ?? "unknown";
	const forwarded = request.headers["x-forwarded-for"];
	const loopback = remote === "127.0.0.1" || remote === "::1" || remote === "::ffff:127.0.0.1";
	if (publicUrl === null || !loopback || typeof forwarded !== "string") return remote;
	// Only the last entry was written by the proxy itself.
	return forwarded.split(",").at(-1)?.trim().slice(0, 64) || remote;
}

function listening(request: FastifyRequest, app: FastifyInstance, deps: HttpDeps): Listening {
	const { localPort, localAddress } = request.socket;
	const bound = app.server.address();
	return {
		// A socket that is gone already names no port; that must not loosen the check.
		port: localPort ?? (bound !== null && typeof bound === "object" ? bound.port : null),
		localAddress: localAddress ?? null,
		listenHost: deps.listenHost?.() ?? null,
		publicUrl: deps.publicUrl(),
	};
}

function checkSite(request: FastifyRequest, where: Listening, path: string): void {
	const { host, origin } = request.headers;
	if (!hostAllowed(host, where))
		throw new HttpProblem(421, "wrong-host", "This address is not known here. Set server.publicUrl to the address you use.");
	if (origin !== undefined && !originAllowed(origin, where))
		throw new HttpProblem(403, "foreign-origin", "Requests from other sites are not accepted.");
	const site = request.headers["sec-fetch-site"];
	if (site === undefined || site === "same-origin" || site === "none") return;
	// Reading a page from a link elsewhere is fine; acting, or reading the API, is not.
	const reads = (request.method === "GET" || request.method === "HEAD") && request.headers.upgrade === undefined;
	if (!reads || !isPagePath(path)) throw new HttpProblem(403, "cross-site", "Requests from other sites are not accepted.");
}

export function installGuard(
	app: FastifyInstance,
	{ deps, auth, setupCodeGood }: { deps: HttpDeps; auth: Auth; setupCodeGood(request: FastifyRequest): Promise<boolean> },
): void {
	app.decorateRequest("identity", null);

	app.addHook("onRequest", async (request: FastifyRequest, reply: FastifyReply) => {
		reply.headers(SECURITY_HEADERS);
		const path = pathOf(request);
		checkSite(request, listening(request, app, deps), path);
		const config = request.routeOptions.config;
		if (request.headers.upgrade !== undefined && !config.socket) throw new HttpProblem(404, "not-found", "There is nothing here.");
		const page = config.page || request.is404 ? isPagePath(path) : false;
		if (!page) reply.header("cache-control", "no-store");
		if (page) return;
		request.identity = await auth.identify(request);
		if (request.identity !== null || config.open) return;
		if (config.setupCode && (await setupCodeGood(request))) return;
		throw new HttpProblem(401, "not-signed-in", "Sign in, or send the API token.", { headers: { "www-authenticate": "Bearer" } });
	});
}
