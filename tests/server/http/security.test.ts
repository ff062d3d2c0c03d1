import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect as connectTcp } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type House, openHouse, TOKEN } from "./house.ts";

let house: House;
let port: number;
beforeEach(async () => {
	house = await openHouse({ page: true });
	({ port } = await house.listen());
});
afterEach(() => house.close());

interface Answer {
	status: number;
	headers: IncomingMessage["headers"];
	body: string;
	json(): { code?: string };
}

/** A real request, with exactly these headers. */
function ask(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<Answer> {
	return new Promise((resolve, reject) => {
		const asked: ClientRequest = request({ host: "127.0.0.1", port, method, path, headers, agent: false }, (response) => {
			const chunks: Buffer[] = [];
			response.on("data", (chunk: Buffer) => chunks.push(chunk));
			response.on("end", () => {
				const text = Buffer.concat(chunks).toString();
				resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text, json: () => JSON.parse(text) });
			});
		});
		asked.on("error", reject);
		asked.end(body);
	});
}

/** What an upgrade is answered with: 101 or the refusal's status. */
function upgrade(path: string, headers: Record<string, string>): Promise<number> {
	return new Promise((resolve, reject) => {
		const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
		socket.on("open", () => {
			resolve(101);
			socket.terminate();
		});
		socket.on("unexpected-response", (asked, response) => {
			resolve(response.statusCode ?? 0);
			asked.destroy();
		});
		socket.on("error", reject);
	});
}

const bearer = { authorization: `Bearer ${TOKEN}` };

describe("the door", () => {
	it("refuses a foreign Host on every route, open or not, known or not", async () => {
		for (const path of [
			"/healthz",
			"/",
			"/assets/app-B1c2D3e4.js",
			"/api/v1/status",
			"/api/v1/openapi.json",
			"/api/v1/setup",
			"/v1/models",
			"/nothing/here",
			"/api/v1/nothing",
		]) {
			for (const host of ["evil.test", `evil.test:${port}`, "localhost:1", "127.0.0.1", `localhost.evil.test:${port}`]) {
				const answer = await ask("GET", path, { ...bearer, host });
				expect([answer.status, path, host]).toEqual([421, path, host]);
			}
		}
		const login = await ask("POST", "/api/v1/login", { host: "evil.test", "content-type": "application/json" }, "{}");
		expect(login.json().code).toBe("wrong-host");
	});

	it("knows us by every loopback name", async () => {
		for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
			expect((await ask("GET", "/api/v1/status", { ...bearer, host })).status).toBe(200);
		}
	});

	it("refuses a foreign Origin on every route and method", async () => {
		for (const origin of ["http://evil.test", "null", "http://localhost:1", `https://localhost:${port}`, "file://"]) {
			for (const [method, path] of [
				["GET", "/healthz"],
				["GET", "/"],
				["GET", "/api/v1/status"],
				["POST", "/api/v1/login"],
				["POST", "/api/v1/setup"],
				["POST", "/api/v1/logout"],
				["OPTIONS", "/api/v1/conversations"],
				["DELETE", "/api/v1/nothing"],
				["POST", "/v1/chat/completions"],
			] as const) {
				const answer = await ask(method, path, { ...bearer, origin });
				expect([answer.status, method, path, origin]).toEqual([403, method, path, origin]);
				expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
			}
		}
		expect((await ask("GET", "/api/v1/status", { ...bearer, origin: `http://localhost:${port}` })).status).toBe(200);
	});

	it("refuses what another site's page causes, also when it sends no Origin", async () => {
		for (const site of ["cross-site", "same-site"]) {
			const headers = { ...bearer, "sec-fetch-site": site };
			expect((await ask("POST", "/api/v1/conversations", headers)).json().code).toBe("cross-site");
			expect((await ask("GET", "/api/v1/status", headers)).status).toBe(403);
			expect((await ask("GET", "/c/some-conversation", { ...headers, accept: "text/html" })).status).toBe(200);
		}
		for (const site of ["same-origin", "none"])
			expect((await ask("POST", "/api/v1/conversations", { ...bearer, "sec-fetch-site": site })).status).toBe(201);
	});

	it("refuses cross-site and foreign-host upgrades, and upgrades without a login", async () => {
		expect(await upgrade("/api/v1/live", bearer)).toBe(101);
		expect(await upgrade("/api/v1/live", { ...bearer, origin: `http://127.0.0.1:${port}` })).toBe(101);
		expect(await upgrade("/api/v1/live", { ...bearer, origin: "http://evil.test" })).toBe(403);
		expect(await upgrade("/api/v1/live", { ...bearer, origin: "null" })).toBe(403);
		expect(await upgrade("/api/v1/live", { ...bearer, host: "evil.test" })).toBe(421);
		expect(await upgrade("/api/v1/live", { ...bearer, "sec-fetch-site": "cross-site" })).toBe(403);
		expect(await upgrade("/api/v1/live", {})).toBe(401);
		expect(await upgrade("/api/v1/live", { authorization: "Bearer wrong" })).toBe(401);
		expect(await upgrade("/api/v1/live", { cookie: "openlani=made-up" })).toBe(401);
	});

	it("upgrades nothing but the live route", async () => {
		for (const path of ["/", "/healthz", "/api/v1/status", "/nothing", "/api/v1/nothing", "/index.html"])
			expect([await upgrade(path, bearer), path]).toEqual([404, path]);
	});

	it("takes no token from a URL", async () => {
		for (const name of ["token", "access_token", "api_key", "key", "authorization"]) {
			expect((await ask("GET", `/api/v1/status?${name}=${TOKEN}`)).status).toBe(401);
			expect(await upgrade(`/api/v1/live?${name}=${TOKEN}`, {})).toBe(401);
		}
	});

	it("asks everybody who they are, but for the routes that are open", async () => {
		const open = new Set(["GET /healthz", "GET /api/v1/setup", "POST /api/v1/setup", "POST /api/v1/login", "POST /api/v1/logout"]);
		const document = (await house.call("GET", "/api/v1/openapi.json")).json() as { paths: Record<string, Record<string, unknown>> };
		let closed = 0;
		for (const [path, methods] of Object.entries(document.paths)) {
			for (const method of Object.keys(methods)) {
				const name = `${method.toUpperCase()} ${path}`;
				const answer = await ask(method.toUpperCase(), path.replace(/\{[^}]+\}/g, "x"));
				if (open.has(name)) expect([answer.status === 401, name]).toEqual([false, name]);
				else {
					closed += 1;
					expect([answer.status, name]).toEqual([401, name]);
				}
			}
		}
		expect(closed).toBeGreaterThan(25);
		for (const path of [
			"/api/v1/nothing",
			"/api",
			"/API/v1/status",
			"/v1/nothing",
			"/metrics",
			"/channels/x",
			"//api/v1/status",
			"/%61pi/v1/status",
		])
			expect([(await ask("GET", path)).status, path]).toEqual([401, path]);
	});

	it("refuses every token but the right one", async () => {
		const wrong = [
			"",
			"Bearer",
			"Bearer ",
			`Bearer ${TOKEN}x`,
			`Bearer ${TOKEN.slice(1)}`,
			`Basic ${TOKEN}`,
			TOKEN,
			`Bearer ${TOKEN} ${TOKEN}`,
		];
		for (const authorization of wrong)
			expect([(await ask("GET", "/api/v1/status", { authorization })).status, authorization]).toEqual([401, authorization]);
		expect((await ask("GET", "/api/v1/status", { authorization: `bearer ${TOKEN}` })).status).toBe(200);
	});

	it("never lets an empty token in", async () => {
		const bare = await openHouse({ token: () => "" });
		expect((await bare.app.inject({ url: "/api/v1/status", headers: { authorization: "Bearer " } })).statusCode).toBe(401);
		await bare.close();
	});

	it("sends strict headers with everything, refusals too, and none that force https", async () => {
		for (const [path, headers] of [
			["/", {}],
			["/healthz", {}],
			["/api/v1/status", {}],
			["/api/v1/status", bearer],
			["/healthz", { host: "evil.test" }],
			["/nothing.js", {}],
		] as [string, Record<string, string>][]) {
			const answer = await ask("GET", path, headers);
			const policy = String(answer.headers["content-security-policy"]);
			for (const part of [
				"default-src 'self'",
				"script-src 'self'",
				"img-src 'self' data: blob:",
				"connect-src 'self'",
				"frame-ancestors 'none'",
				"base-uri 'none'",
				"form-action 'self'",
				"object-src 'none'",
			]) {
				expect(policy.split("; "), path).toContain(part);
			}
			expect(policy).not.toMatch(/upgrade-insecure-requests|unsafe-eval|script-src[^;]*unsafe/);
			expect(answer.headers["strict-transport-security"]).toBeUndefined();
			expect(answer.headers).toMatchObject({
				"cross-origin-opener-policy": "same-origin",
				"cross-origin-resource-policy": "same-origin",
				"referrer-policy": "no-referrer",
				"x-content-type-options": "nosniff",
				"x-frame-options": "DENY",
			});
		}
		expect((await ask("GET", "/api/v1/status", bearer)).headers["cache-control"]).toBe("no-store");
	});

	it("takes only the content types that another site cannot send without asking", async () => {
		for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
			const answer = await ask("POST", "/api/v1/conversations", { ...bearer, "content-type": type }, '{"title":"x"}');
			expect([answer.status, answer.json().code]).toEqual([415, "unsupported-media-type"]);
		}
	});

	it("survives what is not HTTP", async () => {
		const answer = await new Promise<string>((resolve) => {
			const socket = connectTcp(port, "127.0.0.1", () => socket.write("NONSENSE\r\n\r\n"));
			let text = "";
			socket.on("data", (data) => {
				text += String(data);
			});
			socket.on("close", () => resolve(text));
		});
		expect(answer).toContain("400");
		expect(answer).toContain("content-security-policy: default-src 'self'");
		expect(answer).toContain("application/problem+json");
		const crooked = await ask("GET", "/%zz");
		expect(crooked.status).toBe(400);
		expect(crooked.headers["content-security-policy"]).toContain("default-src 'self'");
		const tooLong = await ask("GET", "/healthz", { "x-long": "x".repeat(20_000) });
		expect([tooLong.status, tooLong.json().code, tooLong.headers["x-frame-options"]]).toEqual([431, "unreadable-request", "DENY"]);
		expect((await ask("GET", "/healthz")).status).toBe(200);
	});
});

describe("errors", () => {
	it("are problem+json with a code, and say nothing of the inside", async () => {
		house.deps.status = async () => {
			throw new Error("the secret path /home/someone/.openlani");
		};
		const failed = await ask("GET", "/api/v1/status", bearer);
		expect(failed.status).toBe(500);
		expect(failed.headers["content-type"]).toContain("application/problem+json");
		expect(failed.json()).toEqual({
			type: "about:blank",
			title: "Internal error",
			status: 500,
			code: "internal",
			detail: expect.any(String),
		});
		expect(failed.body).not.toContain("secret path");
		expect(house.log.find(({ event }) => event === "http.failed")?.data?.message).toContain("secret path");

		const json = { ...bearer, "content-type": "application/json" };
		expect((await ask("POST", "/api/v1/conversations", json, "{nonsense")).json()).toMatchObject({ status: 400, code: "bad-json" });
		expect((await ask("POST", "/api/v1/conversations", json, '{"__proto__":{"x":1}}')).json()).toMatchObject({
			status: 400,
			code: "bad-json",
		});
		expect((await ask("GET", "/api/v1/nothing", bearer)).json()).toMatchObject({ status: 404, code: "not-found" });
		expect((await ask("POST", "/nothing", bearer)).json()).toMatchObject({ status: 404, code: "not-found" });
		expect((await ask("GET", `/api/v1/turns/${"x".repeat(500)}`, bearer)).status).toBe(404);
		expect((await ask("GET", "/api/v1/schedules", bearer)).status).toBe(404);
		expect((await ask("POST", "/api/v1/filter/test", json, "{}")).json()).toMatchObject({
			code: "invalid-request",
			errors: [{ path: "text" }],
		});
	});

	it("say that the disk is full, and the store busy", async () => {
		const throwing = (code: string) => async () => {
			throw Object.assign(new Error(code), { code });
		};
		house.deps.status = throwing("SQLITE_FULL");
		expect((await ask("GET", "/api/v1/status", bearer)).json()).toMatchObject({ status: 507, code: "disk-full" });
		house.deps.status = throwing("SQLITE_BUSY_SNAPSHOT");
		const busy = await ask("GET", "/api/v1/status", bearer);
		expect([busy.status, busy.headers["retry-after"]]).toEqual([503, "1"]);
		expect((await ask("GET", "/healthz")).json()).toEqual({ status: "degraded", version: "1.2.3" });
	});
});
