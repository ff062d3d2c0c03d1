/** Builds the HTTP application. It never listens: the daemon does, tests use `inject`. */
import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import websocket from "@fastify/websocket";
import fastify, {
	type FastifyError,
	type FastifyInstance,
	type FastifyReply,
	type FastifyRequest,
	type FastifyServerOptions,
} from "fastify";
import { validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import { createAuth } from "./auth.ts";
import { type App, type Context, createSubmit } from "./context.ts";
import type { HttpDeps } from "./deps.ts";
import { clientAddress, installGuard, pathOf } from "./guard.ts";
import { SECURITY_HEADERS } from "./headers.ts";
import { createLiveHub } from "./live.ts";
import { openaiRoutes } from "./openai.ts";
import { openaiError } from "./openai-answer.ts";
import { openapiRoute } from "./openapi.ts";
import { pageRoutes } from "./page.ts";
import { createPasswords } from "./passwords.ts";
import { type HttpProblem, toBody, toProblem } from "./problem.ts";
import { approvalRoutes } from "./routes/approvals.ts";
import { assetRoutes } from "./routes/assets.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { ledgerRoutes } from "./routes/ledger.ts";
import { memoryRoutes } from "./routes/memory.ts";
import { recordRoutes } from "./routes/records.ts";
import { sessionRoutes, takeAttempt } from "./routes/session.ts";
import { systemRoutes } from "./routes/system.ts";
import { workspaceRoutes } from "./routes/workspace.ts";
import { createThrottle } from "./throttle.ts";

/** A long message in escaped JSON fits; files have their own route and limit. */
const BODY_BYTES = 2_000_000;
const FRAME_BYTES = 2_000_000;
/** What open requests get to end by themselves when the server closes. */
const CLOSE_MS = 2000;

/** Answers are made by present.ts, typed by the same schemas: parsing them again would only cost time. */
const serializerCompiler = () => (data: unknown) => JSON.stringify(data);
const compilersFactory = { buildValidator: () => validatorCompiler, buildSerializer: () => serializerCompiler };

function sendProblem(problem: HttpProblem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
	const openai = /^\/v1(?:\/|$)/.test(pathOf(request));
	return reply
		.code(problem.status)
		.headers(problem.headers)
		.type(openai ? "application/json; charset=utf-8" : "application/problem+json; charset=utf-8")
		.send(JSON.stringify(openai ? openaiError(problem) : toBody(problem)));
}

function createThrottles(clock: HttpDeps["clock"]): Context["throttles"] {
	const common = { clock, firstMs: 1000, maxMs: 300_000, forgetMs: 3_600_000, entries: 2000 };
	return {
		account: createThrottle({ ...common, free: 5 }),
		address: createThrottle({ ...common, free: 25 }),
		setup: createThrottle({ ...common, free: 5 }),
	};
}

/** A request that is no HTTP, or whose head is too large: the parser never made a request of it. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
	if (error.code === "ECONNRESET" || !socket.writable) {
		socket.destroy();
		return;
	}
	const [status, title] =
		error.code === "HPE_HEADER_OVERFLOW"
			? [431, "Request Header Fields Too Large"]
			: error.code === "ERR_HTTP_REQUEST_TIMEOUT"
				? [408, "Request Timeout"]
				: [400, "Bad Request"];
	const body = JSON.stringify({ type: "about:blank", title, status, code: "unreadable-request", detail: "The request could not be read." });
	const headers = {
		...SECURITY_HEADERS,
		"content-type": "application/problem+json; charset=utf-8",
		"content-length": Buffer.byteLength(body),
		connection: "close",
	};
	const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
	socket.end(`HTTP/1.1 ${status} ${title}\r\n${head.join("")}\r\n${body}`);
}

export async function buildApp(deps: HttpDeps): Promise<FastifyInstance> {
	const { log } = deps;

	function onError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
		const { problem, unexpected } = toProblem(error);
		// The route's pattern, not the address: what stands in an address may be private.
		if (unexpected)
			log.error("http.failed", {
				route: request.routeOptions?.url,
				method: request.method,
				message: (error as Error)?.message,
				stack: (error as Error)?.stack,
			});
		return sendProblem(problem, request, reply);
	}

	const app = fastify({
		logger: false,
		bodyLimit: BODY_BYTES,
		exposeHeadRoutes: false,
		forceCloseConnections: "idle",
		routerOptions: { maxParamLength: 200 },
		// Named here, the framework does not load its own compilers: they cost a third of the start.
		schemaController: { compilersFactory } as unknown as FastifyServerOptions["schemaController"],
		// Both come before the door, which sets the headers of every other answer.
		frameworkErrors: (error: FastifyError, request, reply) =>
			void onError(error, request as FastifyRequest, (reply as unknown as FastifyReply).headers(SECURITY_HEADERS)),
		clientErrorHandler: answerUnreadable,
	});
	const closing = new AbortController();
	// As many listen as requests wait.
	setMaxListeners(0, closing.signal);
	const auth = createAuth(deps);
	const submit = createSubmit(deps);
	const live = createLiveHub({ bus: deps.bus, auth, gateway: deps.gateway, submit, version: deps.version, log, limits: deps.live ?? {} });
	const addressOf = (request: FastifyRequest) => clientAddress(request, deps.publicUrl());
	const context: Context = {
		deps,
		auth,
		passwords: createPasswords(log),
		live,
		throttles: createThrottles(deps.clock),
		closing: closing.signal,
		submit,
		addressOf,
	};

	let forget = () => {};
	app.addHook("onListen", async () => {
		forget = context.passwords.readySoon();
	});
	app.addHook("onClose", async () => forget());

	app.setErrorHandler(onError);
	app.setNotFoundHandler((request, reply) =>
		onError(Object.assign(new Error("not found"), { code: "FST_ERR_MAX_PARAM_LENGTH" }), request, reply),
	);
	// Only what a route asks for: a form of another site can send text/plain without asking first.
	app.removeContentTypeParser("text/plain");
	const parseJson = app.getDefaultJsonParser("error", "error");
	app.removeContentTypeParser("application/json");
	app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
		// A POST without arguments often still says it is JSON.
		if (body === "") done(null, undefined);
		else void parseJson(request, body as string, done);
	});

	// Before the door: its hook notes what is an upgrade, so that the socket of a refused one is closed.
	await app.register(websocket, {
		options: { maxPayload: FRAME_BYTES, perMessageDeflate: false },
		errorHandler: (_error, socket) => socket.terminate(),
		// The hub closes its sockets, with a code.
		preClose: (done: () => void) => done(),
	});
	installGuard(app, {
		deps,
		auth,
		async setupCodeGood(request) {
			const code = request.headers["x-openlani-setup"];
			if (typeof code !== "string" || code === "" || !deps.setup.check || (await deps.store.auth.hasUser())) return false;
			const address = addressOf(request);
			takeAttempt([context.throttles.setup, address]);
			if (!(await deps.setup.check(code))) return false;
			context.throttles.setup.succeeded(address);
			return true;
		},
	});
	app.addHook("preClose", async () => {
		closing.abort();
		live.close();
		// A client that reads nothing more must not hold the end up.
		setTimeout(() => app.server.closeAllConnections(), CLOSE_MS).unref();
	});
	const typed: App = app.withTypeProvider<ZodTypeProvider>();
	openapiRoute(typed, deps.version);
	conversationRoutes(typed, context);
	recordRoutes(typed, context);
	systemRoutes(typed, context);
	sessionRoutes(typed, context);
	assetRoutes(typed, context);
	if (deps.ledger) ledgerRoutes(typed, deps.ledger);
	if (deps.memory) memoryRoutes(typed, deps.memory);
	if (deps.approvals) approvalRoutes(typed, deps.approvals);
	if (deps.workspace) workspaceRoutes(typed, deps.workspace);
	openaiRoutes(typed, context);
	pageRoutes(app, deps.pageDir);
	await app.ready();
	return app;
}
