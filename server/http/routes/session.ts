/** Signing in and out, and the first set-up. */
import type { z } from "zod";
import type { App, Context } from "../context.ts";
import { Login, type ModelEntry, Setup, SetupInfo } from "../contract.ts";
import { HttpProblem } from "../problem.ts";
import type { Throttle } from "../throttle.ts";
import { Nothing } from "./schemas.ts";

/** Takes one attempt of each, or says how long to wait. */
export function takeAttempt(...attempts: [Throttle, string][]): void {
	const waitMs = Math.max(...attempts.map(([throttle, key]) => throttle.take(key)));
	if (waitMs <= 0) return;
	const seconds = Math.ceil(waitMs / 1000);
	throw new HttpProblem(429, "too-many-attempts", `Too many wrong attempts. Try again in ${seconds} s.`, {
		headers: { "retry-after": String(seconds) },
	});
}

/** Where the set-up's answers stand in the configuration. The picked model leads the fallback order. */
export function setupChanges(setup: z.output<typeof Setup>, config: Record<string, unknown>): Record<string, unknown> {
	const changes: Record<string, unknown> = {};
	if (setup.locale !== undefined) changes.locale = setup.locale;
	if (setup.timezone !== undefined) changes.timezone = setup.timezone;
	if (setup.dailyTokens !== undefined) changes["budget.dailyTokens"] = setup.dailyTokens;
	if (setup.model) {
		const picked: ModelEntry = setup.model;
		const models = (Array.isArray(config.models) ? config.models : []) as { id?: string }[];
		const chat = (config.roles as { chat?: unknown } | undefined)?.chat;
		const order = Array.isArray(chat) ? (chat as string[]) : [];
		changes.models = [picked, ...models.filter(({ id }) => id !== picked.id)];
		changes["roles.chat"] = [picked.id, ...order.filter((id) => id !== picked.id)];
	}
	return changes;
}

export function sessionRoutes(app: App, { deps, auth, passwords, throttles, live, addressOf }: Context): void {
	const { store, setup, log } = deps;
	let info: Promise<SetupInfo> | null = null;

	app.post("/api/v1/login", { config: { open: true }, schema: { body: Login, response: { 204: Nothing } } }, async (request, reply) => {
		const { username, password } = request.body;
		const address = addressOf(request);
		const account = `${address} ${username}`;
		// No attempt is counted that could not be looked at.
		await passwords.ready();
		takeAttempt([throttles.address, address], [throttles.account, account]);
		const user = await store.auth.user(username);
		if (!(await passwords.verify(user?.passwordHash ?? null, password))) {
			log.warn("login.refused", { address });
			throw new HttpProblem(401, "wrong-login", "User name or password is wrong.");
		}
		throttles.address.succeeded(address);
		throttles.account.succeeded(account);
		await auth.startSession(username, request, reply);
		log.info("login.accepted", { address });
		return reply.code(204).send(null);
	});

	app.post("/api/v1/logout", { config: { open: true }, schema: { response: { 204: Nothing } } }, async ({ identity }, reply) => {
		await auth.endSession(identity, reply);
		if (identity?.kind === "session") live.endSession(identity.tokenHash);
		return reply.code(204).send(null);
	});

	app.get("/api/v1/setup", { config: { open: true }, schema: { response: { 200: SetupInfo } } }, async (request) => {
		const needed = !(await store.auth.hasUser());
		if (!needed && request.identity === null)
			throw new HttpProblem(401, "not-signed-in", "Sign in, or send the API token.", { headers: { "www-authenticate": "Bearer" } });
		// Looking for local servers takes a moment: whoever asks meanwhile gets the same answer.
		info ??= setup.info().finally(() => {
			info = null;
		});
		return { ...(await info), needed };
	});

	app.post("/api/v1/setup", { config: { open: true }, schema: { body: Setup, response: { 204: Nothing } } }, async (request, reply) => {
		const { code, username, password } = request.body;
		const address = addressOf(request);
		const account = `${address} ${username}`;
		await passwords.ready();
		if (await store.auth.hasUser()) {
			// Only the person who has just made the account may go on, with the same password (the settings were refused the first time).
			if (request.identity === null) throw new HttpProblem(409, "already-set-up", "The set-up is done. Sign in instead.");
			takeAttempt([throttles.account, account]);
			const user = await store.auth.user(username);
			if (!(await passwords.verify(user?.passwordHash ?? null, password)))
				throw new HttpProblem(409, "already-set-up", "Another account exists already.");
			throttles.account.succeeded(account);
		} else {
			takeAttempt([throttles.setup, address]);
			if (!(await setup.redeem(code)))
				throw new HttpProblem(403, "wrong-setup-code", "This set-up code is not valid. The log shows a new link after a restart.");
			throttles.setup.succeeded(address);
			await store.auth.setUser(username, await passwords.hash(password));
			log.info("setup.account-made", { address });
			await auth.startSession(username, request, reply);
		}
		const changes = setupChanges(request.body, deps.config.read());
		if (Object.keys(changes).length > 0) await deps.config.set(changes);
		return reply.code(204).send(null);
	});
}
