/** Errors as vocabulary: everything that goes wrong in a request becomes one `HttpProblem` with a stable code. */
import type { FastifyError } from "fastify";
import type { Problem } from "./contract.ts";
import { ConfigInvalid, GatewayError } from "./deps.ts";

interface Extras {
	errors?: { path: string; message: string }[];
	headers?: Record<string, string>;
}

/** Thrown anywhere in a route; its `detail` is written for the person who asked and holds no internals. */
export class HttpProblem extends Error {
	readonly status: number;
	readonly code: string;
	readonly errors: Extras["errors"];
	readonly headers: Record<string, string>;
	constructor(status: number, code: string, detail: string, extras: Extras = {}) {
		super(detail);
		this.name = "HttpProblem";
		this.status = status;
		this.code = code;
		this.errors = extras.errors;
		this.headers = extras.headers ?? {};
	}
}

const TITLES: Record<number, string> = {
	400: "Bad request",
	401: "Not signed in",
	403: "Not allowed",
	404: "Not found",
	409: "Conflict",
	413: "Too large",
	415: "Unsupported media type",
	421: "Wrong host",
	429: "Too many attempts",
	500: "Internal error",
	502: "The model failed",
	503: "Not available now",
	507: "No space left",
};

export function toBody(problem: HttpProblem): Problem {
	return {
		type: "about:blank",
		title: TITLES[problem.status] ?? "Error",
		status: problem.status,
		code: problem.code,
		...(problem.message === "" ? {} : { detail: problem.message }),
		...(problem.errors ? { errors: problem.errors } : {}),
	};
}

export function notFound(what: string): HttpProblem {
	return new HttpProblem(404, `${what}-not-found`, `There is no such ${what}.`);
}

const GATEWAY_STATUS: Record<string, number> = {
	"conversation-not-found": 404,
	"message-not-found": 404,
	"empty-message": 400,
	"attachment-not-found": 400,
	stopping: 503,
};

/** What the framework itself refuses, by its code. */
const FRAMEWORK: Record<string, [status: number, code: string, detail: string]> = {
	FST_ERR_CTP_BODY_TOO_LARGE: [413, "too-large", "The request is larger than is allowed here."],
	FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, "unsupported-media-type", "This content type is not accepted here."],
	FST_ERR_CTP_INVALID_JSON_BODY: [400, "bad-json", "The body is not valid JSON."],
	FST_ERR_CTP_EMPTY_JSON_BODY: [400, "bad-json", "The body is empty."],
	FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, "bad-request", "Content-Length does not match the body."],
	FST_ERR_BAD_URL: [400, "bad-url", "The address is not well formed."],
	FST_ERR_MAX_PARAM_LENGTH: [404, "not-found", "There is nothing here."],
};

function validationOf(error: FastifyError): HttpProblem {
	const where = error.validationContext ?? "request";
	const errors = (error.validation ?? []).map(({ instancePath, message }) => ({
		path: instancePath.replace(/^\//, "").replaceAll("/", ".") || where,
		message: message ?? "is not valid",
	}));
	const first = errors[0];
	return new HttpProblem(400, "invalid-request", first ? `${first.path}: ${first.message}` : "The request is not valid.", { errors });
}

function configOf(error: ConfigInvalid): HttpProblem {
	const errors = error.errors.map(({ key, line, message }) => ({
		path: key,
		message: line === null ? message : `${message} (line ${line})`,
	}));
	return new HttpProblem(400, "config-invalid", "The configuration was not changed.", { errors });
}

/** The problem that `error` is. `unexpected` errors are faults of ours: to be logged, never told. */
export function toProblem(error: unknown): { problem: HttpProblem; unexpected: boolean } {
	if (error instanceof HttpProblem) return { problem: error, unexpected: false };
	if (error instanceof GatewayError) {
		return { problem: new HttpProblem(GATEWAY_STATUS[error.code] ?? 409, error.code, error.message), unexpected: false };
	}
	if (error instanceof ConfigInvalid) return { problem: configOf(error), unexpected: false };
	const known = error as Partial<FastifyError> | null;
	if (known?.validation) return { problem: validationOf(known as FastifyError), unexpected: false };
	const framework = FRAMEWORK[known?.code ?? ""];
	if (framework) return { problem: new HttpProblem(...framework), unexpected: false };
	if (known?.code === "ENOSPC" || known?.code === "SQLITE_FULL") {
		return { problem: new HttpProblem(507, "disk-full", "The disk is full; nothing was stored."), unexpected: true };
	}
	if (known?.code?.startsWith("SQLITE_BUSY")) {
		return {
			problem: new HttpProblem(503, "busy", "The store is busy; try again in a moment.", { headers: { "retry-after": "1" } }),
			unexpected: true,
		};
	}
	if (known?.code === "MEMORY_ENGINE") {
		return {
			problem: new HttpProblem(503, "memory-search-unavailable", "The memory cannot be searched now; the log says why."),
			unexpected: true,
		};
	}
	if (typeof known?.statusCode === "number" && known.statusCode >= 400 && known.statusCode < 500) {
		return { problem: new HttpProblem(known.statusCode, "bad-request", "The request could not be read."), unexpected: false };
	}
	return { problem: new HttpProblem(500, "internal", "Something went wrong here; the log says more."), unexpected: true };
}
