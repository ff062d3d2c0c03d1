/**
 * The scripted server as its own process: `tsx tests/fakes/openai-server.main.ts [--port N] [--script FILE.json] [--options JSON]`.
 * Prints `fake model server at http://127.0.0.1:PORT/v1` and runs until it is told to stop. FILE.json is
 * `{"script": [Behaviour…], "rules": [{"match": "part of the message", "answer": Behaviour}], "otherwise": Behaviour, "memory": Behaviour}`, all optional.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { type Behaviour, startFakeOpenAI } from "./openai-server.ts";

const { values } = parseArgs({ options: { port: { type: "string" }, script: { type: "string" }, options: { type: "string" } } });
const server = await startFakeOpenAI({
	...(values.options ? JSON.parse(values.options) : {}),
	...(values.port ? { port: Number(values.port) } : {}),
});
if (values.script) {
	const file = JSON.parse(await readFile(values.script, "utf8")) as {
		script?: Behaviour[];
		rules?: { match: string; answer: Behaviour }[];
		otherwise?: Behaviour;
		memory?: Behaviour;
	};
	server.script(...(file.script ?? []));
	for (const rule of file.rules ?? []) server.rule(rule.match, rule.answer);
	if (file.otherwise) server.otherwise(file.otherwise);
	if (file.memory) server.memory(file.memory);
}
console.log(`fake model server at ${server.url}`);
const stop = () => void server.close().then(() => process.exit(0));
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
