import { describe, expect, it } from "vitest";
import { createRedactor } from "../../../server/safety/redact.ts";

const canary = 'Zq9"canary/secret+value=42';

describe("a redactor", () => {
	it("finds a known value in every form in which it may be written", () => {
		const redact = createRedactor([canary]);
		const forms = {
			plain: canary,
			json: JSON.stringify({ note: canary }),
			url: `https://example.test/?q=${encodeURIComponent(canary)}`,
			base64: Buffer.from(canary).toString("base64"),
			base64url: Buffer.from(canary).toString("base64url"),
			basic: Buffer.from(`user:${canary}`).toString("base64"),
			basic2: Buffer.from(`u:${canary}!`).toString("base64"),
			hex: Buffer.from(canary).toString("hex"),
		};
		for (const [form, text] of Object.entries(forms)) {
			const out = redact.text(`before ${text} after`);
			expect(out, form).toContain("[redacted]");
			expect(out, form).toMatch(/^before .* after$/);
			expect(out.includes(canary) || Buffer.from(out, "utf8").includes("canary"), form).toBe(false);
		}
	});

	it("takes out what looks like a secret even if nobody named it", () => {
		const redact = createRedactor();
		for (const text of [
			"key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789",
			"Authorization: Bearer abcdefghijklmnop.qrstuvwxyz",
			"https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz0123456/getMe",
			"postgres://lani:hunter2hunter2@db.example.test/x",
			"wss://example.test/live?access_token=abcdef123456",
			"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
		]) {
			const out = redact.text(text);
			expect(out).toContain("[redacted]");
			expect(out).not.toMatch(/abcdefghijklmnop|hunter2|abcdef123456|MIIEvQ/);
		}
	});

	it("leaves ordinary text, code and JSON alone", () => {
		const redact = createRedactor([canary, "short", ""]);
		const text = 'const url = "https://example.test/a?b=c"; // short 你好 👩‍👩‍👧 user@example.test {"max_tokens": 12, "n": "10:30"}';
		expect(redact.text(text)).toBe(text);
		const data = { inputTokens: 12, maxTokens: 3, keyboard: "qwerty", tokens: "many" };
		expect(redact.data(data)).toEqual(data);
	});

	it("keeps JSON valid JSON", () => {
		const redact = createRedactor([canary]);
		const body = JSON.stringify({ url: "http://a.test", mail: "b:c@d", key: canary, pem: "-----BEGIN PRIVATE KEY-----\nMIIE" });
		const out = JSON.parse(redact.text(body)) as Record<string, string>;
		expect(out.url).toBe("http://a.test");
		expect(out.key).toBe("[redacted]");
		expect(out.pem).toBe("[redacted]");
	});

	it("hides values under secret names in data, keeps errors readable, and survives cycles", () => {
		const redact = createRedactor([canary]);
		const data: Record<string, unknown> = {
			password: "x1",
			mailPassword: "x2",
			apiKeys: ["x3"],
			headers: { Authorization: "x4" },
			deep: { text: `a ${canary}` },
			error: new Error(`bad ${canary}`, { cause: canary }),
		};
		data.self = data;
		const out = JSON.stringify(redact.data(data));
		for (const bad of ["x1", "x2", "x3", "x4", "canary"]) expect(out).not.toContain(bad);
		expect(out).toContain("bad [redacted]");
	});

	it("holds back in a stream what may become a secret", () => {
		const redact = createRedactor(["supersecretvalue"]);
		const stream = redact.stream();
		let out = "";
		for (const character of "say supersecretvalue and supersec, done") out += stream.push(character);
		out += stream.end();
		expect(out).toBe("say [redacted] and supersec, done");
	});

	it("forgets replaced values and learns new ones", () => {
		const redact = createRedactor(["oldoldold"]);
		redact.replace(["newnewnew"]);
		expect(redact.text("oldoldold newnewnew")).toBe("oldoldold [redacted]");
		redact.add(["third-one"]);
		expect(redact.text("third-one newnewnew")).toBe("[redacted] [redacted]");
	});

	it("finds in texts that begin alike what it finds in each alone", () => {
		const secrets = ["abcdef-secret-1", "late-secret-2"];
		const redact = createRedactor(["abcdef-secret-1"]);
		const clean = redact.alike();
		const head = `{"system":"${"You are calm and helpful. ".repeat(30)}","messages":["`;
		const texts = [
			`${head}hello"]}`,
			`${head}hello"]}`,
			`${head}hello you"]}`,
			// What was clean alone may be the beginning of a secret.
			`${head}hello abcdef-sec"]}`,
			`${head}hello abcdef-secret-1"]}`,
			`${head}hello abcdef-sec"]}`,
			`${head}hello sk-proj-abcdefghijklmnop`,
			`${head}hello sk-proj-abcdefghijklmnopqrstuv"]}`,
			`${head}hello late-secret-2"]}`,
			"no quotation marks, abcdef-secret-1",
			"",
		];
		for (const text of texts) expect(clean(text)).toBe(redact.text(text));
		redact.add(["late-secret-2"]);
		for (const text of texts) expect(clean(text)).toBe(redact.text(text));
		redact.add(['quote"d-secret']);
		for (const text of [`${head}quote"d-secre"]}`, `${head}quote"d-secret"]}`]) expect(clean(text)).toBe(redact.text(text));
		for (const secret of secrets) expect(texts.map(clean).join("")).not.toContain(secret);
	});

	it("stays quick on long text without secrets and on hostile text", () => {
		const redact = createRedactor([canary]);
		const began = performance.now();
		redact.text("a".repeat(500_000));
		redact.text("a:".repeat(200_000));
		redact.text("-----BEGIN PRIVATE KEY-----".repeat(5_000));
		redact.text(`http://${"x".repeat(300_000)}`);
		expect(performance.now() - began).toBeLessThan(2_000);
	});
});
