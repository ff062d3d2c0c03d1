/**
 * The floor: what the parts cost without a product. A message over a WebSocket is stored, the model is asked through the openai
 * SDK, its stream is passed on, the answer is stored and sent.
 */
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import websocket from "@fastify/websocket";
import Database from "better-sqlite3";
import Fastify from "fastify";
import OpenAI from "openai";

const database = new Database(join(process.env.BENCH_FLOOR_HOME ?? ".", "floor.db"));
database.pragma("journal_mode = WAL");
database.pragma("synchronous = FULL");
database.exec("create table messages (id integer primary key, conversation text, role text, text text)");
const insert = database.prepare("insert into messages (conversation, role, text) values (?, ?, ?)");
const client = new OpenAI({ baseURL: process.env.BENCH_MODEL_URL, apiKey: "sk-bench", maxRetries: 0 });

const app = Fastify();
await app.register(websocket);
app.get("/live", { websocket: true }, (socket) => {
	const answer = async (conversation: string, text: string): Promise<void> => {
		insert.run(conversation, "user", text);
		const stream = await client.chat.completions.create({
			model: "bench-model",
			messages: [{ role: "user", content: text }],
			stream: true,
			stream_options: { include_usage: true },
		});
		let whole = "";
		for await (const chunk of stream) {
			const piece = chunk.choices[0]?.delta.content ?? "";
			if (piece === "") continue;
			whole += piece;
			socket.send(JSON.stringify({ type: "delta", conversation, text: piece }));
		}
		insert.run(conversation, "assistant", whole);
		socket.send(JSON.stringify({ type: "message", conversation, message: { role: "assistant", text: whole } }));
	};
	socket.on("message", (data) => {
		const frame = JSON.parse(String(data)) as { type: string; conversation: string; text: string };
		if (frame.type === "send") void answer(frame.conversation, frame.text).catch((error: unknown) => console.error(error));
	});
});
await app.listen({ host: "127.0.0.1", port: 0 });
process.on("SIGTERM", () => void app.close().then(() => process.exit(0)));
process.on("disconnect", () => process.exit(0));
process.send?.({ url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` });
