// Runs the built server once with an empty home and talks to it, as a page would, so that what a start and a first answer need is compiled.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withProgress } from "./run.mjs";
import { say } from "./say.mjs";

const LIMIT_MS = 60_000;
const TOKEN = "only-for-the-time-of-the-build";

/** A model that calls a tool and then answers. */
function startModel() {
	const server = createServer((request, response) => {
		const chunks = [];
		request.on("data", (chunk) => chunks.push(chunk));
		request.on("end", () => {
			const isToolDone = Buffer.concat(chunks).includes('"role":"tool"');
			const call = { index: 0, id: "call_1", type: "function", function: { name: "now", arguments: "{}" } };
			const deltas = isToolDone ? [{ content: "It is " }, { content: "**now**." }] : [{ tool_calls: [call] }];
			response.writeHead(200, { "content-type": "text/event-stream" });
			const send = (delta, finish_reason, more) =>
				response.write(
					`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }], ...more })}\n\n`,
				);
			for (const delta of deltas) send({ role: "assistant", ...delta }, null);
			send({}, isToolDone ? "stop" : "tool_calls", { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
			response.end("data: [DONE]\n\n");
		});
	});
	return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** One message through the live socket, to its delivered answer. */
async function ask(url, conversation, text, signal) {
	const { WebSocket } = await import("ws");
	const socket = new WebSocket(`${url.replace("http", "ws")}/api/v1/live`, { headers: { authorization: `Bearer ${TOKEN}` } });
	try {
		await new Promise((resolve, reject) => {
			signal.addEventListener("abort", () => reject(signal.reason), { once: true });
			socket.on("error", reject);
			socket.on("close", () => reject(new Error("the live socket was closed")));
			socket.on("open", () => socket.send(JSON.stringify({ type: "hello", since: 0 })));
			socket.on("message", (data) => {
				const frame = JSON.parse(String(data));
				if (frame.type === "hello") socket.send(JSON.stringify({ type: "send", clientId: "1", conversation, text }));
				if (frame.type === "message" && frame.message?.role === "assistant") resolve();
			});
		});
	} finally {
		socket.removeAllListeners("close");
		socket.close();
	}
}

async function use(url, signal) {
	const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
	const get = async (path, init) => {
		const response = await fetch(`${url}${path}`, { headers, signal, ...init });
		if (!response.ok) throw new Error(`${path} answered ${response.status}`);
		return response;
	};
	const made = await get("/api/v1/conversations", { method: "POST", body: JSON.stringify({ title: "first" }) });
	const { id } = await made.json();
	await ask(url, id, "What time is it? 现在几点?", signal);
	for (const path of ["/api/v1/status", "/api/v1/conversations", `/api/v1/conversations/${id}/messages`]) await (await get(path)).text();
}

function startServer(dir, home, modelUrl) {
	const recorder = fileURLToPath(new URL("./record-process.cjs", import.meta.url));
	const child = spawn(process.execPath, [recorder, dir, "serve", "--home", home, "--port", "0"], {
		cwd: home,
		env: {
			...(process.env.PATH ? { PATH: process.env.PATH } : {}),
			HOME: home,
			OPENLANI_TOKEN: TOKEN,
			OPENAI_BASE_URL: `${modelUrl}/v1`,
			OPENAI_API_KEY: "none",
			OPENLANI_MODEL: "m",
		},
		stdio: ["ignore", "pipe", "pipe"],
	});
	let output = "";
	const ended = new Promise((resolve) => child.once("close", resolve));
	const ready = new Promise((resolve, reject) => {
		for (const stream of [child.stdout, child.stderr]) {
			stream.on("data", (chunk) => {
				output = (output + chunk).slice(-20_000);
				const url = /^OpenLani ready at (\S+)$/m.exec(output)?.[1];
				if (url) resolve(url);
			});
		}
		child.once("error", reject);
		void ended.then((code) => reject(new Error(`the server ended with ${code}: ${output.slice(-500)}`)));
	});
	return { child, ready, ended };
}

/** Answers whether there is now something to start faster with. */
export async function record(dir) {
	return withProgress("Compiling the server for quick starts", async () => {
		const home = mkdtempSync(join(tmpdir(), "openlani-compile-"));
		const model = await startModel();
		const ending = AbortSignal.timeout(LIMIT_MS);
		const server = startServer(dir, home, `http://127.0.0.1:${model.address().port}`);
		const late = new Promise((_, reject) => ending.addEventListener("abort", () => reject(ending.reason), { once: true }));
		try {
			await Promise.race([late, server.ready.then((url) => use(url, ending))]);
			server.child.kill("SIGTERM");
			const code = await Promise.race([late, server.ended]);
			if (code !== 0) throw new Error(`the server ended with ${code}`);
			return true;
		} catch (error) {
			say(`not compiled ahead, the server will start more slowly: ${error.message}`);
			return false;
		} finally {
			server.child.kill("SIGKILL");
			await server.ended;
			model.close();
			model.closeAllConnections();
			rmSync(home, { recursive: true, force: true });
		}
	});
}
