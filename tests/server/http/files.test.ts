import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rangeOf, safeName, served } from "../../../server/http/files.ts";
import { type House, openHouse, TOKEN } from "./house.ts";

let house: House;
let url: string;
beforeEach(async () => {
	house = await openHouse({ page: true });
	({ url } = await house.listen());
});
afterEach(() => house.close());

const auth = { authorization: `Bearer ${TOKEN}` };
const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const upload = async (body: FormData | Uint8Array | string, headers: Record<string, string> = {}, query = "") => {
	const answer = await fetch(`${url}/api/v1/assets${query}`, { method: "POST", body, headers: { ...auth, ...headers } });
	return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const form = (data: Uint8Array | string, type: string, name: string) => {
	const made = new FormData();
	made.append("note", "a field before the file");
	made.append("file", new Blob([data], { type }), name);
	return made;
};

describe("assets", () => {
	it("come as a form or as they are, and go out as they came", async () => {
		const asForm = await upload(form(png, "image/png", "周报 1.png"));
		expect(asForm).toMatchObject({ status: 201, body: { name: "周报 1.png", mimeType: "image/png", bytes: 16, kind: "image" } });
		const raw = await upload(png, { "content-type": "application/octet-stream" }, "?name=raw.png");
		expect(raw.body).toMatchObject({ sha256: asForm.body.sha256, mimeType: "image/png" });
		const out = await fetch(`${url}/api/v1/assets/${asForm.body.sha256}`, { headers: auth });
		expect(Buffer.from(await out.arrayBuffer()).equals(png)).toBe(true);
		expect(out.headers.get("content-type")).toBe("image/png");
		expect(out.headers.get("content-disposition")).toBe(`inline; filename="__ 1.png"; filename*=UTF-8''%E5%91%A8%E6%8A%A5%201.png`);
		expect(out.headers.get("content-security-policy")).toMatch(/^default-src 'none'.*sandbox/);
		expect(out.headers.get("x-content-type-options")).toBe("nosniff");
		expect(out.headers.get("cross-origin-resource-policy")).toBe("same-origin");
		const part = await fetch(`${url}/api/v1/assets/${asForm.body.sha256}`, { headers: { ...auth, range: "bytes=1-3" } });
		expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "PNG", "bytes 1-3/16"]);
		const etag = out.headers.get("etag") ?? "";
		expect((await fetch(`${url}/api/v1/assets/${asForm.body.sha256}`, { headers: { ...auth, "if-none-match": etag } })).status).toBe(304);
	});

	it("cannot run in the page whatever they claim to be", async () => {
		for (const [type, name] of [
			["text/html", "x.html"],
			["image/svg+xml", "x.svg"],
			["text/javascript", "x.js"],
			["application/xhtml+xml", "x.xhtml"],
			["image/png", "liar.png"],
			["text/xml", "x.xml"],
			["application/pdf", "x.pdf"],
		] as const) {
			const { body } = await upload(form(`<script>alert("${type}")</script>`, type, name));
			const out = await fetch(`${url}/api/v1/assets/${body.sha256}`, { headers: auth });
			expect(out.headers.get("content-disposition"), type).toMatch(/^attachment/);
			expect(["application/octet-stream", "application/pdf"], type).toContain(out.headers.get("content-type"));
			await out.body?.cancel();
		}
	});

	it("are refused when they are empty, too large, no form, or not ours to read", async () => {
		expect(await upload(new Uint8Array(0), { "content-type": "text/plain" })).toMatchObject({ status: 400, body: { code: "empty-file" } });
		expect(await upload("nonsense", { "content-type": "multipart/form-data; boundary=x" })).toMatchObject({
			status: 400,
			body: { code: "bad-form" },
		});
		const none = new FormData();
		none.append("a", "b");
		expect(await upload(none)).toMatchObject({ status: 400, body: { code: "no-file" } });
		const large = await house.app.inject({
			method: "POST",
			url: "/api/v1/assets",
			headers: { ...auth, host: new URL(url).host, "content-type": "application/octet-stream" },
			payload: Buffer.alloc(33 * 1024 * 1024),
		});
		expect(large.json()).toMatchObject({ status: 413, code: "too-large" });
		expect((await fetch(`${url}/api/v1/assets/${"a".repeat(64)}`)).status).toBe(401);
		expect((await fetch(`${url}/api/v1/assets/${"a".repeat(64)}`, { headers: auth })).status).toBe(404);
		expect((await fetch(`${url}/api/v1/assets/..%2f..%2fetc%2fpasswd`, { headers: auth })).status).toBe(400);
	});

	it("do not hold the end up when a client stops reading", async () => {
		const { body } = await upload(Buffer.alloc(8_000_000, 1), { "content-type": "application/octet-stream" });
		const out = await fetch(`${url}/api/v1/assets/${body.sha256}`, { headers: auth });
		const began = Date.now();
		await house.app.close();
		expect(Date.now() - began).toBeLessThan(4000);
		await out.body?.cancel().catch(() => {});
	});

	it("have names without tricks", () => {
		expect(safeName("../../etc/passwd")).toBe("passwd");
		expect(safeName("C:\\x\\y.txt")).toBe("y.txt");
		expect(safeName('a"b\r\nc\u202ed.png')).toBe('a"bcd.png');
		for (const name of ["", "..", "/", undefined]) expect(safeName(name)).toBe("file");
		expect(served("image/png", 'a"b%c\\.png').disposition).toBe(`inline; filename="a_b_c_.png"; filename*=UTF-8''a%22b%25c%5C.png`);
		expect(rangeOf("bytes=-4", 10)).toEqual({ start: 6, end: 9 });
		expect(rangeOf("bytes=5-", 10)).toEqual({ start: 5, end: 9 });
		expect(rangeOf("bytes=10-", 10)).toBe("invalid");
		expect(rangeOf("bytes=0-1,4-5", 10)).toBeNull();
	});
});

describe("the page", () => {
	const get = async (path: string, headers: Record<string, string> = {}) => {
		const answer = await fetch(url + path, { headers });
		return {
			status: answer.status,
			text: await answer.text(),
			type: answer.headers.get("content-type"),
			cache: answer.headers.get("cache-control"),
			etag: answer.headers.get("etag"),
		};
	};

	it("is served to everybody, hashed files for ever, itself always fresh", async () => {
		const page = await get("/");
		expect(page).toMatchObject({ status: 200, type: "text/html; charset=utf-8", cache: "no-cache" });
		expect(page.text).toContain("<title>OpenLani</title>");
		expect(await get("/assets/app-B1c2D3e4.js")).toMatchObject({
			status: 200,
			type: "text/javascript; charset=utf-8",
			cache: "public, max-age=31536000, immutable",
		});
		expect(await get("/favicon.svg")).toMatchObject({ status: 200, type: "image/svg+xml", cache: "no-cache" });
		expect((await get("/", { "if-none-match": page.etag ?? "" })).status).toBe(304);
		const head = await fetch(`${url}/`, { method: "HEAD" });
		expect([head.status, head.headers.get("content-length")]).toEqual([200, String(page.text.length)]);
	});

	it("answers its own routes, and nothing else", async () => {
		for (const path of ["/c/0192-abc", "/settings/models", "/login"])
			expect((await get(path, { accept: "text/html" })).text).toContain("<title>OpenLani</title>");
		for (const path of ["/assets/gone-B1c2D3e4.js", "/missing.png"])
			expect(await get(path)).toMatchObject({ status: 404, type: expect.stringContaining("problem+json") });
		expect((await get("/c/x", { accept: "application/json" })).status).toBe(404);
		for (const path of ["/api/v1/nothing", "/v1/nothing", "/metrics"])
			expect((await get(path, { ...auth, accept: "text/html" })).status).toBe(404);
		expect((await fetch(`${url}/c/x`, { method: "POST" })).status).toBe(404);
	});

	it("holds no file from outside its folder", async () => {
		for (const path of [
			"/../secret.txt",
			"/..%2fsecret.txt",
			"/assets/..%2f..%2fsecret.txt",
			"/%2e%2e/secret.txt",
			"/..\\secret.txt",
			"/assets%2f..%2f..%2fsecret.txt",
		]) {
			const answer = await house.app.inject({ url: path, headers: { host: new URL(url).host } });
			expect(answer.body, path).not.toContain("not for the page");
			expect([400, 401, 404], path).toContain(answer.statusCode);
		}
	});

	it("is not there without a build", async () => {
		const bare = await openHouse();
		expect((await bare.app.inject("/")).json()).toMatchObject({ status: 404, code: "not-found" });
		await bare.close();
	});
});
