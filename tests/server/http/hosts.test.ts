import { describe, expect, it } from "vitest";
import { hostAllowed, type Listening, originAllowed } from "../../../server/http/hosts.ts";

const loopback: Listening = { port: 7717, localAddress: "127.0.0.1", listenHost: null, publicUrl: null };

describe("Host", () => {
	it("is one of our names with our port", () => {
		for (const host of [
			"localhost:7717",
			"LOCALHOST:7717",
			"127.0.0.1:7717",
			"[::1]:7717",
			"[0:0:0:0:0:0:0:1]:7717",
			"[::ffff:127.0.0.1]:7717",
		]) {
			expect(hostAllowed(host, loopback), host).toBe(true);
		}
	});

	it("is refused when it is another's", () => {
		const bad = [
			"evil.test",
			"evil.test:7717",
			"localhost",
			"localhost:80",
			"localhost:7718",
			"localhost.evil.test:7717",
			"localhost.:7717",
			"127.0.0.1.nip.io:7717",
			"",
			"user@localhost:7717",
			"localhost:7717/x",
			"[::1",
			"::1:7717",
			"192.168.1.5:7717",
			"[::2]:7717",
			"0.0.0.0:7717",
			"localhost:7717:7717",
			"localhost:99999",
		];
		for (const host of bad) expect(hostAllowed(host, loopback), host).toBe(false);
		expect(hostAllowed(undefined, loopback)).toBe(false);
	});

	it("may be the address that the connection came to", () => {
		const lan = { ...loopback, localAddress: "::ffff:192.168.1.5" };
		expect(hostAllowed("192.168.1.5:7717", lan)).toBe(true);
		expect(hostAllowed("192.168.1.6:7717", lan)).toBe(false);
		expect(hostAllowed("[fe80::1]:7717", { ...loopback, localAddress: "fe80::1%eth0" })).toBe(true);
		expect(hostAllowed("[FD00::A]:7717", { ...loopback, localAddress: "fd00::a" })).toBe(true);
	});

	it("may be the name we were told to listen on", () => {
		expect(hostAllowed("box.lan:7717", { ...loopback, listenHost: "Box.LAN" })).toBe(true);
		expect(hostAllowed("other.lan:7717", { ...loopback, listenHost: "box.lan" })).toBe(false);
	});

	it("may be publicUrl's, with or without the usual port", () => {
		const open = { ...loopback, publicUrl: "https://lani.example.test/" };
		expect(hostAllowed("lani.example.test", open)).toBe(true);
		expect(hostAllowed("lani.example.test:443", open)).toBe(true);
		expect(hostAllowed("lani.example.test:7717", open)).toBe(false);
		expect(hostAllowed("a.lani.example.test", open)).toBe(false);
		expect(hostAllowed("box:8443", { ...loopback, publicUrl: "http://box:8443" })).toBe(true);
		expect(hostAllowed("evil.test", { ...loopback, publicUrl: "nonsense" })).toBe(false);
	});

	it("needs no port where nothing listens", () => {
		expect(hostAllowed("localhost:80", { ...loopback, port: null })).toBe(true);
		expect(hostAllowed("evil.test", { ...loopback, port: null })).toBe(false);
	});
});

describe("Origin", () => {
	it("is our own page's", () => {
		for (const origin of ["http://localhost:7717", "http://127.0.0.1:7717", "http://[::1]:7717"])
			expect(originAllowed(origin, loopback), origin).toBe(true);
		expect(originAllowed("https://lani.example.test", { ...loopback, publicUrl: "https://lani.example.test/path" })).toBe(true);
	});

	it("is refused when it is another's", () => {
		const bad = [
			"null",
			"",
			"https://localhost:7717",
			"http://localhost:3000",
			"http://localhost",
			"http://evil.test",
			"http://localhost:7717.evil.test",
			"http://localhost:7717@evil.test",
			"file://",
			"chrome-extension://abc",
			"http://evil.test:7717",
		];
		for (const origin of bad) expect(originAllowed(origin, loopback), origin).toBe(false);
		expect(originAllowed("http://lani.example.test", { ...loopback, publicUrl: "https://lani.example.test" })).toBe(false);
	});
});
