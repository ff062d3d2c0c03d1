/** Who failed? Decided at the wire by status and code, never by what a sentence says. */
import type { ModelError, ModelErrorKind } from "./model.ts";

const CONTEXT_CODES = new Set([
	"context_length_exceeded",
	"model_context_window_exceeded",
	"exceed_context_size_error",
	"context_window_exceeded",
	"string_above_max_length",
	"request_too_large",
	"max_tokens_exceeded",
]);
const PAYMENT_CODES = new Set([
	"insufficient_quota",
	"billing_hard_limit_reached",
	"billing_not_active",
	"arrearage",
	"insufficient_balance",
	"account_deactivated",
	"1113",
]);
const AUTH_CODES = new Set([
	"invalid_api_key",
	"authentication_error",
	"permission_error",
	"permission_denied",
	"unauthorized",
	"invalid_authentication_error",
]);
const RATE_CODES = new Set([
	"rate_limit_exceeded",
	"rate_limit_error",
	"rate_limit_reached_error",
	"too_many_requests",
	"resource_exhausted",
	"tokens",
	"requests",
]);
const SERVER_CODES = new Set([
	"server_error",
	"api_error",
	"internal_error",
	"internal_server_error",
	"overloaded_error",
	"engine_overloaded_error",
	"overloaded",
	"service_unavailable",
	"unavailable",
]);

/** What a failed attempt means for what comes next. */
export interface Failure {
	error: ModelError;
	/** Text and parameter of a refusal, for what can be learned from it. */
	refusal: { message: string; param: string | null } | null;
	/** False when nothing can have been used (the server refused, or was not reached). */
	mayHaveCost: boolean;
}

type Json = Record<string, unknown>;

function codesOf(body: Json): string[] {
	return [body.code, body.type, body.status].flatMap((value) =>
		typeof value === "string" || typeof value === "number" ? [String(value).toLowerCase()] : [],
	);
}

/** The kind of an answer with a status of 300 or more. `nearlyFull`: by our own count the request fills the model's window. */
export function kindOfStatus(status: number, body: Json, nearlyFull: boolean): ModelErrorKind {
	const codes = codesOf(body);
	const has = (set: Set<string>) => codes.some((code) => set.has(code));
	if (has(CONTEXT_CODES) || status === 413) return "context-length";
	if (status === 402 || ((status === 429 || status === 403 || status === 400) && has(PAYMENT_CODES))) return "payment";
	if (status === 401 || status === 403 || status === 407) return "auth";
	if (status === 429) return "rate-limited";
	if (status === 408 || status === 504 || status === 524) return "timeout";
	if (status >= 500 || status === 409 || status === 425) return "server";
	if (status < 400) return "protocol";
	return status === 400 && nearlyFull ? "context-length" : "bad-request";
}

/** The kind of an error object inside an answer with status 200. */
export function kindOfStreamError(body: Json, nearlyFull: boolean): { kind: ModelErrorKind; status: number | null } {
	const status = [body.code, body.status, body.status_code].map(Number).find((value) => value >= 400 && value < 600) ?? null;
	if (status !== null) return { kind: kindOfStatus(status, body, nearlyFull), status };
	const codes = codesOf(body);
	const has = (set: Set<string>) => codes.some((code) => set.has(code));
	if (has(CONTEXT_CODES)) return { kind: "context-length", status: null };
	if (has(PAYMENT_CODES)) return { kind: "payment", status: null };
	if (has(AUTH_CODES)) return { kind: "auth", status: null };
	if (has(RATE_CODES)) return { kind: "rate-limited", status: null };
	if (has(SERVER_CODES)) return { kind: "server", status: null };
	return { kind: codes.includes("invalid_request_error") ? "bad-request" : "server", status: null };
}

/** Ms that the server asks to wait, or null. Seconds, a date, or `retry-after-ms`. */
export function retryAfterMs(headers: { get(name: string): string | null } | undefined, now: number): number | null {
	if (!headers) return null;
	const exact = Number.parseFloat(headers.get("retry-after-ms") ?? "");
	if (Number.isFinite(exact) && exact >= 0) return exact;
	const text = headers.get("retry-after")?.trim();
	if (!text) return null;
	if (/^\d+(?:\.\d+)?$/.test(text)) return Number.parseFloat(text) * 1_000;
	const at = Date.parse(text);
	return Number.isNaN(at) ? null : Math.max(0, at - now);
}
