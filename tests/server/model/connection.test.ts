import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeOpenAI, startFakeOpenAI } from "../../fakes/openai-server.ts";
import { ask, entry, run, setUp } from "./setup.ts";

let server: FakeOpenAI;
beforeEach(async () => {
	server = await startFakeOpenAI();
});
afterEach(() => server.close());

const listening = (one: net.Server | http.Server) =>
	new Promise<number>((resolve) => one.listen(0, "127.0.0.1", () => resolve((one.address() as AddressInfo).port)));

describe("connections", () => {
	it("one that never stands is given up after connectMs, and nothing was used", async () => {
		// It accepts, but the TLS handshake is never answered.
		const sockets: net.Socket[] = [];
		const mute = net.createServer((socket) => void sockets.push(socket));
		const port = await listening(mute);
		const { models, calls } = setUp([
			entry("main", `https://127.0.0.1:${port}/v1`, { limits: { connectMs: 60 } }),
			entry("spare", server.url),
		]);
		expect((await run(models, ask("hi"))).reply.model).toBe("spare");
		expect(calls[0]?.end).toMatchObject({ error: { kind: "timeout" }, usage: null });
		expect(calls).toHaveLength(2);
		for (const socket of sockets) socket.destroy();
		mute.close();
	});

	it("go through the configured proxy, but never to loopback", async () => {
		const asked: string[] = [];
		const proxy = http.createServer().on("connect", (request, socket, head) => {
			asked.push(request.url ?? "");
			const through = net.connect(server.port, "127.0.0.1", () => {
				socket.write("HTTP/1.1 200 OK\r\n\r\n");
				through.write(head);
				through.pipe(socket).pipe(through);
			});
			through.on("error", () => socket.destroy());
			socket.on("error", () => through.destroy());
		});
		const url = `http://127.0.0.1:${await listening(proxy)}`;
		const settings = { proxy: { http: url, https: url, noProxy: null } };
		const far = setUp([entry("main", "http://models.test:8000/v1")], settings);
		server.script({ text: "through the proxy", chunkBytes: 9 });
		expect((await run(far.models, ask("hi"))).text).toBe("through the proxy");
		expect(far.calls).toHaveLength(1);
		expect((await run(setUp([entry("main", server.url)], settings).models, ask("hi"))).text).toBe("You said: hi");
		// The proxy's client may keep a spare tunnel; nothing but the far host is ever asked for.
		expect(new Set(asked)).toEqual(new Set(["models.test:8000"]));
		proxy.close();
		proxy.closeAllConnections();
	});

	it("a kept connection that the server closes does not hurt the next call", async () => {
		const { models, calls } = setUp([entry("main", server.url)]);
		for (let i = 0; i < 5; i++) {
			await run(models, ask("hi"));
			server.dropIdle();
		}
		expect(calls.every((call) => call.end?.error === null)).toBe(true);
		expect(calls).toHaveLength(5);
	});

	it("many at once", async () => {
		const { models, calls } = setUp([entry("main", server.url)]);
		const answers = await Promise.all(
			Array.from({ length: 50 }, (_, i) => run(models, ask(`number ${i}`, { context: { ...ask("").context, turnId: `t${i}` } }))),
		);
		expect(answers.map((answer) => answer.text)).toEqual(answers.map((_, i) => `You said: number ${i}`));
		expect(calls).toHaveLength(50);
		models.close();
	});
});
