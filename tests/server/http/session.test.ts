import { afterEach, describe, expect, it } from "vitest";
import { ConfigInvalid } from "../../../server/http/deps.ts";
import { CODE, type House, openHouse, TOKEN } from "./house.ts";

let house: House;
afterEach(() => house.close());

const json = { "content-type": "application/json" };
const person = { username: "ada", password: "correct horse" };

const post = (url: string, payload: unknown, headers: Record<string, string> = {}) =>
	house.app.inject({ method: "POST", url, payload: payload as object, headers: { ...json, ...headers } });
const cookieOf = (answer: { headers: Record<string, unknown> }) => String(answer.headers["set-cookie"]).split(";")[0] ?? "";

async function setUp(): Promise<string> {
	house = await openHouse();
	const answer = await post("/api/v1/setup", { code: CODE, ...person });
	expect(answer.statusCode).toBe(204);
	return cookieOf(answer);
}

describe("set-up", () => {
	it("needs the one-time code, and signs in", async () => {
		house = await openHouse();
		expect((await house.app.inject("/api/v1/setup")).json()).toMatchObject({ needed: true });
		expect((await post("/api/v1/setup", { code: "guess", ...person })).json()).toMatchObject({ status: 403, code: "wrong-setup-code" });
		expect(await house.store.auth.hasUser()).toBe(false);
		const answer = await post("/api/v1/setup", {
			code: CODE,
			...person,
			locale: "zh-CN",
			timezone: "Asia/Shanghai",
			dailyTokens: 5,
			model: { id: "main", provider: "custom", model: "m", apiKeys: ["sk-secret"] },
		});
		expect(answer.statusCode).toBe(204);
		const cookie = String(answer.headers["set-cookie"]);
		expect(cookie).toMatch(/^openlani=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
		expect(house.config).toMatchObject({
			locale: "zh-CN",
			timezone: "Asia/Shanghai",
			"budget.dailyTokens": 5,
			models: [{ id: "main" }],
			"roles.chat": ["main"],
		});
		expect((await house.app.inject({ url: "/api/v1/status", headers: { cookie: cookieOf(answer) } })).statusCode).toBe(200);
		expect(JSON.stringify(house.log)).not.toContain("correct horse");
	});

	it("is over once there is an account", async () => {
		const cookie = await setUp();
		expect((await post("/api/v1/setup", { code: CODE, ...person })).json()).toMatchObject({ status: 409, code: "already-set-up" });
		expect((await post("/api/v1/setup", { code: CODE, username: "eve", password: "another one" }, { cookie })).statusCode).toBe(409);
		expect((await house.app.inject("/api/v1/setup")).json()).toMatchObject({ status: 401 });
		expect((await house.app.inject({ url: "/api/v1/setup", headers: { cookie } })).json()).toMatchObject({ needed: false });
	});

	it("refuses settings that are wrong, and can be finished by the same person", async () => {
		house = await openHouse();
		const first = await post("/api/v1/setup", { code: CODE, ...person, timezone: "Nowhere/Land" });
		expect(first.json()).toMatchObject({ status: 400, code: "config-invalid", errors: [{ path: "timezone" }] });
		const again = await post("/api/v1/setup", { code: CODE, ...person, timezone: "UTC" }, { cookie: cookieOf(first) });
		expect(again.statusCode).toBe(204);
		expect(house.config.timezone).toBe("UTC");
	});

	it("slows guesses of the code down", async () => {
		house = await openHouse();
		const codes = [];
		for (let index = 0; index < 8; index += 1) codes.push((await post("/api/v1/setup", { code: `guess ${index}`, ...person })).statusCode);
		expect(codes).toEqual([403, 403, 403, 403, 403, 429, 429, 429]);
		expect((await post("/api/v1/setup", { code: CODE, ...person })).statusCode).toBe(429);
	});

	it("lets the code test a model, and nothing else, until it is used", async () => {
		house = await openHouse();
		const setup = { "x-openlani-setup": CODE };
		expect((await post("/api/v1/models/test", { id: "main" }, setup)).json()).toMatchObject({ ok: true });
		expect((await post("/api/v1/models/test", { id: "main" }, { "x-openlani-setup": "guess" })).statusCode).toBe(401);
		expect((await post("/api/v1/models/test", { id: "main" })).statusCode).toBe(401);
		expect((await house.app.inject({ url: "/api/v1/config", headers: setup })).statusCode).toBe(401);
		expect((await post("/api/v1/setup", { code: CODE, ...person })).statusCode).toBe(204);
		expect((await post("/api/v1/models/test", { id: "main" }, setup)).statusCode).toBe(401);
	});

	it("refuses short passwords", async () => {
		house = await openHouse();
		expect((await post("/api/v1/setup", { code: CODE, username: "ada", password: "short" })).json()).toMatchObject({
			code: "invalid-request",
		});
		expect((await post("/api/v1/setup", { code: CODE, ...person })).statusCode).toBe(204);
	});
});

describe("login", () => {
	it("gives a session that logout ends", async () => {
		await setUp();
		expect((await post("/api/v1/login", { ...person, password: "wrong" })).json()).toMatchObject({ status: 401, code: "wrong-login" });
		expect((await post("/api/v1/login", { ...person, username: "eve" })).json()).toMatchObject({ status: 401, code: "wrong-login" });
		const answer = await post("/api/v1/login", person);
		expect([answer.statusCode, answer.body]).toEqual([204, ""]);
		const cookie = cookieOf(answer);
		const status = () => house.app.inject({ url: "/api/v1/status", headers: { cookie: `other=1; ${cookie}` } });
		expect((await status()).statusCode).toBe(200);
		const out = await post("/api/v1/logout", {}, { cookie });
		expect([out.statusCode, String(out.headers["set-cookie"])]).toEqual([204, expect.stringContaining("Max-Age=0")]);
		expect((await status()).statusCode).toBe(401);
	});

	it("keeps only hashes", async () => {
		const cookie = await setUp();
		const stored = JSON.stringify([await house.store.auth.user("ada")]);
		expect(stored).not.toContain(person.password);
		expect(stored).toContain("$argon2id$");
		expect(await house.store.auth.session(cookie.split("=")[1] ?? "", Date.now())).toBeNull();
	});

	it("ends when its time is over", async () => {
		const cookie = await setUp();
		house.clock.set(Date.now() + 31 * 24 * 3600 * 1000);
		expect((await house.app.inject({ url: "/api/v1/status", headers: { cookie } })).statusCode).toBe(401);
	});

	it("slows wrong passwords down, by user and address, and forgets them after a right one", async () => {
		await setUp();
		const at = Date.now();
		house.clock.set(at);
		const login = (password: string, remoteAddress = "127.0.0.1") =>
			house.app.inject({ method: "POST", url: "/api/v1/login", payload: { username: "ada", password }, headers: json, remoteAddress });
		for (let index = 0; index < 5; index += 1) expect((await login("wrong")).statusCode).toBe(401);
		const slowed = await login(person.password);
		expect(slowed.json()).toMatchObject({ status: 429, code: "too-many-attempts" });
		expect(slowed.headers["retry-after"]).toBe("1");
		expect((await login(person.password, "10.0.0.9")).statusCode).toBe(204);
		house.clock.set(at + 1000);
		expect((await login("wrong")).statusCode).toBe(401);
		expect((await login("wrong")).headers["retry-after"]).toBe("2");
		house.clock.set(at + 4000);
		expect((await login(person.password)).statusCode).toBe(204);
		expect((await login("wrong")).statusCode).toBe(401);
	});

	it("counts attempts that come at the same time", async () => {
		await setUp();
		const answers = await Promise.all(
			Array.from({ length: 20 }, (_, index) => post("/api/v1/login", { ...person, password: `wrong ${index}` })),
		);
		expect(answers.filter(({ statusCode }) => statusCode === 401)).toHaveLength(5);
	});

	it("slows many names from one address down", async () => {
		await setUp();
		const codes = [];
		for (let index = 0; index < 27; index += 1)
			codes.push((await post("/api/v1/login", { username: `user${index}`, password: "x" })).statusCode);
		expect(codes.slice(0, 20).every((code) => code === 401)).toBe(true);
		expect(codes).toContain(429);
	});

	it("does not stop the rest while passwords are checked", async () => {
		await setUp();
		const login = post("/api/v1/login", person);
		const order: string[] = [];
		await Promise.all([login.then(() => order.push("login")), house.app.inject("/healthz").then(() => order.push("health"))]);
		expect(order).toEqual(["health", "login"]);
	});

	it("marks the cookie Secure behind https, and there believes the proxy's address", async () => {
		house = await openHouse({ publicUrl: () => "https://lani.example.test" });
		const headers = { ...json, host: "lani.example.test", origin: "https://lani.example.test" };
		const answer = await house.app.inject({ method: "POST", url: "/api/v1/setup", payload: { code: CODE, ...person }, headers });
		expect(String(answer.headers["set-cookie"])).toMatch(/; Secure$/);
		const login = (address: string) =>
			house.app.inject({
				method: "POST",
				url: "/api/v1/login",
				payload: { username: "ada", password: "wrong" },
				headers: { ...headers, "x-forwarded-for": `spoofed, ${address}` },
			});
		for (let index = 0; index < 6; index += 1) await login("203.0.113.5");
		expect((await login("203.0.113.5")).statusCode).toBe(429);
		expect((await login("203.0.113.6")).statusCode).toBe(401);
	});

	it("has a token that can be changed", async () => {
		let token = TOKEN;
		house = await openHouse({ token: () => token });
		const status = (given: string) => house.app.inject({ url: "/api/v1/status", headers: { authorization: `Bearer ${given}` } });
		expect((await status(TOKEN)).statusCode).toBe(200);
		token = "another-token-0123456";
		expect((await status(TOKEN)).statusCode).toBe(401);
		expect((await status(token)).statusCode).toBe(200);
	});
});

describe("configuration", () => {
	it("goes both ways, and says what is wrong by key and line", async () => {
		house = await openHouse();
		const config = (await house.call("GET", "/api/v1/config")).json();
		expect((await house.call("PUT", "/api/v1/config", { ...config, locale: "en" })).json()).toEqual({
			restartNeeded: ["server.port"],
			config: { ...config, locale: "en" },
		});
		expect((await house.call("PUT", "/api/v1/config", { surprise: 1 })).json()).toMatchObject({
			status: 400,
			code: "config-invalid",
			errors: [{ path: "surprise", message: "is not known (line 3)" }],
		});
		expect((await house.call("PUT", "/api/v1/config", [])).statusCode).toBe(400);
		expect(new ConfigInvalid([]).name).toBe("ConfigInvalid");
	});
});
