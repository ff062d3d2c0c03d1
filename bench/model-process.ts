/** The scripted OpenAI-compatible server as a process of its own: answers by the message's beginning, notes times on request. */
import { startFakeOpenAI } from "../tests/fakes/openai-server.ts";
import { ASKS, type ModelCommand, type ModelMessage, REPLY, STREAM } from "./lib/messages.ts";

const now = () => Number(process.hrtime.bigint()) / 1e6;
let noting: "times" | "bodies" | "nothing" = "nothing";
let times: NonNullable<ModelMessage["times"]> = [];
let bodies: string[] = [];

// Not strict: checking what is sent is the tests' business and would cost the time that is to be measured.
const server = await startFakeOpenAI({ record: false, strict: false });
server.otherwise((request) => {
	if (noting === "bodies") bodies.push(request.raw);
	// What was said and done, not the block of memories behind it.
	const talk = (request.body.messages as { role: string; content: unknown }[]).filter(
		({ role, content }) => role !== "user" || !String(content).startsWith("<"),
	);
	const lastUser = String(talk.findLast(({ role }) => role === "user")?.content ?? "");
	if (noting === "times") {
		const entry = { arrivedAt: now(), endedAt: Number.NaN, lastUser: lastUser.slice(-200) };
		times.push(entry);
		void request.finished.then(() => {
			entry.endedAt = now();
		});
	}
	if (lastUser.includes(ASKS.tool) && talk.at(-1)?.role !== "tool") return { calls: [{ name: "now", arguments: {} }] };
	const tokens = lastUser.includes(ASKS.long) ? STREAM.longTokens : lastUser.includes(ASKS.short) ? STREAM.shortTokens : 0;
	if (tokens > 0) return { text: Array.from({ length: tokens }, (_, n) => `token${n} `), betweenMs: STREAM.everyMs };
	return { text: REPLY };
});

server.memory({ text: REPLY });

const say = (message: ModelMessage) => process.send?.(message);
process.on("message", (command: ModelCommand) => {
	if ("note" in command) {
		noting = command.note;
		times = [];
		bodies = [];
		say({});
	} else say(command.get === "times" ? { times } : { bodies });
});
process.on("SIGTERM", () => void server.close().then(() => process.exit(0)));
process.on("disconnect", () => process.exit(0));
say({ url: server.url });
