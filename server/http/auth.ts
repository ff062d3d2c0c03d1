/** Who is asking: the API token (the master's rights) or the session of a login. Only hashes of session tokens are kept. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { HttpDeps } from "./deps.ts";

export type Identity = { kind: "token"; tokenHash: string } | { kind: "session"; tokenHash: string; username: string };

export const COOKIE = "openlani";
const SESSION_MS = 30 * 24 * 3600 * 1000;

function sha256(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}

/** The value of our cookie in a `Cookie` header, or null. */
export function sessionCookie(header: string | undefined): string | null {
	if (!header) return null;
	for (const part of header.split(";")) {
		const at = part.indexOf("=");
		if (at > 0 && part.slice(0, at).trim() === COOKIE) return part.slice(at + 1).trim();
	}
	return null;
}

function bearer(header: string | undefined): string | null {
	const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "");
	return match?.[1] ?? null;
}

export interface Auth {
	/** Null when nobody. Never throws for what a client sends. */
	identify(request: FastifyRequest): Promise<Identity | null>;
	/** Whether an identity that was good before still is (ended session, changed token). */
	stillGood(identity: Identity): Promise<boolean>;
	/** Makes a session and its cookie. */
	startSession(username: string, request: FastifyRequest, reply: FastifyReply): Promise<void>;
	endSession(identity: Identity | null, reply: FastifyReply): Promise<void>;
}

export function createAuth({ store, token, clock, publicUrl }: Pick<HttpDeps, "store" | "token" | "clock" | "publicUrl">): Auth {
	// Hashes of equal length are compared, so the time says nothing about the token.
	const isToken = (hash: Buffer) => token() !== "" && timingSafeEqual(hash, sha256(token()));

	function setCookie(reply: FastifyReply, value: string, maxAgeS: number): void {
		const secure = publicUrl()?.toLowerCase().startsWith("https:") ? "; Secure" : "";
		reply.header("set-cookie", `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure}`);
	}

	return {
		async identify(request) {
			const { authorization, cookie } = request.headers;
			if (authorization !== undefined) {
				const given = bearer(authorization);
				if (given === null) return null;
				const hash = sha256(given);
				return isToken(hash) ? { kind: "token", tokenHash: hash.toString("hex") } : null;
			}
			const session = sessionCookie(cookie);
			if (session === null || session === "") return null;
			const tokenHash = sha256(session).toString("hex");
			const row = await store.auth.session(tokenHash, clock.now());
			return row === null ? null : { kind: "session", tokenHash, username: row.username };
		},

		async stillGood(identity) {
			if (identity.kind === "token") return isToken(Buffer.from(identity.tokenHash, "hex"));
			return (await store.auth.session(identity.tokenHash, clock.now())) !== null;
		},

		async startSession(username, request, reply) {
			const value = randomBytes(32).toString("base64url");
			const now = clock.now();
			const userAgent = String(request.headers["user-agent"] ?? "").slice(0, 200);
			await store.auth.createSession({
				tokenHash: sha256(value).toString("hex"),
				username,
				createdAt: now,
				expiresAt: now + SESSION_MS,
				userAgent,
			});
			setCookie(reply, value, SESSION_MS / 1000);
		},

		async endSession(identity, reply) {
			if (identity?.kind === "session") await store.auth.endSession(identity.tokenHash);
			setCookie(reply, "", 0);
		},
	};
}
