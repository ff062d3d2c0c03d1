/** What routes share. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { z } from "zod";
import type { Auth } from "./auth.ts";
import type { SendMessage } from "./contract.ts";
import type { HttpDeps } from "./deps.ts";
import { safeName } from "./files.ts";
import type { LiveHub } from "./live.ts";
import type { Passwords } from "./passwords.ts";
import { HttpProblem } from "./problem.ts";
import type { Throttle } from "./throttle.ts";

/** The instance as routes use it, typed by their schemas. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>;

export interface Context {
	deps: HttpDeps;
	auth: Auth;
	passwords: Passwords;
	live: LiveHub;
	/** Wrong logins by user and address, and by address alone. */
	throttles: { account: Throttle; address: Throttle; setup: Throttle };
	/** Aborted when the server closes: whoever waits answers what is known. */
	closing: AbortSignal;
	submit(conversationId: string, input: z.output<typeof SendMessage>): Promise<{ messageId: string; turnId: string; duplicate: boolean }>;
	addressOf(request: FastifyRequest): string;
}

/** Lone halves of characters become U+FFFD: everything stored is well formed. */
export function wellFormed(text: string): string {
	return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

export function createSubmit({ gateway, models }: HttpDeps): Context["submit"] {
	return async (conversationId, input) => {
		if (input.model !== null && !models.list().some(({ id }) => id === input.model)) {
			throw new HttpProblem(400, "model-not-found", "There is no model of this name in the configuration.");
		}
		return gateway.submit({
			conversationId,
			text: wellFormed(input.text),
			// A name said with the message is as foreign as one said with the upload.
			attachments: input.attachments.map((one) => (one.name === undefined ? one : { ...one, name: safeName(one.name) })),
			model: input.model,
			clientId: input.clientId ?? null,
			limits: { ...(input.maxSteps ? { maxSteps: input.maxSteps } : {}), ...(input.maxRounds ? { maxRounds: input.maxRounds } : {}) },
			replaces: input.replaces ?? null,
		});
	};
}
